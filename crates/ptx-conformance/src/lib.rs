//! The catalogue of instruction forms that the simulator and the hardware execute with the same inputs, and the
//! recorded results.
//!
//! `forms.txt` lists the forms. [`inputs`] generates their inputs, which are the same everywhere. A [`Record`] has the
//! results of one device, and [`judge`] compares the results of another device with them. This crate itself executes
//! nothing.

#![expect(clippy::unwrap_used, reason = "a test panics to fail, and only tests use this crate")]

pub mod files;
pub mod inputs;
pub mod judge;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use self::inputs::Class;
use self::judge::Bound;

const FORMS: &str = include_str!("../forms.txt");

/// Number of threads that execute a form. They are in one block, and each has its own inputs.
pub const CASES: usize = 256;

/// Names of the sources in a form's text.
const SOURCES: [&str; 5] = ["a", "b", "c", "e", "f"];

/// A form of an instruction, with the classes of its operands.
#[derive(Debug, Clone)]
pub struct Form {
    /// Opcode, which is also the name of the record's file.
    pub op: String,
    /// Name of the form in the record: its text, followed by the classes if another form has the same text.
    pub name: String,
    text: String,
    /// Class of the result.
    pub result: Class,
    /// Classes of the source operands, in order.
    pub sources: Vec<Class>,
    /// How much the results of two devices may differ.
    pub bound: Bound,
}

/// Returns all forms of the catalogue, in order.
pub fn forms() -> Vec<Form> {
    let mut forms: Vec<Form> = Vec::new();
    let mut op = "";
    for line in FORMS.lines().filter(|l| !l.is_empty() && !l.starts_with('#')) {
        if let Some(name) = line.strip_prefix('[').and_then(|l| l.strip_suffix(']')) {
            op = name;
            continue;
        }
        for line in alternatives(line) {
            let mut form = Form::parse(op, &line);
            if forms.iter().any(|f| f.op == form.op && f.name == form.name) {
                form.name = line;
            }
            forms.push(form);
        }
    }
    forms
}

/// Expands the braces of a line to all alternatives, and replaces `$n` with the choice of the nth brace.
fn alternatives(line: &str) -> Vec<String> {
    let mut done = vec![(line.to_owned(), Vec::<String>::new())];
    while done.iter().any(|(text, _)| open_brace(text).is_some()) {
        done = done
            .into_iter()
            .flat_map(|(text, chosen)| {
                let open = open_brace(&text).unwrap();
                let close = open + text[open..].find('}').unwrap();
                let choices: Vec<String> = text[open + 1..close].split(',').map(str::to_owned).collect();
                choices.into_iter().map(move |choice| {
                    let chosen = [&chosen[..], std::slice::from_ref(&choice)].concat();
                    (format!("{}{choice}{}", &text[..open], &text[close + 1..]), chosen)
                })
            })
            .collect();
    }
    let repeat = |(text, chosen): (String, Vec<String>)| {
        chosen.iter().enumerate().fold(text, |text, (k, choice)| text.replace(&format!("${}", k + 1), choice))
    };
    done.into_iter().map(repeat).collect()
}

/// Returns the first brace with alternatives. A brace followed by a space is part of the PTX.
fn open_brace(text: &str) -> Option<usize> {
    text.match_indices('{').map(|(at, _)| at).find(|&at| !text[at + 1..].starts_with(' '))
}

impl Form {
    /// Parses a form from an expanded line of the catalogue.
    pub fn parse(op: &str, line: &str) -> Self {
        let mut fields = line.split('|').map(str::trim).collect::<Vec<_>>();
        // Some forms have `d|p` in their text, so the classes start after the last bar that is followed by a space.
        let classes_at = fields.iter().position(|f| f.split(' ').all(|word| Class::from_name(word).is_some())).unwrap();
        let bound = fields.get(classes_at + 1).map_or(Bound::Exact, |text| Bound::parse(text));
        fields.truncate(classes_at + 1);
        let classes: Vec<Class> = fields.pop().unwrap().split(' ').filter_map(Class::from_name).collect();
        let name = fields.join("|");
        let (result, sources) = classes.split_first().unwrap();
        let text = if name.contains(' ') {
            name.clone()
        } else {
            format!("{name} d, {};", SOURCES[..sources.len()].join(", "))
        };
        Self { op: op.to_owned(), name, text, result: *result, sources: sources.to_vec(), bound }
    }

    /// Returns a module whose kernel `test` executes the form. Its parameters are the addresses of the inputs (8 bytes
    /// per source), of the results (8 bytes per thread) and of scratch memory (8 bytes per thread).
    pub fn ptx(&self) -> String {
        let mut text = String::from(
            ".version 9.0\n.target sm_90\n.address_size 64\n\n.visible .entry test(.param .u64 from, .param .u64 to, \
             .param .u64 scratch)\n{\n\t.reg .pred p, q;\n\t.reg .b16 h;\n\t.reg .b32 t, u, cell, tid;\n\t.reg .b64 w, \
             x, far, at;\n",
        );
        writeln!(text, "\t.shared .align 8 .b8 cells[{}];", CASES * 8).unwrap();
        writeln!(text, "\t.reg .{} d;", self.result.result_register()).unwrap();
        for (class, name) in self.sources.iter().zip(SOURCES) {
            writeln!(text, "\t.reg .{} {name};", class.register()).unwrap();
        }
        text += "\tmov.u32 tid, %tid.x;\n\tmov.u32 cell, cells;\n\tmad.lo.u32 cell, tid, 8, cell;\n\tld.param.u64 far, \
                 [scratch];\n\tmad.wide.u32 far, tid, 8, far;\n\tld.param.u64 at, [from];\n";
        writeln!(text, "\tmad.wide.u32 at, tid, {}, at;", 8 * self.sources.len().max(1)).unwrap();
        for (k, (class, name)) in self.sources.iter().zip(SOURCES).enumerate() {
            let register = class.register();
            if *class == Class::Pred {
                writeln!(text, "\tld.global.u32 t, [at+{}];\n\tsetp.ne.u32 {name}, t, 0;", 8 * k).unwrap();
            } else {
                writeln!(text, "\tld.global.{register} {name}, [at+{}];", 8 * k).unwrap();
            }
        }
        writeln!(text, "\t{}", self.text).unwrap();
        text += "\tld.param.u64 at, [to];\n\tmad.wide.u32 at, tid, 8, at;\n";
        if self.result == Class::Pred {
            text += "\tselp.u32 t, 1, 0, d;\n\tst.global.u32 [at], t;\n";
        } else {
            writeln!(text, "\tst.global.{} [at], d;", self.result.result_register()).unwrap();
        }
        text + "\tret;\n}\n"
    }

    /// Returns the inputs of all cases, one source after another.
    pub fn inputs(&self) -> Vec<Vec<u64>> {
        (0..CASES).map(|case| inputs::of_case(&self.sources, case)).collect()
    }

    /// Returns the input buffer of a launch, which has the inputs of all cases, 8 bytes each.
    pub fn bytes(inputs: &[Vec<u64>]) -> Vec<u8> {
        let mut bytes: Vec<u8> = inputs.iter().flatten().flat_map(|v| v.to_le_bytes()).collect();
        bytes.resize(bytes.len().max(8 * CASES), 0);
        bytes
    }
}

/// A device's results for the forms of one opcode.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Record {
    /// Opcode of the forms, which is also the name of the file.
    pub op: String,
    pub device: String,
    /// Results of all cases as hexadecimal digits, by the name of the form.
    pub forms: BTreeMap<String, String>,
    /// Forms that the device's assembler rejects, with its messages.
    pub refused: BTreeMap<String, String>,
}

impl Record {
    pub fn results(class: Class, digits: &str) -> Vec<u64> {
        let width = class.result_digits();
        (0..digits.len() / width)
            .map(|k| u64::from_str_radix(&digits[k * width..(k + 1) * width], 16).unwrap())
            .collect()
    }
}

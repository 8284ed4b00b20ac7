//! Listings, which join instruction words with their text and with the lines they come from.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::disassembly::{Disassembly, InstructionText};
use crate::{Control, Cubin, Function, INSTRUCTION_BYTES, Place, SassError, Tables};

/// One machine instruction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Instruction {
    /// Offset in the function's section, in bytes.
    pub offset: u64,
    /// Guard, e.g. `@!P0`; empty if there is none.
    pub predicate: String,
    /// Operation with its modifiers, e.g. `LDG.E.64`.
    pub opcode: String,
    /// Operands, separated by commas.
    pub operands: String,
    /// The 128-bit encoding.
    pub word: u128,
    /// PTX line that the instruction comes from, 1-based.
    pub ptx_line: Option<u32>,
    /// Line of the source, followed by the lines of the inlined calls, innermost first.
    pub source: Vec<Place>,
}

impl Instruction {
    /// Decodes what the instruction tells the warp scheduler.
    pub const fn control(&self) -> Control {
        Control::decode(self.word)
    }
}

/// Machine code of a kernel, or of a function that was not inlined.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listing {
    /// Mangled name of the function.
    pub name: String,
    /// Index of the section that contains the code. A function that only one kernel calls is in that kernel's section.
    pub section: usize,
    /// Instructions, ordered by offset.
    pub instructions: Vec<Instruction>,
    /// Names of the source files, to which [`Place::file`] refers.
    pub files: Vec<String>,
    /// Text of the PTX to which [`Instruction::ptx_line`] refers. It may be a whole file rather than the PTX of a
    /// kernel compiled alone. Functions without instructions in the joined listings have empty lines.
    pub ptx: String,
}

impl Listing {
    /// Joins the parts of a cubin into one listing per function.
    ///
    /// # Errors
    ///
    /// If the text belongs to another cubin.
    pub fn join(cubin: &Cubin, text: &Disassembly, tables: &Tables) -> Result<Vec<Self>, SassError> {
        let joined = text.functions.iter().map(|text| Self::join_function(cubin, text, tables));
        let mut joined: Vec<Self> = joined.collect::<Result<_, _>>()?;
        let instructions = joined.iter().flat_map(|listing| &listing.instructions);
        let ptx = keep_functions(&tables.ptx_text, &instructions.filter_map(|one| one.ptx_line).collect());
        for listing in &mut joined {
            listing.ptx.clone_from(&ptx);
        }
        Ok(joined)
    }

    fn join_function(cubin: &Cubin, text: &crate::Text, tables: &Tables) -> Result<Self, SassError> {
        let other = |what: &str| SassError::Disassembly(format!("`{}` {what}", text.function));
        let named = |function: &&Function| function.name == text.function && function.start == text.start;
        let function = cubin.functions().iter().find(named).ok_or_else(|| other("is not a function of the cubin"))?;
        // A function that only this one calls is inside this one's code, but has a text of its own.
        let inside = |inner: &&Function| inner.section == function.section && inner.start > function.start;
        let inner = cubin.functions().iter().filter(inside).map(|inner| inner.start - function.start).min();
        let own = inner.map_or(usize::MAX, |bytes| usize::try_from(bytes / INSTRUCTION_BYTES).unwrap_or(usize::MAX));
        let words = &function.words[..function.words.len().min(own)];
        if words.len() != text.instructions.len() {
            let (there, here) = (text.instructions.len(), words.len());
            return Err(other(&format!("has {there} instructions there, but {here} in the cubin")));
        }
        let offsets = (0..).map(|index| function.start + index * INSTRUCTION_BYTES);
        let joined = offsets.zip(words).zip(&text.instructions);
        let instructions = joined.map(|((offset, word), text)| {
            let InstructionText { predicate, opcode, operands } = text.clone();
            let ptx = tables.ptx.places(function.section, offset);
            Instruction {
                offset,
                predicate,
                opcode,
                operands,
                word: *word,
                ptx_line: ptx.first().map(|place| place.line),
                source: tables.source.places(function.section, offset).into_iter().cloned().collect(),
            }
        });
        Ok(Self {
            name: text.function.clone(),
            section: function.section,
            instructions: instructions.collect(),
            files: tables.source.files().to_vec(),
            ptx: String::new(),
        })
    }
}

/// Whether a PTX line begins a function.
pub fn begins_function(line: &str) -> bool {
    (line.contains(".entry ") || line.contains(".func ")) && !line.trim_end().ends_with(';')
}

/// Clears the lines of functions that contain none of the wanted lines.
fn keep_functions(ptx: &str, wanted: &BTreeSet<u32>) -> String {
    let lines: Vec<&str> = ptx.lines().collect();
    let number = |at: usize| u32::try_from(at + 1).unwrap_or(u32::MAX);
    let mut begins: Vec<usize> = (0..lines.len()).filter(|at| *at == 0 || begins_function(lines[*at])).collect();
    begins.push(lines.len());
    let mut kept = String::new();
    for part in begins.windows(2) {
        let is_wanted = wanted.range(number(part[0])..number(part[1])).next().is_some();
        for line in &lines[part[0]..part[1]] {
            kept.push_str(if is_wanted { line } else { "" });
            kept.push('\n');
        }
    }
    kept.truncate(kept.trim_end_matches('\n').len());
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ptx_keeps_the_numbers_of_its_lines_and_the_functions_that_are_wanted() {
        let ptx =
            ".version 9.0\n.func f(\n)\n{ ret; }\n.visible .entry a(\n)\n{ ret; }\n.func g;\n.entry b(\n)\n{ ret; }";
        let kept = |wanted: &[u32]| keep_functions(ptx, &wanted.iter().copied().collect());
        assert_eq!(kept(&[7]), "\n\n\n\n.visible .entry a(\n)\n{ ret; }\n.func g;");
        assert_eq!(kept(&[2, 11]), "\n.func f(\n)\n{ ret; }\n\n\n\n\n.entry b(\n)\n{ ret; }");
        assert_eq!((kept(&[]), kept(&[99]), keep_functions("", &[1].into())), Default::default());
        // If no function is recognised, a wanted line keeps the whole text.
        assert_eq!(keep_functions("a\nb", &[2].into()), "a\nb");
    }
}

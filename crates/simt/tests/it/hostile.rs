//! Modules in which a word is cut, doubled or swapped are refused or run, but never cause a panic.
//!
//! NVRTC does not produce such modules, but inline assembly can insert anything.

use std::panic::{AssertUnwindSafe, catch_unwind};

use simt::{LaunchSpec, Machine, Options, profiles};

use ptx_conformance::files::files;

/// How many times each file is damaged.
const TIMES: u64 = 12;

const WORDS: [&str; 24] = [
    "",
    "0",
    "-1",
    "18446744073709551616",
    "0x",
    "0f7F",
    "0d",
    "1e999",
    "%r0",
    "%nope",
    "%tid.w",
    "%p1",
    "ld",
    "st.v4.b128",
    "bra",
    ".reg",
    ".param",
    ".align",
    "{",
    "}",
    "[",
    ";",
    "\"é",
    "// 日本",
];

/// A linear congruential generator, which makes the damage reproducible. Source: Knuth, The Art of Computer Programming
/// 3.3.4, MMIX.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end.max(1)
    }
}

/// Returns the positions of words, which are runs of letters, digits and name characters. Any other character is a word
/// by itself.
fn words(text: &str) -> Vec<(usize, usize)> {
    let of_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '%' | '.' | '$' | '@');
    let mut found: Vec<(usize, usize)> = Vec::new();
    let mut open = false;
    for (at, c) in text.char_indices() {
        let end = at + c.len_utf8();
        match found.last_mut() {
            Some(last) if open && of_name(c) => last.1 = end,
            _ if !c.is_whitespace() => found.push((at, end)),
            _ => {}
        }
        open = of_name(c);
    }
    found
}

fn damaged(text: &str, dice: &mut Dice) -> String {
    let words = words(text);
    let (from, to) = words[dice.below(words.len())];
    let word = &text[from..to];
    let instead = match dice.below(4) {
        0 => String::new(),
        1 => format!("{word} {word}"),
        2 => {
            let (other, end) = words[dice.below(words.len())];
            text[other..end].to_owned()
        }
        _ => WORDS[dice.below(WORDS.len())].to_owned(),
    };
    format!("{}{instead}{}", &text[..from], &text[to..])
}

/// Loads a module and runs its first kernel with one warp. The result does not matter.
fn run(ptx: &str) {
    let options = Options { threads: Some(1), watchdog: 100_000, heap: 1 << 16, ..Options::default() };
    let Ok(mut machine) = Machine::new(profiles().remove(0), options) else { return };
    let (Ok(out), Ok(module)) = (machine.alloc(4096), machine.load(ptx)) else { return };
    let args = [out.to_le_bytes().to_vec()];
    let spec = LaunchSpec {
        kernel: "test",
        grid: [1; 3],
        block: [32, 1, 1],
        shared: 0,
        cooperative: false,
        cluster: None,
        args: &args,
    };
    let _ = machine.launch(module, &spec);
}

#[test]
fn a_damaged_module_is_refused_or_runs_and_never_panics() {
    let files = files();
    let mut dice = Dice(1);
    let mut panicked = Vec::new();
    for file in &files {
        // The comments at the start contain the expected results.
        let code = &file.ptx[file.ptx.find(".visible").unwrap_or(0)..];
        for _ in 0..TIMES {
            let ptx = damaged(code, &mut dice);
            if catch_unwind(AssertUnwindSafe(|| run(&ptx))).is_err() {
                let changed = ptx.lines().zip(code.lines()).find(|(new, old)| new != old).map_or("", |(new, _)| new);
                panicked.push(format!("{}: {changed}", file.name));
            }
        }
    }
    assert!(files.len() > 100 && panicked.is_empty(), "{} of them:\n{}", panicked.len(), panicked.join("\n"));
}

//! Hash of each kernel's PTX, ignoring source line information.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use super::whole_file::rename_keys;
use runner_types::{CodeKind, Compiled, sha256_hex};

/// Names that contain a function's index in the file: a function added before a kernel does not change the kernel.
const NUMBERED: [&str; 2] = ["$L__BB", "__local_depot"];

/// Adds the hashes to a unit of PTX. If its code cannot be read, they are left out.
pub(super) fn add_digests(compiled: Compiled) -> Compiled {
    if compiled.kind != CodeKind::Ptx {
        return compiled;
    }
    let files: Vec<&Path> = if compiled.parts.is_empty() {
        vec![&compiled.code]
    } else {
        compiled.parts.iter().map(|part| part.code.as_path()).collect()
    };
    let texts: Result<Vec<String>, _> = files.into_iter().map(fs::read_to_string).collect();
    let Ok(texts) = texts else { return compiled };
    // NVRTC makes names with internal linkage unique to its process.
    if texts.iter().any(|text| text.contains("_INTERNAL_")) {
        return compiled;
    }
    Compiled { digests: rename_keys(&digests(&texts), &compiled.kernels), ..compiled }
}

/// Hash of each kernel by mangled name. It covers the kernel and everything outside kernels, which it may use.
fn digests(texts: &[String]) -> BTreeMap<String, String> {
    let mut shared = String::new();
    let mut kernels: BTreeMap<&str, String> = BTreeMap::new();
    for text in texts {
        let mut inside = None;
        for line in code_of(text) {
            inside = inside.or_else(|| entry_of(line));
            let part = inside.map_or(&mut shared, |name| kernels.entry(name).or_default());
            part.push_str(line);
            part.push('\n');
            if line == "}" {
                inside = None;
            }
        }
    }
    let shared = without_numbers(&shared);
    let digest = |(name, text): (&str, String)| {
        // A mere renaming leaves the hash unchanged.
        let own = without_numbers(&text.replace(name, ""));
        (name.to_owned(), sha256_hex(format!("{shared}\n{own}").as_bytes()))
    };
    kernels.into_iter().map(digest).collect()
}

/// Lines that are neither empty, nor comments, nor part of line tables.
fn code_of(text: &str) -> impl Iterator<Item = &str> {
    let is_code = |line: &&str| {
        let line = line.trim_start();
        !(line.is_empty() || [".loc", ".file", "//"].iter().any(|mark| line.starts_with(mark)))
    };
    // Debug information sections are at the end of the file.
    text.lines().take_while(|line| !line.trim_start().starts_with(".section")).filter(is_code)
}

/// Name of the kernel that starts on this line.
fn entry_of(line: &str) -> Option<&str> {
    let (_, rest) = line.split_once(".entry ")?;
    Some(rest.split(|c: char| c == '(' || c.is_whitespace()).next().unwrap_or(rest))
}

fn without_numbers(text: &str) -> String {
    NUMBERED.iter().fold(text.to_owned(), |text, mark| {
        let mut parts = text.split(mark);
        let mut found = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            found.push_str(mark);
            found.push_str(part.trim_start_matches(|c: char| c.is_ascii_digit()));
        }
        found
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = ".version 9.0\n.target sm_90\n";

    fn kernel(name: &str, block: u32, body: &str) -> String {
        format!(
            ".visible .entry {name}(\n\t.param .u64 {name}_param_0\n)\n{{\n\t.loc 1 {block} 3\n$L__BB{block}_1:\n\t{body}\n\
             \tbra $L__BB{block}_1;\n\t// a comment\n}}\n"
        )
    }

    fn of(text: String) -> BTreeMap<String, String> {
        digests(&[text])
    }

    #[test]
    fn lines_comments_and_kernels_before_it_leave_the_hash_of_a_kernel() {
        let alone = of(format!("{HEAD}{}", kernel("one", 0, "add.s32 %r1, %r2, 1;")));
        let moved = format!(
            "// another comment\n{HEAD}{}{}\t.section .debug_str\n{{\n}}\n",
            kernel("zero", 0, "ret;"),
            kernel("one", 7, "add.s32 %r1, %r2, 1;")
        );
        assert_eq!(alone["one"], of(moved)["one"]);
        let renamed = of(format!("{HEAD}{}", kernel("uno", 0, "add.s32 %r1, %r2, 1;")));
        assert_eq!(alone["one"], renamed["uno"]);
    }

    #[test]
    fn another_instruction_changes_the_hash_of_its_kernel_alone_and_a_function_that_of_all() {
        let file = |body: &str, function: &str| {
            of(format!("{HEAD}{function}{}{}", kernel("one", 0, body), kernel("two", 1, "ret;")))
        };
        let (base, other) = (file("add.s32 %r1, %r2, 1;", ""), file("add.s32 %r1, %r2, 2;", ""));
        assert_ne!(base["one"], other["one"]);
        assert_eq!(base["two"], other["two"]);
        let function = file("add.s32 %r1, %r2, 1;", ".func f()\n{\n\tret;\n}\n");
        assert!(base["one"] != function["one"] && base["two"] != function["two"]);
    }
}

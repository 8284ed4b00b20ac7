//! Removes `#if` branches that are known not to be compiled.
//!
//! A condition is evaluated only if it is a number or tests a single macro, and that macro is defined by an option or
//! by no file at all. If a condition is undecided, all branches are kept.

use std::collections::BTreeSet;

use crate::source::tokens;

/// Macros on which `#if` conditions depend.
#[derive(Debug, Clone, Default)]
pub struct Macros {
    /// Macros defined by options.
    pub given: BTreeSet<String>,
    /// Macros that a file defines in some branch.
    pub possible: BTreeSet<String>,
}

impl Macros {
    /// Adds the macros that a file defines, except its include guard.
    pub fn add(&mut self, text: &str) {
        let mut before = None;
        for line in text.lines() {
            let Some((word, rest)) = directive(line) else { continue };
            let name = rest.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default();
            if word == "define" && before != Some(name) {
                self.possible.insert(name.to_owned());
            }
            before = (word == "ifndef").then_some(name);
        }
    }

    fn is_defined(&self, name: &str) -> Option<bool> {
        match name {
            name if self.given.contains(name) => Some(true),
            "__CUDACC__" | "__NVCC__" => Some(true),
            name if name.starts_with('_') || self.possible.contains(name) => None,
            _ => Some(false),
        }
    }

    /// Value of an `#if` condition, if it is a number or tests one macro.
    fn condition(&self, text: &str) -> Option<bool> {
        match tokens(text)[..] {
            [number] if number.starts_with(|c: char| c.is_ascii_digit()) => Some(number != "0"),
            ["defined", name] | ["defined", "(", name, ")"] => self.is_defined(name),
            ["!", "defined", name] | ["!", "defined", "(", name, ")"] => self.is_defined(name).map(|known| !known),
            _ => None,
        }
    }
}

/// Splits a directive into its name and operand.
fn directive(line: &str) -> Option<(&str, &str)> {
    let rest = line.trim_start().strip_prefix('#')?.trim_start();
    let end = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
    Some((&rest[..end], rest[end..].trim()))
}

/// State of an open `#if`.
struct Branch {
    is_active: bool,
    /// Whether a previous branch is known to be compiled.
    is_taken: bool,
    /// Whether all conditions so far are decided.
    is_decided: bool,
}

/// The source with blank lines in place of branches that are not compiled.
pub fn active(text: &str, macros: &Macros) -> String {
    let mut open: Vec<Branch> = Vec::new();
    let mut out = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        if let Some((word, rest)) = directive(line) {
            let rest = rest.split("//").next().unwrap_or_default().split("/*").next().unwrap_or_default().trim();
            let condition = match word {
                "ifdef" => macros.is_defined(rest),
                "ifndef" => macros.is_defined(rest).map(|known| !known),
                "if" | "elif" => macros.condition(rest),
                _ => None,
            };
            match (word, open.last_mut()) {
                ("if" | "ifdef" | "ifndef", _) => open.push(Branch {
                    is_active: condition != Some(false),
                    is_taken: condition == Some(true),
                    is_decided: condition.is_some(),
                }),
                ("elif", Some(branch)) => {
                    branch.is_active = !branch.is_taken && condition != Some(false);
                    branch.is_taken |= branch.is_decided && condition == Some(true);
                    branch.is_decided &= condition.is_some();
                }
                ("else", Some(branch)) => branch.is_active = !branch.is_taken,
                ("endif", Some(_)) => drop(open.pop()),
                _ => {}
            }
        }
        if open.iter().all(|branch| branch.is_active) {
            out.push_str(line);
        } else if line.ends_with('\n') {
            out.push('\n');
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Remaining lines, without directives.
    fn left(text: &str, given: &[&str]) -> Vec<String> {
        let mut macros = Macros { given: given.iter().map(|name| (*name).to_owned()).collect(), ..Macros::default() };
        macros.add(text);
        let text = active(text, &macros);
        text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).map(str::to_owned).collect()
    }

    #[test]
    fn branches_of_macros_that_nothing_defines_go() {
        assert_eq!(left("#ifdef DOUBLE\na\n#else\nb\n#endif\nc\n", &[]), ["b", "c"]);
        assert_eq!(left("#ifdef DOUBLE\na\n#else\nb\n#endif\nc\n", &["DOUBLE"]), ["a", "c"]);
        assert_eq!(left("#if 0\na\n#elif defined(B) // no\nb\n#else\nc\n#endif\n", &[]), ["c"]);
        assert_eq!(left("#ifndef A_H\n#define A_H\na\n#endif\n", &[]), ["a"]);
    }

    #[test]
    fn branches_of_other_conditions_all_stay() {
        assert_eq!(left("#define A 1\n#if A > 1\na\n#else\nb\n#endif\n", &[]), ["a", "b"]);
        assert_eq!(left("#define A\n#ifdef A\na\n#else\nb\n#endif\n", &[]), ["a", "b"]);
        assert_eq!(left("#ifdef __CUDA_ARCH__\na\n#endif\n#endif\n#else\nb\n", &[]), ["a", "b"]);
        assert_eq!(left("#if A > 1\na\n#elif 1\nb\n#else\nc\n#endif\n", &[]), ["a", "b", "c"]);
    }
}

//! Compares the kernels' output with the expected lines.
//!
//! The threads of a grid print in no defined order, so lines are compared as a multiset: each must occur as often as
//! expected, and no others may. Output of timed launches is ignored. A profiler replays a launch, so its output may
//! contain all expected lines several times.

use std::collections::BTreeMap;

use runner_files::regular;
use runner_types::{Mismatch, PrintedPlan};

/// How often the launch that printed the text ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Made {
    Once,
    /// A profiler replayed the launch an unknown number of times. It restores memory but does not undo output.
    Replayed,
}

/// Difference between the output of one launch and the expected lines; `None` if there is none.
///
/// # Errors
///
/// If the file of expected lines cannot be read.
pub fn judge(plan: &PrintedPlan, text: &str, made: Made) -> Result<Option<Mismatch>, String> {
    match plan {
        PrintedPlan::Lines(lines) => Ok(compare(lines.iter().map(String::as_str), text, made)),
        PrintedPlan::File(path) => {
            let kept = regular::read_text(path);
            let kept = kept.map_err(|error| format!("cannot read the lines of `{}`: {error}", path.display()))?;
            Ok(compare(kept.lines(), text, made))
        }
    }
}

/// Reports the first expected line that is missing and the first unexpected line of the text.
fn compare<'l>(expected: impl Iterator<Item = &'l str>, text: &'l str, made: Made) -> Option<Mismatch> {
    let once: Vec<&str> = expected.collect();
    let times = match made {
        Made::Once => 1,
        Made::Replayed => text.lines().count().checked_div(once.len()).unwrap_or(1).max(1),
    };
    let expected = once.repeat(times);
    let mut left = multiset(text.lines());
    let missing: Vec<usize> = (0..expected.len()).filter(|index| !take(&mut left, expected[*index])).collect();
    let mut wanted = multiset(expected.iter().copied());
    let surplus: Vec<&str> = text.lines().filter(|line| !take(&mut wanted, line)).collect();
    if missing.is_empty() && surplus.is_empty() {
        return None;
    }
    let first = missing.first().copied();
    Some(Mismatch {
        what: "printed lines, in any order".to_owned(),
        index: first.unwrap_or(expected.len()) as u64,
        expected: first.map_or_else(|| "no further line".to_owned(), |index| quoted(expected[index])),
        got: surplus.first().map_or_else(|| "no such line".to_owned(), |line| quoted(line)),
        error: None,
        wrong: missing.len().max(surplus.len()) as u64,
        of: expected.len().max(text.lines().count()) as u64,
        allowed: None,
    })
}

/// Number of occurrences of each line.
fn multiset<'l>(lines: impl Iterator<Item = &'l str>) -> BTreeMap<&'l str, usize> {
    let mut counts = BTreeMap::new();
    lines.for_each(|line| *counts.entry(line).or_default() += 1);
    counts
}

/// Removes one occurrence of a line; false if none is left.
fn take(counts: &mut BTreeMap<&str, usize>, line: &str) -> bool {
    match counts.get_mut(line) {
        Some(count @ 1..) => {
            *count -= 1;
            true
        }
        _ => false,
    }
}

fn quoted(line: &str) -> String {
    format!("`{line}`")
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test panics to fail")]
mod tests {
    use super::*;

    fn lines(text: &[&str], printed: &str) -> Option<Mismatch> {
        compare(text.iter().copied(), printed, Made::Once)
    }

    fn replayed(text: &[&str], printed: &str) -> Option<Mismatch> {
        compare(text.iter().copied(), printed, Made::Replayed)
    }

    #[test]
    fn lines_pass_in_any_order_as_often_as_they_are_expected() {
        assert_eq!(lines(&["a", "b", "a"], "a\na\nb\n"), None);
        assert_eq!(lines(&["a", "b", "a"], "b\na\na"), None);
        assert_eq!(lines(&[], ""), None);
        assert_eq!(lines(&["", "a"], "\na\n"), None);
    }

    #[test]
    fn a_line_that_is_missing_or_too_many_is_named() {
        let once = lines(&["a", "b", "b"], "b\na\n").unwrap();
        assert_eq!((once.index, once.expected.as_str(), once.got.as_str()), (2, "`b`", "no such line"));
        assert_eq!((once.wrong, once.of), (1, 3));
        let thrice = lines(&["a"], "a\na\na\n").unwrap();
        assert_eq!((thrice.index, thrice.expected.as_str(), thrice.got.as_str()), (1, "no further line", "`a`"));
        assert_eq!((thrice.wrong, thrice.of), (2, 3));
        let other = lines(&["a", "b"], "a\nc\n").unwrap();
        assert_eq!((other.index, other.expected.as_str(), other.got.as_str()), (1, "`b`", "`c`"));
        assert_eq!(lines(&["a"], "").unwrap().got, "no such line");
    }

    #[test]
    fn lines_of_a_replayed_launch_pass_as_a_whole_and_as_often_as_it_was_made() {
        assert_eq!(replayed(&["a", "b"], "a\nb\n"), None);
        assert_eq!(replayed(&["a", "b"], "a\na\nb\nb\nb\na\n"), None);
        assert_eq!(replayed(&[], ""), None);
        let uneven = replayed(&["a", "b"], "a\na\nb\na\n").unwrap();
        assert_eq!((uneven.expected.as_str(), uneven.got.as_str(), uneven.wrong, uneven.of), ("`b`", "`a`", 1, 4));
        assert_eq!(replayed(&["a", "b"], "a\nb\na\n").unwrap().got, "`a`");
        assert_eq!(replayed(&["a"], "").unwrap().got, "no such line");
        assert_eq!(replayed(&[], "a\n").unwrap().got, "`a`");
    }

    #[test]
    fn lines_come_from_a_file_and_one_that_cannot_be_read_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lines.txt");
        let plan = PrintedPlan::File(path.clone());
        let refusal = judge(&plan, "a\n", Made::Once).unwrap_err();
        assert!(refusal.starts_with(&format!("cannot read the lines of `{}`: ", path.display())), "{refusal}");
        std::fs::write(&path, "b\na\n").unwrap();
        assert_eq!(judge(&plan, "a\nb\n", Made::Once), Ok(None));
        assert!(judge(&plan, "a\n", Made::Once).unwrap().is_some());
    }
}

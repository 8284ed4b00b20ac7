//! Compares the source files of base and new line by line.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::Serialize;

use super::alignment::common;

/// Sources that variants are compiled from, by name: the source itself and what it includes.
pub type Sources = BTreeMap<String, SourceFile>;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceFile {
    pub text: Arc<str>,
    /// Variants that are compiled from it, named as in the new manifest and in its order.
    pub variants: Vec<String>,
}

/// A source file that differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SourceChange {
    pub file: String,
    /// Name of the base's file that it replaces, if it was renamed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub former: Option<String>,
    /// Variants that are compiled from it on either side.
    pub variants: Vec<String>,
    pub state: SourceState,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SourceState {
    /// Only variants of the new side use it. Holds its number of lines.
    Added(usize),
    /// Only variants of the base use it. Holds its number of lines.
    Removed(usize),
    /// Lines that differ, in order. Never empty.
    Changed(Vec<SourceLine>),
}

/// A line that only one side has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SourceLine {
    /// Whether only the new side has it, rather than only the base.
    pub added: bool,
    /// 1-based number on its side.
    pub line: usize,
    pub text: String,
}

/// Files that differ, in the order of their names.
pub fn compare_sources(base: &Sources, new: &Sources) -> Vec<SourceChange> {
    let renamed = renamed(base, new);
    let is_former = |name: &&String| renamed.values().any(|former| former == name);
    let names: BTreeSet<&String> = base.keys().chain(new.keys()).filter(|name| !is_former(name)).collect();
    let change = |name: &String| {
        let former = renamed.get(name).copied();
        let (of_base, of_new) = (base.get(former.unwrap_or(name)), new.get(name));
        let state = match (of_base, of_new) {
            (Some(base), Some(new)) if base.text == new.text => return None,
            (Some(base), Some(new)) => SourceState::Changed(lines(&base.text, &new.text)),
            (Some(base), None) => SourceState::Removed(base.text.lines().count()),
            (None, Some(new)) => SourceState::Added(new.text.lines().count()),
            (None, None) => return None,
        };
        // Files that differ only in line endings have the same lines.
        if state == SourceState::Changed(Vec::new()) {
            return None;
        }
        let mut variants: Vec<String> = Vec::new();
        for variant in of_new.into_iter().chain(of_base).flat_map(|file| &file.variants) {
            if !variants.contains(variant) {
                variants.push(variant.clone());
            }
        }
        Some(SourceChange { file: name.clone(), former: former.cloned(), variants, state })
    };
    names.into_iter().filter_map(change).collect()
}

/// Maps files of the new side to the base's files that they replace: a variant used the one and now uses the other, and they
/// have half of their lines in common.
fn renamed<'a>(base: &'a Sources, new: &'a Sources) -> BTreeMap<&'a String, &'a String> {
    let shares = |a: &SourceFile, b: &SourceFile| a.variants.iter().any(|variant| b.variants.contains(variant));
    let gone: Vec<(&String, &SourceFile)> = base.iter().filter(|(name, _)| !new.contains_key(*name)).collect();
    let added = new.iter().filter(|(name, _)| !base.contains_key(*name));
    let mut found: Vec<(usize, &String, &String)> = Vec::new();
    for (name, file) in added {
        for (former, before) in gone.iter().filter(|(_, before)| shares(before, file)) {
            let [b, n] = [&before.text, &file.text].map(|text| text.lines().collect::<Vec<_>>());
            let alike = common(&b, &n, |b, n| b == n).len();
            if 2 * alike >= b.len().max(n.len()) {
                found.push((alike, name, former));
            }
        }
    }
    found.sort_by_key(|(alike, ..)| std::cmp::Reverse(*alike));
    let mut pairs: BTreeMap<&String, &String> = BTreeMap::new();
    for (_, name, former) in found {
        if !pairs.values().any(|known| *known == former) {
            pairs.entry(name).or_insert(former);
        }
    }
    pairs
}

/// Lines that only one side has. At each place, the base's lines come before the new side's.
fn lines(base: &str, new: &str) -> Vec<SourceLine> {
    let [base, new] = [base, new].map(|text| text.lines().collect::<Vec<_>>());
    let mut places = common(&base, &new, |b, n| b == n);
    places.push([base.len(), new.len()]);
    let (mut found, mut from) = (Vec::new(), [0, 0]);
    let line = |added: bool, at: usize, text: &str| SourceLine { added, line: at + 1, text: text.to_owned() };
    for [b, n] in places {
        found.extend((from[0]..b).map(|at| line(false, at, base[at])));
        found.extend((from[1]..n).map(|at| line(true, at, new[at])));
        from = [b + 1, n + 1];
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sources(files: &[(&str, &str, &[&str])]) -> Sources {
        let file = |(name, text, variants): &(&str, &str, &[&str])| {
            let variants = variants.iter().map(|&variant| variant.to_owned()).collect();
            ((*name).to_owned(), SourceFile { text: (*text).into(), variants })
        };
        files.iter().map(file).collect()
    }

    fn changed(base: &str, new: &str) -> Vec<String> {
        let [base, new] = [base, new].map(|text| sources(&[("k.cu", text, &["v"])]));
        let found = compare_sources(&base, &new);
        let [SourceChange { state: SourceState::Changed(lines), .. }] = &found[..] else { return Vec::new() };
        let text = |line: &SourceLine| format!("{}{} {}", if line.added { '+' } else { '-' }, line.line, line.text);
        lines.iter().map(text).collect()
    }

    #[test]
    fn a_renamed_file_is_compared_with_the_former_one() {
        let base = sources(&[("a.cu", "1\n2\n3\n4\n", &["v"]), ("c.cu", "x\n", &["w"])]);
        let new = sources(&[("b.cu", "1\n2\n3\n5\n", &["v"]), ("d.cu", "y\n", &["w"])]);
        let found = compare_sources(&base, &new);
        let named: Vec<_> = found.iter().map(|change| (change.file.as_str(), change.former.as_deref())).collect();
        // `c.cu` and `d.cu` have no line in common.
        assert_eq!(named, [("b.cu", Some("a.cu")), ("c.cu", None), ("d.cu", None)]);
        let SourceState::Changed(lines) = &found[0].state else { panic!("{found:?}") };
        assert_eq!(lines.iter().map(|line| line.text.as_str()).collect::<Vec<_>>(), ["4", "5"]);
    }

    #[test]
    fn lines_of_one_side_are_numbered_on_that_side() {
        assert_eq!(changed("a\nb\nc\n", "a\nx\ny\nc\n"), ["-2 b", "+2 x", "+3 y"]);
        assert_eq!(changed("a\nsync;\nb\n", "a\nsync;\nsync;\nb\n"), ["+3 sync;"]);
        assert_eq!(changed("a\nb\n", "b\n"), ["-1 a"]);
        assert_eq!(changed("a\r\nb\n", "a\nb\n"), [""; 0]);
    }

    #[test]
    fn a_file_of_one_side_is_added_or_removed_and_names_the_variants_of_both() {
        let base = sources(&[("h.cuh", "1\n", &["a", "b"]), ("old.cu", "x\n", &["a"])]);
        let new = sources(&[("h.cuh", "2\n", &["a", "c"]), ("new.cu", "y\nz\n", &["a"])]);
        let found = compare_sources(&base, &new);
        let states: Vec<_> = found.iter().map(|change| (change.file.as_str(), &change.state)).collect();
        assert!(matches!(states[0], ("h.cuh", SourceState::Changed(lines)) if lines.len() == 2), "{states:?}");
        assert_eq!(states[1..], [("new.cu", &SourceState::Added(2)), ("old.cu", &SourceState::Removed(1))]);
        assert_eq!(found[0].variants, ["a", "c", "b"]);
    }
}

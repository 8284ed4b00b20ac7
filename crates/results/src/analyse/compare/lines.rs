//! Matches the counted source lines of base and new, to show where counts changed.

use std::collections::BTreeSet;

use serde::Serialize;

use super::alignment::common;
use runner_types::{CaseRecord, CountedLine};

/// A source line that differs in text, counts, or both.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LineChange {
    /// The line in the base, if any matches.
    pub base: Option<CountedLine>,
    /// The line in the new report, if any matches.
    pub new: Option<CountedLine>,
}

impl LineChange {
    /// The counts in base and new; 0 if the line is missing or has no count.
    pub fn counts(&self, counter: &str) -> [f64; 2] {
        let count = |line: &Option<CountedLine>| line.as_ref().and_then(|line| line.counters.get(counter));
        [count(&self.base).unwrap_or(0.0), count(&self.new).unwrap_or(0.0)]
    }

    pub fn is_other_text(&self) -> bool {
        self.base.as_ref().map(|line| &line.text) != self.new.as_ref().map(|line| &line.text)
    }

    fn differs(&self) -> bool {
        let counters = |line: &Option<CountedLine>| line.as_ref().map(|line| line.counters.clone());
        self.is_other_text() || counters(&self.base) != counters(&self.new)
    }
}

/// The lines that differ, in file order; empty if a side has no counts per line.
pub(super) fn compare_lines([base, new]: [&CaseRecord; 2]) -> Vec<LineChange> {
    if base.lines.is_empty() || new.lines.is_empty() {
        return Vec::new();
    }
    let files: BTreeSet<&str> = base.lines.iter().chain(&new.lines).map(|line| &*line.file).collect();
    let mut changes = Vec::new();
    for file in files {
        let of_file = |record: &CaseRecord| record.lines.iter().filter(|line| line.file == file).cloned().collect();
        changes.extend(match_lines(of_file(base), of_file(new)));
    }
    changes.retain(LineChange::differs);
    changes
}

/// Matches the lines of a file: first a longest common subsequence by text, then the lines in between, in order, if one
/// may be an edit of the other.
fn match_lines(base: Vec<CountedLine>, new: Vec<CountedLine>) -> Vec<LineChange> {
    let (mut changes, mut from) = (Vec::new(), [0, 0]);
    let (mut base, mut new): (Vec<_>, Vec<_>) =
        (base.into_iter().map(Some).collect(), new.into_iter().map(Some).collect());
    let ends = [base.len(), new.len()];
    let same =
        common(&base, &new, |base, new| base.as_ref().map(|line| &line.text) == new.as_ref().map(|line| &line.text));
    for [b, n] in same.into_iter().chain([ends]) {
        for step in 0..(b - from[0]).max(n - from[1]) {
            let take = |lines: &mut [Option<CountedLine>], at: usize, end: usize| {
                lines.get_mut(at).filter(|_| at < end).and_then(Option::take)
            };
            let (base, new) = (take(&mut base, from[0] + step, b), take(&mut new, from[1] + step, n));
            match (base, new) {
                (Some(base), Some(new)) if !is_edit(&base.text, &new.text) => {
                    changes.push(LineChange { base: Some(base), new: None });
                    changes.push(LineChange { base: None, new: Some(new) });
                }
                (base, new) => changes.push(LineChange { base, new }),
            }
        }
        if [b, n] != ends {
            changes.push(LineChange { base: base[b].take(), new: new[n].take() });
        }
        from = [b + 1, n + 1];
    }
    changes
}

/// Whether the texts have at least half of the longer one's tokens in common, in order.
fn is_edit(base: &str, new: &str) -> bool {
    let [base, new] = [base, new].map(tokens);
    2 * common(&base, &new, |base, new| base == new).len() >= base.len().max(new.len())
}

/// Names, numbers and single other characters.
fn tokens(text: &str) -> Vec<&str> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
    let mut found = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let end = if is_word(first) { rest.find(|c| !is_word(c)).unwrap_or(rest.len()) } else { first.len_utf8() };
        found.push(&rest[..end]);
        rest = rest[end..].trim_start();
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use runner_types::Counters;

    fn lines(of: &[(u32, &str, f64)]) -> Vec<CountedLine> {
        let line = |&(line, text, count): &(u32, &str, f64)| CountedLine {
            file: "k.cu".to_owned(),
            line,
            text: text.to_owned(),
            counters: Counters([("gld_sectors".into(), count)].into()),
        };
        of.iter().map(line).collect()
    }

    /// Line numbers and sector counts of the matched lines.
    fn matched(base: &[(u32, &str, f64)], new: &[(u32, &str, f64)]) -> Vec<([Option<u32>; 2], [f64; 2])> {
        let changes = match_lines(lines(base), lines(new)).into_iter().filter(LineChange::differs);
        let number = |line: &Option<CountedLine>| line.as_ref().map(|line| line.line);
        changes.map(|change| ([number(&change.base), number(&change.new)], change.counts("gld_sectors"))).collect()
    }

    #[test]
    fn lines_that_moved_match_by_their_text_and_those_between_in_order() {
        let base = [(3, "a", 1.0), (5, "x = p[i];", 8.0), (6, "b", 2.0), (7, "c", 4.0)];
        let new = [(4, "a", 1.0), (6, "x = p[2 * i];", 16.0), (7, "b", 2.0), (9, "c", 5.0)];
        assert_eq!(matched(&base, &new), [([Some(5), Some(6)], [8.0, 16.0]), ([Some(7), Some(9)], [4.0, 5.0])]);
        assert_eq!(matched(&base, &base), []);
    }

    #[test]
    fn a_line_in_place_of_another_is_no_edit_of_it() {
        let base = [(13, "for (;;) {", 1.0), (14, "held[i] += held[i + half];", 8.0), (16, "}", 1.0)];
        let new = [(13, "for (;;) {", 1.0), (17, "float last = 0;", 3.0), (18, "}", 1.0)];
        assert_eq!(matched(&base, &new), [([Some(14), None], [8.0, 0.0]), ([None, Some(17)], [0.0, 3.0])]);
    }

    #[test]
    fn lines_of_one_side_alone_have_no_count_on_the_other() {
        let base = [(3, "a", 1.0), (6, "b", 2.0)];
        let new = [(3, "a", 1.0), (4, "new", 3.0), (7, "b", 2.0), (8, "end", 1.0)];
        assert_eq!(matched(&base, &new), [([None, Some(4)], [0.0, 3.0]), ([None, Some(8)], [0.0, 1.0])]);
        assert_eq!(matched(&new, &base), [([Some(4), None], [3.0, 0.0]), ([Some(8), None], [1.0, 0.0])]);
        assert_eq!(matched(&base, &[]), [([Some(3), None], [1.0, 0.0]), ([Some(6), None], [2.0, 0.0])]);
    }
}

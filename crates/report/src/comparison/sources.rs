//! Changed lines of the sources.

use std::collections::HashSet;
use std::path::Path;

use serde::Serialize;

use super::{Compared, notation};
use runner_lang::format::plural;
use runner_results::analyse::compare::{ReportComparison, SourceChange, SourceLine, SourceState};

/// Maximum number of changed lines to show per file; further ones are only counted.
const MOST_LINES: usize = 12;

/// Maximum number of files to show; further ones are only counted.
const MOST_FILES: usize = 6;

/// Maximum length of a shown line, in characters.
const LONGEST_LINE: usize = 110;

/// Maximum number of variants or experiments to name per file; further ones are only counted.
const MOST_NAMES: usize = 3;

/// Lines of a file that changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Source {
    /// Says which file changed, by how much, and what uses it. Backticks enclose code.
    pub title: String,
    /// Lines such as `+ 16  __syncthreads();`; empty for a file that only one side uses.
    pub lines: Vec<String>,
}

/// Changed files of all reports, each once.
pub fn sources(compared: Compared<'_>) -> Vec<Source> {
    let reports = &compared.comparison.reports;
    let several = reports.len() > 1;
    let mut found: Vec<(&SourceChange, Vec<&str>)> = Vec::new();
    for report in reports {
        let of_report: HashSet<&str> = report.changes.iter().map(|change| change.case.key.variant.as_str()).collect();
        for change in report.sources.iter().flatten() {
            let variants = || change.variants.iter().map(String::as_str);
            let users: Vec<&str> = if several {
                vec![&report.experiment]
            } else if of_report.iter().all(|variant| variants().any(|user| user == *variant)) {
                Vec::new()
            } else {
                variants().collect()
            };
            match found.iter_mut().find(|(known, _)| (&known.file, &known.state) == (&change.file, &change.state)) {
                Some((_, known)) => known.extend(users),
                None => found.push((change, users)),
            }
        }
    }
    let more = found.len().saturating_sub(MOST_FILES);
    let shown = found.into_iter().take(MOST_FILES).map(|(change, users)| source(change, &users));
    let rest = (more > 0).then(|| Source { title: plural(more as u64, "other changed file"), lines: Vec::new() });
    shown.chain(rest).collect()
}

/// Names the `users` of the file, if only some of the variants use it.
fn source(change: &SourceChange, users: &[&str]) -> Source {
    let more = users.len().saturating_sub(MOST_NAMES);
    let names = users.iter().take(MOST_NAMES).map(|name| notation::code(name));
    let names: Vec<String> = names.chain((more > 0).then(|| plural(more as u64, "other"))).collect();
    let users = if names.is_empty() { String::new() } else { format!(", used by {}", names.join(", ")) };
    let former = change.former.as_ref().map(|former| format!("{} → ", notation::code(former))).unwrap_or_default();
    let file = format!("{former}{}", notation::code(&change.file));
    match &change.state {
        SourceState::Added(lines) => {
            Source { title: format!("{file} is new ({}{users})", plural(*lines as u64, "line")), lines: Vec::new() }
        }
        SourceState::Removed(lines) => Source {
            title: format!("{file} is no longer used ({}{users})", plural(*lines as u64, "line")),
            lines: Vec::new(),
        },
        SourceState::Changed(lines) => {
            let title = format!("{file}, {} changed{users}", plural(size(lines) as u64, "line"));
            Source { title, lines: diff(lines) }
        }
    }
}

/// Number of changed lines: a replaced one counts once.
fn size(lines: &[SourceLine]) -> usize {
    let added = lines.iter().filter(|line| line.added).count();
    added.max(lines.len() - added)
}

/// Lines as a diff, without their common indentation.
fn diff(lines: &[SourceLine]) -> Vec<String> {
    let indent = |line: &&SourceLine| line.text.chars().take_while(|c| *c == ' ').count();
    let filled = lines.iter().filter(|line| !line.text.trim().is_empty());
    let common = filled.map(|line| indent(&line)).min().unwrap_or(0);
    let width = lines.iter().map(|line| line.line.to_string().len()).max().unwrap_or(0);
    let one = |line: &SourceLine| {
        let text: String = line.text.chars().skip(common).collect();
        let cut = text.chars().count() > LONGEST_LINE;
        let text: String = text.chars().take(LONGEST_LINE).chain(cut.then_some('…')).collect();
        format!("{} {:>width$}  {text}", if line.added { '+' } else { '-' }, line.line).trim_end().to_owned()
    };
    let more = lines.len().saturating_sub(MOST_LINES);
    let rest = (more > 0).then(|| format!("… {}", plural(more as u64, "more line")));
    lines.iter().take(MOST_LINES).map(one).chain(rest).collect()
}

/// Where the sources of a variant changed: `sum.cu:13 and 4 other lines`, `new sum.cu:16`, `former sum.cu:15 is gone`;
/// `None` if they are unknown or the same.
pub fn place(report: &ReportComparison, variant: &str) -> Option<String> {
    let is_used = |change: &&SourceChange| change.variants.iter().any(|user| user == variant);
    let changes = report.sources.as_ref()?.iter().filter(is_used);
    let one = |change: &SourceChange| {
        let file = Path::new(&change.file).file_name().map(|name| name.to_string_lossy().into_owned());
        let file = file.unwrap_or_else(|| change.file.clone());
        match &change.state {
            SourceState::Added(_) => format!("{file} is new"),
            SourceState::Removed(_) => format!("{file} is no longer used"),
            SourceState::Changed(lines) => {
                let first = lines.iter().find(|line| line.added).or(lines.first());
                let first = first.map_or_else(String::new, |line| {
                    let number = line.line;
                    let is_replaced = lines.iter().any(|other| !other.added && other.line == number);
                    match line.added {
                        true if is_replaced => format!("{file}:{number}"),
                        true => format!("new {file}:{number}"),
                        false => format!("former {file}:{number} is gone"),
                    }
                });
                match size(lines) {
                    0 | 1 => first,
                    count => format!("{first} and {}", plural(count as u64 - 1, "other line")),
                }
            }
        }
    };
    let places: Vec<String> = changes.map(one).collect();
    (!places.is_empty()).then(|| places.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(added: bool, line: usize, text: &str) -> SourceLine {
        SourceLine { added, line, text: text.to_owned() }
    }

    #[test]
    fn lines_lose_the_indentation_that_all_have_and_long_ones_their_ends() {
        let lines = [line(false, 9, "    a;"), line(true, 10, "      b;"), line(true, 11, "")];
        assert_eq!(diff(&lines), ["-  9  a;", "+ 10    b;", "+ 11"]);
        let long = [line(true, 1, &"x".repeat(LONGEST_LINE + 1))];
        assert_eq!(diff(&long), [format!("+ 1  {}…", "x".repeat(LONGEST_LINE))]);
        let many: Vec<SourceLine> = (1..=MOST_LINES + 2).map(|number| line(true, number, "x")).collect();
        assert_eq!(diff(&many).last().map(String::as_str), Some("… 2 more lines"));
        assert_eq!(size(&[line(false, 1, "a"), line(true, 1, "b"), line(true, 2, "c")]), 2);
    }
}

//! First sentences of a comparison: what changed, by how much and why, and whether the results are still correct.

use std::collections::HashSet;

use super::rollup::{self, Row, Totals};
use super::{Compared, words};
use crate::wording;
use runner_lang::format::{plural, plural_of};
use runner_results::analyse::compare::Kind;

/// Kinds that do not count as a change.
const UNCHANGED: [Kind; 3] = [Kind::Ambiguous, Kind::StillWrong, Kind::Same];

/// Maximum number of kinds to describe; further ones are only counted.
const MOST_KINDS: usize = 2;

/// Maximum number of variants to list; further ones are counted.
const MOST_NAMES: usize = 3;

/// A sentence for each of the most important kinds of change, or on what did not change, and one on the results.
pub fn summary(compared: Compared<'_>, totals: &Totals<'_>) -> Vec<String> {
    let rows: Vec<Row<'_>> = compared
        .comparison
        .reports
        .iter()
        .flat_map(|report| report.changes.iter().map(move |change| (report, change)))
        .collect();
    if rows.is_empty() {
        return Vec::new();
    }
    let of_kind = |kind: &Kind| rows.iter().copied().filter(|(_, change)| change.kind == *kind).collect::<Vec<_>>();
    let kinds = Kind::ALL.iter().filter(|kind| !UNCHANGED.contains(kind));
    let changed = kinds.map(of_kind).filter(|rows| !rows.is_empty()).map(|rows| sentence(&rows, totals));
    let mut sentences: Vec<String> = changed.take(MOST_KINDS).collect();
    if sentences.is_empty() {
        sentences.push(unchanged(&rows));
    }
    sentences.push(results(compared, &rows));
    sentences
}

/// Sentence such as `Slower: vector: 2 of 35 cases, +4.1 % to +5.0 %; source changed.`
fn sentence(rows: &[Row<'_>], totals: &Totals<'_>) -> String {
    let (_, first) = rows[0];
    let mut names: Vec<&str> = Vec::new();
    for (_, change) in rows {
        if !names.contains(&change.case.key.variant.as_str()) {
            names.push(&change.case.key.variant);
        }
    }
    let more = names.len().saturating_sub(MOST_NAMES);
    names.truncate(MOST_NAMES);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let example = matches!(first.kind, Kind::Gone | Kind::New) && !first.case.key.axes.is_empty();
    let example = if example { format!("; such as {}", wording::case_name(&first.case)) } else { String::new() };
    let text = rollup::short_text(rows, totals.of_rows(rows));
    format!("{}: {}{more}: {text}{example}{}.", words::heading(first.kind), names.join(", "), of_all(rows))
}

/// Differences between the reports as a whole, if all rows are in one report.
fn of_all(rows: &[Row<'_>]) -> String {
    let (report, _) = rows[0];
    let is_one = rows.iter().all(|(other, _)| std::ptr::eq(*other, report));
    let causes = if is_one { words::of_all_rows(report) } else { Vec::new() };
    if causes.is_empty() { String::new() } else { format!("; in all rows {}", causes.join(", ")) }
}

/// Sentence such as `No count changed; source changed in 3 of 3 rows.`
fn unchanged(rows: &[Row<'_>]) -> String {
    let what = if rows.iter().any(|(_, change)| change.time.is_some()) {
        "No time is known to have changed by more than the threshold".to_owned()
    } else {
        counts_unchanged(rows)
    };
    let mut causes: Vec<(String, usize)> = Vec::new();
    for cause in rows.iter().flat_map(|(_, change)| &change.causes).map(words::cause) {
        match causes.iter_mut().find(|(known, _)| *known == cause) {
            Some((_, count)) => *count += 1,
            None => causes.push((cause, 1)),
        }
    }
    causes.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let more = causes.len().saturating_sub(MOST_NAMES);
    let shown = causes.iter().take(MOST_NAMES);
    let mut parts: Vec<String> =
        shown.map(|(cause, count)| format!("{cause} in {count} of {}", plural(rows.len() as u64, "row"))).collect();
    if more > 0 {
        parts.push(plural_of(more as u64, "other difference", "other differences"));
    }
    let parts = std::iter::once(what).chain(parts).collect::<Vec<_>>().join("; ");
    format!("{parts}{}.", of_all(rows))
}

/// `No count changed`, or `No deciding counter changed by more than the threshold; gld_requests changed in 3 of 3
/// rows`.
fn counts_unchanged(rows: &[Row<'_>]) -> String {
    let mut changed: Vec<(&str, usize)> = Vec::new();
    for counter in rows.iter().flat_map(|(_, change)| &change.counters) {
        match changed.iter_mut().find(|(known, _)| *known == counter.name) {
            Some((_, count)) => *count += 1,
            None => changed.push((&counter.name, 1)),
        }
    }
    if changed.is_empty() {
        let is_counted = rows.iter().all(|(_, change)| change.counted_by.is_some());
        return if is_counted { "No count changed" } else { "No recorded count changed" }.to_owned();
    }
    changed.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let more = changed.len().saturating_sub(MOST_NAMES);
    let names: Vec<&str> = changed.iter().take(MOST_NAMES).map(|(name, _)| *name).collect();
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let of = rows.iter().filter(|(_, change)| !change.counters.is_empty()).count();
    format!(
        "No deciding counter changed by more than the threshold; {}{more} changed in {of} of {}",
        names.join(", "),
        plural(rows.len() as u64, "row")
    )
}

/// Sentence such as `No failures in 3 cases, as before; claims: 1 held.`
fn results(compared: Compared<'_>, rows: &[Row<'_>]) -> String {
    let cases = |side: usize, is_wrong: bool| -> usize {
        let found = rows.iter().filter(|(_, change)| {
            change.outcomes[side].as_ref().is_some_and(|outcome| !is_wrong || outcome.is_failure())
        });
        found.map(|(report, change)| (std::ptr::from_ref(*report), &change.case.key)).collect::<HashSet<_>>().len()
    };
    let (of, wrong, before) = (cases(1, false), cases(1, true), cases(0, true));
    let of_all = plural(of as u64, "case");
    let results = match (wrong, before) {
        (0, 0) => format!("No failures in {of_all}, as before"),
        (0, before) => format!("No failures in {of_all} (base: {before})"),
        (wrong, before) => {
            format!("{wrong} of {of_all} {} (base: {before})", if wrong == 1 { "fails" } else { "fail" })
        }
    };
    let claims = words::claim_counts(compared.comparison.claims().map(|claim| claim.kind));
    if claims.is_empty() { format!("{results}.") } else { format!("{results}; claims: {claims}.") }
}

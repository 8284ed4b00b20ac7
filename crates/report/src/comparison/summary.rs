//! First sentences of a comparison: what changed, by how much and why, and whether the results are still correct.

use std::collections::HashSet;

use super::rollup::{self, Row, Totals};
use super::{Compared, manifests, notation, sources, words};
use crate::wording;
use runner_lang::format::plural;
use runner_results::analyse::compare::{CauseKind, Change, Code, Comparison, Kind, ReportComparison, TimeChange};
use runner_types::{CaseKey, Outcome};

/// Kinds that do not count as a change.
const UNCHANGED: [Kind; 3] = [Kind::Ambiguous, Kind::StillWrong, Kind::Same];

/// Maximum number of changes to describe, most important first; the sections have all.
const MOST_CHANGES: usize = 6;

/// Maximum number of variants to list; further ones are only counted.
const MOST_NAMES: usize = 4;

/// Maximum number of reasons in a sentence.
const MOST_REASONS: usize = 4;

/// Sentences, and the reasons stated in them, which the sections need not repeat.
pub struct Summary<'a> {
    pub sentences: Vec<String>,
    told: Vec<(Kind, *const ReportComparison, Vec<String>)>,
    rows: Vec<Row<'a>>,
}

impl<'a> Summary<'a> {
    /// A sentence for each of the most important changes, or on what did not change.
    pub fn new(compared: Compared<'a>, totals: &Totals<'_>) -> Self {
        let rows: Vec<Row<'_>> = words::rows(compared.comparison).collect();
        let mut summary = Self { sentences: Vec::new(), told: Vec::new(), rows };
        if summary.rows.is_empty() {
            return summary;
        }
        let several = compared.comparison.reports.len() > 1;
        let is_named = |report: &ReportComparison| has_changes(compared.comparison, report);
        for kind in Kind::ALL.iter().filter(|kind| !UNCHANGED.contains(kind)) {
            for report in &compared.comparison.reports {
                let of_report = report.changes.iter().filter(|change| change.kind == *kind);
                let rows: Vec<Row<'_>> = of_report.map(|change| (report, change)).collect();
                if !rows.is_empty() && summary.told.len() < MOST_CHANGES {
                    let (sentence, reasons) = sentence(&rows, totals.of_rows(&rows), (several, is_named(report)));
                    summary.sentences.push(sentence);
                    summary.told.push((*kind, std::ptr::from_ref(report), reasons));
                }
            }
        }
        if summary.told.is_empty() {
            summary.sentences.push(unchanged(&summary.rows, &is_named));
        }
        summary.sentences.extend(compared.comparison.reports.iter().filter_map(|report| same_code(report, several)));
        summary.sentences.push(results(compared.comparison, &summary.rows));
        summary
    }

    /// Whether a sentence states this reason for the changes of a kind in a report.
    pub fn tells(&self, kind: Kind, report: &ReportComparison, reason: &str) -> bool {
        let of_report = |told: &&(Kind, *const ReportComparison, Vec<String>)| (told.0, told.1) == (kind, report);
        self.told.iter().find(of_report).is_some_and(|(.., reasons)| reasons.iter().any(|told| told == reason))
    }
}

/// Sentence such as ``Slower: `vector`: 2 of 35 cases, +4.1 % to +5.0 %; source changed: sum.cu:9.`` and its reasons.
/// The manifest's changes name what cannot be compared if `is_named`.
fn sentence(rows: &[Row<'_>], total: usize, (several, is_named): (bool, bool)) -> (String, Vec<String>) {
    let (report, first) = rows[0];
    let names = names(rows);
    let place = if several { format!(" in {}", notation::code(&report.experiment)) } else { String::new() };
    let mut reasons = rollup::reasons(rows);
    reasons.truncate(MOST_REASONS);
    let mut said = reasons.clone();
    if first.kind == Kind::Incomparable && is_named {
        said = vec![format!("{} changed", differing(rows).join(", "))];
    }
    said.extend(also_wrong(first, report));
    let is_informed = rows.iter().all(|(_, change)| change.informs);
    let of_all = words::of_all_rows(report).into_iter().filter(|_| !is_informed);
    let of_all = of_all.map(|cause| format!("{cause} in all cases"));
    let parts: Vec<String> = rollup::size(rows, total).into_iter().chain(said).chain(of_all).collect();
    let what = if parts.is_empty() { String::new() } else { format!(": {}", parts.join("; ")) };
    (format!("{}{place}: {}{what}.", words::heading(first.kind), names), reasons)
}

/// Names the variants, or the cases if variants are both new and gone because their axes changed.
fn names(rows: &[Row<'_>]) -> String {
    let (report, first) = rows[0];
    let other = match first.kind {
        Kind::New => Kind::Gone,
        Kind::Gone => Kind::New,
        _ => return variants(&rows.iter().map(|(_, change)| *change).collect::<Vec<_>>()),
    };
    let is_of_both = |(_, change): &Row<'_>| {
        let variant = &change.case.key.variant;
        report.changes.iter().any(|found| found.kind == other && found.case.key.variant == *variant)
    };
    if !rows.iter().any(is_of_both) {
        return variants(&rows.iter().map(|(_, change)| *change).collect::<Vec<_>>());
    }
    let mut cases: Vec<String> = Vec::new();
    for (_, change) in rows {
        let name = wording::case_name(&change.case);
        if !cases.contains(&name) {
            cases.push(name);
        }
    }
    let more = cases.len().saturating_sub(MOST_NAMES);
    let shown = cases.iter().take(MOST_NAMES).map(|name| notation::code(name));
    shown.chain((more > 0).then(|| plural(more as u64, "other case"))).collect::<Vec<_>>().join(", ")
}

/// Whether the changes of a report's manifest are known and listed.
pub fn has_changes(comparison: &Comparison, report: &ReportComparison) -> bool {
    let mut manifests = comparison.manifests.iter();
    manifests.any(|manifest| manifest.experiment == report.experiment && !manifest.changes().is_empty())
}

/// Names of what differs, such as `inputs`.
pub fn differing(rows: &[Row<'_>]) -> Vec<&'static str> {
    let mut names: Vec<&str> = Vec::new();
    for difference in rows.iter().flat_map(|(report, change)| report.differences.iter().chain(&change.differences)) {
        if !names.contains(&difference.what.name()) {
            names.push(difference.what.name());
        }
    }
    names
}

/// Warns that an improvement comes from a change that makes other cases wrong.
fn also_wrong(improved: &Change, report: &ReportComparison) -> Option<String> {
    if !matches!(improved.kind, Kind::Faster | Kind::LessWork) {
        return None;
    }
    let place = sources::place(report, &improved.case.key.variant)?;
    let is_same = |change: &&Change| {
        let variant = &change.case.key.variant;
        change.kind == Kind::NewlyWrong && sources::place(report, variant).as_ref() == Some(&place)
    };
    let wrong = report.changes.iter().find(is_same)?;
    Some(format!(
        "the same change makes {} wrong, but no fault was found in these",
        notation::code(&wrong.case.key.variant)
    ))
}

/// Sentence such as `No count changed; registers 10 → 12 in 1 of 3 cases.` Omits options that the list of manifest
/// changes names.
fn unchanged(rows: &[Row<'_>], is_named: &dyn Fn(&ReportComparison) -> bool) -> String {
    let times: Vec<&TimeChange> = rows.iter().filter_map(|(_, change)| change.time.as_ref()).collect();
    let what = if !times.is_empty() && times.iter().all(|time| time.base == time.new) {
        "The reports hold the same measurements".to_owned()
    } else if !times.is_empty() {
        "No time is known to have changed by more than the threshold".to_owned()
    } else {
        counts_unchanged(rows)
    };
    let mut causes: Vec<(String, usize)> = Vec::new();
    let found = rows.iter().flat_map(|(report, change)| change.causes.iter().map(move |cause| (report, change, cause)));
    let is_listed = |report: &ReportComparison, what: CauseKind| {
        what == CauseKind::Variant || (what == CauseKind::Options && is_named(report))
    };
    for (report, change, cause) in found.filter(|(report, _, cause)| !is_listed(report, cause.what)) {
        let cause = words::cause_in(cause, change, report);
        match causes.iter_mut().find(|(known, _)| *known == cause) {
            Some((_, count)) => *count += 1,
            None => causes.push((cause, 1)),
        }
    }
    causes.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let more = causes.len().saturating_sub(MOST_NAMES);
    let shown = causes.iter().take(MOST_NAMES);
    let of = |count: usize| match count {
        count if count == rows.len() => "in all cases".to_owned(),
        count => format!("in {count} of {}", plural(rows.len() as u64, measured(rows))),
    };
    let mut parts: Vec<String> = shown.map(|(cause, count)| format!("{cause} {}", of(*count))).collect();
    parts.extend((more > 0).then(|| plural(more as u64, "other difference")));
    let report = rows[0].0;
    if rows.iter().all(|(other, _)| std::ptr::eq(*other, report)) {
        parts.extend(words::of_all_rows(report).into_iter().map(|cause| format!("{cause} in all cases")));
    }
    format!("{}.", std::iter::once(what).chain(parts).collect::<Vec<_>>().join("; "))
}

/// Noun for rows: a case that was measured in several regimes has several rows.
fn measured(rows: &[Row<'_>]) -> &'static str {
    if rows.iter().any(|(_, change)| change.regime.is_some()) { "measurement" } else { "case" }
}

/// `No count changed`, or `No deciding counter changed by more than the threshold; gld_requests changed in 3 of 3
/// cases`.
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
    let mut names: Vec<String> =
        changed.iter().take(MOST_NAMES).map(|(name, _)| notation::counter_name(name).to_owned()).collect();
    names.extend((more > 0).then(|| plural(more as u64, "other counter")));
    let of = rows.iter().filter(|(_, change)| !change.counters.is_empty()).count();
    format!(
        "No deciding counter changed by more than the threshold; {} changed in {of} of {}",
        names.join(", "),
        plural(rows.len() as u64, measured(rows))
    )
}

/// Sentence such as `Source changed (sum.cu:3), but the compiled code of all 3 cases is identical.`
fn same_code(report: &ReportComparison, several: bool) -> Option<String> {
    let despite = |change: &Change| match change.code {
        Some(Code::SameDespite { source, options }) => Some((source, options)),
        _ => None,
    };
    let same: Vec<&Change> = report.changes.iter().filter(|change| despite(change).is_some()).collect();
    let first = same.first()?;
    let is = |which: fn((bool, bool)) -> bool| same.iter().filter_map(|change| despite(change)).any(which);
    let what = match (is(|(source, _)| source), is(|(_, options)| options)) {
        (true, false) => "source changed",
        (false, _) => "compiler options changed",
        (true, true) => "source and compiler options changed",
    };
    let place = sources::place(report, &first.case.key.variant).map(|place| format!(" ({place})")).unwrap_or_default();
    let changed: Vec<&Change> = report.changes.iter().filter(|change| change.code == Some(Code::Changed)).collect();
    let text = if changed.is_empty() {
        let keys: HashSet<&CaseKey> = same.iter().map(|change| &change.case.key).collect();
        let all: HashSet<&CaseKey> = report.changes.iter().map(|change| &change.case.key).collect();
        let cases = match (keys.len(), all.len()) {
            (1, 1) => "the case".to_owned(),
            (count, of) if count == of => format!("all {of} cases"),
            (count, of) => format!("{count} of {}", plural(of as u64, "case")),
        };
        format!("{what}{place}, but the compiled code of {cases} is identical.")
    } else {
        format!("the compiled code changed in {}, and is identical in {}.", variants(&changed), variants(&same))
    };
    Some(if several { format!("{}: {text}", notation::code(&report.experiment)) } else { notation::capitalised(&text) })
}

/// Names the variants of some changes: `` `two`, `four` ``.
fn variants(changes: &[&Change]) -> String {
    let mut names: Vec<&str> = Vec::new();
    for change in changes {
        if !names.contains(&change.case.key.variant.as_str()) {
            names.push(&change.case.key.variant);
        }
    }
    let more = names.len().saturating_sub(MOST_NAMES);
    let shown = names.into_iter().take(MOST_NAMES).map(notation::code);
    shown.chain((more > 0).then(|| plural(more as u64, "other variant"))).collect::<Vec<_>>().join(", ")
}

/// Sentence such as `3 cases: 3 same. All 3 results are correct, as before. Claims: 1 held.`
fn results(comparison: &Comparison, rows: &[Row<'_>]) -> String {
    let cases = |side: usize, is: &dyn Fn(&Change) -> bool| -> usize {
        let found = rows.iter().filter(|(_, change)| change.outcomes[side].is_some() && is(change));
        found.map(|(report, change)| (std::ptr::from_ref(*report), &change.case.key)).collect::<HashSet<_>>().len()
    };
    let side = |side: usize| {
        let fails = |change: &Change| change.outcomes[side].as_ref().is_some_and(Outcome::is_failure);
        (cases(side, &|_| true), cases(side, &fails), cases(side, &|change: &Change| change.passed[side]))
    };
    let (before, now) = (side(0), side(1));
    let (of, wrong, passed) = now;
    let is_as_before = before == now;
    // Whether the results replace all of the former ones.
    let is_new = before.0 > 0 && rows.iter().all(|(_, change)| matches!(change.kind, Kind::New | Kind::Gone));
    let results = match (wrong, of.saturating_sub(wrong + passed)) {
        (0, 0) => match of {
            0 => "There are no new results".to_owned(),
            1 => "The result is correct".to_owned(),
            2 => "Both results are correct".to_owned(),
            of if is_new => format!("All {of} new results are correct"),
            of => format!("All {of} results are correct"),
        },
        (0, unchecked) if passed == 0 => format!("No failure in {}, without a check", plural(unchecked as u64, "case")),
        (0, unchecked) => format!("{passed} of {of} results are correct, {unchecked} unchecked"),
        (wrong, _) => format!(
            "{wrong} of {} {} no correct result",
            plural(of as u64, "case"),
            if wrong == 1 { "has" } else { "have" }
        ),
    };
    // A run with a base does not run cases that are gone.
    let is_not_run = |change: &Change| change.kind == Kind::Gone && change.outcomes[0].is_none();
    let ran = if rows.iter().any(|(_, change)| is_not_run(change)) { " that ran" } else { "" };
    let unknown = cases(0, &|change: &Change| change.is_base_unknown);
    let before = match before {
        _ if unknown > 0 && unknown == before.0 => " (before: not known, since the inputs changed)".to_owned(),
        _ if unknown > 0 => {
            format!(" (before: {} not known, since the inputs changed)", plural(unknown as u64, "case"))
        }
        _ if is_as_before && manifests::judges_otherwise(comparison) => {
            ", as before, but by other checks or on other inputs".to_owned()
        }
        _ if is_as_before => ", as before".to_owned(),
        (0, ..) => String::new(),
        (_, 0, _) if wrong > 0 => " (before: none)".to_owned(),
        (of, wrong_before, _) if wrong > 0 => format!(" (before: {wrong_before} of {of})"),
        (of, _, passed) if of == passed => format!(" (before: all {of}{ran})"),
        (of, _, passed) => format!(" (before: {passed} of {of}{ran})"),
    };
    let claims = words::claim_counts(comparison.claims().map(|claim| claim.kind));
    let claims = if claims.is_empty() { String::new() } else { format!(" Claims: {claims}.") };
    format!("{}. {results}{before}.{claims}", words::counts(comparison))
}

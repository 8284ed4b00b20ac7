//! Summary line per variant, above the rows of its cases.

use std::collections::{BTreeSet, HashMap, HashSet};

use serde::Serialize;

use super::{Compared, words};
use runner_lang::format::{plural_of, rough};
use runner_results::analyse::compare::{Change, Kind, ReportComparison};
use runner_types::CaseKey;

/// Maximum number of variants to list; further ones are counted.
const MOST_VARIANTS: usize = 20;

pub type Row<'a> = (&'a ReportComparison, &'a Change);

#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Rollup {
    pub lines: Vec<Line>,
    /// Number of variants that are not listed.
    pub left_out: usize,
}

/// Summary of one variant's cases.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Line {
    /// Experiment, if there are several reports; otherwise empty.
    pub report: String,
    pub variant: String,
    /// Text such as `13 of 13 cases, +3.1 % to +9.0 %; source changed`.
    pub text: String,
}

type Variant<'a> = (*const ReportComparison, &'a str);

fn variant<'a>(report: &ReportComparison, change: &'a Change) -> Variant<'a> {
    (std::ptr::from_ref(report), &change.case.key.variant)
}

/// Number of cases per variant, over all changes.
pub struct Totals<'a>(HashMap<Variant<'a>, usize>);

impl Totals<'_> {
    /// Total number of cases of all variants that occur in `rows`.
    pub fn of_rows(&self, rows: &[Row<'_>]) -> usize {
        let variants: HashSet<Variant<'_>> = rows.iter().map(|(report, change)| variant(report, change)).collect();
        variants.iter().filter_map(|of| self.0.get(of)).sum()
    }
}

pub fn totals(compared: Compared<'_>) -> Totals<'_> {
    let mut keys: HashMap<Variant<'_>, BTreeSet<String>> = HashMap::new();
    for report in &compared.comparison.reports {
        for change in &report.changes {
            keys.entry(variant(report, change)).or_default().insert(change.case.key.to_string());
        }
    }
    Totals(keys.into_iter().map(|(of, keys)| (of, keys.len())).collect())
}

/// One line per variant, in the order of first occurrence.
pub fn rollup(compared: Compared<'_>, totals: &Totals<'_>, rows: &[Row<'_>]) -> Rollup {
    let mut places: HashMap<Variant<'_>, usize> = HashMap::new();
    let mut groups: Vec<Vec<Row<'_>>> = Vec::new();
    for (report, change) in rows {
        let place = *places.entry(variant(report, change)).or_insert(groups.len());
        if place == groups.len() {
            groups.push(Vec::new());
        }
        groups[place].push((report, change));
    }
    let left_out = groups.len().saturating_sub(MOST_VARIANTS);
    let several = compared.comparison.reports.len() > 1;
    let line = |rows: &Vec<Row<'_>>| {
        let (report, first) = rows[0];
        Line {
            report: if several { report.experiment.clone() } else { String::new() },
            variant: first.case.key.variant.clone(),
            text: text(rows, totals.0.get(&variant(report, first)).copied().unwrap_or(0)),
        }
    };
    Rollup { lines: groups.iter().take(MOST_VARIANTS).map(line).collect(), left_out }
}

/// Maximum number of reasons in a sentence above the lines of the variants, which have all.
const FEW_REASONS: usize = 3;

/// Summarises rows that are some of `total` cases: `13 of 13 cases, +3.1 % to +9.0 %; source changed`.
pub fn text(rows: &[Row<'_>], total: usize) -> String {
    joined(rows, total, usize::MAX)
}

/// The same with the first reasons only.
pub fn short_text(rows: &[Row<'_>], total: usize) -> String {
    joined(rows, total, FEW_REASONS)
}

fn joined(rows: &[Row<'_>], total: usize, most: usize) -> String {
    let keys = rows.iter().map(|(report, change)| (std::ptr::from_ref(*report), &change.case.key));
    let keys: HashSet<(*const ReportComparison, &CaseKey)> = keys.collect();
    let cases = format!("{} of {}", keys.len(), plural_of(total as u64, "case", "cases"));
    let is_new = rows.iter().all(|(_, change)| change.kind == Kind::New);
    let places = || if is_new { newcomers(rows) } else { None };
    let changes = times(rows.iter().map(|(_, change)| *change)).or_else(|| counts(rows)).or_else(places);
    let parts = std::iter::once(cases).chain(changes).collect::<Vec<_>>().join(", ");
    std::iter::once(parts).chain(reasons(rows).into_iter().take(most)).collect::<Vec<_>>().join("; ")
}

/// Formats a range, or a single value if both ends look the same.
fn range([low, high]: [String; 2]) -> String {
    if low == high { low } else { format!("{low} to {high}") }
}

fn ends(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    values.fold(None, |ends, value| {
        let (low, high) = ends.unwrap_or((value, value));
        Some((low.min(value), high.max(value)))
    })
}

/// Range of the time changes.
pub fn times<'a>(mut changes: impl Iterator<Item = &'a Change>) -> Option<String> {
    let (low, high) = ends(changes.by_ref().filter_map(|change| change.time.as_ref()).map(|time| time.ratio))?;
    Some(range([words::plain_change(low), words::plain_change(high)]))
}

/// Range of changes in the counter that changed most.
fn counts(rows: &[Row<'_>]) -> Option<String> {
    if let [(_, only)] = rows
        && only.kind == Kind::Mixed
    {
        return words::count_change(only);
    }
    if rows.iter().all(|(_, change)| change.kind == Kind::Undecided) {
        return None;
    }
    let leading = rows.iter().filter_map(|(_, change)| words::leading_count(change));
    let most = leading.max_by(|a, b| words::size(a).total_cmp(&words::size(b)))?;
    let alike = rows.iter().flat_map(|(_, change)| &change.counters).filter(|counter| counter.name == most.name);
    let ratios = alike.map(|counter| counter.new / counter.base).filter(|ratio| ratio.is_finite());
    let name = if most.name == "inst_executed" { "machine instructions (inst_executed)" } else { &most.name };
    Some(match ends(ratios) {
        Some((low, high)) => format!("{name} {}", range([words::plain_change(low), words::plain_change(high)])),
        None => format!("{name} from zero"),
    })
}

/// Places of new cases in their groups.
fn newcomers(rows: &[Row<'_>]) -> Option<String> {
    let found = || rows.iter().filter_map(|(_, change)| change.newcomer.as_ref());
    if let Some((low, high)) = ends(found().filter_map(|new| new.speedup)) {
        let places: BTreeSet<usize> = found().filter_map(|new| Some(new.place?.0)).collect();
        let sizes: BTreeSet<usize> = found().filter_map(|new| Some(new.place?.1)).collect();
        let place = match (places.first(), places.last(), sizes.first(), sizes.last()) {
            (Some(first), Some(last), Some(least), Some(most)) => {
                let (places, sizes) = (range([words::ordinal(*first), words::ordinal(*last)]), (least, most));
                format!("{places} of {}, ", range([sizes.0.to_string(), sizes.1.to_string()]))
            }
            _ => String::new(),
        };
        return Some(format!("{place}{} times as fast as the baseline", range([rough(low), rough(high)])));
    }
    let counts = &found().next()?.counts;
    // Instruction counts say most about what a variant does.
    let first = |wanted: &dyn Fn(&str) -> bool| counts.iter().find(|(name, _, ratio)| ratio.is_some() && wanted(name));
    let name = &first(&|name| name == "inst_executed").or_else(|| first(&|_| true))?.0;
    let ratios = found().flat_map(|new| &new.counts).filter(|(other, ..)| other == name);
    let (low, high) = ends(ratios.filter_map(|(_, _, ratio)| *ratio))?;
    Some(format!("{name} {} times the baseline's", range([rough(low), rough(high)])))
}

/// Reasons that all rows share, or the first row's if there are none.
fn reasons(rows: &[Row<'_>]) -> Vec<String> {
    let (report, first) = rows[0];
    if first.kind == Kind::New {
        return Vec::new();
    }
    let of_first = words::reasons(first, report);
    let mut common = of_first.clone();
    for (report, change) in &rows[1..] {
        let own = words::reasons(change, report);
        common.retain(|reason| own.contains(reason));
    }
    // A failure that the rows do not share is shown for the first one.
    if words::fails(first.kind)
        && let Some(failure) = of_first.first().filter(|failure| !common.contains(failure))
    {
        common.insert(0, format!("e.g. {failure}"));
    }
    // So is the reason why a case is undecided.
    if let Some(why) = first.undecided.first().map(words::undecided).filter(|why| !common.contains(why)) {
        common.insert(0, format!("e.g. {why}"));
    }
    if common.is_empty() {
        common = of_first;
        if let Some(reason) = common.first_mut() {
            reason.insert_str(0, "such as ");
        }
    }
    common
}

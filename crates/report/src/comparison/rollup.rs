//! Summary line per variant, above the rows of its cases.

use std::collections::{BTreeSet, HashMap, HashSet};

use serde::Serialize;

use super::{Compared, notation, words};
use runner_lang::format::{plural, rough};
use runner_results::analyse::compare::{Change, CounterChange, Kind, ReportComparison, TimeChange};
use runner_types::CaseKey;

/// Maximum number of variants to list; further ones are only counted.
const MOST_VARIANTS: usize = 20;

pub type Row<'a> = (&'a ReportComparison, &'a Change);

#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Rollup {
    pub lines: Vec<Line>,
    /// Whether the lines only name variants.
    pub is_plain: bool,
    /// Number of variants that are not listed.
    pub left_out: usize,
}

impl Rollup {
    /// Removes a text that several variants share and returns it: `Of each variant: all 3 cases, 0 %`.
    pub fn fold(&mut self) -> Option<String> {
        let [first, rest @ ..] = &self.lines[..] else { return None };
        if rest.is_empty() || first.text.is_empty() || rest.iter().any(|line| line.text != first.text) {
            return None;
        }
        let text = format!("Of each variant: {}", first.text);
        self.lines.iter_mut().for_each(|line| line.text.clear());
        self.is_plain = true;
        Some(text)
    }
}

/// Summary of one variant's cases.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Line {
    /// Experiment, if there are several reports; otherwise empty.
    pub report: String,
    pub variant: String,
    /// Text such as `13 of 15 cases, +3.1 % to +9.0 %; registers 16 → 40`. May be empty.
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

/// One line per variant, in the order of first occurrence. Reasons for which `is_told` holds are omitted.
pub fn rollup(
    compared: Compared<'_>,
    totals: &Totals<'_>,
    rows: &[Row<'_>],
    is_told: impl Fn(&ReportComparison, &str) -> bool,
) -> Rollup {
    let groups = by_variant(rows);
    let left_out = groups.len().saturating_sub(MOST_VARIANTS);
    let several = compared.comparison.reports.len() > 1;
    let line = |rows: &Vec<Row<'_>>| {
        let (report, first) = rows[0];
        let reasons = reasons(rows).into_iter().filter(|reason| !is_told(report, reason));
        // For a single row, the reasons already state its counts.
        let size = size(rows, totals.of_rows(rows)).filter(|_| rows.len() > 1 || first.time.is_some());
        let text = size.into_iter().chain(reasons).collect::<Vec<_>>().join("; ");
        Line {
            report: if several { report.experiment.clone() } else { String::new() },
            variant: first.case.key.variant.clone(),
            text,
        }
    };
    let lines: Vec<Line> = groups.iter().take(MOST_VARIANTS).map(line).collect();
    Rollup { is_plain: lines.iter().all(|line| line.text.is_empty()), lines, left_out }
}

/// Rows of each variant, in the order of first occurrence.
pub fn by_variant<'a>(rows: &[Row<'a>]) -> Vec<Vec<Row<'a>>> {
    let mut places: HashMap<Variant<'_>, usize> = HashMap::new();
    let mut groups: Vec<Vec<Row<'_>>> = Vec::new();
    for (report, change) in rows {
        let place = *places.entry(variant(report, change)).or_insert(groups.len());
        if place == groups.len() {
            groups.push(Vec::new());
        }
        groups[place].push((report, change));
    }
    groups
}

/// How many of `total` cases, and by how much: `2 of 13 cases, +3.1 % to +9.0 %`. Omits the number if each variant has
/// one case.
pub fn size(rows: &[Row<'_>], total: usize) -> Option<String> {
    let keys = rows.iter().map(|(report, change)| (std::ptr::from_ref(*report), &change.case.key));
    let keys: HashSet<(*const ReportComparison, &CaseKey)> = keys.collect();
    let of_each = by_variant(rows).len();
    let is_of_one_side = rows.iter().all(|(_, change)| matches!(change.kind, Kind::New | Kind::Gone));
    let cases = match keys.len() {
        count if is_of_one_side => Some(plural(count as u64, "case")),
        count if count < total => Some(format!("{count} of {}", plural(total as u64, "case"))),
        count => (count > of_each).then(|| format!("all {count} cases")),
    };
    let is_new = rows.len() > 1 && rows.iter().all(|(_, change)| change.kind == Kind::New);
    let places = || if is_new { newcomers(rows) } else { None };
    let changes = times(rows.iter().map(|(_, change)| *change)).or_else(|| counts(rows)).or_else(places);
    let parts: Vec<String> = cases.into_iter().chain(changes).collect();
    (!parts.is_empty()).then(|| parts.join(", "))
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

/// Range of the time changes, with the digits that the widest of their intervals justifies.
pub fn times<'a>(changes: impl Iterator<Item = &'a Change>) -> Option<String> {
    let times: Vec<&TimeChange> = changes.filter_map(|change| change.time.as_ref()).collect();
    let (low, high) = ends(times.iter().map(|time| time.ratio))?;
    let halves = times.iter().filter_map(|time| Some(words::half_width(time.ratio, time.interval?)));
    let half = halves.reduce(f64::max);
    Some(range([low, high].map(|ratio| words::rounded_change(ratio, half))))
}

/// Ranges of changes in executed instructions and in the counter that changed most.
fn counts(rows: &[Row<'_>]) -> Option<String> {
    if let [(_, only)] = rows
        && only.kind == Kind::Mixed
    {
        return words::count_change(only);
    }
    if rows.iter().all(|(_, change)| change.kind == Kind::Undecided) {
        return None;
    }
    let leading: Vec<&CounterChange> = rows.iter().flat_map(|(_, change)| words::leading_counts(change)).collect();
    let is_instructions = |counter: &&&CounterChange| counter.name == notation::INSTRUCTIONS;
    let instructions = leading.iter().find(is_instructions);
    let others = leading.iter().filter(|counter| !is_instructions(counter));
    let most = others.max_by(|a, b| words::size(a).total_cmp(&words::size(b)));
    let range = |name: &str| {
        let alike = rows.iter().flat_map(|(_, change)| &change.counters).filter(|counter| counter.name == name);
        let ratios = alike.map(|counter| counter.new / counter.base).filter(|ratio| ratio.is_finite());
        let shown = notation::counter_name(name);
        match ends(ratios) {
            Some((low, high)) => format!("{shown} {}", range([words::plain_change(low), words::plain_change(high)])),
            None => format!("{shown} from zero"),
        }
    };
    let parts: Vec<String> = instructions.into_iter().chain(most).map(|counter| range(&counter.name)).collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// Ranks of new cases in their groups.
fn newcomers(rows: &[Row<'_>]) -> Option<String> {
    let baseline = rows[0].0.baseline.as_deref().map(notation::code).unwrap_or_default();
    // The baseline's ratio to itself says nothing.
    let is_other =
        |report: &ReportComparison, change: &Change| report.baseline.as_ref() != Some(&change.case.key.variant);
    let others = || rows.iter().filter(|(report, change)| is_other(report, change));
    let found = || others().filter_map(|(_, change)| change.newcomer.as_ref());
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
        return Some(format!("{place}{} times as fast as {baseline}", range([rough(low), rough(high)])));
    }
    let counts = &found().next()?.counts;
    // Instruction counts reveal most about what a variant does.
    let first = |wanted: &dyn Fn(&str) -> bool| counts.iter().find(|(name, _, ratio)| ratio.is_some() && wanted(name));
    let name = &first(&|name| name == notation::INSTRUCTIONS).or_else(|| first(&|_| true))?.0;
    let ratios = found().flat_map(|new| &new.counts).filter(|(other, ..)| other == name);
    let (low, high) = ends(ratios.filter_map(|(_, _, ratio)| *ratio))?;
    Some(format!("{} {} times {baseline}", notation::counter_name(name), range([rough(low), rough(high)])))
}

/// Reasons that all rows share, or the first row's if there are none.
pub fn reasons(rows: &[Row<'_>]) -> Vec<String> {
    let (report, first) = rows[0];
    if first.kind == Kind::New && rows.len() > 1 {
        return Vec::new();
    }
    let of_first = words::reasons(first, report);
    let mut common = of_first.clone();
    for (report, change) in &rows[1..] {
        let own = words::reasons(change, report);
        common.retain(|reason| own.contains(reason));
    }
    // A failure that the rows do not share is shown for the first row.
    if words::fails(first.kind)
        && let Some(failure) = of_first.first().filter(|failure| !common.contains(failure))
    {
        common.insert(0, format!("e.g. {failure}"));
    }
    // The reason why a case is undecided is shown for the first row, too.
    if let Some(why) = first.undecided.first().map(words::undecided).filter(|why| !common.contains(why)) {
        common.insert(0, format!("e.g. {why}"));
    }
    if common.is_empty() {
        common = of_first;
        if let Some(reason) = common.first_mut().filter(|_| rows.len() > 1) {
            reason.insert_str(0, "e.g. ");
        }
    }
    common
}

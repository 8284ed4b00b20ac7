//! Counters by theme: one row per case, one column per counter, each count with its ratio to the baseline's.
//!
//! Counts have neither a time unit nor an interval. Counters outside the themes follow under their own heading, so that
//! no count is missing.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::table::{Cell, Folding, Table, number as number_column, text};
use runner_lang::format;
use runner_results::analyse::{self, GroupSummary, Summary};
use runner_types::{BackendKind, CaseRecord, CounterInfo, CounterTheme, CounterUnit, Records, VOCABULARY};

/// Headings in table order: the themes of the vocabulary, with wide ones split into parts.
const HEADINGS: [&str; 12] = [
    "Instructions",
    "Pipelines",
    "Branches and barriers",
    "Global loads",
    "Global stores and atomics",
    "Shared and local memory",
    "Device memory and throughput",
    "Activity of the machine",
    "PTX: instructions",
    "PTX: branches and barriers",
    "PTX: global memory",
    "PTX: shared and local memory",
];

fn heading(info: &CounterInfo) -> &'static str {
    match info.theme {
        CounterTheme::Instructions => match info.name {
            "branch" | "divergent_branch" | "branch_efficiency" | "barriers" | "device_launches" => HEADINGS[2],
            _ => HEADINGS[0],
        },
        CounterTheme::Pipelines => HEADINGS[1],
        CounterTheme::Global if info.name.starts_with("gld") => HEADINGS[3],
        CounterTheme::Global if !info.name.starts_with("dram") => HEADINGS[4],
        CounterTheme::SharedAndLocal => HEADINGS[5],
        CounterTheme::Activity if !info.name.ends_with("throughput") => HEADINGS[7],
        CounterTheme::Global | CounterTheme::Activity => HEADINGS[6],
        CounterTheme::Ptx if info.name.contains("executed") || info.name.contains("execution") => HEADINGS[8],
        CounterTheme::Ptx if info.name.contains("branch") || info.name.contains("barriers") => HEADINGS[9],
        CounterTheme::Ptx if info.name.contains("shared") || info.name.contains("local") => HEADINGS[11],
        CounterTheme::Ptx => HEADINGS[10],
    }
}

/// Counters whose ratios are summarised over all groups.
const SUMMED_UP: [&str; 5] = ["inst_executed", "gld_sectors", "gld_transactions_128", "gst_sectors", "barriers"];

/// Counter by which each step of a ladder is compared with the one before.
const STEPS_BY: &str = "inst_executed";

/// Title of the column of ratios to the previous row.
const BEFORE: &str = "× row before";

/// Minimum number of rows of a ladder; with two, the row before is the baseline.
const LEAST_STEPS: usize = 3;

/// Log ratio below which counts are considered equal.
const SAME: f64 = 0.01;

/// Counters of one theme in one group.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Counted {
    pub title: String,
    /// Values that all rows share.
    pub common: String,
    /// Empty if the rows share all values.
    pub table: Table,
    /// Counters that did not fit in the table.
    pub left_out: Vec<String>,
}

pub fn has_counters(records: &Records) -> bool {
    records.cases.iter().any(|record| record.counters.is_some())
}

/// Counters of a group by theme, in tables of at most `width` characters; empty without counters.
pub fn counted(records: &Records, group: &GroupSummary, width: usize) -> Vec<Counted> {
    let rows: Vec<&CaseRecord> =
        group.members.iter().map(|i| &records.cases[*i]).filter(|r| r.counters.is_some()).collect();
    let names: BTreeSet<&str> =
        rows.iter().filter_map(|r| r.counters.as_ref()).flat_map(|c| c.0.keys()).map(AsRef::as_ref).collect();
    let others: Vec<&str> = names.iter().copied().filter(|name| CounterInfo::named(name).is_none()).collect();
    let themes = HEADINGS.iter().map(|title| {
        let known = VOCABULARY.iter().filter(|info| heading(info) == *title).map(|info| info.name);
        let is_shown = |name: &&str| names.contains(name) && !repeats(&rows, name);
        (*title, known.filter(is_shown).collect::<Vec<_>>())
    });
    let themes = themes.chain([("Other counters", others)]);
    themes
        .filter(|(_, names)| !names.is_empty())
        .map(|(title, names)| theme(records, &rows, title, &names, width))
        .collect()
}

/// Whether a PTX counter equals its machine-code counterpart in every row.
fn repeats(rows: &[&CaseRecord], name: &str) -> bool {
    let of_ptx = |info: &&CounterInfo| info.of_ptx() == Some(name);
    let machine = VOCABULARY.iter().find(of_ptx).map(|info| info.name);
    machine.is_some_and(|machine| rows.iter().all(|row| value(row, machine) == value(row, name)))
}

fn theme(records: &Records, rows: &[&CaseRecord], title: &str, names: &[&str], width: usize) -> Counted {
    let baseline = rows.iter().find(|row| analyse::is_baseline(&records.header, &row.case)).copied();
    let counts_nothing = |name: &&&str| rows.iter().all(|row| value(row, name).is_none_or(|count| count == 0.0));
    let (nothing, names): (Vec<&str>, Vec<&str>) = names.iter().partition(|name| counts_nothing(name));
    let mut table = Table::new(vec![text("variant", Folding::Keep)]);
    // The first counters of a theme are the most informative.
    let columns = names.iter().zip(1..).map(|(name, rank)| number_column(*name, Folding::WhenCommon).ranked(rank));
    table.columns.extend(columns);
    let is_ladder = names.contains(&STEPS_BY) && records.header.has_steps() && rows.len() >= LEAST_STEPS;
    if is_ladder {
        table.columns.insert(2, number_column(BEFORE, Folding::WhenEmpty).ranked(1));
    }
    for (place, row) in rows.iter().enumerate() {
        let mut cells = vec![Cell::code(analyse::contender(&records.header, &row.case))];
        cells.extend(names.iter().map(|name| Cell::maybe(with_ratio(row, baseline, name))));
        if is_ladder {
            let before = place.checked_sub(1).and_then(|before| value(rows[before], STEPS_BY)).filter(|of| *of > 0.0);
            let ratio = before.and_then(|before| Some(value(row, STEPS_BY)? / before));
            cells.insert(2, Cell::maybe(ratio.map(|ratio| format!("{}×", format::rough(ratio)))));
        }
        table.rows.push(cells);
    }
    let mut common = table.fold().iter().map(ToString::to_string).collect::<Vec<_>>();
    let is_empty = names.is_empty();
    if !nothing.is_empty() && !is_empty {
        common.push(format!("zero: {}", nothing.join(", ")));
    }
    let left_out = table.fit(width);
    if table.columns.len() == 1 {
        table = Table::default();
    }
    let by_hardware = records.header.backend != BackendKind::Sim;
    let source = if by_hardware { " (hardware counters)" } else { "" };
    let title = format!("{title}{source}{}", if is_empty { ": nothing counted" } else { "" });
    Counted { title, common: common.join(" · "), table, left_out }
}

/// A count with its ratio, such as `1088 (0.5×)`. There is no ratio for percentages, or if the baseline's count is
/// zero.
fn with_ratio(row: &CaseRecord, baseline: Option<&CaseRecord>, name: &str) -> Option<String> {
    let value = value(row, name)?;
    // Marks an estimate from a sample of the blocks.
    let about = if row.sample().is_some() { "~" } else { "" };
    let shown = match CounterInfo::named(name).map(|info| info.unit) {
        Some(CounterUnit::Percent) => return Some(format!("{about}{} %", format::count(value))),
        Some(CounterUnit::BytesPerSecond) => return Some(format!("{} GB/s", format::rough(value / 1e9))),
        Some(CounterUnit::Nanoseconds) => return Some(format!("{} µs", format::count(value / 1e3))),
        _ => format!("{about}{}", format::count(value)),
    };
    let of = baseline.and_then(|baseline| self::value(baseline, name)).filter(|of| *of > 0.0);
    Some(match of {
        // Neither the baseline itself nor an equal value gets a ratio.
        Some(of) if (of - value).abs() > 0.0 => format!("{shown} ({}×)", format::rough(value / of)),
        _ => shown,
    })
}

fn value(record: &CaseRecord, name: &str) -> Option<f64> {
    record.counters.as_ref()?.0.get(name).copied()
}

/// Geometric means of the ratios to the baseline over all groups, one row per variant; `None` without counters or
/// baseline.
pub fn overall(records: &Records, summary: &Summary) -> Option<Table> {
    let mut table = Table::new(vec![text("variant", Folding::Keep)]);
    let columns = SUMMED_UP.iter().zip(1..).map(|(name, rank)| number_column(*name, Folding::WhenEmpty).ranked(rank));
    table.columns.extend(columns);
    let is_ladder = records.header.has_steps() && records.header.variants.len() >= LEAST_STEPS;
    if is_ladder {
        table.columns.insert(2, number_column(BEFORE, Folding::WhenEmpty).ranked(1));
    }
    let mut before: Option<&str> = None;
    let mut any = false;
    let least = SUMMED_UP.map(|name| fewest(records, summary, name).map(|(_, mean)| mean));
    for variant in &records.header.variants {
        let means = SUMMED_UP.map(|name| mean_ratio(records, summary, variant, name));
        if means.iter().all(Option::is_none) {
            continue;
        }
        any = true;
        let mut cells = vec![Cell::code(variant)];
        let shown = |mean: f64| format!("{}×", format::rough(mean));
        cells.extend(means.iter().zip(&least).map(|(mean, least)| {
            let leads = least.is_some_and(|least| least < 1.0 && mean.map(shown) == Some(shown(least)));
            Cell::maybe(mean.map(shown)).strong_if(leads)
        }));
        if is_ladder {
            let ratio = before.and_then(|before| mean_against(records, summary, [before, variant], STEPS_BY));
            cells.insert(2, Cell::maybe(ratio.map(shown)));
        }
        before = Some(variant);
        table.rows.push(cells);
    }
    table.fold();
    any.then_some(table)
}

/// Geometric mean of a variant's counts divided by the baseline's, over the groups in which both have counts.
fn mean_ratio(records: &Records, summary: &Summary, variant: &str, name: &str) -> Option<f64> {
    let (baseline, _) = records.header.baseline.as_ref()?;
    mean_against(records, summary, [baseline, variant], name)
}

/// Geometric mean of the second variant's counts divided by the first's, over the groups in which both have counts.
fn mean_against(records: &Records, summary: &Summary, both: [&str; 2], name: &str) -> Option<f64> {
    let ratios = summary.groups.iter().filter_map(|group| ratio_in(records, group, both, name));
    runner_stats::geometric_mean(&ratios.collect::<Vec<f64>>())
}

/// Variant with the smallest count relative to the baseline, the first on ties; `None` without ratios.
pub fn fewest<'a>(records: &'a Records, summary: &Summary, name: &str) -> Option<(&'a str, f64)> {
    let means = records.header.variants.iter().filter_map(|v| Some((&**v, mean_ratio(records, summary, v, name)?)));
    means.min_by(|a, b| a.1.total_cmp(&b.1))
}

/// Ratio of one contender's count to another's.
#[derive(Debug, Clone, PartialEq)]
pub struct Multiple {
    pub counter: &'static str,
    pub contender: String,
    /// Geometric mean over the groups.
    pub ratio: f64,
    /// The baseline, or the first contender if there is none.
    pub of: String,
}

/// The count that differs most from the baseline's, or from the first contender's without a baseline; `None` if no
/// deciding count differs.
pub fn greatest_difference(records: &Records, summary: &Summary) -> Option<Multiple> {
    let mut ratios: BTreeMap<(&'static str, String, String), Vec<f64>> = BTreeMap::new();
    for group in &summary.groups {
        let cases = || group.members.iter().map(|i| &records.cases[*i]).filter(|record| record.counters.is_some());
        let is_baseline = |record: &&CaseRecord| analyse::is_baseline(&records.header, &record.case);
        let Some(reference) = cases().find(is_baseline).or_else(|| cases().next()) else { continue };
        let name = |record: &CaseRecord| analyse::contender(&records.header, &record.case);
        for record in cases() {
            for info in VOCABULARY.iter().filter(|info| info.decides()) {
                let (Some(own), Some(of)) = (value(record, info.name), value(reference, info.name)) else { continue };
                if own > 0.0 && of > 0.0 {
                    ratios.entry((info.name, name(record), name(reference))).or_default().push(own / of);
                }
            }
        }
    }
    let means = ratios.into_iter().filter_map(|((counter, contender, of), ratios)| {
        Some(Multiple { counter, contender, ratio: runner_stats::geometric_mean(&ratios)?, of })
    });
    let size = |multiple: &Multiple| multiple.ratio.ln().abs();
    means.filter(|multiple| size(multiple) > SAME).max_by(|a, b| size(a).total_cmp(&size(b)))
}

/// The second variant's count divided by the first's, in a group that compares only variants.
fn ratio_in(records: &Records, group: &GroupSummary, [of, variant]: [&str; 2], name: &str) -> Option<f64> {
    if records.header.axes.iter().any(|axis| axis.compared) {
        return None;
    }
    let count = |variant: &str| {
        let mut cases = group.members.iter().map(|i| &records.cases[*i]);
        value(cases.find(|record| record.case.key.variant == variant)?, name)
    };
    let (own, of) = (count(variant)?, count(of)?);
    (of > 0.0 && own > 0.0).then(|| own / of)
}

#[cfg(test)]
mod tests {
    use super::{HEADINGS, SUMMED_UP, heading};
    use runner_types::{CounterInfo, VOCABULARY};

    #[test]
    fn every_counter_of_the_vocabulary_stands_under_a_theme() {
        for title in HEADINGS {
            let columns = VOCABULARY.iter().filter(|info| heading(info) == title).count();
            assert!((1..=11).contains(&columns), "{title} has {columns} columns");
        }
        assert!(VOCABULARY.iter().all(|info| HEADINGS.contains(&heading(info))));
        assert!(SUMMED_UP.iter().all(|name| CounterInfo::named(name).is_some()));
    }
}

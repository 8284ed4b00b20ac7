//! Writes `lines.csv`: counts per source line and case, for reports that counted lines.

use std::collections::BTreeSet;

use super::csv::table;
use super::{RenderError, units};
use runner_lang::format;
use runner_types::{CaseRecord, CountedLine, Records};

/// Maximum number of lines in the details of a case; those with the largest shares are shown.
const MOST_IN_DETAILS: usize = 12;

/// Counters in the details of a case, with their column titles.
const IN_DETAILS: [(&str, &str); 6] = [
    ("inst_executed", "warps"),
    ("gld_sectors", "load sectors"),
    ("gst_sectors", "store sectors"),
    ("shared_ld_bank_conflicts", "conflicts of loads"),
    ("shared_st_bank_conflicts", "conflicts of stores"),
    ("divergent_branch", "divergent"),
];

/// Whether a report counted lines.
pub fn are_counted(records: &Records) -> bool {
    records.cases.iter().any(|record| !record.lines.is_empty())
}

/// CSV per RFC 4180, formatted like `results.csv`.
pub fn csv(records: &Records) -> Result<String, RenderError> {
    let lines = || records.cases.iter().flat_map(|record| &record.lines);
    let names = &lines().flat_map(|line| line.counters.0.keys()).map(|name| &**name).collect::<BTreeSet<&str>>();
    let axes: Vec<&str> = records.header.axes.iter().map(|axis| axis.name.as_str()).collect();
    let titles = ["variant".to_owned()].into_iter().chain(axes.iter().map(|axis| format!("axis.{axis}")));
    let titles = titles.chain(["file", "line", "source"].map(str::to_owned));
    let titles = titles.chain(names.iter().map(|name| format!("counter.{name}")));
    let of_lines = records.cases.iter().flat_map(|record| {
        let axis = |name: &&str| units::axis(&record.case, name).map(ToString::to_string).unwrap_or_default();
        let case: Vec<String> = [record.case.key.variant.clone()].into_iter().chain(axes.iter().map(axis)).collect();
        record.lines.iter().map(move |line| {
            let own = [line.file.clone(), line.line.to_string(), line.text.clone()];
            let counts = names.iter().map(|name| line.counters.get(name).unwrap_or(0.0).to_string());
            case.iter().cloned().chain(own).chain(counts).collect()
        })
    });
    table([titles.collect::<Vec<_>>()].into_iter().chain(of_lines))
}

/// Table of the source lines with the largest shares of a case's counts; `None` if lines were not counted.
pub fn details(record: &CaseRecord) -> Option<(Vec<&'static str>, Vec<Vec<String>>)> {
    let total = |name: &str| record.lines.iter().filter_map(|line| line.counters.get(name)).sum::<f64>();
    let shown: Vec<(&str, &str, f64)> =
        IN_DETAILS.iter().map(|&(name, title)| (name, title, total(name))).filter(|(.., total)| *total > 0.0).collect();
    let share = |line: &CountedLine| {
        let shares = shown.iter().map(|(name, _, total)| line.counters.get(name).unwrap_or(0.0) / total);
        shares.fold(0.0, f64::max)
    };
    let mut lines: Vec<&CountedLine> = record.lines.iter().collect();
    lines.sort_by(|a, b| share(b).total_cmp(&share(a)));
    lines.truncate(MOST_IN_DETAILS);
    lines.sort_by_key(|line| (&line.file, line.line));
    let row = |line: &&CountedLine| {
        let count = |(name, ..): &(&str, &str, f64)| line.counters.get(name).map(format::count).unwrap_or_default();
        let place = format!("{}:{}", line.file, line.line);
        std::iter::once(place).chain(shown.iter().map(count)).chain([line.text.clone()]).collect()
    };
    let titles = std::iter::once("line").chain(shown.iter().map(|(_, title, _)| *title)).chain(["source"]).collect();
    (!lines.is_empty()).then(|| (titles, lines.iter().map(row).collect()))
}

//! The text before the tables: the fastest variants, where, and by how much.

use super::grid::Grid;
use super::number;
use super::rows::{bandwidth, gflops, is_noise, percent_of_ceiling, percent_of_peak, ratio, time_unit};
use super::table::{Cell, Folding, Table, number as number_column, text};
use super::units::{self, TimeUnit};
use super::{counters, wording};
use crate::analyse::{self, BaselineState, Best, Bound, ExpectedFailures, GroupSummary, Standing, Summary};
use crate::format::{plural, plural_of, rough};
use crate::model::{CaseRecord, GroupKey, Outcome, Records, Regime, RegimeResult, Value, Verdict};

/// One sentence, in parts.
pub type Finding = Vec<Cell>;

/// Axes of the groups that have one value throughout; all of them if there is only one group.
pub fn constant_axes(records: &Records, summary: &Summary) -> Vec<(String, Value)> {
    let Some(first) = summary.groups.first() else { return Vec::new() };
    let everywhere = |axis: &&(String, Value)| summary.groups.iter().all(|g| g.key.0.contains(axis));
    let swept = |axis: &&(String, Value)| records.header.axes.iter().any(|a| a.name == axis.0 && !a.compared);
    first.key.0.iter().filter(everywhere).filter(swept).cloned().collect()
}

/// The sentences of the summary.
pub fn findings(records: &Records, summary: &Summary) -> Vec<Finding> {
    if let Some(expected_failures) = &summary.expected_failures {
        return vec![as_expected(expected_failures), vec![Cell::plain(counts(records, summary))]];
    }
    let mut findings = Vec::new();
    for regime in Regime::ALL {
        let several_regimes = summary.standings.iter().any(|s| s.regime != regime);
        let prefix = if several_regimes { format!("{regime}: ") } else { String::new() };
        let decided: Vec<(&GroupSummary, &Best)> =
            summary.groups.iter().filter_map(|g| Some((g, g.best.iter().find(|b| b.regime == regime)?))).collect();
        match decided.as_slice() {
            [] => {}
            [(group, best)] => findings.push(single(records, group, best, &prefix)),
            several => findings.extend(leader(records, summary, several, regime, &prefix)),
        }
    }
    if findings.is_empty() {
        findings.extend(FEWEST.iter().filter_map(|(name, does)| fewest(records, summary, name, does)));
    }
    findings.push(vec![Cell::plain(counts(records, summary))]);
    findings
}

/// The result of an experiment of expected failures: its cases end as the manifest says.
fn as_expected(expected_failures: &ExpectedFailures) -> Finding {
    let (ended, of) = (expected_failures.as_expected(), expected_failures.of);
    let lead = match of {
        1 if ended == 1 => "The only case ended".to_owned(),
        _ if ended == of => format!("All {of} cases ended"),
        _ => format!("{ended} of {of} cases ended"),
    };
    let ways: Vec<String> = expected_failures.failed.iter().map(|(way, count)| wording::tally(way, *count)).collect();
    let failed: usize = expected_failures.failed.values().sum();
    let mut parts = Vec::new();
    if failed > 0 {
        let failed = plural_of(failed as u64, "fails", "fail");
        parts.push(format!("{failed} in the way that the manifest names ({})", ways.join(", ")));
    }
    if expected_failures.right > 0 {
        parts.push(plural_of(expected_failures.right as u64, "is right", "are right"));
    }
    let rest = if parts.is_empty() { ".".to_owned() } else { format!(": {}.", parts.join(", ")) };
    vec![Cell::plain(format!("{lead} as expected")).strong_if(true), Cell::plain(rest)]
}

/// Without times: the most informative counters, and a sentence about the variant that has least.
const FEWEST: [(&str, &str); 2] =
    [("inst_executed", "executes the fewest warp instructions"), ("gld_sectors", "loads the fewest sectors")];

/// The variant with the least of a counter, relative to the baseline.
fn fewest(records: &Records, summary: &Summary, name: &str, does: &str) -> Option<Finding> {
    let (variant, mean) = counters::fewest(records, summary, name)?;
    let (baseline, _) = records.header.baseline.as_ref()?;
    if variant == baseline {
        return None;
    }
    let mean_of = if summary.groups.len() > 1 { " by the geometric mean" } else { "" };
    Some(vec![
        Cell::code(variant).strong_if(true),
        Cell::plain(format!(" {does}: {} times as many as ", rough(mean))),
        Cell::code(baseline.clone()),
        Cell::plain(format!("{mean_of}.")),
    ])
}

/// The finding of a single group: its fastest cell with every number.
fn single(records: &Records, group: &GroupSummary, best: &Best, prefix: &str) -> Finding {
    let record = &records.cases[best.index];
    let mut finding = vec![
        Cell::plain(prefix),
        Cell::code(analyse::contender(&records.header, &record.case)).strong_if(true),
        Cell::plain(" is the fastest: "),
    ];
    finding.push(Cell::plain(achievement(records, group, record)));
    finding.extend(against(records, record));
    finding.extend(tied(records, best));
    finding
}

/// `1.1712 ± 0.0011 ms, 2750 GB/s (82.0 % of peak, 86.2 % of the measured ceiling)`.
fn achievement(records: &Records, group: &GroupSummary, record: &CaseRecord) -> String {
    let Some(result) = &record.result else { return String::new() };
    let unit = time_unit(records, &group.members);
    let time = format!("{} {}", number::plus_minus(&result.time, unit.nanoseconds()), unit.symbol());
    let rate = rate(records, record, result).map(|rate| format!(", {rate}")).unwrap_or_default();
    let peak = peak_percent(records, record, result).map(|p| format!("{p} % of peak"));
    let ceiling = percent_of_ceiling(records, record, Some(result)).map(|p| format!("{p} % of the measured ceiling"));
    let shares: Vec<String> = peak.into_iter().chain(ceiling).collect();
    let shares = if shares.is_empty() { String::new() } else { format!(" ({})", shares.join(", ")) };
    format!("{time}{rate}{shares}")
}

/// The rate that shows how well the machine is used: of arithmetic if that bounds the job, otherwise of memory.
fn rate(records: &Records, record: &CaseRecord, result: &RegimeResult) -> Option<String> {
    if is_arithmetic(records, record) {
        return Some(format!("{} GFLOP/s", gflops(record, Some(result))?));
    }
    Some(format!("{} GB/s", bandwidth(record, Some(result))?))
}

/// Whether the job is bound by arithmetic and not memory, by the measured ceilings.
pub fn is_arithmetic(records: &Records, record: &CaseRecord) -> bool {
    let ceilings = records.environment.machine.ceilings.as_ref();
    ceilings.and_then(|ceilings| analyse::bound(&record.work, ceilings)) == Some(Bound::Arithmetic)
}

/// The share of the data sheet's bandwidth, for jobs that are not bound by arithmetic.
fn peak_percent(records: &Records, record: &CaseRecord, result: &RegimeResult) -> Option<String> {
    let peak = records.environment.device.peak_bandwidth().filter(|_| !is_arithmetic(records, record))?;
    percent_of_peak(record, result, peak)
}

fn against(records: &Records, record: &CaseRecord) -> Finding {
    let Some(result) = &record.result else { return vec![Cell::plain(".")] };
    match &result.against_baseline {
        Some(r) if is_noise(records, result, r) => vec![
            Cell::plain(", no faster than "),
            Cell::code(r.against.clone()),
            Cell::plain(format!(" beyond the noise ({}).", ratio(r))),
        ],
        Some(r) => vec![
            Cell::plain(format!(", {} times as fast as ", ratio(r))),
            Cell::code(r.against.clone()),
            Cell::plain("."),
        ],
        None => vec![Cell::plain(".")],
    }
}

fn tied(records: &Records, best: &Best) -> Finding {
    if best.tied.is_empty() {
        return Vec::new();
    }
    let mut said = vec![Cell::plain(" Tied (overlapping 95 % intervals): ")];
    for (i, index) in best.tied.iter().enumerate() {
        if i > 0 {
            said.push(Cell::plain(", "));
        }
        said.push(Cell::code(analyse::contender(&records.header, &records.cases[*index].case)));
    }
    said.push(Cell::plain("."));
    said
}

/// The finding of several groups: which variant wins most of them, its mean speedup, the highest rate.
fn leader(
    records: &Records,
    summary: &Summary,
    decided: &[(&GroupSummary, &Best)],
    regime: Regime,
    prefix: &str,
) -> Vec<Finding> {
    let ranked = summary.standings.iter().filter(|s| s.regime == regime && !s.on_host);
    let mean = |s: &Standing| s.speedup.map_or(0.0, |range| range.geomean);
    // Reversed, since `max_by` returns the last of equals.
    let most = ranked.rev().max_by(|a, b| a.wins.cmp(&b.wins).then(mean(a).total_cmp(&mean(b))));
    let Some(leader) = most else { return Vec::new() };
    let mut first = vec![
        Cell::plain(prefix),
        Cell::code(leader.contender.clone()).strong_if(true),
        Cell::plain(format!(" is the fastest in {} of {} groups", leader.wins, decided.len())),
    ];
    if let (Some(range), Some((baseline, _))) = (&leader.speedup, &records.header.baseline) {
        let over = if range.groups == decided.len() {
            ":".to_owned()
        } else {
            format!("; over the {} that can be compared it is", plural(range.groups as u64, "group"))
        };
        first.push(Cell::plain(format!("{over} {} times as fast as ", rough(range.geomean))));
        first.push(Cell::code(baseline.clone()));
        first.push(Cell::plain(format!(
            " by the geometric mean, from {} to {}",
            rough(range.least),
            rough(range.greatest)
        )));
    }
    first.push(Cell::plain("."));
    let mut findings = vec![first];
    findings.extend(highest_rate(records, decided));
    findings
}

/// The highest rate that was reached.
fn highest_rate(records: &Records, decided: &[(&GroupSummary, &Best)]) -> Option<Finding> {
    let arithmetic = decided.iter().all(|(_, best)| is_arithmetic(records, &records.cases[best.index]));
    let work = |record: &CaseRecord| if arithmetic { record.work.flops } else { record.work.bytes.map(|b| b as f64) };
    let candidates = decided.iter().filter_map(|(group, best)| {
        let record = &records.cases[best.index];
        let time = &record.result.as_ref()?.time;
        Some((*group, record, units::per_second(work(record)?, time)))
    });
    let (group, record, _) = candidates.max_by(|a, b| a.2.total_cmp(&b.2))?;
    let result = record.result.as_ref()?;
    let mut finding =
        vec![Cell::plain("The highest rate is "), Cell::plain(rate(records, record, result)?).strong_if(true)];
    if let Some(percent) = peak_percent(records, record, result) {
        finding.push(Cell::plain(format!(", {percent} % of the data-sheet peak")));
    } else if let Some(percent) = percent_of_ceiling(records, record, Some(result)) {
        finding.push(Cell::plain(format!(", {percent} % of the measured ceiling")));
    }
    finding.push(Cell::plain(", by "));
    finding.push(Cell::code(analyse::contender(&records.header, &record.case)));
    if !group.key.0.is_empty() {
        finding.push(Cell::plain(format!(" at {}", units::axes_text(&group.key.0))));
    }
    finding.push(Cell::plain("."));
    Some(finding)
}

/// The counts of a run, computed from its records alone.
pub fn counts_of(records: &Records) -> String {
    counts(records, &analyse::summary(records))
}

/// `26 of 36 cases measured, every result right before and after the timing; 10 invalid.`
pub fn counts(records: &Records, summary: &Summary) -> String {
    let of = |name: &str| summary.outcomes.get(name).copied().unwrap_or(0);
    let done = of("measured") + of("unstable");
    let verb = if records.cases.iter().any(|r| r.result.is_some()) { "measured" } else { "run" };
    let sound = records.cases.iter().filter(|r| matches!(r.outcome.name(), "measured" | "unstable"));
    let unchecked = sound.filter(|r| r.verdict != Verdict::Pass).count();
    // With wrong results, "every result" would include them.
    let failed = summary.failures.iter().any(|i| !matches!(records.cases[*i].outcome, Outcome::NotRun { .. }));
    let all = if failed { "each of these right" } else { "every result right" };
    let checked = match unchecked {
        0 if done > 0 && verb == "run" => format!(", {all}"),
        0 if done > 0 => format!(", {all} before and after the timing"),
        0 => String::new(),
        n => format!(", {n} unchecked"),
    };
    let others: Vec<String> = summary
        .outcomes
        .iter()
        .filter(|(name, _)| **name != "measured")
        .map(|(name, count)| wording::tally(name, *count))
        .collect();
    let others = if others.is_empty() { String::new() } else { format!("; {}", others.join(", ")) };
    format!("{done} of {} cases {verb}{checked}{others}.", summary.cases)
}

/// Whether the means are over different numbers of groups.
pub fn is_uneven(summary: &Summary) -> bool {
    let mut counts = summary.standings.iter().filter_map(|s| s.speedup).map(|range| range.groups);
    let first = counts.next();
    counts.any(|count| Some(count) != first)
}

/// Contenders over all groups; `None` if there are no speedups.
pub fn standings_table(summary: &Summary) -> Option<Table> {
    if summary.standings.iter().all(|s| s.speedup.is_none()) {
        return None;
    }
    let mut table = Table::new(vec![
        text("variant", Folding::Keep),
        text("regime", Folding::WhenCommon),
        number_column("fastest in", Folding::Keep),
        number_column("geomean speedup", Folding::Keep),
        number_column("least", Folding::Keep),
        number_column("greatest", Folding::Keep),
        number_column("groups", Folding::Keep),
    ]);
    let most = |regime: Regime| summary.standings.iter().filter(|s| s.regime == regime).map(|s| s.wins).max();
    for standing in &summary.standings {
        let leads = standing.wins > 0 && Some(standing.wins) == most(standing.regime);
        table.rows.push(standing_row(standing, leads));
    }
    table.fold();
    Some(table)
}

fn standing_row(standing: &Standing, leads: bool) -> Vec<Cell> {
    let range = standing.speedup;
    let shown = |pick: fn(&analyse::SpeedupRange) -> f64| Cell::maybe(range.as_ref().map(|r| rough(pick(r))));
    vec![
        Cell::code(standing.contender.clone()).strong_if(leads),
        Cell::plain(standing.regime.to_string()),
        Cell::plain(if standing.on_host { "host".to_owned() } else { standing.wins.to_string() }),
        if standing.is_baseline { Cell::plain("baseline") } else { shown(|r| r.geomean).strong_if(leads) },
        shown(|r| r.least),
        shown(|r| r.greatest),
        Cell::plain(range.map_or(standing.measured, |r| r.groups).to_string()),
    ]
}

/// The fastest of each group, one row per group and regime; `None` without times.
pub fn fastest_table(records: &Records, summary: &Summary, constant: &[(String, Value)]) -> Option<Table> {
    let bests = || summary.groups.iter().flat_map(|g| g.best.iter().map(move |b| (g, b)));
    let times = bests().filter_map(|(_, b)| records.cases[b.index].result.as_ref()).map(|r| r.time.point);
    let unit = TimeUnit::of(times);
    bests().next()?;
    let varying: Vec<&str> = records
        .header
        .axes
        .iter()
        .filter(|axis| !axis.compared && !constant.iter().any(|(name, _)| *name == axis.name))
        .map(|axis| axis.name.as_str())
        .collect();
    let mut table = Table::new(varying.iter().map(|name| number_column(*name, Folding::WhenEmpty)).collect());
    table.columns.extend([
        text("regime", Folding::WhenCommon),
        text("fastest", Folding::Keep),
        number_column(format!("time ({})", unit.symbol()), Folding::Keep),
        number_column("GB/s", Folding::WhenEmpty),
        number_column("% of peak", Folding::WhenEmpty),
        number_column("× baseline", Folding::WhenEmpty),
        text("tied with", Folding::WhenEmpty),
    ]);
    for (group, best) in bests() {
        table.rows.push(fastest_row(records, group, best, &varying, unit)?);
    }
    table.fold();
    Some(table)
}

fn fastest_row(
    records: &Records,
    group: &GroupSummary,
    best: &Best,
    varying: &[&str],
    unit: TimeUnit,
) -> Option<Vec<Cell>> {
    let record = &records.cases[best.index];
    let result = record.result.as_ref()?;
    let name = |i: &usize| analyse::contender(&records.header, &records.cases[*i].case);
    let axis = |wanted: &&str| group.key.0.iter().find(|(n, _)| n == wanted).map(|(_, v)| units::axis_value(v));
    let mut row: Vec<Cell> = varying.iter().map(|wanted| Cell::maybe(axis(wanted))).collect();
    let is_baseline = analyse::is_baseline(&records.header, &record.case);
    row.extend([
        Cell::plain(best.regime.to_string()),
        Cell::code(name(&best.index)),
        Cell::plain(number::plus_minus(&result.time, unit.nanoseconds())),
        Cell::maybe(bandwidth(record, Some(result))),
        Cell::maybe(peak_percent(records, record, result)),
        if is_baseline { Cell::plain("baseline") } else { Cell::maybe(result.against_baseline.as_ref().map(ratio)) },
        Cell::plain(best.tied.iter().map(name).collect::<Vec<_>>().join(", ")),
    ]);
    Some(row)
}

/// The summary line of a folded group: its fastest, its time, and how many rows have no time.
pub fn headline(records: &Records, group: &GroupSummary) -> String {
    let mut parts: Vec<String> = group
        .best
        .iter()
        .map(|best| {
            let record = &records.cases[best.index];
            let name = analyse::contender(&records.header, &record.case);
            let ratio_of = record.result.as_ref().and_then(|r| r.against_baseline.as_ref());
            let speedup = ratio_of.map(|r| format!(", {}×", number::point(&r.speedup, 1.0))).unwrap_or_default();
            let regime = if group.best.len() > 1 { format!("{}: ", best.regime) } else { String::new() };
            format!("{regime}{name} {}{speedup}", achievement(records, group, record))
        })
        .collect();
    if !group.best.is_empty() && matches!(group.baseline, BaselineState::Failed(_) | BaselineState::Absent) {
        parts.push("no baseline".to_owned());
    }
    let failed = group.members.iter().filter(|i| records.cases[**i].outcome.is_failure()).count();
    if failed > 0 {
        parts.push(format!("{failed} failed"));
    }
    parts.join("; ")
}

/// `sum: time (ms), cold`.
pub fn grid_caption(records: &Records, group: &GroupSummary, grid: &Grid<'_>) -> String {
    let unit = time_unit(records, &group.members);
    let regime = if group.best.len() > 1 { format!(", {}", grid.regime) } else { String::new() };
    format!("{}, time in {}{regime}", grid.variant, unit.symbol())
}

/// The axes of a group in words, without those that are the same everywhere.
pub fn group_text(key: &GroupKey, constant: &[(String, Value)]) -> String {
    units::axes_text(key.0.iter().filter(|axis| !constant.contains(axis)))
}

/// Whether a result is by the clock of its regime, unlike that of a `cpu` variant.
pub fn on_device(result: &RegimeResult) -> bool {
    result.unit == result.regime.unit()
}

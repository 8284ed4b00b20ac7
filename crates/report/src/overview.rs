//! Tables over all groups: how contenders rank in them, and the best of each group.

use std::fmt::Write as _;

use super::grid::Grid;
use super::number;
use super::quantities::{achievement, bandwidth, gflops, peak_percent, ratio, time_unit};
use super::table::{Cell, Folding, Table, number as number_column, text};
use super::units::{self, TimeUnit};
use runner_lang::format::rough;
use runner_results::analyse::{self, BaselineState, Basis, Best, GroupSummary, Standing, Summary};
use runner_types::{Records, Regime, RegimeResult, Value};

/// Maximum number of tied contenders to list; further ones are only counted.
const MOST_TIED: usize = 2;

/// Group axes with only one value; all axes if there is only one group.
pub fn constant_axes(records: &Records, summary: &Summary) -> Vec<(String, Value)> {
    let Some(first) = summary.groups.first() else { return Vec::new() };
    let everywhere = |axis: &&(String, Value)| summary.groups.iter().all(|g| g.key.0.contains(axis));
    let swept = |axis: &&(String, Value)| records.header.axes.iter().any(|a| a.name == axis.0 && !a.compared);
    first.key.0.iter().filter(everywhere).filter(swept).cloned().collect()
}

/// Whether the means cover different numbers of groups.
pub fn is_uneven(summary: &Summary) -> bool {
    let mut counts = summary.standings.iter().filter_map(|s| s.speedup).map(|range| range.groups);
    let first = counts.next();
    counts.any(|count| Some(count) != first)
}

/// Contenders over all groups; `None` without speedups.
pub fn standings_table(summary: &Summary) -> Option<Table> {
    if summary.standings.iter().all(|s| s.speedup.is_none()) {
        return None;
    }
    let by_rate = summary.groups.iter().any(|group| group.basis != Basis::Time);
    let mut table = Table::new(vec![
        text("variant", Folding::Keep),
        text("regime", Folding::WhenCommon),
        number_column(if by_rate { "highest rate in" } else { "fastest in" }, Folding::Keep),
        number_column("tied in", Folding::WhenEmpty),
        number_column("× baseline", Folding::Keep),
        number_column("least … greatest", Folding::WhenEmpty).ranked(1),
        number_column("× step before", Folding::WhenEmpty).ranked(2),
        number_column("groups", Folding::WhenCommon).ranked(3),
    ]);
    let order = |s: &Standing| (s.alone + s.tied, s.alone);
    let most = |regime: Regime| summary.standings.iter().filter(|s| s.regime == regime).map(order).max();
    for standing in &summary.standings {
        let leads = order(standing) > (0, 0) && Some(order(standing)) == most(standing.regime);
        table.rows.push(standing_row(standing, leads));
    }
    table.fold();
    Some(table)
}

fn standing_row(standing: &Standing, leads: bool) -> Vec<Cell> {
    let range = standing.speedup;
    let others = range.filter(|_| !standing.is_baseline);
    vec![
        Cell::code(standing.contender.clone()).strong_if(leads),
        Cell::plain(standing.regime.to_string()),
        Cell::plain(if standing.on_host { "host".to_owned() } else { standing.alone.to_string() }),
        Cell::maybe((standing.tied > 0).then(|| standing.tied.to_string())),
        match range {
            _ if standing.is_baseline => Cell::plain("baseline"),
            range => Cell::maybe(range.map(|r| number::ratio(&r.geomean))).strong_if(leads),
        },
        Cell::maybe(others.map(|r| format!("{} … {}", rough(r.least), rough(r.greatest)))),
        Cell::maybe(standing.step.map(|r| number::ratio(&r.geomean))),
        Cell::plain(range.map_or(standing.measured, |r| r.groups).to_string()),
    ]
}

/// The fastest of each group, one row per group and regime; `None` without times.
pub fn fastest_table(records: &Records, summary: &Summary, constant: &[(String, Value)]) -> Option<Table> {
    let bests = || summary.groups.iter().flat_map(|g| g.best.iter().map(move |b| (g, b)));
    let times = bests().filter_map(|(_, b)| records.cases[b.index].result.as_ref()).map(|r| r.time.point);
    let unit = TimeUnit::choose(times);
    bests().next()?;
    let varying: Vec<&str> = records
        .header
        .axes
        .iter()
        .filter(|axis| !axis.compared && !constant.iter().any(|(name, _)| *name == axis.name))
        .map(|axis| axis.name.as_str())
        .collect();
    let mut table = Table::new(varying.iter().map(|name| number_column(*name, Folding::WhenEmpty)).collect());
    let by_rate = summary.groups.iter().any(|group| group.basis != Basis::Time);
    table.columns.extend([
        text("regime", Folding::WhenCommon),
        text(if by_rate { "highest rate" } else { "fastest" }, Folding::Keep),
        number_column(format!("time ({})", unit.symbol()), Folding::Keep),
        number_column("GB/s", Folding::WhenEmpty).ranked(2),
        number_column("GFLOP/s", Folding::WhenEmpty).ranked(if by_rate { 1 } else { 4 }),
        number_column("% of peak", Folding::WhenEmpty).ranked(3),
        number_column(if by_rate { "× baseline's rate" } else { "× baseline" }, Folding::WhenEmpty),
        text("tied with", Folding::WhenEmpty).ranked(1),
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
    let gained = result.against_baseline.as_ref().and_then(|ratio| analyse::gain(records, group, record, ratio));
    let (shown, rest) = best.tied.split_at(best.tied.len().min(MOST_TIED));
    let mut tied = shown.iter().map(name).collect::<Vec<_>>().join(", ");
    if !rest.is_empty() {
        let _ = write!(tied, " and {} more", rest.len());
    }
    row.extend([
        Cell::plain(best.regime.to_string()),
        Cell::code(name(&best.index)),
        Cell::plain(number::plus_minus(&result.time, unit.nanoseconds())),
        Cell::maybe(bandwidth(record, Some(result))),
        Cell::maybe(gflops(record, Some(result))),
        Cell::maybe(peak_percent(records, record, result)),
        if is_baseline { Cell::plain("baseline") } else { Cell::maybe(gained.as_ref().map(ratio)) },
        Cell::plain(tied),
    ]);
    Some(row)
}

/// Summary line of a folded group: its best, the speedup and the number of failures.
pub fn headline(records: &Records, group: &GroupSummary) -> String {
    let mut parts: Vec<String> = group
        .best
        .iter()
        .map(|best| {
            let record = &records.cases[best.index];
            let name = analyse::contender(&records.header, &record.case);
            let ratio_of = record.result.as_ref().and_then(|r| r.against_baseline.as_ref());
            let gained = ratio_of.and_then(|ratio| analyse::gain(records, group, record, ratio));
            let speedup = gained.map(|r| format!(", {}×", number::point(&r.speedup, 1.0))).unwrap_or_default();
            let regime = if group.best.len() > 1 { format!("{}: ", best.regime) } else { String::new() };
            let tied = if best.tied.is_empty() { String::new() } else { format!(", tied with {}", best.tied.len()) };
            format!("{regime}{name} {}{speedup}{tied}", achievement(records, group, record))
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

/// Names the variant, the unit and the regime of a grid: `sum: time (ms), cold`.
pub fn grid_caption(records: &Records, group: &GroupSummary, grid: &Grid<'_>) -> String {
    let what = match group.basis {
        Basis::Time => format!("time in {}", time_unit(records, &group.members).symbol()),
        Basis::Bandwidth => "GB/s".to_owned(),
        Basis::Arithmetic => "GFLOP/s".to_owned(),
    };
    let regime = if group.best.len() > 1 { format!(", {}", grid.regime) } else { String::new() };
    format!("{}, {what}{regime}", grid.variant)
}

/// Whether the time was measured with the regime's own clock, unlike that of a `cpu` variant.
pub fn on_device(result: &RegimeResult) -> bool {
    result.unit == result.regime.unit()
}

//! The charts of a report.
//!
//! If two axes are compared, each group has a map; if no axis is swept, each group has bars. Otherwise there is one
//! chart for each setting of the other axes, with one line per contender over the swept axis. All are functions of the
//! records.

use std::collections::BTreeSet;

use serde::Serialize;

use super::chart::{Bar, BarChart, Chart, HeatMap, Line, LineChart, MapCell, Point};
use super::grid::{Grid, grids};
use super::overview::{constant_axes, group_text, is_arithmetic, on_device};
use super::rows::time_unit;
use super::units::{self, TimeUnit, per_second};
use super::{number, wording};
use crate::analyse::{self, GroupSummary, Summary};
use crate::format::slug;
use crate::model::{CaseRecord, Estimate, Records, Regime, RegimeResult, Value};

/// Most charts of a report: a large matrix has its tables.
const MOST_PLOTS: usize = 12;

/// Most lines of a chart, which could otherwise not be distinguished.
const MOST_LINES: usize = 16;

/// A chart and its file.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Plot {
    /// Under `plots/`.
    pub file: String,
    pub title: String,
    #[serde(skip)]
    pub chart: Chart,
}

/// Chooses and fills the charts.
pub fn plots(records: &Records, summary: &Summary) -> Vec<Plot> {
    let mut plots = match swept_axis(records) {
        Some(axis) if contenders(records) <= MOST_LINES => sweeps(records, summary, &axis),
        _ => landscapes(records, summary),
    };
    plots.truncate(MOST_PLOTS);
    let several = plots.len() > 1;
    for (i, plot) in plots.iter_mut().enumerate() {
        plot.file = if several { format!("{:02}-{}.svg", i + 1, plot.file) } else { format!("{}.svg", plot.file) };
    }
    plots
}

fn contenders(records: &Records) -> usize {
    let names: BTreeSet<String> = records.cases.iter().map(|r| analyse::contender(&records.header, &r.case)).collect();
    names.len()
}

fn number_of(value: &Value) -> Option<f64> {
    match value {
        Value::Int(n) => Some(*n as f64),
        Value::Float(x) if x.is_finite() => Some(*x),
        _ => None,
    }
}

/// The uncompared axis with the most numbers that have measurements; a line needs at least three.
fn swept_axis(records: &Records) -> Option<String> {
    let values = |name: &str| {
        let measured = records.cases.iter().filter(|r| r.result.is_some());
        let found: Option<Vec<f64>> = measured.map(|r| units::axis(&r.case, name).and_then(number_of)).collect();
        let mut found = found.unwrap_or_default();
        found.sort_by(f64::total_cmp);
        found.dedup();
        found.len()
    };
    let axes = records.header.axes.iter().filter(|axis| !axis.compared);
    let counted = axes.map(|axis| (axis.name.clone(), values(&axis.name))).filter(|(_, count)| *count >= 3);
    // The first of those with the most: `max_by_key` would return the last.
    counted.rev().max_by_key(|(_, count)| *count).map(|(name, _)| name)
}

/// The quantity on the vertical axis.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Measure {
    /// GFLOP/s, if every case is bound by arithmetic.
    Arithmetic,
    /// GB/s, if every case states its bytes.
    Bandwidth,
    Time(TimeUnit),
}

impl Measure {
    fn of(records: &Records, results: &[(&CaseRecord, &RegimeResult)]) -> Self {
        if results.iter().all(|(record, _)| is_arithmetic(records, record)) {
            Self::Arithmetic
        } else if results.iter().all(|(record, _)| record.work.bytes.is_some()) {
            Self::Bandwidth
        } else {
            Self::Time(TimeUnit::of(results.iter().map(|(_, r)| r.time.point)))
        }
    }

    /// Point, least and greatest.
    fn value(self, record: &CaseRecord, time: &Estimate) -> (f64, f64, f64) {
        match self {
            Self::Time(unit) => {
                let ns = unit.nanoseconds();
                (time.point / ns, time.low / ns, time.high / ns)
            }
            Self::Arithmetic | Self::Bandwidth => {
                let bytes = record.work.bytes.unwrap_or(0) as f64;
                let work = if self == Self::Bandwidth { bytes } else { record.work.flops.unwrap_or(0.0) };
                let rate = |ns: f64| work / ns;
                (per_second(work, time) / 1e9, rate(time.high), rate(time.low))
            }
        }
    }

    fn label(self) -> String {
        match self {
            Self::Arithmetic => "GFLOP/s".to_owned(),
            Self::Bandwidth => "GB/s".to_owned(),
            Self::Time(unit) => format!("time ({})", unit.symbol()),
        }
    }

    const fn file(self) -> &'static str {
        match self {
            Self::Arithmetic => "arithmetic",
            Self::Bandwidth => "bandwidth",
            Self::Time(_) => "time",
        }
    }
}

/// The device's results with their records, of some groups in one regime.
fn results_of(
    records: &Records,
    members: impl Iterator<Item = usize>,
    regime: Regime,
) -> Vec<(&CaseRecord, &RegimeResult)> {
    members
        .filter_map(|i| Some((&records.cases[i], records.cases[i].result.as_ref()?)))
        .filter(|(_, r)| r.regime == regime && on_device(r))
        .collect()
}

/// Values of the axes that are not swept.
type Setting = Vec<(String, Value)>;

/// Lines over the swept axis, one chart for each setting of the others and each regime.
fn sweeps(records: &Records, summary: &Summary, axis: &str) -> Vec<Plot> {
    let constant = constant_axes(records, summary);
    let mut settings: Vec<(Setting, Vec<&GroupSummary>)> = Vec::new();
    for group in &summary.groups {
        let others: Setting = group.key.0.iter().filter(|(name, _)| name != axis).cloned().collect();
        match settings.iter_mut().find(|(known, _)| *known == others) {
            Some((_, groups)) => groups.push(group),
            None => settings.push((others, vec![group])),
        }
    }
    let mut plots = Vec::new();
    for (others, groups) in &settings {
        // One value of the axis is no line.
        if let [group] = groups.as_slice() {
            let setting = group_text(&group.key, &constant);
            plots.extend(group.best.iter().map(|best| bars(records, group, best.regime, &setting)));
            continue;
        }
        for regime in regimes(summary) {
            let members = groups.iter().flat_map(|g| g.members.iter().copied());
            let results = results_of(records, members, regime);
            if results.is_empty() {
                continue;
            }
            let shown: Vec<&(String, Value)> = others.iter().filter(|o| !constant.contains(o)).collect();
            let mut title = vec![units::axes_text(shown.iter().copied())];
            if regimes(summary).len() > 1 {
                title.push(regime.to_string());
            }
            title.retain(|part| !part.is_empty());
            plots.push(sweep(records, &results, axis, &title.join(", ")));
        }
    }
    plots
}

fn regimes(summary: &Summary) -> Vec<Regime> {
    let found: BTreeSet<Regime> = summary.groups.iter().flat_map(|g| &g.best).map(|b| b.regime).collect();
    found.into_iter().collect()
}

fn sweep(records: &Records, results: &[(&CaseRecord, &RegimeResult)], axis: &str, setting: &str) -> Plot {
    let measure = Measure::of(records, results);
    let peak = records.environment.device.peak_bandwidth().filter(|_| measure == Measure::Bandwidth);
    let title = titled(measure, setting);
    Plot {
        file: slug(&format!("{}-{setting}", measure.file())),
        chart: Chart::Lines(LineChart {
            title: title.clone(),
            x_label: axis.to_owned(),
            y_label: measure.label(),
            from_zero: matches!(measure, Measure::Arithmetic | Measure::Bandwidth),
            reference: peak.map(|p| ("data-sheet peak".to_owned(), p / 1e9)),
            lines: lines(records, results, axis, measure),
        }),
        title,
    }
}

/// One line per contender, in the manifest's order of variants.
fn lines(records: &Records, results: &[(&CaseRecord, &RegimeResult)], axis: &str, measure: Measure) -> Vec<Line> {
    // Each with the position of its variant in the manifest.
    let mut lines: Vec<(Option<usize>, Line)> = Vec::new();
    for (record, result) in results {
        let Some(x) = units::axis(&record.case, axis).and_then(number_of) else { continue };
        let (y, low, high) = measure.value(record, &result.time);
        let name = analyse::contender(&records.header, &record.case);
        let point = Point { x, y, low, high };
        if let Some((_, line)) = lines.iter_mut().find(|(_, line)| line.name == name) {
            line.points.push(point);
        } else {
            let place = records.header.variants.iter().position(|v| *v == record.case.key.variant);
            lines.push((place, Line { name, points: vec![point] }));
        }
    }
    lines.sort_by_key(|(place, _)| *place);
    let by_x = |mut line: Line| {
        line.points.sort_by(|a, b| a.x.total_cmp(&b.x));
        line
    };
    lines.into_iter().map(|(_, line)| by_x(line)).collect()
}

fn titled(measure: Measure, setting: &str) -> String {
    let what = match measure {
        Measure::Arithmetic => "Arithmetic",
        Measure::Bandwidth => "Bandwidth",
        Measure::Time(_) => "Time",
    };
    if setting.is_empty() { what.to_owned() } else { format!("{what}, {setting}") }
}

/// One chart per group: a map if two axes are compared, bars otherwise.
fn landscapes(records: &Records, summary: &Summary) -> Vec<Plot> {
    let constant = constant_axes(records, summary);
    let mut plots = Vec::new();
    for group in &summary.groups {
        let setting = group_text(&group.key, &constant);
        let maps = grids(records, group);
        if maps.is_empty() {
            plots.extend(group.best.iter().map(|best| bars(records, group, best.regime, &setting)));
        } else {
            plots.extend(maps.iter().map(|grid| map(records, group, grid, &setting)));
        }
    }
    plots
}

fn bars(records: &Records, group: &GroupSummary, regime: Regime, setting: &str) -> Plot {
    let unit = time_unit(records, &group.members);
    let measure = Measure::Time(unit);
    let setting = if group.best.len() > 1 { format!("{setting} {regime}") } else { setting.to_owned() };
    let results = results_of(records, group.members.iter().copied(), regime);
    let bars = results
        .iter()
        .map(|(record, result)| {
            let (value, low, high) = measure.value(record, &result.time);
            let text = number::plus_minus(&result.time, unit.nanoseconds());
            Bar { name: analyse::contender(&records.header, &record.case), value, low, high, shown: text }
        })
        .collect();
    let title = titled(measure, setting.trim());
    Plot {
        file: slug(&format!("time-{setting}")),
        chart: Chart::Bars(BarChart { title: title.clone(), x_label: measure.label(), bars }),
        title,
    }
}

fn map(records: &Records, group: &GroupSummary, grid: &Grid<'_>, setting: &str) -> Plot {
    let unit = time_unit(records, &group.members);
    let cell = |i: &Option<usize>| {
        let record = &records.cases[(*i)?];
        Some(match &record.result {
            Some(r) => MapCell {
                value: Some(r.time.point / unit.nanoseconds()),
                shown: number::point(&r.time, unit.nanoseconds()),
            },
            None => MapCell { value: None, shown: wording::name(&record.outcome) },
        })
    };
    let parts = [grid.variant, setting, if group.best.len() > 1 { grid.regime.name() } else { "" }];
    let shown: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    let title = format!("Time ({}), {}", unit.symbol(), shown.join(", "));
    Plot {
        file: slug(&format!("time-{}", shown.join(" "))),
        chart: Chart::Map(HeatMap {
            title: title.clone(),
            x_label: grid.axes.0.to_owned(),
            y_label: grid.axes.1.to_owned(),
            across: grid.across.iter().map(|v| units::axis_value(v)).collect(),
            down: grid.down.iter().map(|v| units::axis_value(v)).collect(),
            cells: grid.cells.iter().map(|row| row.iter().map(cell).collect()).collect(),
        }),
        title,
    }
}

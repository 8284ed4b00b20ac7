//! Charts of a report.
//!
//! If two axes are compared, each group has a map; if no axis is swept, each group has bars. Otherwise there is one
//! chart for each setting of the other axes, with one line per contender over the swept axis. It shows rates, or
//! speedups if the rates span so much that their lines would be indistinguishable. The most informative chart comes
//! first. A ladder's gains and the roofline have a chart each. All charts are functions of the records.

use std::collections::BTreeSet;

use serde::Serialize;

use super::bound::{group_text, is_arithmetic};
use super::chart::{Bar, BarChart, Chart, HeatMap, Line, LineChart, MapCell, Point, RoofPoint, Roofline};
use super::grid::{Grid, grids};
use super::ladder::{Step, ladder};
use super::overview::{constant_axes, on_device};
use super::quantities::time_unit;
use super::units::{self, TimeUnit};
use super::{number, wording};
use runner_files::file_names::FileNames;
use runner_results::analyse::{self, Basis, GroupSummary, Summary};
use runner_types::{CaseRecord, Estimate, Records, Regime, RegimeResult, Value};

/// Maximum number of charts of a report. A large matrix also has tables.
const MOST_PLOTS: usize = 12;

/// Maximum number of lines in a chart; more could not be told apart.
const MOST_LINES: usize = 16;

/// Minimum ratio of the largest to the smallest operations per byte that makes a roofline useful.
const ROOFLINE_SPAN: f64 = 2.0;

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Plot {
    /// File name in `plots/`. It describes the content, so that a new size does not rename other charts.
    pub file: String,
    pub title: String,
    /// Whether the chart is initially open.
    pub is_open: bool,
    #[serde(skip)]
    pub chart: Chart,
    #[serde(skip)]
    rank: Rank,
}

/// How informative a chart is: large jobs before small ones, then large differences before small ones.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct Rank {
    /// Work of the largest case: the work behind its rate, or else its bytes, its operations, or its minimum time.
    size: f64,
    /// Ratio of the largest to the smallest time among cases with that work.
    spread: f64,
}

/// Selects and fills the charts, most informative first. Also returns the number of omitted charts.
pub fn plots(records: &Records, summary: &Summary) -> (Vec<Plot>, usize) {
    let mut plots = match swept_axis(records) {
        Some(axis) if contenders(records) <= MOST_LINES => sweeps(records, summary, &axis),
        _ => landscapes(records, summary),
    };
    // The sort is stable: ties keep the manifest's order.
    plots.sort_by(|a, b| b.rank.size.total_cmp(&a.rank.size).then(b.rank.spread.total_cmp(&a.rank.spread)));
    let more = plots.len().saturating_sub(MOST_PLOTS);
    plots.truncate(MOST_PLOTS);
    if let Some(first) = plots.first_mut() {
        first.is_open = true;
    }
    let place = plots.len().min(1);
    plots.splice(place..place, Regime::ALL.iter().filter_map(|regime| gains(summary, *regime)));
    plots.extend(roofline(records));
    name_files(&mut plots);
    (plots, more)
}

/// Draws the gain of each step of a ladder over the previous step.
fn gains(summary: &Summary, regime: Regime) -> Option<Plot> {
    let steps = ladder(summary, regime)?;
    let bar = |step: &Step<'_>| Bar {
        name: step.to.to_owned(),
        is_baseline: false,
        is_best: false,
        value: step.gain.point,
        low: step.gain.low,
        high: step.gain.high,
        shown: format!("{}×", number::ratio(&step.gain)),
    };
    let regime_named = if regimes(summary).len() > 1 { format!(", {regime}") } else { String::new() };
    let title = format!("Gain of each step, from {}{regime_named}", steps[0].from);
    Some(Plot {
        file: format!("gains {regime}"),
        rank: Rank::default(),
        chart: Chart::Bars(BarChart {
            title: title.clone(),
            x_label: "times as fast as the previous step".to_owned(),
            bars: steps.iter().map(bar).collect(),
            reference: Some(1.0),
        }),
        title,
        is_open: true,
    })
}

/// Draws the roofline with each contender's highest share of the roof, if operations per byte are known.
fn roofline(records: &Records) -> Option<Plot> {
    let ceilings = records.environment.machine.ceilings.as_ref()?;
    let mut points: Vec<(f64, RoofPoint)> = Vec::new();
    for record in &records.cases {
        let Some(result) = record.result.as_ref().filter(|result| on_device(result)) else { continue };
        let share = analyse::share_of_roof(&record.work, &result.time, result.unit, ceilings);
        let Some((intensity, share)) = analyse::intensity(&record.work).zip(share) else { continue };
        let name = analyse::contender(&records.header, &record.case);
        let value = Measure::Arithmetic.value(record, &result.time);
        let point = RoofPoint {
            shown: format!("{}: {}", wording::case_name(&record.case), Measure::Arithmetic.shown(&value)),
            is_baseline: analyse::is_baseline(&records.header, &record.case),
            rate: value.point,
            name,
            intensity,
        };
        match points.iter_mut().find(|(_, known)| known.name == point.name) {
            Some(known) if known.0 < share => *known = (share, point),
            Some(_) => {}
            None => points.push((share, point)),
        }
    }
    let intensities = || points.iter().map(|(_, point)| point.intensity);
    let (least, most) = (intensities().fold(f64::INFINITY, f64::min), intensities().fold(0.0, f64::max));
    // Points at one intensity show no more than the column with the share of the roof.
    if most < ROOFLINE_SPAN * least || points.is_empty() || points.len() > MOST_LINES {
        return None;
    }
    let title = "Roofline".to_owned();
    Some(Plot {
        file: "roofline".to_owned(),
        rank: Rank::default(),
        chart: Chart::Roof(Roofline {
            title: title.clone(),
            memory: ceilings.memory() / 1e9,
            arithmetic: ceilings.fma_f32 / 1e9,
            points: points.into_iter().map(|(_, point)| point).collect(),
        }),
        title,
        is_open: false,
    })
}

/// Turns the description in [`Plot::file`] of each chart into a unique file name.
fn name_files(plots: &mut [Plot]) {
    let names = FileNames::for_all(plots.iter().map(|plot| (plot.file.as_str(), plot.title.as_str())));
    for (plot, name) in plots.iter_mut().zip(names) {
        plot.file = format!("{name}.svg");
    }
}

/// Description for a chart's file name: what it shows, and every value that is fixed.
fn describe_file<'a>(
    what: &str,
    variant: &str,
    key: impl IntoIterator<Item = &'a (String, Value)>,
    regime: Regime,
) -> String {
    let axes: Vec<String> = key.into_iter().map(|(name, value)| format!("{name} {value}")).collect();
    format!("{what} {variant} {} {regime}", axes.join(" "))
}

impl Rank {
    fn new(measure: Measure, results: &[(&CaseRecord, &RegimeResult)]) -> Self {
        let bytes = || results.iter().map(|(record, _)| record.work.bytes.map(|bytes| bytes as f64)).collect();
        let flops = || results.iter().map(|(record, _)| record.work.flops).collect();
        let fastest = results.iter().map(|(_, result)| result.time.point).fold(f64::INFINITY, f64::min);
        let works: Option<Vec<f64>> = if measure == Measure::Arithmetic { flops() } else { bytes() };
        let sizes = works.or_else(flops).unwrap_or_else(|| vec![fastest; results.len()]);
        let size = sizes.iter().copied().fold(0.0, f64::max);
        let largest = results.iter().zip(&sizes).filter(|(_, own)| **own >= size).map(|((_, r), _)| r.time.point);
        let (least, most) = largest.fold((f64::INFINITY, 0.0_f64), |(a, b), time| (a.min(time), b.max(time)));
        Self { size, spread: if least > 0.0 { most / least } else { 1.0 } }
    }
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

/// The numeric axis with the most measured values that is not compared. A line needs at least three.
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
    // Reversed, since `max_by_key` returns the last of several maxima.
    counted.rev().max_by_key(|(_, count)| *count).map(|(name, _)| name)
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Measure {
    /// Operation rate, in GFLOP/s.
    Arithmetic,
    /// Byte rate, in GB/s.
    Bandwidth,
    Time(TimeUnit),
}

impl Measure {
    /// Chooses the measure over sizes: the rate of work, if all cases state their work.
    fn choose(records: &Records, results: &[(&CaseRecord, &RegimeResult)]) -> Self {
        if results.iter().all(|(record, _)| is_arithmetic(records, record)) {
            Self::Arithmetic
        } else if results.iter().all(|(record, _)| record.work.bytes.is_some()) {
            Self::Bandwidth
        } else {
            Self::Time(TimeUnit::choose(results.iter().map(|(_, r)| r.time.point)))
        }
    }

    /// The measure that ranks the cases of a group.
    fn of_group(records: &Records, group: &GroupSummary) -> Self {
        match group.basis {
            Basis::Arithmetic => Self::Arithmetic,
            Basis::Bandwidth => Self::Bandwidth,
            Basis::Time => Self::Time(time_unit(records, &group.members)),
        }
    }

    const fn more_is_better(self) -> bool {
        !matches!(self, Self::Time(_))
    }

    fn value(self, record: &CaseRecord, time: &Estimate) -> Estimate {
        let work = match self {
            Self::Time(unit) => {
                let ns = unit.nanoseconds();
                return Estimate { point: time.point / ns, low: time.low / ns, high: time.high / ns, ..*time };
            }
            Self::Arithmetic => record.work.flops.unwrap_or(0.0),
            Self::Bandwidth => record.work.bytes.unwrap_or(0) as f64,
        };
        // Work per nanosecond times 10⁹ is work per second.
        Estimate { point: work / time.point, low: work / time.high, high: work / time.low, ..*time }
    }

    const fn unit(self) -> &'static str {
        match self {
            Self::Arithmetic => "GFLOP/s",
            Self::Bandwidth => "GB/s",
            Self::Time(unit) => unit.symbol(),
        }
    }

    /// Formats a value with its unit, such as `2893 ± 2 GB/s`.
    fn shown(self, value: &Estimate) -> String {
        format!("{} {}", number::plus_minus(value, 1.0), self.unit())
    }

    fn label(self) -> String {
        format!("{} ({})", self.file(), self.unit())
    }

    const fn title(self) -> &'static str {
        match self {
            Self::Arithmetic => "Arithmetic",
            Self::Bandwidth => "Bandwidth",
            Self::Time(_) => "Time",
        }
    }

    fn file(self) -> String {
        self.title().to_lowercase()
    }
}

/// Device results of some groups in one regime, with their records.
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

/// Draws lines over the swept axis, one chart for each setting of the other axes and each regime.
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
        // A single value of the axis does not make a line.
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
            plots.push(sweep(records, &results, axis, (others, regime), &title.join(", ")));
        }
    }
    plots
}

fn regimes(summary: &Summary) -> Vec<Regime> {
    let found: BTreeSet<Regime> = summary.groups.iter().flat_map(|g| &g.best).map(|b| b.regime).collect();
    found.into_iter().collect()
}

fn sweep(
    records: &Records,
    results: &[(&CaseRecord, &RegimeResult)],
    axis: &str,
    (others, regime): (&Setting, Regime),
    setting: &str,
) -> Plot {
    let measure = Measure::choose(records, results);
    let peak = records.environment.device.peak_bandwidth().filter(|_| measure == Measure::Bandwidth);
    let speedups = speedups(records, results, axis, measure);
    let what = if speedups.is_some() { "Speedup" } else { measure.title() };
    let chart = speedups.unwrap_or_else(|| {
        let value = |(record, result): &Timed<'_>| Some(measure.value(record, &result.time));
        LineChart {
            title: String::new(),
            x_label: axis.to_owned(),
            y_label: measure.label(),
            more_is_better: measure.more_is_better(),
            reference: peak.map(|p| ("data-sheet peak".to_owned(), p / 1e9)),
            lines: lines(records, results, axis, value, |value| measure.shown(value)),
        }
    });
    let title = titled(what, setting);
    Plot {
        file: describe_file(&what.to_lowercase(), "", others, regime),
        rank: Rank::new(measure, results),
        chart: Chart::Lines(LineChart { title: title.clone(), ..chart }),
        title,
        is_open: false,
    }
}

type Timed<'a> = (&'a CaseRecord, &'a RegimeResult);

/// Ratio of the largest to the smallest rate above which lines become indistinguishable.
const BUNDLE: f64 = 1000.0;

/// Chart of speedups, if lines of rates would be indistinguishable and each case has a speedup.
fn speedups(records: &Records, results: &[Timed<'_>], axis: &str, measure: Measure) -> Option<LineChart> {
    let (baseline, _) = records.header.baseline.as_ref()?;
    let rates = || results.iter().map(|(record, result)| measure.value(record, &result.time).point);
    let (least, most) = rates().fold((f64::INFINITY, 0.0_f64), |(least, most), rate| (least.min(rate), most.max(rate)));
    if !measure.more_is_better() || most <= BUNDLE * least {
        return None;
    }
    let value = |(record, result): &Timed<'_>| {
        let own = Estimate { point: 1.0, low: 1.0, high: 1.0, ..result.time };
        let is_baseline = analyse::is_baseline(&records.header, &record.case);
        result.against_baseline.as_ref().map(|ratio| ratio.speedup).or(is_baseline.then_some(own))
    };
    results.iter().all(|timed| value(timed).is_some()).then(|| LineChart {
        title: String::new(),
        x_label: axis.to_owned(),
        y_label: format!("times as fast as {baseline}"),
        more_is_better: true,
        reference: None,
        lines: lines(records, results, axis, value, |value| format!("{}×", number::ratio(value))),
    })
}

/// One line per contender, in the manifest's variant order.
fn lines(
    records: &Records,
    results: &[Timed<'_>],
    axis: &str,
    value: impl Fn(&Timed<'_>) -> Option<Estimate>,
    shown: impl Fn(&Estimate) -> String,
) -> Vec<Line> {
    // Each line is paired with the position of its variant in the manifest.
    let mut lines: Vec<(Option<usize>, Line)> = Vec::new();
    for timed in results {
        let (record, _) = timed;
        let Some((x, value)) = units::axis(&record.case, axis).and_then(number_of).zip(value(timed)) else { continue };
        let name = analyse::contender(&records.header, &record.case);
        let point = Point { x, y: value.point, low: value.low, high: value.high, shown: shown(&value) };
        if let Some((_, line)) = lines.iter_mut().find(|(_, line)| line.name == name) {
            line.points.push(point);
        } else {
            let place = records.header.variants.iter().position(|v| *v == record.case.key.variant);
            let is_baseline = analyse::is_baseline(&records.header, &record.case);
            lines.push((place, Line { name, is_baseline, points: vec![point] }));
        }
    }
    lines.sort_by_key(|(place, _)| *place);
    let by_x = |mut line: Line| {
        line.points.sort_by(|a, b| a.x.total_cmp(&b.x));
        line
    };
    lines.into_iter().map(|(_, line)| by_x(line)).collect()
}

fn titled(what: &str, setting: &str) -> String {
    if setting.is_empty() { what.to_owned() } else { format!("{what}, {setting}") }
}

/// One chart per group: a map if two axes are compared, otherwise bars.
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

/// The best of a group, and all that tie with it within the noise.
fn leading(group: &GroupSummary, regime: Regime) -> impl Iterator<Item = usize> + '_ {
    let best = group.best.iter().filter(move |best| best.regime == regime);
    best.flat_map(|best| best.tied.iter().copied().chain([best.index]))
}

fn bars(records: &Records, group: &GroupSummary, regime: Regime, setting: &str) -> Plot {
    let measure = Measure::of_group(records, group);
    let setting = if group.best.len() > 1 { format!("{setting} {regime}") } else { setting.to_owned() };
    let results = results_of(records, group.members.iter().copied(), regime);
    let bar = |(record, result): &Timed<'_>| {
        let value = measure.value(record, &result.time);
        Bar {
            name: analyse::contender(&records.header, &record.case),
            is_baseline: analyse::is_baseline(&records.header, &record.case),
            is_best: leading(group, regime).any(|i| std::ptr::eq(&raw const records.cases[i], *record)),
            value: value.point,
            low: value.low,
            high: value.high,
            shown: measure.shown(&value),
        }
    };
    let title = titled(measure.title(), setting.trim());
    Plot {
        file: describe_file(&measure.file(), "", &group.key.0, regime),
        rank: Rank::new(measure, &results),
        chart: Chart::Bars(BarChart {
            title: title.clone(),
            x_label: measure.label(),
            bars: results.iter().map(bar).collect(),
            reference: None,
        }),
        title,
        is_open: false,
    }
}

fn map(records: &Records, group: &GroupSummary, grid: &Grid<'_>, setting: &str) -> Plot {
    let measure = Measure::of_group(records, group);
    let cell = |i: &Option<usize>| {
        let record = &records.cases[(*i)?];
        let name = analyse::contender(&records.header, &record.case);
        let value = record.result.as_ref().map(|result| measure.value(record, &result.time));
        let ends = || wording::name(&record.outcome);
        Some(MapCell {
            shown: value.as_ref().map_or_else(ends, |value| number::point(value, 1.0)),
            about: format!("{name}: {}", value.as_ref().map_or_else(ends, |value| measure.shown(value))),
            value: value.map(|value| value.point),
            is_baseline: analyse::is_baseline(&records.header, &record.case),
            is_best: leading(group, grid.regime).any(|best| Some(best) == *i),
        })
    };
    let parts = [grid.variant, setting, if group.best.len() > 1 { grid.regime.name() } else { "" }];
    let shown: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    let title = titled(measure.title(), &shown.join(", "));
    let members = grid.cells.iter().flatten().flatten().copied();
    Plot {
        file: describe_file(&measure.file(), grid.variant, &group.key.0, grid.regime),
        rank: Rank::new(measure, &results_of(records, members, grid.regime)),
        chart: Chart::Map(HeatMap {
            title: title.clone(),
            x_label: grid.axes.0.to_owned(),
            y_label: grid.axes.1.to_owned(),
            value_label: measure.label(),
            more_is_better: measure.more_is_better(),
            across: grid.across.iter().map(|v| units::axis_value(v)).collect(),
            down: grid.down.iter().map(|v| units::axis_value(v)).collect(),
            cells: grid.cells.iter().map(|row| row.iter().map(cell).collect()).collect(),
        }),
        title,
        is_open: false,
    }
}

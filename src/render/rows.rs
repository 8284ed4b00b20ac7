//! The table of one group: one row per case and regime that was run, and one per launch below it if a case has several different
//! launches.

use super::number;
use super::table::{Cell, Column, Folding, Table, number as number_column, size, text};
use super::units::{self, EnergyUnit, TimeUnit, per_second};
use super::wording;
use crate::analyse::{self, Basis, GroupSummary, is_local, is_noise};
use crate::format;
use crate::model::{
    CaseRecord, Energy, Estimate, LaunchRecord, Outcome, Ratio, Records, RegimeResult, ResultError, Unit,
};

/// One line of the table.
#[derive(Debug, Clone, Copy)]
struct Line<'a> {
    record: &'a CaseRecord,
    /// Number of the launch in a sequence; `None` for the case itself.
    part: Option<usize>,
    is_best: bool,
    is_baseline: bool,
}

impl<'a> Line<'a> {
    fn result(self) -> Option<&'a RegimeResult> {
        self.record.result.as_ref()
    }

    /// Whether missing values of this line are on other lines or undefined: a launch of a sequence, a sequence as a
    /// whole, a case that was not run.
    fn is_partial(self) -> bool {
        self.part.is_some()
            || self.record.launches.len() > 1
            || (self.record.launches.is_empty() && self.result().is_none())
    }

    /// The result, on the case's own line.
    fn whole(self) -> Option<&'a RegimeResult> {
        self.result().filter(|_| self.part.is_none())
    }

    fn time(self) -> Option<&'a Estimate> {
        match self.part {
            None => self.result().map(|r| &r.time),
            Some(part) => self.result().and_then(|r| r.each.get(part)),
        }
    }

    /// The launch of the line; a sequence's own line has none, unless its launches are all equal.
    fn launch(self) -> Option<&'a LaunchRecord> {
        match (self.part, self.record.launches.as_slice()) {
            (Some(part), launches) => launches.get(part),
            (None, [only]) => Some(only),
            (None, _) => self.record.repeated().map(|(launch, _)| launch),
        }
    }
}

/// A column with the function that fills it.
type Filled<'a> = (Column, Box<dyn Fn(Line<'a>) -> Cell + 'a>);

/// The unit of a group's times.
pub fn time_unit(records: &Records, members: &[usize]) -> TimeUnit {
    let results = members.iter().filter_map(|i| records.cases[*i].result.as_ref());
    TimeUnit::of(results.filter(|r| r.unit == r.regime.unit()).map(|r| r.time.point))
}

/// Builds the table; [`Table::fold`] removes columns without information.
pub fn group_table<'a>(records: &'a Records, group: &'a GroupSummary) -> Table {
    let unit = time_unit(records, &group.members);
    let mut columns = name_columns(records);
    columns.extend(result_columns(records, group, unit));
    columns.extend(energy_columns(records, &group.members));
    columns.extend(launch_columns());
    columns.extend(machine_columns(records));
    let lines = lines(records, group);
    let cells = |line: Line<'a>| -> Vec<Cell> {
        let is_absent = line.is_partial();
        columns.iter().map(|(_, fill)| Cell { is_absent, ..fill(line) }).collect()
    };
    let rows = lines.into_iter().map(cells).collect();
    Table { columns: columns.into_iter().map(|(column, _)| column).collect(), rows }
}

/// Whether a case was not to be run: the reasons below a table name these cases, once for each reason.
pub const fn is_left_out(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Excluded { .. } | Outcome::Invalid { .. } | Outcome::NotRun { .. })
}

fn lines<'a>(records: &'a Records, group: &GroupSummary) -> Vec<Line<'a>> {
    let mut lines = Vec::new();
    for i in &group.members {
        let record = &records.cases[*i];
        if is_left_out(&record.outcome) {
            continue;
        }
        let is_best = group.best.iter().any(|b| b.index == *i);
        let is_baseline = analyse::is_baseline(&records.header, &record.case);
        let line = Line { record, part: None, is_best, is_baseline };
        lines.push(line);
        if record.launches.len() > 1 && record.repeated().is_none() {
            lines.extend((0..record.launches.len()).map(|part| Line { part: Some(part), is_best: false, ..line }));
        }
    }
    lines
}

fn name_columns(records: &Records) -> Vec<Filled<'_>> {
    // If one variant is compared with itself over the axes, its name carries no information.
    let compared = records.header.axes.iter().any(|axis| axis.compared);
    let folding = if compared && records.header.variants.len() == 1 { Folding::WhenCommon } else { Folding::Keep };
    let mut columns: Vec<Filled<'_>> = vec![(
        text("variant", folding),
        Box::new(|line| match (line.part, line.launch()) {
            (Some(_), Some(launch)) => Cell::plain(format!("↳ {}", launch.label)),
            _ => Cell::code(line.record.case.key.variant.clone()).strong_if(line.is_best),
        }),
    )];
    for axis in records.header.axes.iter().filter(|axis| axis.compared) {
        columns.push((
            number_column(axis.name.clone(), Folding::Keep),
            Box::new(move |line| {
                let value = units::axis(&line.record.case, &axis.name).filter(|_| line.part.is_none());
                Cell::maybe(value.map(units::axis_value)).strong_if(line.is_best)
            }),
        ));
    }
    columns.push((
        text("regime", Folding::WhenCommon),
        Box::new(|line| Cell::maybe(line.whole().map(|r| r.regime.to_string()))),
    ));
    columns.push((
        text("check", Folding::Keep),
        Box::new(|line| Cell::maybe(line.part.is_none().then(|| wording::check(line.record)))),
    ));
    columns
}

/// The state of the machine.
fn machine_columns(records: &Records) -> Vec<Filled<'_>> {
    let l2 = records.environment.device.l2_bytes as f64;
    vec![
        (
            number_column("set / L2", Folding::WhenCommon).ranked(8),
            Box::new(move |line| {
                let set = line.whole().and_then(|r| r.working_set).filter(|_| l2 > 0.0);
                Cell::maybe(set.map(|bytes| format::rough(bytes as f64 / l2)))
            }),
        ),
        (
            number_column("SM clock (MHz)", Folding::WhenCommon).ranked(9),
            Box::new(|line| Cell::maybe(line.whole().and_then(|r| r.sm_clock).map(wording::sm_clock))),
        ),
    ]
}

fn launch_columns<'a>() -> Vec<Filled<'a>> {
    fn of<'a>(column: Column, fill: impl Fn(&LaunchRecord) -> Option<String> + 'a) -> Filled<'a> {
        (column, Box::new(move |line| Cell::maybe(line.launch().and_then(&fill))))
    }
    let repeated = |line: Line<'_>| {
        let (_, streams) = line.record.repeated().filter(|_| line.part.is_none())?;
        let launches = line.record.launches.len();
        Some(if streams > 1 { format!("{launches} in {streams} streams") } else { launches.to_string() })
    };
    vec![
        (number_column("launches", Folding::WhenEmpty), Box::new(move |line| Cell::maybe(repeated(line)))),
        of(number_column("grid", Folding::WhenCommon).ranked(6), |l| Some(l.grid.to_string())),
        of(number_column("block", Folding::WhenCommon).ranked(5), |l| Some(l.block.to_string())),
        of(size("shared (B)", Folding::WhenCommon).ranked(5), |l| {
            Some((l.shared + l.resources.shared_static.unwrap_or(0)).to_string())
        }),
        of(number_column("registers", Folding::WhenCommon).ranked(4), |l| l.resources.registers.map(|r| r.to_string())),
        of(size("local (B)", Folding::WhenCommon).ranked(6), |l| l.resources.local.map(|bytes| bytes.to_string())),
        of(size("spilled (B)", Folding::WhenEmpty).ranked(3), |l| {
            let LaunchRecord { resources, .. } = l;
            Some((resources.spill_stores.unwrap_or(0) + resources.spill_loads.unwrap_or(0)).to_string())
        }),
        of(number_column("occupancy", Folding::WhenCommon).ranked(3), |l| {
            let occupancy = l.occupancy?;
            let percent = format!("{:.0} %", occupancy.fraction * 100.0);
            let limited = occupancy.limiter.filter(|_| occupancy.fraction < 0.995);
            Some(limited.map_or(percent.clone(), |by| format!("{percent} ({})", wording::limiter(by))))
        }),
    ]
}

fn result_columns<'a>(records: &'a Records, group: &'a GroupSummary, unit: TimeUnit) -> Vec<Filled<'a>> {
    let by_rate = group.basis != Basis::Time;
    let peak = records.environment.device.peak_bandwidth();
    vec![
        (
            number_column(format!("time ({})", unit.symbol()), Folding::WhenEmpty),
            Box::new(move |line| {
                let on_host = line.result().is_some_and(|r| r.unit != r.regime.unit());
                let suffix = if on_host { " (host)" } else { "" };
                let shown = line.time().map(|t| number::plus_minus(t, unit.nanoseconds()) + suffix);
                Cell::maybe(shown).strong_if(line.is_best)
            }),
        ),
        (
            number_column(if by_rate { "× baseline's rate" } else { "× baseline" }, Folding::WhenEmpty),
            Box::new(move |line| match line.whole() {
                Some(_) if line.is_baseline => Cell::plain("baseline"),
                Some(result) => Cell::maybe(speedup(records, group, line.record, result.against_baseline.as_ref())),
                None => Cell::default(),
            }),
        ),
        (
            number_column("× step before", Folding::WhenEmpty).ranked(1),
            Box::new(move |line| {
                let whole = line.whole().filter(|_| records.header.has_steps());
                Cell::maybe(whole.and_then(|r| speedup(records, group, line.record, r.against_previous.as_ref())))
            }),
        ),
        (
            number_column("GB/s", Folding::WhenEmpty).ranked(if group.basis == Basis::Bandwidth { 0 } else { 2 }),
            Box::new(|line| Cell::maybe(bandwidth(line.record, line.whole()))),
        ),
        (
            number_column("% of peak", Folding::WhenEmpty).ranked(4),
            Box::new(move |line| Cell::maybe(peak.and_then(|peak| percent_of_peak(line.record, line.whole()?, peak)))),
        ),
        (
            number_column("% of ceiling", Folding::WhenEmpty).ranked(3),
            Box::new(move |line| Cell::maybe(percent_of_ceiling(records, line.record, line.whole()))),
        ),
        (
            text("bound", Folding::WhenCommon).ranked(7),
            Box::new(move |line| {
                let ceilings = records.environment.machine.ceilings.as_ref().filter(|_| line.part.is_none());
                let bound = ceilings.and_then(|ceilings| analyse::bound(&line.record.work, ceilings));
                Cell::maybe(bound.map(|bound| wording::bound(bound).to_owned()))
            }),
        ),
        (
            number_column("GFLOP/s", Folding::WhenEmpty).ranked(rank_of_operations(records, group)),
            Box::new(|line| Cell::maybe(gflops(line.record, line.whole()))),
        ),
        error_column("error (relative)", |error| format!("{:.1e}", error.rel)),
        error_column("error (ulp)", |error| format::rough(error.ulp)),
    ]
}

/// Energy per run, energy per byte of its least work, mean power.
fn energy_columns<'a>(records: &'a Records, members: &[usize]) -> Vec<Filled<'a>> {
    fn of<'a>(name: String, show: impl Fn(&CaseRecord, &Energy) -> Option<String> + 'a) -> Filled<'a> {
        let cell = move |line: Line<'a>| {
            let energy = line.record.energy.as_ref().filter(|_| line.part.is_none());
            Cell::maybe(energy.and_then(|energy| show(line.record, energy)))
        };
        (number_column(name, Folding::WhenEmpty).ranked(2), Box::new(cell))
    }
    let metered = members.iter().filter_map(|i| records.cases[*i].energy.as_ref());
    let unit = EnergyUnit::of(metered.map(|energy| energy.per_run));
    vec![
        of(format!("energy ({})", unit.symbol()), move |_, energy| {
            Some(number::plus_minus(&energy.estimate(), unit.joules()))
        }),
        of("pJ/B".to_owned(), |record, energy| {
            let bytes = record.work.bytes.filter(|bytes| *bytes > 0)? as f64;
            Some(number::derived(energy.per_run.0 / bytes * 1e12, &energy.estimate(), 1))
        }),
        of("power (W)".to_owned(), |_, energy| Some(format::rough(energy.power.0))),
    ]
}

/// The error of a right result relative to its reference, on the case's own line.
fn error_column<'a>(name: &str, show: fn(ResultError) -> String) -> Filled<'a> {
    let cell = move |line: Line<'a>| Cell::maybe(line.record.error.filter(|_| line.part.is_none()).map(show));
    (number_column(name, Folding::WhenEmpty).ranked(2), Box::new(cell))
}

/// How much the operations per second matter: most where they are the basis, least where memory is the bound.
fn rank_of_operations(records: &Records, group: &GroupSummary) -> u8 {
    let is_arithmetic = |i: &usize| super::overview::is_arithmetic(records, &records.cases[*i]);
    match group.basis {
        Basis::Arithmetic => 0,
        _ if group.members.iter().any(is_arithmetic) => 2,
        _ => 5,
    }
}

/// The ratio, of rates where cases do different work. `≈` marks one that is no speedup, since its interval overlaps the noise floor. `†` marks one that holds
/// for this run, while that of another process may be on the other side of 1.
fn speedup(records: &Records, group: &GroupSummary, record: &CaseRecord, against: Option<&Ratio>) -> Option<String> {
    let against = analyse::gain(records, group, record, against?)?;
    let is_noise = record.result.as_ref().is_some_and(|result| is_noise(records, result, &against));
    let mark = match (is_noise, is_local(&against)) {
        (true, _) => " ≈",
        (_, true) => " †",
        _ => "",
    };
    Some(ratio(&against) + mark)
}

/// `2.150 ± 0.003`, with the interval that covers other processes if it is known.
pub fn ratio(ratio: &Ratio) -> String {
    number::ratio(&ratio.reproducible.unwrap_or(ratio.speedup))
}

/// The rate of the least bytes that the job must move; only on the device's clock, to which peaks refer.
pub fn bandwidth(record: &CaseRecord, result: Option<&RegimeResult>) -> Option<String> {
    let result = result?;
    let rate = per_second(record.work.bytes? as f64, &result.time) / 1e9;
    Some(number::derived(rate, &result.time, 1))
}

/// The same rate over the data-sheet peak.
pub fn percent_of_peak(record: &CaseRecord, result: &RegimeResult, peak: f64) -> Option<String> {
    if result.unit != Unit::DeviceNanoseconds {
        return None;
    }
    let rate = per_second(record.work.bytes? as f64, &result.time);
    Some(number::derived(rate / peak * 100.0, &result.time, 1))
}

/// The share of the measured roof that the time reaches.
pub fn percent_of_ceiling(records: &Records, record: &CaseRecord, result: Option<&RegimeResult>) -> Option<String> {
    let (result, ceilings) = (result?, records.environment.machine.ceilings.as_ref()?);
    let share = analyse::share_of_roof(&record.work, &result.time, result.unit, ceilings)?;
    Some(number::derived(share * 100.0, &result.time, 1))
}

/// The rate of the job's floating-point operations.
pub fn gflops(record: &CaseRecord, result: Option<&RegimeResult>) -> Option<String> {
    let result = result?;
    let rate = per_second(record.work.flops?, &result.time) / 1e9;
    Some(number::derived(rate, &result.time, 1))
}

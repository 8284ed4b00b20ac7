//! `results.csv`: tidy, in full precision.
//!
//! One row per case and regime; a sequence of launches has one more per launch, marked in the column `row`. Lines end as
//! RFC 4180 says. A cell without a value is empty. `docs/reference/formats.md` explains every column.

use rayon::prelude::*;

use super::RenderError;
use super::escape;
use super::units::per_second;
use super::wording;
use crate::analyse;
use crate::model::{CaseRecord, Estimate, LaunchRecord, Ratio, Records, RegimeResult, Unit, Verdict};

/// Records whose rows one core writes at a time.
const ROWS_AT_ONCE: usize = 1024;

/// A column: its name, and its cell in a row.
type Column<'a> = (String, Box<dyn Fn(&Row<'a>) -> String + Send + Sync + 'a>);

/// What a row shows.
struct Row<'a> {
    record: &'a CaseRecord,
    /// Number of the launch in a sequence; `None` for the case as a whole.
    part: Option<usize>,
}

impl<'a> Row<'a> {
    /// The launch whose configuration the row shows; none on the row of a case with several launches.
    fn launch(&self) -> Option<&'a LaunchRecord> {
        match (self.part, self.record.launches.as_slice()) {
            (Some(part), launches) => launches.get(part),
            (None, [only]) => Some(only),
            (None, _) => None,
        }
    }

    fn time(&self) -> Option<&'a Estimate> {
        let result = self.record.result.as_ref()?;
        match self.part {
            None => Some(&result.time),
            Some(part) => result.each.get(part),
        }
    }

    /// The record, on the row of the case itself.
    fn whole(&self) -> Option<&'a CaseRecord> {
        self.part.is_none().then_some(self.record)
    }
}

/// The text of `results.csv`.
pub fn csv(records: &Records) -> Result<String, RenderError> {
    let mut columns = identity_columns(records);
    columns.extend(launch_columns());
    columns.extend(time_columns());
    columns.extend(sample_columns(records));
    columns.extend(rate_columns(records));
    columns.extend(ratio_columns(records));
    columns.extend(counter_columns(records));
    columns.extend(error_columns(records));
    columns.extend(energy_columns(records));
    columns.push(whole("notes", |r| r.notes.iter().map(wording::note).collect::<Vec<_>>().join("; ")));
    let mut writer = writer();
    writer.write_record(columns.iter().map(|(name, _)| escape::cell(name).into_owned()))?;
    let mut text = finished(writer)?;
    let parts: Vec<Result<String, RenderError>> =
        records.cases.par_chunks(ROWS_AT_ONCE).map(|records| rows(records, &columns)).collect();
    for part in parts {
        text += &part?;
    }
    Ok(text)
}

/// The rows of some records.
fn rows<'a>(records: &'a [CaseRecord], columns: &[Column<'a>]) -> Result<String, RenderError> {
    let mut writer = writer();
    for record in records {
        let parts = if record.launches.len() > 1 { record.launches.len() } else { 0 };
        for part in std::iter::once(None).chain((0..parts).map(Some)) {
            let row = Row { record, part };
            for (_, cell) in columns {
                writer.write_field(escape::cell(&cell(&row)).as_bytes())?;
            }
            writer.write_record(None::<&[u8]>)?;
        }
    }
    finished(writer)
}

fn writer() -> ::csv::Writer<Vec<u8>> {
    ::csv::WriterBuilder::new().terminator(::csv::Terminator::CRLF).from_writer(Vec::new())
}

fn finished(writer: ::csv::Writer<Vec<u8>>) -> Result<String, RenderError> {
    let bytes = writer.into_inner().map_err(|e| RenderError::Csv(e.into_error().into()))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn column<'a>(name: &str, cell: impl Fn(&Row<'a>) -> String + Send + Sync + 'a) -> Column<'a> {
    (name.to_owned(), Box::new(cell))
}

/// A column that is filled on the row of the case itself.
fn whole<'a>(name: &str, cell: impl Fn(&'a CaseRecord) -> String + Send + Sync + 'a) -> Column<'a> {
    column(name, move |row| row.whole().map(&cell).unwrap_or_default())
}

fn show<T: ToString>(value: Option<T>) -> String {
    value.map(|v| v.to_string()).unwrap_or_default()
}

/// A number in full; empty if there is none.
fn full(value: Option<f64>) -> String {
    show(value.filter(|v| v.is_finite()))
}

fn identity_columns(records: &Records) -> Vec<Column<'_>> {
    let header = &records.header;
    let mut columns = vec![
        column("experiment", |_| header.experiment.clone()),
        column("backend", |_| header.backend.to_string()),
        column("device", |_| records.environment.device.name.clone()),
        column("case", |row| row.record.case.ordinal.to_string()),
        column("variant", |row| row.record.case.key.variant.clone()),
    ];
    for axis in &header.axes {
        columns
            .push(column(&format!("axis.{}", axis.name), |row| show(super::units::axis(&row.record.case, &axis.name))));
    }
    columns.extend([
        column("baseline", |row| analyse::is_baseline(header, &row.record.case).to_string()),
        column("regime", |row| show(row.record.result.as_ref().map(|r| r.regime))),
        column("row", |row| if row.part.is_some() { "launch" } else { "case" }.to_owned()),
        column("outcome", |row| row.record.outcome.name().to_owned()),
        column("verdict", |row| verdict(&row.record.verdict).to_owned()),
        whole("reason", |r| wording::reason(&r.outcome).unwrap_or_default()),
    ]);
    columns
}

const fn verdict(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Pass => "pass",
        Verdict::Mismatch(_) => "mismatch",
        Verdict::Unchecked(_) => "unchecked",
    }
}

fn launch_columns<'a>() -> Vec<Column<'a>> {
    fn of<'a>(name: &str, cell: impl Fn(&LaunchRecord) -> String + Send + Sync + 'a) -> Column<'a> {
        column(name, move |row| row.launch().map(&cell).unwrap_or_default())
    }
    let mut columns = vec![column("launch", |row| show(row.part)), of("label", |l| l.label.clone())];
    columns.extend([
        of("grid_x", |l| l.grid.x.to_string()),
        of("grid_y", |l| l.grid.y.to_string()),
        of("grid_z", |l| l.grid.z.to_string()),
        of("block_x", |l| l.block.x.to_string()),
        of("block_y", |l| l.block.y.to_string()),
        of("block_z", |l| l.block.z.to_string()),
        of("shared_dynamic_bytes", |l| l.shared.to_string()),
        of("shared_static_bytes", |l| show(l.resources.shared_static)),
        of("registers", |l| show(l.resources.registers)),
        of("local_bytes", |l| show(l.resources.local)),
        of("spill_store_bytes", |l| show(l.resources.spill_stores)),
        of("spill_load_bytes", |l| show(l.resources.spill_loads)),
        of("occupancy", |l| show(l.occupancy.map(|o| o.fraction))),
        of("blocks_per_sm", |l| show(l.occupancy.map(|o| o.blocks_per_sm))),
        of("occupancy_limiter", |l| show(l.occupancy.and_then(|o| o.limiter).map(wording::limiter))),
    ]);
    columns
}

fn time_columns<'a>() -> Vec<Column<'a>> {
    vec![
        column("clock", |row| {
            let unit = row.record.result.as_ref().map(|r| r.unit);
            show(unit.map(|u| if u == Unit::HostNanoseconds { "host" } else { "device" }))
        }),
        column("time_ns", |row| full(row.time().map(|t| t.point))),
        column("time_low_ns", |row| full(row.time().map(|t| t.low))),
        column("time_high_ns", |row| full(row.time().map(|t| t.high))),
        column("confidence", |row| full(row.time().map(|t| t.confidence))),
        column("samples", |row| show(row.record.result.as_ref().map(|r| r.samples))),
    ]
}

/// The composition of samples; only if something was timed.
fn sample_columns<'a>(records: &Records) -> Vec<Column<'a>> {
    if records.cases.iter().all(|r| r.result.is_none()) {
        return Vec::new();
    }
    let mut columns = vec![
        whole("runs_per_sample", |r| show(r.result.as_ref().map(|r| r.launches))),
        whole("buffer_sets", |r| show(r.result.as_ref().map(|r| r.sets))),
        whole("working_set_bytes", |r| show(r.result.as_ref().and_then(|r| r.working_set))),
    ];
    let clock = |r: &CaseRecord| r.result.as_ref().and_then(|r| r.sm_clock);
    if records.cases.iter().any(|r| clock(r).is_some()) {
        columns.push(whole("sm_clock_mhz", move |r| show(clock(r).map(|clock| clock.median))));
        columns.push(whole("sm_clock_least_mhz", move |r| show(clock(r).map(|clock| clock.least))));
        columns.push(whole("samples_discarded", |r| show(r.result.as_ref().map(|r| r.discarded))));
    }
    columns
}

fn rate_columns(records: &Records) -> Vec<Column<'_>> {
    let peak = records.environment.device.peak_bandwidth();
    let rate = |r: &CaseRecord, amount: Option<f64>| Some(per_second(amount?, &r.result.as_ref()?.time));
    let bytes = move |r: &CaseRecord| rate(r, r.work.bytes.map(|b| b as f64));
    let on_device = |r: &CaseRecord| r.result.as_ref().is_some_and(|r| r.unit == Unit::DeviceNanoseconds);
    let mut columns = vec![
        whole("work_bytes", |r| show(r.work.bytes)),
        whole("work_flops", |r| full(r.work.flops)),
        whole("bytes_per_second", move |r| full(bytes(r))),
        whole("peak_fraction", move |r| full(bytes(r).zip(peak).filter(|_| on_device(r)).map(|(b, p)| b / p))),
        whole("flops_per_second", move |r| full(rate(r, r.work.flops))),
    ];
    if let Some(ceilings) = records.environment.machine.ceilings {
        let share = move |r: &CaseRecord| {
            let result = r.result.as_ref()?;
            analyse::share_of_roof(&r.work, &result.time, result.unit, &ceilings)
        };
        columns.push(whole("ceiling_fraction", move |r| full(share(r))));
        columns.push(whole("flops_per_byte", |r| full(analyse::intensity(&r.work))));
        let bound = move |r: &CaseRecord| analyse::bound(&r.work, &ceilings).map(wording::bound);
        columns.push(whole("bound", move |r| show(bound(r))));
    }
    columns
}

/// Speedups. The baseline's own is 1 by definition.
fn ratio_columns(records: &Records) -> Vec<Column<'_>> {
    fn of<'a>(
        name: &str,
        reaches_further: bool,
        pick: impl Fn(&'a CaseRecord) -> Option<&'a Ratio> + Copy + Send + Sync + 'a,
    ) -> Vec<Column<'a>> {
        let part = move |suffix: &str, value: fn(&Estimate) -> f64| {
            whole(&format!("{name}{suffix}"), move |r| full(pick(r).map(|ratio| value(&ratio.speedup))))
        };
        let elsewhere = move |suffix: &str, value: fn(&Estimate) -> f64| {
            let wide = move |r| pick(r)?.reproducible.as_ref().map(value);
            whole(&format!("{name}{suffix}"), move |r| full(wide(r)))
        };
        let mut columns = vec![
            whole(&format!("{name}_against"), move |r| show(pick(r).map(|ratio| &ratio.against))),
            part("", |e| e.point),
            part("_low", |e| e.low),
            part("_high", |e| e.high),
            part("_confidence", |e| e.confidence),
        ];
        if reaches_further {
            columns.push(elsewhere("_reproducible_low", |e| e.low));
            columns.push(elsewhere("_reproducible_high", |e| e.high));
        }
        columns
    }
    let further = records.cases.iter().any(|r| r.result.as_ref().is_some_and(reaches_further));
    let mut columns = of("speedup", further, |r| r.result.as_ref()?.against_baseline.as_ref());
    for (name, cell) in &mut columns {
        let certain = !name.ends_with("against") && !name.ends_with("confidence");
        let inner = std::mem::replace(cell, Box::new(|_| String::new()));
        *cell = Box::new(move |row| {
            let own = row.whole().filter(|r| r.result.is_some() && analyse::is_baseline(&records.header, &r.case));
            if own.is_some() && certain { "1".to_owned() } else { inner(row) }
        });
    }
    let has_steps = records.header.has_steps();
    columns.extend(of("step_speedup", further, move |r| {
        r.result.as_ref()?.against_previous.as_ref().filter(|_| has_steps)
    }));
    columns
}

/// Whether there is an interval that covers other processes, and which.
fn reaches_further(result: &RegimeResult) -> bool {
    result.against_baseline.iter().chain(&result.against_previous).any(|ratio| ratio.reproducible.is_some())
}

/// Only if energy was measured.
fn energy_columns(records: &Records) -> Vec<Column<'_>> {
    if records.cases.iter().all(|r| r.energy.is_none()) {
        return Vec::new();
    }
    vec![
        whole("energy_joules", |r| full(r.energy.map(|e| e.per_run.0))),
        whole("energy_uncertainty", |r| full(r.energy.map(|e| e.uncertainty))),
        whole("power_watts", |r| full(r.energy.map(|e| e.power.0))),
        whole("energy_runs", |r| show(r.energy.map(|e| e.runs))),
    ]
}

/// Only if the manifest asks for errors.
fn error_columns(records: &Records) -> Vec<Column<'_>> {
    if records.cases.iter().all(|r| r.error.is_none()) {
        return Vec::new();
    }
    vec![
        whole("error_abs", |r| full(r.error.map(|e| e.abs))),
        whole("error_rel", |r| full(r.error.map(|e| e.rel))),
        whole("error_rel_mean", |r| full(r.error.map(|e| e.mean_rel))),
        whole("error_ulp", |r| full(r.error.map(|e| e.ulp))),
    ]
}

/// The counters of the launch on the row of a launch, those of the whole body on the row of a case.
fn counter_columns(records: &Records) -> Vec<Column<'_>> {
    let cell = |name: &'_ str| {
        let wanted = name.to_owned();
        column(&format!("counter.{name}"), move |row| {
            let counters = match row.part {
                None => row.record.counters.as_ref(),
                Some(part) => row.record.each_counters.get(part),
            };
            full(counters.and_then(|c| c.get(&wanted)))
        })
    };
    records.counter_names().into_iter().map(cell).collect()
}

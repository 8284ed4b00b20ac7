//! The columns of all reports. Each is described once: its name and cell in `results.csv`, its head and cell in the
//! tables of `report.md`, and its key, unit and cell in the table of `report.html`.
//!
//! Axes and counters differ from report to report, so the three renderers add those columns themselves.

use super::column::Column;
use super::number::{derived, plus_minus};
use super::quantities::{bandwidth, gflops, marked, percent_of_ceiling, percent_of_peak, speedup};
use super::row::{Context, Row};
use super::table::Folding::{Keep, WhenCommon, WhenEmpty};
use super::table::{Cell, number, size, text};
use super::units::per_second;
use super::{bound, wording};
use runner_lang::format;
use runner_results::analyse::{self, Basis};
use runner_types::{CaseRecord, Energy, LaunchRecord, Ratio, Records, RegimeResult, ResultError, SmClock, Unit};

/// What is known before a case runs.
pub static CASE: &[Column] = &[
    Column::new("experiment", "name of the experiment", |c, _| c.records.header.experiment.clone()),
    Column::new("backend", "`cuda` or `sim`", |c, _| c.records.header.backend.to_string()),
    Column::new("device", "name of the device", |c, _| c.records.environment.device.name.clone()),
    Column::new("case", "0-based position in the manifest's expansion", |_, r| r.record.case.ordinal.to_string()),
    Column::new("variant", "variant, after expansion of its own axes", |_, r| r.record.case.key.variant.clone())
        .in_table(
            |c| {
                // If a variant is only compared with itself over the axes, its name carries no information.
                let header = &c.records.header;
                let is_alone = header.axes.iter().any(|axis| axis.compared) && header.variants.len() == 1;
                text("variant", if is_alone { WhenCommon } else { Keep })
            },
            |_, r| match (r.part, r.common_launch()) {
                (Some(_), Some(launch)) => Cell::plain(format!("↳ {}", launch.label)),
                _ => Cell::code(r.record.case.key.variant.clone()).strong_if(r.is_best),
            },
        )
        .in_page_as_text("variant", |_, r| r.record.case.key.variant.clone()),
];

/// How a case ended.
pub static OUTCOME: &[Column] = &[
    Column::new("baseline", "whether the case is the baseline of its group", |_, r| r.is_baseline.to_string()),
    Column::new("regime", "`cold`, `warm`, `graph`, `rotate`, `host`; empty if nothing was timed", |_, r| {
        show(r.record.result.as_ref().map(|result| result.regime))
    })
    .in_table(|_| text("regime", WhenCommon), |_, r| Cell::maybe(r.result().map(|result| result.regime.to_string())))
    .in_page_as_text("regime", |_, r| show(r.result().map(|result| result.regime))),
    Column::new("row", "`case`, or `launch` for one launch of a sequence", |_, r| {
        if r.part.is_some() { "launch" } else { "case" }.to_owned()
    }),
    Column::new("outcome", "how the case ended; see [outcomes](formats.md#outcomes)", |_, r| {
        r.record.outcome.name().to_owned()
    }),
    Column::new("verdict", "`pass`, `mismatch`, `unchecked`", |_, r| r.record.verdict.name().to_owned())
        .in_table(|_| text("check", Keep), |_, r| Cell::maybe(r.case().map(wording::check)))
        .in_page_as_text("check", |_, r| wording::check(r.record)),
    Column::new(
        "input_sets",
        "number of input sets on which the case was checked; empty if it was checked on all of them",
        |_, r| show(r.case().and_then(CaseRecord::input_sets).map(|(checked, _)| checked)),
    )
    .if_known(has_skipped_sets)
    .in_table(
        |_| number("input sets", WhenEmpty).ranked(7),
        |_, r| Cell::maybe(r.case().and_then(CaseRecord::input_sets).map(|(checked, of)| format!("{checked} of {of}"))),
    ),
    Column::new("reason", "why the outcome is not `measured`", |_, r| {
        show(r.case().and_then(|case| wording::reason(&case.outcome)))
    }),
];

pub static TIME: &[Column] = &[
    Column::new("clock", "clock of the times: `device` or `host`", |_, r| {
        let unit = r.record.result.as_ref().map(|result| result.unit);
        show(unit.map(|unit| if unit == Unit::HostNanoseconds { "host" } else { "device" }))
    }),
    Column::new("time_ns", "median of the samples", |_, r| full(r.time().map(|time| time.point)))
        .in_table(
            |c| number(format!("time ({})", c.time.symbol()), WhenEmpty),
            |c, r| Cell::maybe(time(c, r)).strong_if(r.is_best),
        )
        .in_page(
            "time",
            |c| Some(c.time.nanoseconds()),
            |c, r| r.time().map(|estimate| estimate.point).zip(time(c, r)),
        ),
    Column::new("time_low_ns", "lower end of its interval", |_, r| full(r.time().map(|time| time.low))),
    Column::new("time_high_ns", "upper end of its interval", |_, r| full(r.time().map(|time| time.high))),
    Column::new("confidence", "confidence level of the interval", |_, r| full(r.time().map(|time| time.confidence))),
    Column::new("samples", "number of samples", |_, r| show(r.record.result.as_ref().map(|result| result.samples))),
];

/// How samples were taken, and the state of the machine.
pub static SAMPLES: &[Column] = &[
    Column::new("runs_per_sample", "number of runs that a sample averages", |_, r| {
        show(r.result().map(|result| result.launches))
    })
    .if_known(is_timed),
    Column::new("buffer_sets", "number of buffer sets that the runs cycled through", |_, r| {
        show(r.result().map(|result| result.sets))
    })
    .if_known(is_timed),
    Column::new("working_set_bytes", "total size of a run's buffers", |_, r| {
        show(r.result().and_then(|result| result.working_set))
    })
    .if_known(is_timed)
    .in_table(
        |_| number("set / L2", WhenCommon).ranked(8),
        |c, r| {
            let l2 = c.records.environment.device.l2_bytes as f64;
            let set = r.result().and_then(|result| result.working_set).filter(|_| l2 > 0.0);
            Cell::maybe(set.map(|bytes| format::rough(bytes as f64 / l2)))
        },
    ),
    Column::new("sm_clock_mhz", "median SM clock during the samples; only with NVML", |_, r| {
        show(sm_clock(r).map(|clock| clock.median))
    })
    .if_known(has_sm_clock)
    .in_table(
        |_| number("SM clock (MHz)", WhenCommon).ranked(9),
        |_, r| Cell::maybe(sm_clock(r).map(wording::sm_clock)),
    ),
    Column::new("sm_clock_least_mhz", "lowest SM clock during the samples", |_, r| {
        show(sm_clock(r).map(|clock| clock.least))
    })
    .if_known(has_sm_clock),
    Column::new(
        "samples_discarded",
        "number of samples taken again because the device was throttled; only with NVML",
        |_, r| show(r.result().map(|result| result.discarded)),
    )
    .if_known(has_sm_clock),
];

/// Minimum work, and the rate at which its bytes are moved.
pub static WORK: &[Column] = &[
    Column::new("work_bytes", "minimum number of bytes that the case must move", |_, r| {
        show(r.case().and_then(|case| case.work.bytes))
    }),
    Column::new("work_flops", "minimum number of operations that it must do", |_, r| {
        full(r.case().and_then(|case| case.work.flops))
    }),
    Column::new("bytes_per_second", "`work_bytes` divided by the median time", |_, r| full(bytes_per_second(r)))
        .in_table(
            |c| number("GB/s", WhenEmpty).ranked(if is_by(c, Basis::Bandwidth) { 0 } else { 2 }),
            |_, r| Cell::maybe(bandwidth(r.record, r.result())),
        )
        .in_page("bandwidth", |_| Some(1e9), |_, r| bytes_per_second(r).zip(bandwidth(r.record, r.result()))),
    Column::new("peak_fraction", "share of the data-sheet peak bandwidth, 0 to 1", |c, r| {
        let on_device = r.result().filter(|result| result.unit == Unit::DeviceNanoseconds);
        let peak = on_device.and(c.records.environment.device.peak_bandwidth());
        full(bytes_per_second(r).zip(peak).map(|(bytes, peak)| bytes / peak))
    })
    .in_table(|_| number("% of peak", WhenEmpty).ranked(4), |c, r| Cell::maybe(share_of_peak(c, r)))
    .in_page("peak", |_| None, |c, r| sortable(share_of_peak(c, r))),
];

pub static OPERATIONS: &[Column] =
    &[Column::new("flops_per_second", "`work_flops` divided by the median time", |_, r| full(flops_per_second(r)))
        .in_table(
            |c| number("GFLOP/s", WhenEmpty).ranked(rank_of_operations(c)),
            |_, r| Cell::maybe(gflops(r.record, r.result())),
        )
        .in_page("arithmetic", |_| Some(1e9), |_, r| flops_per_second(r).zip(gflops(r.record, r.result())))];

/// Position relative to the measured roofline.
pub static ROOF: &[Column] = &[
    Column::new("ceiling_fraction", "share of the roofline, 0 to 1; only if the machine was measured", |c, r| {
        let ceilings = c.records.environment.machine.ceilings;
        let share = |(result, ceilings): (&RegimeResult, _)| {
            analyse::share_of_roof(&r.record.work, &result.time, result.unit, &ceilings)
        };
        full(r.result().zip(ceilings).and_then(share))
    })
    .if_known(has_ceilings)
    .in_table(
        |_| number("% of ceiling", WhenEmpty).ranked(3),
        |c, r| Cell::maybe(percent_of_ceiling(c.records, r.record, r.result())),
    )
    .in_page("ceiling", |_| None, |c, r| sortable(percent_of_ceiling(c.records, r.record, r.result()))),
    Column::new("flops_per_byte", "operations per byte; only if the machine was measured", |_, r| {
        full(r.case().and_then(|case| analyse::intensity(&case.work)))
    })
    .if_known(has_ceilings),
    Column::new("bound", "`memory` or `arithmetic`; only if the machine was measured", |c, r| show(bound(c, r)))
        .if_known(has_ceilings)
        .in_table(|_| text("bound", WhenCommon).ranked(7), |c, r| Cell::plain(show(bound(c, r)))),
];

/// Speedups. The baseline's own is 1 by definition.
pub static RATIOS: &[Column] = &[
    Column::new("speedup_against", "case that the speedup refers to", |_, r| {
        show(r.against_baseline().map(|ratio| &ratio.against))
    }),
    Column::new("speedup", "speedup over the baseline, whose own is 1", |_, r| {
        speedup_or_one(r, |ratio| Some(ratio.speedup.point))
    })
    .in_table(
        |c| {
            let by_rate = c.group.is_some_and(|group| group.basis != Basis::Time);
            number(if by_rate { "× baseline's rate" } else { "× baseline" }, WhenEmpty)
        },
        |c, r| match r.result() {
            Some(_) if r.is_baseline => Cell::plain("baseline"),
            _ => Cell::maybe(c.group.and_then(|group| speedup(c.records, group, r.record, r.against_baseline()))),
        },
    )
    .in_page(
        "speedup",
        |_| None,
        |c, r| {
            let own = || (r.is_baseline && r.result().is_some()).then(|| (1.0, "baseline".to_owned()));
            point_and_text(c, r, r.against_baseline()).or_else(own)
        },
    ),
    Column::new("speedup_low", "lower end of its interval", |_, r| speedup_or_one(r, |ratio| Some(ratio.speedup.low))),
    Column::new("speedup_high", "upper end of its interval", |_, r| {
        speedup_or_one(r, |ratio| Some(ratio.speedup.high))
    }),
    Column::new("speedup_confidence", "confidence level of the interval; empty for the baseline", |_, r| {
        full(r.against_baseline().map(|ratio| ratio.speedup.confidence))
    }),
    Column::new(
        "speedup_reproducible_low",
        "lower end of the wider interval, which also covers variation between processes",
        |_, r| speedup_or_one(r, |ratio| ratio.reproducible.map(|wide| wide.low)),
    )
    .if_known(reaches_further),
    Column::new("speedup_reproducible_high", "upper end of the wider interval", |_, r| {
        speedup_or_one(r, |ratio| ratio.reproducible.map(|wide| wide.high))
    })
    .if_known(reaches_further),
    Column::new("step_speedup_against", "case of the previous step", |c, r| {
        show(r.against_previous(c).map(|ratio| &ratio.against))
    }),
    Column::new("step_speedup", "speedup over the previous step", |c, r| {
        full(r.against_previous(c).map(|ratio| ratio.speedup.point))
    })
    .in_table(
        |_| number("× step before", WhenEmpty).ranked(1),
        |c, r| {
            let before = r.against_previous(c);
            Cell::maybe(c.group.and_then(|group| speedup(c.records, group, r.record, before)))
        },
    )
    .in_page(
        "step",
        |_| None,
        |c, r| point_and_text(c, r, r.result().and_then(|result| result.against_previous.as_ref())),
    ),
    Column::new("step_speedup_low", "lower end of its interval", |c, r| {
        full(r.against_previous(c).map(|ratio| ratio.speedup.low))
    }),
    Column::new("step_speedup_high", "upper end of its interval", |c, r| {
        full(r.against_previous(c).map(|ratio| ratio.speedup.high))
    }),
    Column::new("step_speedup_confidence", "confidence level of the interval", |c, r| {
        full(r.against_previous(c).map(|ratio| ratio.speedup.confidence))
    }),
    Column::new("step_speedup_reproducible_low", "lower end of the wider interval", |c, r| {
        full(r.against_previous(c).and_then(|ratio| ratio.reproducible).map(|wide| wide.low))
    })
    .if_known(reaches_further),
    Column::new("step_speedup_reproducible_high", "upper end of the wider interval", |c, r| {
        full(r.against_previous(c).and_then(|ratio| ratio.reproducible).map(|wide| wide.high))
    })
    .if_known(reaches_further),
];

/// Shapes of the launches, and resources of the compiled kernels.
pub static LAUNCH: &[Column] = &[
    Column::new("launch", "0-based index of the launch in its sequence; on `launch` rows", |_, r| show(r.part))
        .in_table(|_| number("launches", WhenEmpty), |_, r| Cell::maybe(repetitions(r))),
    Column::new("label", "name of the launch", |_, r| of_launch(r, |l| l.label.clone())),
    Column::new(
        "grid_x",
        "blocks; like all columns up to `occupancy_limiter`, on the `launch` rows of a sequence",
        |_, r| of_launch(r, |l| l.grid.x.to_string()),
    )
    .in_table(
        |_| number("grid", WhenCommon).ranked(6),
        |_, r| Cell::maybe(r.common_launch().map(|l| l.grid.to_string())),
    ),
    Column::new("grid_y", "blocks", |_, r| of_launch(r, |l| l.grid.y.to_string())),
    Column::new("grid_z", "blocks", |_, r| of_launch(r, |l| l.grid.z.to_string())),
    Column::new("block_x", "threads per block", |_, r| of_launch(r, |l| l.block.x.to_string())).in_table(
        |_| number("block", WhenCommon).ranked(5),
        |_, r| Cell::maybe(r.common_launch().map(|l| l.block.to_string())),
    ),
    Column::new("block_y", "threads per block", |_, r| of_launch(r, |l| l.block.y.to_string())),
    Column::new("block_z", "threads per block", |_, r| of_launch(r, |l| l.block.z.to_string())),
    Column::new("shared_dynamic_bytes", "dynamic shared memory per block", |_, r| {
        of_launch(r, |l| l.shared.to_string())
    })
    .in_table(
        |_| size("shared (B)", WhenCommon).ranked(5),
        |_, r| {
            let both = |l: &LaunchRecord| (l.shared + l.resources.shared_static.unwrap_or(0)).to_string();
            Cell::maybe(r.common_launch().map(both))
        },
    ),
    Column::new("shared_static_bytes", "static shared memory per block", |_, r| {
        of_launch(r, |l| show(l.resources.shared_static))
    }),
    Column::new("registers", "registers per thread", |_, r| of_launch(r, |l| show(l.resources.registers)))
        .in_table(
            |_| number("registers", WhenCommon).ranked(4),
            |_, r| Cell::plain(show(r.common_launch().and_then(|l| l.resources.registers))),
        )
        .in_page(
            "registers",
            |_| None,
            |_, r| {
                let most = r.record.launches.iter().filter_map(|launch| launch.resources.registers).max()?;
                Some((f64::from(most), most.to_string()))
            },
        ),
    Column::new("local_bytes", "local memory per thread", |_, r| of_launch(r, |l| show(l.resources.local))).in_table(
        |_| size("local (B)", WhenCommon).ranked(6),
        |_, r| Cell::plain(show(r.common_launch().and_then(|l| l.resources.local))),
    ),
    Column::new("spill_store_bytes", "bytes of spill stores per thread", |_, r| {
        of_launch(r, |l| show(l.resources.spill_stores))
    })
    .in_table(
        |_| size("spilled (B)", WhenEmpty).ranked(3),
        |_, r| {
            let resources = r.common_launch().map(|l| &l.resources);
            let both = resources.map(|own| own.spill_stores.unwrap_or(0) + own.spill_loads.unwrap_or(0));
            Cell::plain(show(both))
        },
    ),
    Column::new("spill_load_bytes", "bytes of spill loads per thread", |_, r| {
        of_launch(r, |l| show(l.resources.spill_loads))
    }),
    Column::new("occupancy", "theoretical occupancy, 0 to 1", |_, r| {
        of_launch(r, |l| show(l.occupancy.map(|o| o.fraction)))
    })
    .in_table(|_| number("occupancy", WhenCommon).ranked(3), |_, r| Cell::maybe(occupancy(r)))
    .in_page(
        "occupancy",
        |_| None,
        |_, r| {
            let each = r.record.launches.iter().filter_map(|launch| launch.occupancy).map(|o| o.fraction);
            let least = each.reduce(f64::min)? * 100.0;
            Some((least, format!("{least:.0} %")))
        },
    ),
    Column::new("blocks_per_sm", "number of blocks that fit on an SM", |_, r| {
        of_launch(r, |l| show(l.occupancy.map(|o| o.blocks_per_sm)))
    }),
    Column::new("occupancy_limiter", "what limits the occupancy", |_, r| {
        of_launch(r, |l| show(l.occupancy.and_then(|o| o.limiter).map(wording::limiter)))
    }),
];

/// Error of a correct result, if the manifest asks for it.
pub static ERROR: &[Column] = &[
    Column::new(
        "error_abs",
        "largest difference of floats that passed; like the next three, only if a check asks for the `error`",
        |_, r| full(error(r).map(|error| error.abs)),
    )
    .if_known(has_errors),
    Column::new("error_rel", "largest difference as a fraction of the expected value", |_, r| {
        full(error(r).map(|error| error.rel))
    })
    .if_known(has_errors)
    .in_table(
        |_| number("error (relative)", WhenEmpty).ranked(2),
        |_, r| Cell::maybe(error(r).map(|error| format!("{:.1e}", error.rel))),
    ),
    Column::new("error_rel_mean", "mean of these fractions", |_, r| full(error(r).map(|error| error.mean_rel)))
        .if_known(has_errors),
    Column::new("error_ulp", "largest difference in units in the last place", |_, r| {
        full(error(r).map(|error| error.ulp))
    })
    .if_known(has_errors)
    .in_table(
        |_| number("error (ulp)", WhenEmpty).ranked(2),
        |_, r| Cell::maybe(error(r).map(|error| format::rough(error.ulp))),
    ),
];

pub static ENERGY: &[Column] = &[
    Column::new("energy_joules", "energy per run; like the next three, only if it was measured", |_, r| {
        full(energy(r).map(|energy| energy.per_run.0))
    })
    .if_known(has_energy)
    .in_table(
        |c| number(format!("energy ({})", c.energy.symbol()), WhenEmpty).ranked(2),
        |c, r| Cell::maybe(energy(r).map(|energy| plus_minus(&energy.estimate(), c.energy.joules()))),
    ),
    Column::new("", "", |_, _| String::new())
        .in_table(|_| number("pJ/B", WhenEmpty).ranked(2), |_, r| Cell::maybe(energy_of_a_byte(r))),
    Column::new(
        "energy_uncertainty",
        "one step of the device's energy counter, as a fraction of the energy",
        |_, r| full(energy(r).map(|energy| energy.uncertainty)),
    )
    .if_known(has_energy),
    Column::new("power_watts", "mean power", |_, r| full(energy(r).map(|energy| energy.power.0)))
        .if_known(has_energy)
        .in_table(
            |_| number("power (W)", WhenEmpty).ranked(2),
            |_, r| Cell::maybe(energy(r).map(|energy| format::rough(energy.power.0))),
        ),
    Column::new("energy_runs", "number of runs in the energy pass", |_, r| show(energy(r).map(|energy| energy.runs)))
        .if_known(has_energy),
];

pub static NOTES: &[Column] = &[Column::new("notes", "remarks about the row, joined by `; `", |_, r| {
    let notes = r.case().map_or(&[][..], |case| &case.notes);
    notes.iter().map(wording::note).collect::<Vec<_>>().join("; ")
})];

fn show<T: ToString>(value: Option<T>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

/// Formats a number in full precision; empty for `None`.
pub fn full(value: Option<f64>) -> String {
    show(value.filter(|value| value.is_finite()))
}

fn time(context: &Context<'_>, row: &Row<'_>) -> Option<String> {
    let on_host = row.record.result.as_ref().is_some_and(|result| result.unit != result.regime.unit());
    let suffix = if on_host { " (host)" } else { "" };
    row.time().map(|time| plus_minus(time, context.time.nanoseconds()) + suffix)
}

fn is_timed(records: &Records) -> bool {
    records.cases.iter().any(|record| record.result.is_some())
}

fn sm_clock(row: &Row<'_>) -> Option<SmClock> {
    row.result()?.sm_clock
}

fn has_sm_clock(records: &Records) -> bool {
    records.cases.iter().any(|record| record.result.as_ref().is_some_and(|result| result.sm_clock.is_some()))
}

fn is_by(context: &Context<'_>, basis: Basis) -> bool {
    context.group.is_some_and(|group| group.basis == basis)
}

fn bytes_per_second(row: &Row<'_>) -> Option<f64> {
    Some(per_second(row.case()?.work.bytes? as f64, &row.result()?.time))
}

fn flops_per_second(row: &Row<'_>) -> Option<f64> {
    Some(per_second(row.case()?.work.flops?, &row.result()?.time))
}

fn share_of_peak(context: &Context<'_>, row: &Row<'_>) -> Option<String> {
    percent_of_peak(row.record, row.result()?, context.records.environment.device.peak_bandwidth()?)
}

/// A numeric string, with its value as sort key.
fn sortable(text: Option<String>) -> Option<(f64, String)> {
    text.and_then(|text| Some((text.parse().ok()?, text)))
}

/// Rank of the column of operations per second: lowest (most important) if they are the basis, highest if memory is the
/// bound.
fn rank_of_operations(context: &Context<'_>) -> u8 {
    let is_arithmetic = |i: &usize| bound::is_arithmetic(context.records, &context.records.cases[*i]);
    match context.group {
        Some(group) if group.basis == Basis::Arithmetic => 0,
        Some(group) if group.members.iter().any(is_arithmetic) => 2,
        _ => 5,
    }
}

fn has_ceilings(records: &Records) -> bool {
    records.environment.machine.ceilings.is_some()
}

fn bound(context: &Context<'_>, row: &Row<'_>) -> Option<&'static str> {
    let ceilings = context.records.environment.machine.ceilings.as_ref()?;
    analyse::bound(&row.case()?.work, ceilings).map(wording::bound)
}

/// Formats a part of the speedup over the baseline, which is 1 for the baseline itself.
fn speedup_or_one(row: &Row<'_>, part: fn(&Ratio) -> Option<f64>) -> String {
    if row.is_baseline && row.result().is_some() {
        return "1".to_owned();
    }
    full(row.against_baseline().and_then(part))
}

fn point_and_text(context: &Context<'_>, row: &Row<'_>, ratio: Option<&Ratio>) -> Option<(f64, String)> {
    let ratio = ratio?;
    Some((ratio.speedup.point, marked(context.records, row.result()?, ratio)))
}

/// Whether some interval covers variation between processes.
fn reaches_further(records: &Records) -> bool {
    let results = records.cases.iter().filter_map(|record| record.result.as_ref());
    let mut ratios = results.flat_map(|result| result.against_baseline.iter().chain(&result.against_previous));
    ratios.any(|ratio| ratio.reproducible.is_some())
}

fn of_launch(row: &Row<'_>, cell: fn(&LaunchRecord) -> String) -> String {
    row.launch().map(cell).unwrap_or_default()
}

fn repetitions(row: &Row<'_>) -> Option<String> {
    let (_, streams) = row.case()?.repeated()?;
    let launches = row.record.launches.len();
    Some(if streams > 1 { format!("{launches} in {streams} streams") } else { launches.to_string() })
}

fn occupancy(row: &Row<'_>) -> Option<String> {
    let occupancy = row.common_launch()?.occupancy?;
    let percent = format!("{:.0} %", occupancy.fraction * 100.0);
    let limiter = occupancy.limiter.filter(|_| occupancy.fraction < 0.995);
    Some(limiter.map_or(percent.clone(), |by| format!("{percent} ({})", wording::limiter(by))))
}

fn error(row: &Row<'_>) -> Option<ResultError> {
    row.case()?.error
}

fn has_skipped_sets(records: &Records) -> bool {
    records.cases.iter().any(|record| record.input_sets().is_some())
}

fn has_errors(records: &Records) -> bool {
    records.cases.iter().any(|record| record.error.is_some())
}

fn energy(row: &Row<'_>) -> Option<Energy> {
    row.case()?.energy
}

fn has_energy(records: &Records) -> bool {
    records.cases.iter().any(|record| record.energy.is_some())
}

fn energy_of_a_byte(row: &Row<'_>) -> Option<String> {
    let energy = energy(row)?;
    let bytes = row.record.work.bytes.filter(|bytes| *bytes > 0)? as f64;
    Some(derived(energy.per_run.0 / bytes * 1e12, &energy.estimate(), 1))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_column_of_results_csv_has_a_name_of_its_own() {
        let lists = [CASE, OUTCOME, LAUNCH, TIME, SAMPLES, WORK, OPERATIONS, ROOF, RATIOS, ERROR, ENERGY, NOTES];
        let mut known = BTreeSet::new();
        for name in lists.into_iter().flatten().map(|column| column.name).filter(|name| !name.is_empty()) {
            assert!(known.insert(name), "{name} is there twice");
        }
    }
}

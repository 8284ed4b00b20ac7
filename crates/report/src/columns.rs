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
    Column::new("experiment", "the name of the experiment", |c, _| c.records.header.experiment.clone()),
    Column::new("backend", "`cuda` or `sim`", |c, _| c.records.header.backend.to_string()),
    Column::new("device", "the name of the device", |c, _| c.records.environment.device.name.clone()),
    Column::new("case", "the position in the manifest's expansion, from 0", |_, r| r.record.case.ordinal.to_string()),
    Column::new("variant", "the variant, after expansion of its own axes", |_, r| r.record.case.key.variant.clone())
        .in_table(
            |c| {
                // If one variant is compared with itself over the axes, its name carries no information.
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
    Column::new("baseline", "whether the case is what its group is compared with", |_, r| r.is_baseline.to_string()),
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
    Column::new("input_sets", "the sets of inputs on which the case was checked; empty if on all of them", |_, r| {
        show(r.case().and_then(CaseRecord::input_sets).map(|(checked, _)| checked))
    })
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
    Column::new("clock", "`device` or `host`: which clock took the times", |_, r| {
        let unit = r.record.result.as_ref().map(|result| result.unit);
        show(unit.map(|unit| if unit == Unit::HostNanoseconds { "host" } else { "device" }))
    }),
    Column::new("time_ns", "the median of the samples", |_, r| full(r.time().map(|time| time.point)))
        .in_table(
            |c| number(format!("time ({})", c.time.symbol()), WhenEmpty),
            |c, r| Cell::maybe(time(c, r)).strong_if(r.is_best),
        )
        .in_page(
            "time",
            |c| Some(c.time.nanoseconds()),
            |c, r| r.time().map(|estimate| estimate.point).zip(time(c, r)),
        ),
    Column::new("time_low_ns", "the lower end of its interval", |_, r| full(r.time().map(|time| time.low))),
    Column::new("time_high_ns", "the upper end", |_, r| full(r.time().map(|time| time.high))),
    Column::new("confidence", "the level of the interval", |_, r| full(r.time().map(|time| time.confidence))),
    Column::new("samples", "the number of samples", |_, r| show(r.record.result.as_ref().map(|result| result.samples))),
];

/// Composition of samples and state of the machine.
pub static SAMPLES: &[Column] = &[
    Column::new("runs_per_sample", "the runs that a sample averages", |_, r| {
        show(r.result().map(|result| result.launches))
    })
    .if_known(is_timed),
    Column::new("buffer_sets", "the sets of buffers that the runs cycled through", |_, r| {
        show(r.result().map(|result| result.sets))
    })
    .if_known(is_timed),
    Column::new("working_set_bytes", "the size of the buffers of a run", |_, r| {
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
    Column::new("sm_clock_mhz", "the median SM clock during the samples; only with NVML", |_, r| {
        show(sm_clock(r).map(|clock| clock.median))
    })
    .if_known(has_sm_clock)
    .in_table(
        |_| number("SM clock (MHz)", WhenCommon).ranked(9),
        |_, r| Cell::maybe(sm_clock(r).map(wording::sm_clock)),
    ),
    Column::new("sm_clock_least_mhz", "the lowest", |_, r| show(sm_clock(r).map(|clock| clock.least)))
        .if_known(has_sm_clock),
    Column::new(
        "samples_discarded",
        "the samples that were taken again because the device was throttled; only with NVML",
        |_, r| show(r.result().map(|result| result.discarded)),
    )
    .if_known(has_sm_clock),
];

/// Least work, and the rate of its bytes.
pub static WORK: &[Column] = &[
    Column::new("work_bytes", "the fewest bytes that the case must move", |_, r| {
        show(r.case().and_then(|case| case.work.bytes))
    }),
    Column::new("work_flops", "the fewest operations that it must do", |_, r| {
        full(r.case().and_then(|case| case.work.flops))
    }),
    Column::new("bytes_per_second", "`work_bytes` over the median", |_, r| full(bytes_per_second(r)))
        .in_table(
            |c| number("GB/s", WhenEmpty).ranked(if is_by(c, Basis::Bandwidth) { 0 } else { 2 }),
            |_, r| Cell::maybe(bandwidth(r.record, r.result())),
        )
        .in_page("bandwidth", |_| Some(1e9), |_, r| bytes_per_second(r).zip(bandwidth(r.record, r.result()))),
    Column::new("peak_fraction", "its share of the data sheet's peak, 0 to 1", |c, r| {
        let on_device = r.result().filter(|result| result.unit == Unit::DeviceNanoseconds);
        let peak = on_device.and(c.records.environment.device.peak_bandwidth());
        full(bytes_per_second(r).zip(peak).map(|(bytes, peak)| bytes / peak))
    })
    .in_table(|_| number("% of peak", WhenEmpty).ranked(4), |c, r| Cell::maybe(share_of_peak(c, r)))
    .in_page("peak", |_| None, |c, r| sortable(share_of_peak(c, r))),
];

pub static OPERATIONS: &[Column] =
    &[Column::new("flops_per_second", "`work_flops` over the median", |_, r| full(flops_per_second(r)))
        .in_table(
            |c| number("GFLOP/s", WhenEmpty).ranked(rank_of_operations(c)),
            |_, r| Cell::maybe(gflops(r.record, r.result())),
        )
        .in_page("arithmetic", |_| Some(1e9), |_, r| flops_per_second(r).zip(gflops(r.record, r.result())))];

/// Position below the measured roof.
pub static ROOF: &[Column] = &[
    Column::new("ceiling_fraction", "the share of the roofline, 0 to 1; only if the machine was measured", |c, r| {
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
    Column::new("speedup_against", "what the speedup is against", |_, r| {
        show(r.against_baseline().map(|ratio| &ratio.against))
    }),
    Column::new("speedup", "the speedup against the baseline, whose own is 1", |_, r| {
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
    Column::new("speedup_low", "the lower end of its interval", |_, r| {
        speedup_or_one(r, |ratio| Some(ratio.speedup.low))
    }),
    Column::new("speedup_high", "the upper end", |_, r| speedup_or_one(r, |ratio| Some(ratio.speedup.high))),
    Column::new("speedup_confidence", "the level of the interval; the baseline has none", |_, r| {
        full(r.against_baseline().map(|ratio| ratio.speedup.confidence))
    }),
    Column::new(
        "speedup_reproducible_low",
        "the lower end of the wider interval, which holds for other processes too",
        |_, r| speedup_or_one(r, |ratio| ratio.reproducible.map(|wide| wide.low)),
    )
    .if_known(reaches_further),
    Column::new("speedup_reproducible_high", "the upper end", |_, r| {
        speedup_or_one(r, |ratio| ratio.reproducible.map(|wide| wide.high))
    })
    .if_known(reaches_further),
    Column::new("step_speedup_against", "the step before", |c, r| {
        show(r.against_previous(c).map(|ratio| &ratio.against))
    }),
    Column::new("step_speedup", "the speedup against the step before", |c, r| {
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
    Column::new("step_speedup_low", "the lower end of its interval", |c, r| {
        full(r.against_previous(c).map(|ratio| ratio.speedup.low))
    }),
    Column::new("step_speedup_high", "the upper end", |c, r| {
        full(r.against_previous(c).map(|ratio| ratio.speedup.high))
    }),
    Column::new("step_speedup_confidence", "the level of the interval", |c, r| {
        full(r.against_previous(c).map(|ratio| ratio.speedup.confidence))
    }),
    Column::new("step_speedup_reproducible_low", "the lower end of the wider interval", |c, r| {
        full(r.against_previous(c).and_then(|ratio| ratio.reproducible).map(|wide| wide.low))
    })
    .if_known(reaches_further),
    Column::new("step_speedup_reproducible_high", "the upper end", |c, r| {
        full(r.against_previous(c).and_then(|ratio| ratio.reproducible).map(|wide| wide.high))
    })
    .if_known(reaches_further),
];

/// Launches: their shapes, and what the compiler made of the kernels.
pub static LAUNCH: &[Column] = &[
    Column::new("launch", "the number of the launch in its sequence, from 0; on `launch` rows", |_, r| show(r.part))
        .in_table(|_| number("launches", WhenEmpty), |_, r| Cell::maybe(repetitions(r))),
    Column::new("label", "the name of the launch", |_, r| of_launch(r, |l| l.label.clone())),
    Column::new(
        "grid_x",
        "blocks; for a sequence on its `launch` rows, as all that follows up to `occupancy_limiter`",
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
    Column::new("spill_store_bytes", "bytes that a thread's spilled registers store", |_, r| {
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
    Column::new("spill_load_bytes", "bytes that they load", |_, r| of_launch(r, |l| show(l.resources.spill_loads))),
    Column::new("occupancy", "the theoretical occupancy, 0 to 1", |_, r| {
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
    Column::new("blocks_per_sm", "the blocks that fit an SM", |_, r| {
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
        "the greatest difference of the floats that passed; only if a check asks for the `error`, as the next three",
        |_, r| full(error(r).map(|error| error.abs)),
    )
    .if_known(has_errors),
    Column::new("error_rel", "the greatest as a fraction of the expected value", |_, r| {
        full(error(r).map(|error| error.rel))
    })
    .if_known(has_errors)
    .in_table(
        |_| number("error (relative)", WhenEmpty).ranked(2),
        |_, r| Cell::maybe(error(r).map(|error| format!("{:.1e}", error.rel))),
    ),
    Column::new("error_rel_mean", "the mean of these fractions", |_, r| full(error(r).map(|error| error.mean_rel)))
        .if_known(has_errors),
    Column::new("error_ulp", "the greatest in units in the last place", |_, r| full(error(r).map(|error| error.ulp)))
        .if_known(has_errors)
        .in_table(
            |_| number("error (ulp)", WhenEmpty).ranked(2),
            |_, r| Cell::maybe(error(r).map(|error| format::rough(error.ulp))),
        ),
];

pub static ENERGY: &[Column] = &[
    Column::new("energy_joules", "the energy of a run; only if it was measured, as the next three", |_, r| {
        full(energy(r).map(|energy| energy.per_run.0))
    })
    .if_known(has_energy)
    .in_table(
        |c| number(format!("energy ({})", c.energy.symbol()), WhenEmpty).ranked(2),
        |c, r| Cell::maybe(energy(r).map(|energy| plus_minus(&energy.estimate(), c.energy.joules()))),
    ),
    Column::new("", "", |_, _| String::new())
        .in_table(|_| number("pJ/B", WhenEmpty).ranked(2), |_, r| Cell::maybe(energy_of_a_byte(r))),
    Column::new("energy_uncertainty", "the step of the device's counter, as a fraction of it", |_, r| {
        full(energy(r).map(|energy| energy.uncertainty))
    })
    .if_known(has_energy),
    Column::new("power_watts", "the mean power", |_, r| full(energy(r).map(|energy| energy.power.0)))
        .if_known(has_energy)
        .in_table(
            |_| number("power (W)", WhenEmpty).ranked(2),
            |_, r| Cell::maybe(energy(r).map(|energy| format::rough(energy.power.0))),
        ),
    Column::new("energy_runs", "the runs of the pass", |_, r| show(energy(r).map(|energy| energy.runs)))
        .if_known(has_energy),
];

pub static NOTES: &[Column] = &[Column::new("notes", "what is to be known of the row, joined by `; `", |_, r| {
    let notes = r.case().map_or(&[][..], |case| &case.notes);
    notes.iter().map(wording::note).collect::<Vec<_>>().join("; ")
})];

fn show<T: ToString>(value: Option<T>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

/// Writes a number in full; empty for `None`.
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

/// A text that is a number, with its value.
fn sortable(text: Option<String>) -> Option<(f64, String)> {
    text.and_then(|text| Some((text.parse().ok()?, text)))
}

/// Rank of the operations per second: lowest (most important) if they are the basis, highest if memory is the bound.
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

/// Writes a part of the speedup over the baseline, which is 1 for the baseline itself.
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

/// Whether there is an interval that covers other processes.
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

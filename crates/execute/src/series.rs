//! What makes up one sample of a case: how many runs, and on how many sets of buffers.
//!
//! | regime | runs | sets |
//! |---|---|---|
//! | cold | one; for a short kernel one or more cycles of the device; more if the clock's tick would show | one |
//! | warm, graph | as many as fill a span of two milliseconds | one; if a buffer is `inout`, one for each run |
//! | rotate | likewise, alternating between the sets | enough for twice the size of the L2 |
//! | host | one | one |
//!
//! A run changes its `inout` buffers, and restoring one between two runs would disturb the state of the caches. So each
//! run of a span has its own copy, restored before the span; memory limits how many there are. Only the first set is
//! checked: the others are copies of it, run by the same launches. Variables of a module cannot be copied, so there is
//! only one of each.

use super::bench::Bench;
use super::buffers::{Poison, Slot};
use super::cases::ReadyCase;
use super::stop::Stop;
use super::variables::preparation;
use runner_backend::{
    Batch, BufferId, DeviceError, HostCall, Iteration, Launch, LaunchArg, Loop, Samples, Series, Step, TimedBatch,
    Timing, has_textures, nodes, operations,
};
use runner_types::{Access, Persist, Regime};

/// Nanoseconds per span of runs. The overhead of its two events is a thousandth of that.
const SPAN: f64 = 2e6;
/// Maximum number of operations per span, so that they fit the queue behind a gate.
const MOST_STEPS: usize = 384;
/// Maximum number of launches per sample in the cold regime.
const MOST_COLD: u32 = 32;
/// A kernel below this many nanoseconds is short: the variation of its time over one device cycle would show.
const SHORT: f64 = 50e3;
/// Maximum clock tick as a fraction of the precision.
const SHARE_OF_TICK: f64 = 0.125;
const MOST_SETS: usize = 32;
/// The sets together are limited to the free memory divided by this.
const SHARE_OF_FREE: u64 = 2;
/// The same with textures or surfaces: a GPU may keep an array for each buffer.
const SHARE_WITH_ARRAYS: u64 = 3;

/// A case's work as it is timed, to be run `repeat` times.
pub fn timed_run(bench: &mut Bench<'_>, case: &ReadyCase<'_>, repeat: u32) -> Batch {
    Batch { repeat, ..Batch::once(preparation(bench, case, Poison::Timed), case.steps().to_vec()) }
}

/// Creates the sets of buffers for the samples of a regime, initially with one run per sample.
pub fn make_sets(bench: &mut Bench<'_>, case: &ReadyCase<'_>, regime: Regime) -> Result<Series, Stop> {
    let slots = case.slots();
    let share = if has_textures(case.steps()) { SHARE_WITH_ARRAYS } else { SHARE_OF_FREE };
    let wanted = sets_wanted(bench, &slots, regime, share);
    let copied: Vec<Slot> = slots.into_iter().filter(|slot| is_copied(bench, *slot, regime)).collect();
    let mut others = Vec::new();
    while others.len() + 1 < wanted {
        match copy_set(bench, &copied, others.len()) {
            Ok(pairs) => others.push(case.steps().iter().map(|step| move_step(step, &pairs)).collect()),
            Err(DeviceError::OutOfMemory { .. }) => break,
            Err(other) => return Err(other.into()),
        }
    }
    Ok(Series { others, ..Series::default() })
}

/// Number of sets that a regime uses if they are limited to the free memory divided by `share`.
fn sets_wanted(bench: &Bench<'_>, slots: &[Slot], regime: Regime, share: u64) -> usize {
    let bytes = |slot: &Slot| bench.store.get(*slot).map_or(0, |buffer| buffer.plan.bytes().0);
    let working_set: u64 = slots.iter().map(bytes).sum();
    let wanted = match regime {
        Regime::Warm | Regime::Graph if consumes(bench, slots) => MOST_SETS,
        Regime::Cold | Regime::Warm | Regime::Graph | Regime::Host => 1,
        Regime::Rotate => {
            let l2 = bench.device.info().l2_bytes;
            (2 * l2).div_ceil(working_set.max(1)).clamp(1, MOST_SETS as u64) as usize
        }
    };
    let copied: u64 = slots.iter().filter(|slot| is_copied(bench, **slot, regime)).map(bytes).sum();
    let free = bench.device.memory_free().unwrap_or(0) / share;
    wanted.min(1 + (free / copied.max(1)).min(MOST_SETS as u64) as usize)
}

/// Whether a run changes what the next one needs.
fn consumes(bench: &Bench<'_>, slots: &[Slot]) -> bool {
    let changes = |slot: &Slot| bench.store.get(*slot).is_some_and(|b| b.plan.access == Access::InOut);
    slots.iter().any(changes)
}

fn is_copied(bench: &Bench<'_>, slot: Slot, regime: Regime) -> bool {
    let fits = |access| regime == Regime::Rotate || access == Access::InOut;
    bench.store.get(slot).is_some_and(|buffer| !buffer.is_symbol() && fits(buffer.plan.access))
}

/// Creates copy number `nth` of the buffers.
fn copy_set(bench: &mut Bench<'_>, slots: &[Slot], nth: usize) -> Result<Vec<(BufferId, BufferId)>, DeviceError> {
    let mut pairs = Vec::new();
    for slot in slots {
        let Some(id) = bench.store.get(*slot).map(|buffer| buffer.id) else { continue };
        pairs.push((id, bench.store.copy(bench.device, *slot, nth)?));
    }
    Ok(pairs)
}

/// Decides how many runs make a sample, now that one run is known to take `nanoseconds`.
pub fn lengthen(bench: &mut Bench<'_>, case: &ReadyCase<'_>, regime: Regime, series: &mut Series, nanoseconds: f64) {
    let consumes = consumes(bench, &case.slots());
    let sets = 1 + series.others.len();
    let own = if regime == Regime::Graph { nodes(case.steps()) } else { operations(case.steps()) };
    let most = (MOST_STEPS / own.max(1)).max(1);
    if regime == Regime::Cold {
        let allowed = SHARE_OF_TICK * bench.measure_plan(case.job).precision * nanoseconds;
        let Some(clock) = bench.device.clock() else { return };
        let wanted = clock.tick().map_or(1.0, |tick| (tick / allowed).ceil()) as u32;
        let cycle = if nanoseconds < SHORT { clock.cycle() } else { 1 };
        series.launches = wanted.clamp(1, MOST_COLD).next_multiple_of(cycle);
        return;
    }
    let lead = match regime {
        // A consumed set can be used only once.
        Regime::Rotate if consumes => 0,
        Regime::Rotate => sets.min(most / 2),
        _ if consumes && sets == 1 => 0,
        _ => 1,
    };
    let fill = (SPAN / nanoseconds.max(1.0)).ceil().min(most as f64) as usize;
    let launches = if !consumes {
        fill.min(most - lead)
    } else if regime == Regime::Rotate {
        sets
    } else {
        sets - lead
    };
    (series.launches, series.lead) = (launches.max(1) as u32, lead as u32);
}

/// Batch that takes one sample of a case.
pub fn timed_batch(bench: &mut Bench<'_>, case: &ReadyCase<'_>, regime: Regime, series: &Series) -> TimedBatch {
    let Batch { mut prepare, steps, .. } = timed_run(bench, case, 1);
    let slots = case.slots();
    let mut series = series.clone();
    if !series.others.is_empty() {
        prepare.extend(slots.iter().flat_map(|slot| bench.store.prepare_copies(*slot, series.others.len())));
    }
    // The report has one line per manifest entry, and an entry may run many times.
    series.whole_only = case.job.steps.is_some();
    if regime == Regime::Host {
        series.fresh = slots.iter().filter_map(|slot| bench.store.allocated_each_run(*slot)).collect();
    }
    TimedBatch { prepare, steps, regime, series, samples: 1 }
}

/// Total size in bytes of the buffers that a run works on.
pub fn working_set(bench: &Bench<'_>, case: &ReadyCase<'_>) -> u64 {
    case.slots().into_iter().filter_map(|slot| bench.store.get(slot)).map(|buffer| buffer.plan.bytes().0).sum()
}

/// Copy of a step with its buffers replaced.
fn move_step(step: &Step, pairs: &[(BufferId, BufferId)]) -> Step {
    let other = |id: BufferId| pairs.iter().find(|(from, _)| *from == id).map_or(id, |(_, to)| *to);
    let argument = |argument: &LaunchArg| match argument {
        LaunchArg::Buffer(id) => LaunchArg::Buffer(other(*id)),
        LaunchArg::Offset(id, bytes) => LaunchArg::Offset(other(*id), *bytes),
        LaunchArg::Scalar(value) => LaunchArg::Scalar(*value),
        LaunchArg::Texture(texture) => LaunchArg::Texture(texture.with_buffer(other(texture.buffer))),
        LaunchArg::Struct(value) => LaunchArg::Struct(value.with_buffers(other)),
    };
    match step {
        Step::Copy { from, to } => Step::Copy { from: other(*from), to: other(*to) },
        Step::Launch(launch) => {
            let persist = launch.persist.map(|persist| Persist { buffer: other(persist.buffer), ..persist });
            Step::Launch(Launch { args: launch.args.iter().map(argument).collect(), persist, ..launch.clone() })
        }
        Step::Memset { buffer, value } => Step::Memset { buffer: other(*buffer), value: *value },
        Step::Loop(inner) => {
            let iteration = |iteration: &Iteration| {
                let mut until = iteration.until.clone();
                until.reads.iter_mut().for_each(|read| read.buffer = other(read.buffer));
                Iteration { steps: iteration.steps.iter().map(|step| move_step(step, pairs)).collect(), until }
            };
            let iterations = inner.iterations.iter().map(iteration).collect();
            Step::Loop(Box::new(Loop { iterations, at_most: inner.at_most }))
        }
        Step::Call(call) => Step::Call(HostCall { args: call.args.iter().map(argument).collect(), ..call.clone() }),
    }
}

/// Takes one sample; reports the device's notes.
pub fn take_sample(bench: &mut Bench<'_>, case: &ReadyCase<'_>, batch: &TimedBatch) -> Result<Timing, Stop> {
    let Some(clock) = bench.device.clock() else { return Err(Stop::launch_error("the device has no clock")) };
    let Samples { times, notes, .. } = clock.time(batch)?;
    for note in notes {
        bench.note(case.job, note);
    }
    find_sound(times)
}

/// Single sample of a timed batch. A time that is not a valid number of nanoseconds is an error.
fn find_sound(samples: Vec<Timing>) -> Result<Timing, Stop> {
    let sample = samples.into_iter().next();
    let sample = sample.ok_or_else(|| Stop::launch_error("the device timed nothing"))?;
    if sample.whole.is_finite() && sample.whole >= 0.0 {
        Ok(sample)
    } else {
        Err(Stop::launch_error(format!("invalid time from the device's clock: {} ns", sample.whole)))
    }
}

//! What one sample of a case is made of: how many runs, and on how many sets of buffers.
//!
//! | regime | runs | sets |
//! |---|---|---|
//! | cold | one; of a short kernel one or more cycles of the device; more if the clock's tick would show | one |
//! | warm, graph | as many as fill a span of two milliseconds | one; where a buffer is `inout`, one for each run |
//! | rotate | likewise, alternating between the sets | so many that together they are twice the L2 |
//! | host | one | one |
//!
//! A run changes its `inout` buffers, and restoring one between two runs would take the caches out of their state. So
//! each run of a span has a copy, restored before the span; memory bounds how many there are. Only the first set is
//! checked: the others are copies of it, run by the same launches. Variables of a module cannot be copied and stay one.

use super::buffers::Slot;
use super::group::{DeviceBody, Group};
use super::stop::Stop;
use crate::backend::{
    Batch, BufferId, DeviceError, HostCall, Iteration, Launch, LaunchArg, Loop, Series, Step, TimedBatch, nodes,
    operations,
};
use crate::model::{Access, Persist, Regime};

/// Nanoseconds of a span of runs: the overhead of its two events is a thousandth of that.
const SPAN: f64 = 2e6;
/// Most operations of a span, so that they fit the queue behind a gate.
const MOST_STEPS: usize = 384;
/// Most runs of a cold sample.
const MOST_COLD: u32 = 32;
/// A kernel below so many nanoseconds is short: how its time changes over a cycle of the device would show.
const SHORT: f64 = 50e3;
/// Of the precision, what the clock's tick may take.
const SHARE_OF_TICK: f64 = 0.125;
/// Most sets of buffers.
const MOST_SETS: usize = 32;
/// The sets take half of the memory that is free at most.
const SHARE_OF_FREE: u64 = 2;

impl Group<'_> {
    /// The sets of buffers for the samples of a regime, still with one run per sample.
    pub fn sets(&mut self, member: usize, regime: Regime) -> Result<Series, Stop> {
        let Some(body) = self.members[member].device_body() else { return Ok(Series::default()) };
        let (slots, steps) = (body.all_slots(), body.steps.clone());
        let wanted = self.sets_wanted(&slots, regime);
        let copied: Vec<Slot> = slots.into_iter().filter(|slot| self.is_copied(*slot, regime)).collect();
        let mut others = Vec::new();
        while others.len() + 1 < wanted {
            match self.another_set(&copied, others.len()) {
                Ok(pairs) => others.push(steps.iter().map(|step| moved(step, &pairs)).collect()),
                Err(DeviceError::OutOfMemory { .. }) => break,
                Err(other) => return Err(other.into()),
            }
        }
        Ok(Series { others, ..Series::default() })
    }

    fn sets_wanted(&self, slots: &[Slot], regime: Regime) -> usize {
        let bytes = |slot: &Slot| self.store.get(*slot).map_or(0, |buffer| buffer.plan.bytes().0);
        let working_set: u64 = slots.iter().map(bytes).sum();
        let wanted = match regime {
            Regime::Warm | Regime::Graph if self.consumes(slots) => MOST_SETS,
            Regime::Cold | Regime::Warm | Regime::Graph | Regime::Host => 1,
            Regime::Rotate => {
                let l2 = self.device.info().l2_bytes;
                (2 * l2).div_ceil(working_set.max(1)).clamp(1, MOST_SETS as u64) as usize
            }
        };
        let copied: u64 = slots.iter().filter(|slot| self.is_copied(**slot, regime)).map(bytes).sum();
        let free = self.device.memory_free().unwrap_or(0) / SHARE_OF_FREE;
        wanted.min(1 + (free / copied.max(1)).min(MOST_SETS as u64) as usize)
    }

    /// Whether a run changes what the next one needs.
    fn consumes(&self, slots: &[Slot]) -> bool {
        let changes = |slot: &Slot| self.store.get(*slot).is_some_and(|b| b.plan.access == Access::InOut);
        slots.iter().any(changes)
    }

    fn is_copied(&self, slot: Slot, regime: Regime) -> bool {
        let fits = |access| regime == Regime::Rotate || access == Access::InOut;
        self.store.get(slot).is_some_and(|buffer| !buffer.is_symbol() && fits(buffer.plan.access))
    }

    /// The buffers of another set beside those of the first.
    fn another_set(&mut self, slots: &[Slot], nth: usize) -> Result<Vec<(BufferId, BufferId)>, DeviceError> {
        let mut pairs = Vec::new();
        for slot in slots {
            let Some(id) = self.store.get(*slot).map(|buffer| buffer.id) else { continue };
            pairs.push((id, self.store.copy(self.device, *slot, nth)?));
        }
        Ok(pairs)
    }

    /// How many runs make a sample, now that one run is known to take `nanoseconds`.
    pub fn lengthen(&mut self, member: usize, regime: Regime, series: &mut Series, nanoseconds: f64) {
        let Some(body) = self.members[member].device_body() else { return };
        let consumes = self.consumes(&body.all_slots());
        let sets = 1 + series.others.len();
        let own = if regime == Regime::Graph { nodes(&body.steps) } else { operations(&body.steps) };
        let most = (MOST_STEPS / own.max(1)).max(1);
        if regime == Regime::Cold {
            let allowed = SHARE_OF_TICK * self.members[member].job.measure.precision * nanoseconds;
            let Some(clock) = self.device.clock() else { return };
            let wanted = clock.tick().map_or(1.0, |tick| (tick / allowed).ceil()) as u32;
            let cycle = if nanoseconds < SHORT { clock.cycle() } else { 1 };
            series.launches = wanted.clamp(1, MOST_COLD).next_multiple_of(cycle);
            return;
        }
        let lead = match regime {
            // A set that is consumed serves once.
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

    /// One sample of a case.
    pub fn timed_batch(&self, member: usize, regime: Regime, series: &Series) -> TimedBatch {
        let Batch { mut prepare, steps, .. } = self.batch(member, 1);
        let slots = self.members[member].device_body().map(DeviceBody::all_slots).unwrap_or_default();
        let mut series = series.clone();
        if !series.others.is_empty() {
            prepare.extend(slots.iter().flat_map(|slot| self.store.prepare_copies(*slot, series.others.len())));
        }
        // The report has one line for each entry of the manifest, and an entry may run many times.
        series.whole_only = self.members[member].job.steps.is_some();
        if regime == Regime::Host {
            series.fresh = slots.iter().filter_map(|slot| self.store.allocated_each_run(*slot)).collect();
        }
        TimedBatch { prepare, steps, regime, series, samples: 1 }
    }

    /// Bytes of the buffers that a run works on.
    pub fn working_set(&self, member: usize) -> u64 {
        let slots = self.members[member].device_body().map(DeviceBody::all_slots).unwrap_or_default();
        slots.iter().filter_map(|slot| self.store.get(*slot)).map(|buffer| buffer.plan.bytes().0).sum()
    }
}

/// The same step on other buffers.
fn moved(step: &Step, pairs: &[(BufferId, BufferId)]) -> Step {
    let other = |id: BufferId| pairs.iter().find(|(from, _)| *from == id).map_or(id, |(_, to)| *to);
    let argument = |argument: &LaunchArg| match argument {
        LaunchArg::Buffer(id) => LaunchArg::Buffer(other(*id)),
        LaunchArg::Offset(id, bytes) => LaunchArg::Offset(other(*id), *bytes),
        value @ (LaunchArg::Scalar(_) | LaunchArg::Struct(_)) => *value,
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
                Iteration { steps: iteration.steps.iter().map(|step| moved(step, pairs)).collect(), until }
            };
            let iterations = inner.iterations.iter().map(iteration).collect();
            Step::Loop(Box::new(Loop { iterations, at_most: inner.at_most }))
        }
        Step::Call(call) => Step::Call(HostCall { args: call.args.iter().map(argument).collect(), ..call.clone() }),
    }
}

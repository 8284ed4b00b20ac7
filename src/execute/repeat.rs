//! Further launches of a case before anything is timed, in the state that the first one left.
//!
//! A kernel may store a constant that is right for the inputs of the manifest alone, or return early because it finds its
//! result already there: in its outputs, in a variable, in `scratch`. A span of launches that are timed together never
//! shows that, since all of them have one result. So the inputs change between the launches, and nothing else is
//! prepared; where no input is random, there are two launches, and outputs are poisoned between them.
//!
//! A device that takes times launches every case again, on each set of inputs. The simulator does where a kernel has
//! variables that may keep something, and where other inputs cost at most about a second. What they cost is computed
//! from counts, and not taken from a clock: a case is checked in the same way on every machine.

use super::buffers::{Poison, Slot};
use super::function::called;
use super::group::{Group, host_allowance, multiplications};
use super::sets::{FIRST, MIXED, OTHER};
use super::stop::{Lost, Stop};
use crate::backend::{Batch, CountReport, Prepare, Step};
use crate::model::{Activity, BodyPlan, CaseJob, Fixed, Mismatch, Note, Outcome, Verdict};

/// The most that the second set of inputs may cost on the simulator, seconds, unless `--thorough` is given.
const MOST_SECONDS: f64 = 1.0;

/// What its cost is computed with: warp instructions that the simulator executes in a second on two cores with
/// its sanitizer, bytes that the host makes, copies and compares, and multiplications of its references.
const INSTRUCTIONS_PER_SECOND: f64 = 2e7;
const BYTES_PER_SECOND: f64 = 5e8;
const MULTIPLICATIONS_PER_SECOND: f64 = 5e8;

/// Where a result is wrong, by the set of inputs of the launch.
const PLACES: [&str; MIXED + 1] = [", in a second launch", ", on a second set of inputs", ", on a third set of inputs"];

/// Warp instructions that a run executed. Counts of a sample of blocks stand for all blocks, of which it ran a part.
pub fn executed(report: &CountReport) -> Option<f64> {
    let share = report.run.notes.iter().find_map(|note| match note {
        Note::Sampled { ran, of } => Some(*ran as f64 / *of as f64),
        _ => None,
    });
    let counted = report.counters.as_ref()?.whole.get("inst_executed")?;
    Some(counted * share.unwrap_or(1.0))
}

/// Whether another set of inputs costs the simulator at most [`MOST_SECONDS`], by what the first one cost. How long a
/// function in Python or C++ takes is unknown, and taken for longer.
pub fn is_cheap(job: &CaseJob, instructions: f64) -> bool {
    let seconds = instructions / INSTRUCTIONS_PER_SECOND
        + job.buffer_bytes().0 as f64 / BYTES_PER_SECOND
        + multiplications(job) / MULTIPLICATIONS_PER_SECOND;
    seconds <= MOST_SECONDS && job.checks.iter().all(|check| called(&check.expect).is_none())
}

impl Group<'_> {
    /// Makes the second set of inputs on a device that takes times. On others it is made for the second launch alone, so
    /// that addresses in the messages of later cases do not depend on it.
    pub fn vary_inputs(&mut self) -> Result<(), Lost> {
        let Some(first) = self.running_cases().first().copied() else { return Ok(()) };
        if self.device.clock().is_none() {
            return Ok(());
        }
        match self.store.vary(self.device, MIXED + 1) {
            Err(Stop::Lost(lost)) => Err(self.lost(first, lost)),
            _ => Ok(()),
        }
    }

    /// Whether a case is launched a second time: all that are timed, and otherwise those that are launched for their
    /// variables or for a second set of inputs. A profiler measures one launch. A sample of blocks does not write all
    /// that a later launch may find in a variable.
    fn is_repeated(&mut self, member: usize) -> bool {
        let job = self.members[member].job;
        if !matches!(job.body, BodyPlan::Launches(_) | BodyPlan::Host(_)) || self.is_profiled() {
            return false;
        }
        if self.device.clock().is_some() {
            return true;
        }
        let keeps_variables = !self.undeclared_variables(member).is_empty();
        let may_vary = job.thorough || self.members[member].instructions.is_some_and(|count| is_cheap(job, count));
        if job.sampled { may_vary && !keeps_variables } else { may_vary || keeps_variables }
    }

    /// Launches a case that has passed its check a second time, and says what is wrong with the result. Leaves the first
    /// set of inputs.
    pub fn repeat(&mut self, member: usize) -> Result<Option<Mismatch>, Stop> {
        if !self.is_repeated(member) {
            return Ok(None);
        }
        let Some(body) = self.members[member].device_body() else { return Ok(None) };
        let (slots, steps) = (body.all_slots(), body.steps.clone());
        let is_timed = self.device.clock().is_some();
        if !is_timed {
            self.store.vary(self.device, OTHER + 1)?;
        }
        let varies = slots.iter().any(|slot| self.store.varies(*slot));
        let is_due = is_timed || varies || !self.undeclared_variables(member).is_empty();
        let sets = if varies { OTHER..self.store.sets.count } else { FIRST..usize::from(is_due) };
        let mut found = Ok(None);
        for set in sets {
            found = self.launch_again(member, (&slots, &steps), set);
            if !matches!(found, Ok(None)) {
                break;
            }
        }
        self.store.choose(self.device, FIRST)?;
        if !is_timed {
            self.store.unvary(self.device);
        }
        found
    }

    fn launch_again(
        &mut self,
        member: usize,
        (slots, steps): (&[Slot], &[Step]),
        set: usize,
    ) -> Result<Option<Mismatch>, Stop> {
        let varies = set != FIRST;
        if varies && let Some(changed) = self.choose_other(set)? {
            return Ok(Some(changed));
        }
        let job = self.members[member].job;
        let prepare: Vec<Prepare> = if job.sampled {
            // What its blocks write is told from what they leave, as after the first launch.
            self.store.prepare(slots, Poison::Checked)
        } else if varies {
            slots.iter().filter_map(|slot| self.store.restoration(*slot)).collect()
        } else {
            self.store.prepare(slots, Poison::Timed)
        };
        // Not a step of the first check: what this launch prints was printed before, and it has the time of a launch.
        self.active(member, Activity::Rechecking, job.measure.timeout);
        let done = self.device.run(&Batch::once(prepare, steps.to_vec())).map_err(Stop::from);
        done.map_err(|stop| on_set(set, stop))?;
        self.active(member, Activity::Rechecking, host_allowance(job));
        self.look_at_variables(member)?;
        if let Some(mut mismatch) = self.mismatch(member)? {
            let poison = if job.sampled { Poison::Checked } else { Poison::Timed };
            let prepare = self.preparation(member, poison);
            self.device.run(&Batch::once(prepare, steps.to_vec()))?;
            mismatch.what.push_str(match self.mismatch(member)? {
                None => ", in a launch that finds outputs, variables and scratch as an earlier launch left them",
                Some(_) => PLACES[set],
            });
            return Ok(Some(mismatch));
        }
        if varies {
            self.keep_for_others(member)?;
            return self.changed_input();
        }
        Ok(None)
    }

    /// Chooses another set of inputs, unless an input was changed, which that set would hide: which one, then.
    fn choose_other(&mut self, set: usize) -> Result<Option<Mismatch>, Stop> {
        let changed = self.changed_input()?;
        if changed.is_none() {
            self.store.choose(self.device, set)?;
        }
        Ok(changed)
    }

    /// Why the inputs of a case are the same in all of its timed launches; `None` if they change, or there are none.
    pub fn fixed_inputs(&mut self, member: usize) -> Option<Fixed> {
        self.device.clock()?;
        let slots = self.members[member].device_body()?.all_slots();
        self.store.fixed(&slots)
    }

    fn changed_input(&mut self) -> Result<Option<Mismatch>, Stop> {
        Ok(mismatch_of(self.changed_inputs()?))
    }

    fn mismatch(&mut self, member: usize) -> Result<Option<Mismatch>, Stop> {
        Ok(mismatch_of(self.judge(member)?))
    }
}

/// Says which inputs a fault of a kernel needs, if those of the manifest do not show it.
fn on_set(set: usize, stop: Stop) -> Stop {
    match stop {
        Stop::Case(Outcome::Trap { message }) if set != FIRST => {
            let place = PLACES[set].trim_start_matches(", ");
            Stop::Case(Outcome::Trap { message: format!("{place}: {message}") })
        }
        other => other,
    }
}

fn mismatch_of(verdict: Verdict) -> Option<Mismatch> {
    if let Verdict::Mismatch(mismatch) = verdict { Some(mismatch) } else { None }
}

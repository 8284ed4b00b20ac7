//! A second launch of every case before anything is timed, in the state that the first one left.
//!
//! A kernel may return early because it finds its result already there: in its outputs, in a variable, in `scratch`. A
//! span of launches that are timed together never shows that, since all of them have one result. So the inputs change
//! between the two launches, and nothing else is prepared; where no input is random, outputs are poisoned instead.

use super::buffers::{Poison, Slot};
use super::group::{Group, host_allowance};
use super::sets::{FIRST, OTHER};
use super::stop::{Lost, Stop};
use crate::backend::{Batch, Prepare, Step};
use crate::model::{Activity, BodyPlan, Fixed, Mismatch, Verdict};

impl Group<'_> {
    /// Makes the second set of inputs on a device that takes times. On others it is made for the second launch alone, so
    /// that addresses in the messages of later cases do not depend on it.
    pub fn vary_inputs(&mut self) -> Result<(), Lost> {
        let Some(first) = self.running_cases().first().copied() else { return Ok(()) };
        if self.device.clock().is_none() {
            return Ok(());
        }
        match self.store.vary(self.device) {
            Err(Stop::Lost(lost)) => Err(self.lost(first, lost)),
            _ => Ok(()),
        }
    }

    /// Whether a case is launched a second time: all that are timed, and otherwise those whose kernels have variables in
    /// which they may keep something from one launch to the next. A profiler measures one launch, and a sample of blocks
    /// does not write all that a later launch may read.
    fn is_repeated(&mut self, member: usize) -> bool {
        let job = self.members[member].job;
        matches!(job.body, BodyPlan::Launches(_) | BodyPlan::Host(_))
            && !self.is_profiled()
            && !job.sampled
            && (self.device.clock().is_some() || !self.undeclared_variables(member).is_empty())
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
            self.store.vary(self.device)?;
        }
        let varies = slots.iter().any(|slot| self.store.varies(*slot));
        let found = self.launch_again(member, (&slots, &steps), varies);
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
        varies: bool,
    ) -> Result<Option<Mismatch>, Stop> {
        if varies && let Some(changed) = self.choose_other()? {
            return Ok(Some(changed));
        }
        let prepare: Vec<Prepare> = if varies {
            slots.iter().filter_map(|slot| self.store.restoration(*slot)).collect()
        } else {
            self.store.prepare(slots, Poison::Timed)
        };
        let job = self.members[member].job;
        // Not a step of the first check: what this launch prints was printed before, and it has the time of a launch.
        self.active(member, Activity::Rechecking, job.measure.timeout);
        self.device.run(&Batch::once(prepare, steps.to_vec()))?;
        self.active(member, Activity::Rechecking, host_allowance(job));
        self.look_at_variables(member)?;
        if let Some(mut mismatch) = self.mismatch(member)? {
            let prepare = self.preparation(member, Poison::Timed);
            self.device.run(&Batch::once(prepare, steps.to_vec()))?;
            mismatch.what.push_str(match self.mismatch(member)? {
                None => ", in a launch that finds outputs, variables and scratch as an earlier launch left them",
                Some(_) if varies => ", on a second set of inputs",
                Some(_) => ", in a second launch",
            });
            return Ok(Some(mismatch));
        }
        if varies {
            self.keep_for_others(member)?;
            return self.changed_input();
        }
        Ok(None)
    }

    /// Chooses the second set of inputs, unless an input was changed, which the other set would hide: which one, then.
    fn choose_other(&mut self) -> Result<Option<Mismatch>, Stop> {
        let changed = self.changed_input()?;
        if changed.is_none() {
            self.store.choose(self.device, OTHER)?;
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

fn mismatch_of(verdict: Verdict) -> Option<Mismatch> {
    if let Verdict::Mismatch(mismatch) = verdict { Some(mismatch) } else { None }
}

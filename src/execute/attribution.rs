//! Finds which of several interleaved cases changed an input or wrote outside of its buffers.
//!
//! The cases share their memory, so the damage does not show which of them caused it. Each runs once more, alone, on
//! restored memory; a case that does it again is wrong. If none does, all of them fail: a pass would be a guess.

use super::group::Group;
use super::stop::{Lost, Stop};
use crate::model::{Activity, Mismatch, Outcome, Verdict};

impl Group<'_> {
    /// The device's cases that are not settled.
    pub fn running_cases(&self) -> Vec<usize> {
        (0..self.members.len()).filter(|i| self.members[*i].device_body().is_some()).collect()
    }

    /// Settles the cases that caused `found`, at least one, and restores the inputs. `last` is the case whose launch
    /// directly preceded the check that found it.
    pub fn attribute(&mut self, found: &Mismatch, last: Option<usize>) -> Result<(), Lost> {
        let suspects = self.running_cases();
        let mut at_fault = Vec::new();
        for member in &suspects {
            if let Some(mismatch) = self.repeat_alone(*member)? {
                at_fault.push((*member, mismatch));
            }
        }
        if at_fault.is_empty() {
            at_fault = match last {
                Some(member) => vec![(member, found.clone())],
                None => suspects.iter().map(|member| (*member, shared(found))).collect(),
            };
        }
        for (member, mismatch) in at_fault {
            if !self.members[member].settled {
                self.settle(member, Outcome::Wrong { mismatch });
            }
        }
        Ok(())
    }

    /// Runs a case once more on restored inputs; what it then changes that it must not.
    fn repeat_alone(&mut self, member: usize) -> Result<Option<Mismatch>, Lost> {
        self.active(member, Activity::Rechecking, self.members[member].job.measure.timeout);
        let done = self.run_alone(member);
        let found = self.attempt(member, done)?.flatten();
        if found.is_some() {
            let restored = self.restore_inputs();
            self.attempt(member, restored)?;
        }
        Ok(found)
    }

    fn run_alone(&mut self, member: usize) -> Result<Option<Mismatch>, Stop> {
        self.restore_inputs()?;
        let batch = self.batch(member, 1);
        self.device.run(&batch)?;
        if let Some(mismatch) = self.trespass(member)? {
            return Ok(Some(mismatch));
        }
        Ok(match self.changed_inputs()? {
            Verdict::Mismatch(mismatch) => Some(mismatch),
            _ => None,
        })
    }
}

fn shared(found: &Mismatch) -> Mismatch {
    let what = format!("{} during the timed launches, by this variant or by one interleaved with it", found.what);
    Mismatch { what, ..found.clone() }
}

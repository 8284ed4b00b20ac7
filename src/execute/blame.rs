//! Finds which of the cases that took turns did what no case may: change an input or write outside of its buffers.
//!
//! The cases share their memory, so the damage tells what was done and not by whom. Each suspect runs once more, alone,
//! on restored memory; whoever does it again is wrong. Where nobody does, nobody is cleared either: a pass would be a
//! guess.

use super::group::Group;
use super::stop::{Lost, Stop};
use crate::model::{Activity, Mismatch, Outcome, Verdict};

impl Group<'_> {
    /// The cases of the device that are left.
    pub fn takers_of_turns(&self) -> Vec<usize> {
        (0..self.members.len()).filter(|i| self.members[*i].device_body().is_some()).collect()
    }

    /// Settles who did `found`, at least one case, and restores the inputs. `last` is the case after whose launch it
    /// was found at once.
    pub fn blame(&mut self, found: &Mismatch, last: Option<usize>) -> Result<(), Lost> {
        let suspects = self.takers_of_turns();
        let mut blamed = Vec::new();
        for member in &suspects {
            if let Some(mismatch) = self.repeat_alone(*member)? {
                blamed.push((*member, mismatch));
            }
        }
        if blamed.is_empty() {
            blamed = match last {
                Some(member) => vec![(member, found.clone())],
                None => suspects.iter().map(|member| (*member, shared(found))).collect(),
            };
        }
        for (member, mismatch) in blamed {
            if !self.members[member].settled {
                self.settle(member, Outcome::Wrong { mismatch });
            }
        }
        Ok(())
    }

    /// Runs a case once more on restored inputs: what it does that it may not.
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
    let what = format!("{} during the timed launches, by this variant or by one that took turns with it", found.what);
    Mismatch { what, ..found.clone() }
}

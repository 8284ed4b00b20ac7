//! Runs a case alone, after the others of its group, where the device's memory is too small for all of them.
//!
//! A case that fits the device must not fail because of the other cases of its group. It is deferred until these are
//! measured and their memory is free, and then takes the same steps as they did. Its samples are not interleaved with
//! theirs, which its samples and its row record. A case is deferred once; what stops it the second time is its outcome.

use super::group::{Group, Placement};
use super::stop::Lost;
use crate::model::{Crowded, Event, ExpectPlan, Note, Outcome, Phase};

impl Group<'_> {
    /// Defers a case that may succeed alone; false if this outcome is final.
    pub fn defer(&mut self, member: usize, outcome: &Outcome) -> bool {
        if self.members[member].placement != Placement::WithGroup {
            return false;
        }
        let why = match outcome {
            Outcome::OutOfMemory { .. } if self.shares_memory(member) => Crowded::Memory,
            Outcome::NotRun { .. } => match self.deferred_reference(member) {
                Some(name) => Crowded::Reference(name.to_owned()),
                None => return false,
            },
            _ => return false,
        };
        let state = &mut self.members[member];
        (state.placement, state.body) = (Placement::Deferred, None);
        let case = state.job.case.clone();
        let timed = self.device.clock().is_some();
        self.say(Event::CaseNote { case, note: Note::RanAlone { why, timed } });
        true
    }

    /// Whether other cases have allocated memory on the device.
    fn shares_memory(&self, member: usize) -> bool {
        self.members.iter().enumerate().any(|(other, state)| other != member && state.device_body().is_some())
    }

    fn deferred_reference(&self, member: usize) -> Option<&str> {
        self.members[member].job.checks.iter().find_map(|check| match &check.expect {
            ExpectPlan::Variant(name) => {
                let other = self.named(member, name)?;
                (self.members[other].placement == Placement::Deferred).then_some(name.as_str())
            }
            _ => None,
        })
    }

    /// Runs the deferred cases one after the other, first those that others are compared with.
    pub fn run_deferred(&mut self) -> Result<(), Lost> {
        let is_deferred = |member: &usize| self.members[*member].placement == Placement::Deferred;
        let mut deferred: Vec<usize> = (0..self.members.len()).filter(is_deferred).collect();
        deferred.sort_by_key(|member| self.awaited(self.members[*member].job).is_empty());
        for member in deferred {
            self.free_all();
            self.members[member].placement = Placement::Alone;
            self.members[member].verdict = None;
            self.spend(Phase::Transfer);
            self.prepare_one(member)?;
            self.check_and_measure()?;
        }
        Ok(())
    }

    /// Frees all memory of earlier cases of the group, also that of their modules' variables.
    fn free_all(&mut self) {
        self.store.free_copies(self.device);
        self.free_unused();
        if let Some(kernels) = &mut self.store.kernels {
            kernels.free_expected(self.device);
        }
        self.modules.unload(self.device);
    }
}

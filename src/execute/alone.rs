//! Runs a case alone, after the others of its group, where the device's memory has no room for it beside them.
//!
//! A case that fits the device is not to fail for the company that it is in. It waits until the others are measured and
//! their memory is free, and then goes the same way as they did. What is lost is the rounds in turns: its samples say so,
//! and its row too. A case waits once; whatever stops it the second time is its end.

use super::group::Group;
use super::stop::Lost;
use crate::model::{Event, ExpectPlan, Outcome, Phase};

/// With whom a case runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// With the others.
    Shared,
    /// Not yet: it runs alone after the others.
    Waits,
    Alone,
}

impl Group<'_> {
    /// Makes a case wait that this outcome need not be the end of; false where it is.
    pub fn postpone(&mut self, member: usize, outcome: &Outcome) -> bool {
        if self.members[member].turn != Turn::Shared {
            return false;
        }
        let why = match outcome {
            Outcome::OutOfMemory { .. } if self.has_company(member) => {
                "the device's memory has no room for it beside the buffers of its group".to_owned()
            }
            Outcome::NotRun { .. } => match self.reference_that_waits(member) {
                Some(name) => {
                    format!("`{name}`, which it is compared with, did not fit beside the others of its group")
                }
                None => return false,
            },
            _ => return false,
        };
        let state = &mut self.members[member];
        (state.turn, state.body) = (Turn::Waits, None);
        let case = state.job.case.clone();
        let times = if self.device.clock().is_some() { ": no other case shares its rounds" } else { "" };
        self.say(Event::CaseNote { case, text: format!("{why}, so it ran alone, after the others{times}") });
        true
    }

    /// Whether other cases hold memory of the device.
    fn has_company(&self, member: usize) -> bool {
        self.members.iter().enumerate().any(|(other, state)| other != member && state.device_body().is_some())
    }

    fn reference_that_waits(&self, member: usize) -> Option<&str> {
        self.members[member].job.checks.iter().find_map(|check| match &check.expect {
            ExpectPlan::Variant(name) => {
                let other = self.named(member, name)?;
                (self.members[other].turn == Turn::Waits).then_some(name.as_str())
            }
            _ => None,
        })
    }

    /// Runs the cases that wait, one after the other; those that others are compared with come first.
    pub fn run_those_that_wait(&mut self) -> Result<(), Lost> {
        let waits = |member: &usize| self.members[*member].turn == Turn::Waits;
        let mut waiting: Vec<usize> = (0..self.members.len()).filter(waits).collect();
        waiting.sort_by_key(|member| self.awaited(self.members[*member].job).is_empty());
        for member in waiting {
            self.free_all();
            self.members[member].turn = Turn::Alone;
            self.members[member].verdict = None;
            self.spend(Phase::Transfer);
            self.prepare_one(member)?;
            self.check_and_measure()?;
        }
        Ok(())
    }

    /// Frees whatever earlier cases of the group took, their modules' variables too.
    fn free_all(&mut self) {
        self.store.free_copies(self.device);
        self.free_unused();
        if let Some(kernels) = &mut self.store.kernels {
            kernels.free_expected(self.device);
        }
        self.modules.unload(self.device);
    }
}

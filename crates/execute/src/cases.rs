//! The unfinished cases of a group, and how they end.
//!
//! A case that fits the device must not fail because of other cases in its group. So it is deferred until the others
//! are measured and their memory is freed; then it goes through the same steps. Its samples are not interleaved with
//! theirs, which is recorded with the samples and the row. A case is deferred only once: if it fails again, that is its
//! outcome.

use super::bench::Bench;
use super::buffers::{Slot, Store};
use super::host::HostBody;
use super::stop::{Lost, Stop};
use runner_backend::{BufferId, ModuleId, Step};
use runner_types::{CaseJob, Event, ExpectPlan, LaunchRecord, Note, Outcome, RanAloneReason};

/// A case with its code loaded and its memory allocated.
pub struct ReadyCase<'a> {
    /// Index of the case in its group.
    pub place: usize,
    pub job: &'a CaseJob,
    pub body: Body,
    /// Whether only a sample of its blocks ran, so that its outputs are partial.
    pub is_partial: bool,
    /// Warp instructions executed by its first run, if the device counts them.
    pub instructions: Option<f64>,
    /// Global stores of its first run in warp instructions, if the device counts them.
    pub stores: Option<f64>,
}

pub enum Body {
    Device(DeviceBody),
    Host(Box<dyn HostBody>),
    /// A host function currently timed on another thread.
    Timed,
}

/// Work for the device, and the memory it uses.
#[derive(Debug, Clone)]
pub struct DeviceBody {
    /// Buffers by name.
    pub slots: Vec<(String, Slot)>,
    pub steps: Vec<Step>,
    /// Modules of its kernels.
    pub modules: Vec<ModuleId>,
    pub launches: Vec<LaunchRecord>,
}

impl DeviceBody {
    pub const fn without_work(slots: Vec<(String, Slot)>) -> Self {
        Self { slots, steps: Vec::new(), modules: Vec::new(), launches: Vec::new() }
    }

    pub fn slot(&self, name: &str) -> Option<Slot> {
        self.slots.iter().find(|(known, _)| known == name).map(|(_, slot)| *slot)
    }

    /// Memory of a named buffer.
    pub fn buffer(&self, store: &Store, name: &str) -> Option<BufferId> {
        store.get(self.slot(name)?).map(|buffer| buffer.id)
    }
}

impl ReadyCase<'_> {
    pub const fn device_body(&self) -> Option<&DeviceBody> {
        if let Body::Device(body) = &self.body { Some(body) } else { None }
    }

    pub fn steps(&self) -> &[Step] {
        self.device_body().map_or(&[], |body| &body.steps)
    }

    pub fn slots(&self) -> Vec<Slot> {
        self.device_body().map_or_else(Vec::new, |body| body.slots.iter().map(|(_, slot)| *slot).collect())
    }

    /// Buffer that `name` refers to after the last iteration of a loop.
    pub fn slot_after(&self, bench: &Bench<'_>, name: &str) -> Option<Slot> {
        let steps = self.job.steps.as_ref();
        let meant = steps.map_or(name, |steps| steps.buffer_after(name, bench.device.iterations()));
        self.device_body()?.slot(meant)
    }
}

/// Unfinished cases of a group in their original order, and what they run on.
pub struct Cases<'b, 'a> {
    pub bench: &'b mut Bench<'a>,
    ready: Vec<ReadyCase<'a>>,
}

impl<'b, 'a> Cases<'b, 'a> {
    pub const fn new(bench: &'b mut Bench<'a>) -> Self {
        Self { bench, ready: Vec::new() }
    }

    pub fn push(&mut self, case: ReadyCase<'a>) {
        self.ready.push(case);
    }

    pub fn iter(&self) -> impl Iterator<Item = &ReadyCase<'a>> {
        self.ready.iter()
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut ReadyCase<'a>> {
        self.ready.iter_mut()
    }

    pub fn get(&self, place: usize) -> Option<&ReadyCase<'a>> {
        self.iter().find(|case| case.place == place)
    }

    pub fn places(&self) -> Vec<usize> {
        self.iter().map(|case| case.place).collect()
    }

    /// Indices of the cases that run on the device.
    pub fn on_device(&self) -> Vec<usize> {
        self.iter().filter(|case| case.device_body().is_some()).map(|case| case.place).collect()
    }

    /// Runs `work` on a case and leaves a failure to the caller. Fails if the case has ended.
    pub fn try_step<T>(
        &mut self,
        place: usize,
        work: impl FnOnce(&mut Bench<'a>, &mut ReadyCase<'a>) -> Result<T, Stop>,
    ) -> Result<T, Stop> {
        match self.ready.iter_mut().find(|case| case.place == place) {
            Some(case) => work(self.bench, case),
            None => Err(Stop::unresolved("the case has no body")),
        }
    }

    /// Runs `work` on a case; `None` if the case had already ended or `work` ends it.
    pub fn step<T>(
        &mut self,
        place: usize,
        work: impl FnOnce(&mut Bench<'a>, &mut ReadyCase<'a>) -> Result<T, Stop>,
    ) -> Result<Option<T>, Lost> {
        if self.get(place).is_none() {
            return Ok(None);
        }
        let result = self.try_step(place, work);
        self.attempt(place, result)
    }

    /// Unwraps `result`; on failure, ends the case and returns `None`.
    pub fn attempt<T>(&mut self, place: usize, result: Result<T, Stop>) -> Result<Option<T>, Lost> {
        match result {
            Ok(value) => Ok(Some(value)),
            Err(Stop::Case(outcome)) => {
                self.settle(place, outcome);
                Ok(None)
            }
            Err(Stop::Lost(lost)) => Err(self.lose(place, lost)),
        }
    }

    /// Ends the case that lost the context.
    pub fn lose(&mut self, place: usize, lost: Lost) -> Lost {
        self.settle(place, Outcome::LaunchError { message: lost.message.clone() });
        lost
    }

    /// Ends a case, or defers it if it may succeed alone.
    pub fn settle(&mut self, place: usize, outcome: Outcome) {
        self.ready.retain(|case| case.place != place);
        let job = &self.bench.job.cases[place];
        if let Some(why) = self.reason_to_defer(job, &outcome) {
            self.bench.deferred.push(place);
            let timed = self.bench.device.clock().is_some();
            self.bench.note(job, Note::RanAlone { why, timed });
            return;
        }
        self.bench.say(Event::CaseSettled {
            case: job.case.clone(),
            fingerprint: job.fingerprint.clone(),
            outcome,
            work: job.work,
        });
    }

    /// Why a case removed from `ready` may succeed alone; `None` if this outcome is final.
    fn reason_to_defer(&self, job: &CaseJob, outcome: &Outcome) -> Option<RanAloneReason> {
        if self.bench.is_alone {
            return None;
        }
        match outcome {
            Outcome::OutOfMemory { .. } if !self.on_device().is_empty() => Some(RanAloneReason::Memory),
            Outcome::NotRun { .. } => job.checks.iter().find_map(|check| {
                let ExpectPlan::Variant(name) = &check.expect else { return None };
                let other = self.bench.find_variant(job, name)?;
                self.bench.deferred.contains(&other).then(|| RanAloneReason::Reference(name.clone()))
            }),
            _ => None,
        }
    }

    /// Frees the memory that no remaining case needs.
    pub fn free_unused(&mut self) {
        let used: Vec<Slot> = self.iter().flat_map(ReadyCase::slots).collect();
        self.bench.store.retain(self.bench.device, &used);
        self.bench.expected.retain(&used);
    }
}

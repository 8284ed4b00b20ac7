//! The state of a group while it runs, and the way its cases end.

use std::time::{Duration, Instant};

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use super::buffers::{Slot, Store};
use super::expected::Expected;
use super::function::called;
use super::host::HostBody;
use super::launch::Modules;
use super::operand::Operand;
use super::sets::secret;
use super::stop::{Lost, Stop};
use crate::backend::{Device, ModuleId, Step};
use crate::host_lock::{HostLock, POLL, Share};
use crate::model::{
    Activity, CaseJob, Event, ExpectPlan, GroupJob, LaunchRecord, Note, Outcome, Phase, RefExpr, Verdict,
};

/// Seconds that a device gets to end a kernel itself.
const GRACE: f64 = 5.0;

/// Seconds that the first step of a group may wait for the host between two looks.
const WAIT_LIMIT: f64 = 60.0;

/// A group at work.
pub struct Group<'a> {
    pub device: &'a mut dyn Device,
    emit: &'a mut dyn FnMut(Event),
    pub job: &'a GroupJob,
    pub store: Store,
    pub modules: Modules,
    pub expected: Expected,
    pub members: Vec<Member<'a>>,
    /// Decides what no kernel may know: when inputs change, and which launches are checked.
    pub secret: ChaCha8Rng,
    clock: Stopwatch,
    /// Kept while this group works on many cores of the host.
    pub host: HostLock,
    share: Option<Share>,
    /// The step that was announced last.
    step: Option<(usize, Activity, f64)>,
}

/// One case of the group.
pub struct Member<'a> {
    pub job: &'a CaseJob,
    /// What it runs; `None` before it is ready.
    pub body: Option<Body>,
    pub verdict: Option<Verdict>,
    pub settled: bool,
    pub placement: Placement,
    /// Values that other cases are compared with.
    pub kept: Vec<Kept>,
    /// Whether a sample of its blocks ran, so that its outputs are partial.
    pub is_partial: bool,
    /// Warp instructions that its first run executed, where the device itself counts.
    pub instructions: Option<f64>,
    /// What the last judgement compared of such outputs.
    pub judged: Vec<Note>,
}

/// What a case made of an expression.
pub struct Kept {
    pub expression: RefExpr,
    /// The set of inputs that it was made from.
    pub set: usize,
    pub value: Operand,
}

/// Which cases a case is run with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placement {
    WithGroup,
    /// It will run alone, after the others.
    Deferred,
    Alone,
}

/// What a case runs.
pub enum Body {
    Device(DeviceBody),
    Host(Box<dyn HostBody>),
}

/// Work of the device, with its memory.
#[derive(Debug, Clone)]
pub struct DeviceBody {
    /// Buffers by name.
    pub slots: Vec<(String, Slot)>,
    pub steps: Vec<Step>,
    /// The modules of its kernels.
    pub modules: Vec<ModuleId>,
    pub launches: Vec<LaunchRecord>,
}

impl DeviceBody {
    /// A body without work.
    pub const fn on(slots: Vec<(String, Slot)>) -> Self {
        Self { slots, steps: Vec::new(), modules: Vec::new(), launches: Vec::new() }
    }

    pub fn slot(&self, name: &str) -> Option<Slot> {
        self.slots.iter().find(|(known, _)| known == name).map(|(_, slot)| *slot)
    }

    pub fn all_slots(&self) -> Vec<Slot> {
        self.slots.iter().map(|(_, slot)| *slot).collect()
    }
}

impl Member<'_> {
    /// The work of the device that is left to run.
    pub fn device_body(&self) -> Option<&DeviceBody> {
        match &self.body {
            Some(Body::Device(body)) if !self.settled => Some(body),
            _ => None,
        }
    }

    /// Checked, and not found wrong.
    pub fn is_right(&self) -> bool {
        !self.settled && matches!(self.verdict, Some(Verdict::Pass | Verdict::Unchecked(_)))
    }
}

impl<'a> Group<'a> {
    pub fn new(device: &'a mut dyn Device, job: &'a GroupJob, host: HostLock, emit: &'a mut dyn FnMut(Event)) -> Self {
        let member = |job| Member {
            job,
            body: None,
            verdict: None,
            settled: false,
            placement: Placement::WithGroup,
            kept: Vec::new(),
            is_partial: false,
            instructions: None,
            judged: Vec::new(),
        };
        let mut store = Store::default();
        // A file or a list has the results of one content.
        let mut checks = job.cases.iter().flat_map(|job| &job.checks);
        let is_fixed = |expect: &_| {
            matches!(expect, ExpectPlan::Npy(_) | ExpectPlan::Raw(_) | ExpectPlan::Part(_) | ExpectPlan::List(_))
        };
        store.sets.expects_first = checks.any(|check| is_fixed(&check.expect));
        Self {
            device,
            emit,
            job,
            store,
            modules: Modules::default(),
            expected: Expected::default(),
            members: job.cases.iter().map(member).collect(),
            secret: ChaCha8Rng::seed_from_u64(secret()),
            clock: Stopwatch::new(),
            host,
            share: None,
            step: None,
        }
    }

    /// Runs the group from preparation to the outcomes.
    pub fn run(&mut self) -> Result<(), Lost> {
        self.spend(Phase::Transfer);
        self.prepare_all()?;
        self.check_and_measure()?;
        self.run_deferred()
    }

    /// Checks and measures the cases that are ready.
    pub fn check_and_measure(&mut self) -> Result<(), Lost> {
        self.vary_inputs()?;
        self.spend(Phase::Check);
        self.begin_functions();
        self.check_all()?;
        self.free_unused();
        self.spend(Phase::Measure);
        self.measure_all()
    }

    /// Frees the memory, unless it was lost with the context, and reports the time of each phase.
    pub fn close(&mut self, lost: bool) {
        if !lost {
            self.store.free_copies(self.device);
            self.store.retain(self.device, &[]);
            if let Some(kernels) = self.store.kernels.take() {
                kernels.free(self.device);
            }
            self.modules.unload(self.device);
        }
        self.spend(Phase::Transfer);
        for (phase, spent) in std::mem::take(&mut self.clock.spent) {
            self.say(Event::PhaseSpent { phase, seconds: spent.as_secs_f64() });
        }
    }

    /// Frees the memory that no case needs.
    pub fn free_unused(&mut self) {
        let used: Vec<Slot> =
            self.members.iter().filter_map(Member::device_body).flat_map(DeviceBody::all_slots).collect();
        self.store.retain(self.device, &used);
        self.expected.retain(&used);
    }

    pub fn say(&mut self, event: Event) {
        (self.emit)(event);
    }

    /// Announces a step that must end within `limit` seconds, also to the device: a device that ends a kernel itself can
    /// report where the kernel was.
    pub fn active(&mut self, member: usize, activity: Activity, limit: f64) {
        self.step = Some((member, activity, limit));
        let case = self.members[member].job.case.clone();
        let span = Duration::try_from_secs_f64(limit).unwrap_or(Duration::MAX);
        let limit = if self.device.set_time_limit(span) { limit + GRACE } else { limit };
        self.say(Event::CaseActive { case, activity, limit });
    }

    /// Attributes the time from now on to a phase; returns the previous one. A phase in which the host works on many
    /// cores begins when no other worker times the host.
    pub fn spend(&mut self, phase: Phase) -> Phase {
        if matches!(phase, Phase::Transfer | Phase::Check) {
            self.share_host();
        } else {
            self.share = None;
        }
        self.clock.switch(phase)
    }

    fn share_host(&mut self) {
        let mut waiting = None;
        while self.share.is_none() {
            self.share = self.host.try_share();
            if self.share.is_none() {
                waiting.get_or_insert_with(|| tracing::info_span!("wait for the lock of the host").entered());
                std::thread::sleep(POLL);
                // The limit of the step counts from the end of the wait.
                let (member, activity, limit) = self.step.unwrap_or((0, Activity::Preparing, WAIT_LIMIT));
                self.active(member, activity, limit);
            }
        }
    }

    /// Ends a case, unless it may succeed alone.
    pub fn settle(&mut self, member: usize, outcome: Outcome) {
        if self.defer(member, &outcome) {
            return;
        }
        let state = &mut self.members[member];
        state.settled = true;
        state.body = None;
        let job = state.job;
        self.say(Event::CaseSettled {
            case: job.case.clone(),
            fingerprint: job.fingerprint.clone(),
            outcome,
            work: job.work,
        });
    }

    /// The value of a step, or `None` after ending the case for which it failed.
    pub fn attempt<T>(&mut self, member: usize, result: Result<T, Stop>) -> Result<Option<T>, Lost> {
        match result {
            Ok(value) => Ok(Some(value)),
            Err(Stop::Case(outcome)) => {
                self.settle(member, outcome);
                Ok(None)
            }
            Err(Stop::Lost(lost)) => Err(self.lost(member, lost)),
        }
    }

    /// Ends the case that lost the context.
    pub fn lost(&mut self, member: usize, lost: Lost) -> Lost {
        self.settle(member, Outcome::LaunchError { message: lost.message.clone() });
        lost
    }
}

/// How long the host may take for a case before something must be wrong: inputs and comparisons at 50 MB/s, products at
/// 10^8 multiplications per second, functions one after the other, and ten seconds for other load on the host.
pub fn host_allowance(job: &CaseJob) -> f64 {
    let products = multiplications(job);
    let functions = job.checks.iter().filter(|check| called(&check.expect).is_some()).count();
    job.measure.timeout * (1 + functions) as f64 + 10.0 + job.buffer_bytes().0 as f64 / 50e6 + products / 1e8
}

/// Multiplications of the matrix products and convolutions that the checks of a case expect.
pub fn multiplications(job: &CaseJob) -> f64 {
    let expected = job.checks.iter().filter_map(|check| match &check.expect {
        ExpectPlan::Reference(expression) => Some(expression),
        _ => None,
    });
    expected.map(products).sum()
}

fn products(expression: &RefExpr) -> f64 {
    let RefExpr::Call { buffers, integers, .. } = expression else { return 0.0 };
    let own = if integers.len() >= 3 { integers.iter().map(|n| *n as f64).product() } else { 0.0 };
    own + buffers.iter().map(products).sum::<f64>()
}

/// Sums the time of each phase.
struct Stopwatch {
    phase: Phase,
    since: Instant,
    spent: Vec<(Phase, Duration)>,
}

impl Stopwatch {
    fn new() -> Self {
        Self { phase: Phase::Transfer, since: Instant::now(), spent: Vec::new() }
    }

    fn switch(&mut self, phase: Phase) -> Phase {
        let now = Instant::now();
        let elapsed = now - self.since;
        match self.spent.iter_mut().find(|(known, _)| *known == self.phase) {
            Some((_, spent)) => *spent += elapsed,
            None => self.spent.push((self.phase, elapsed)),
        }
        self.since = now;
        std::mem::replace(&mut self.phase, phase)
    }
}

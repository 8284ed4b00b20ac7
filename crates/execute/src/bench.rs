//! The device of a group, with the memory, expected values and events shared by its cases.

use std::time::{Duration, Instant};

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use super::buffers::Store;
use super::expected::Expected;
use super::function::called;
use super::group_cache::GroupCache;
use super::input_sets::secret;
use super::kernels::Kernels;
use super::launch::Modules;
use super::machine_code::MachineCode;
use super::processes::{expected_processes, share};
use super::weak::WeakChecks;
use runner_backend::Device;
use runner_types::{
    Activity, CaseJob, CheckPlan, Event, ExpectPlan, GroupJob, MeasurePlan, Note, Phase, RefExpr, Regime, Sharing,
};

/// Seconds that a device has to end a kernel itself before the process is killed.
const GRACE: f64 = 5.0;

/// Everything that the cases of a group share, from preparation to outcomes.
pub struct Bench<'a> {
    pub device: &'a mut dyn Device,
    emit: &'a mut dyn FnMut(Event),
    pub job: &'a GroupJob,
    pub store: Store,
    pub modules: Modules,
    pub expected: Expected,
    pub weak: WeakChecks,
    /// Random numbers that no kernel may predict: they decide when inputs change and which launches are checked.
    pub secret: ChaCha8Rng,
    /// Cases waiting to run alone, by index in the group.
    pub deferred: Vec<usize>,
    /// Whether a deferred case is running now.
    pub is_alone: bool,
    /// Number of processes that share the group's samples, including this one.
    pub processes: u32,
    /// Cases that passed their checks, by index in the group.
    pub passed: Vec<usize>,
    pub machine_code: MachineCode,
    clock: Stopwatch,
}

impl<'a> Bench<'a> {
    /// Starts a group with what the previous group left in the cache.
    pub fn new(
        device: &'a mut dyn Device,
        job: &'a GroupJob,
        cache: GroupCache,
        emit: &'a mut dyn FnMut(Event),
    ) -> Self {
        let (mut store, expected) = cache.for_group(job);
        // Files and lists hold the results for one set of inputs only.
        let mut checks = job.cases.iter().flat_map(|job| &job.checks);
        let is_fixed = |expect: &_| {
            matches!(expect, ExpectPlan::Npy(_) | ExpectPlan::Raw(_) | ExpectPlan::Part(_) | ExpectPlan::List(_))
        };
        store.sets.expects_first = checks.any(|check| is_fixed(&check.expect));
        let mut bench = Self {
            device,
            emit,
            job,
            store,
            modules: Modules::default(),
            expected,
            weak: WeakChecks::default(),
            secret: ChaCha8Rng::seed_from_u64(secret()),
            deferred: Vec::new(),
            is_alone: false,
            processes: 1,
            passed: Vec::new(),
            machine_code: MachineCode::default(),
            clock: Stopwatch::new(),
        };
        bench.spend(Phase::Transfer);
        bench.store.kernels = Kernels::load(bench.device).unwrap_or_default();
        bench
    }

    /// Decides from a run's duration whether further processes will measure the group.
    pub fn expect_processes(&mut self, job: &CaseJob, nanoseconds: f64, regime: Regime, launches: u32) {
        if let Sharing::First { spread } = self.job.sharing {
            let expected = expected_processes(nanoseconds, regime, launches, job, spread.as_ref());
            self.processes = self.processes.max(expected);
        }
    }

    /// Measurement plan of this process: only its share if other processes follow.
    pub fn measure_plan(&self, job: &CaseJob) -> MeasurePlan {
        share(&job.measure, self.processes)
    }

    /// Frees the memory, unless it was lost with the context, and reports the time of each phase. Returns what the next
    /// group may reuse.
    pub fn close(mut self, lost: bool) -> GroupCache {
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
        GroupCache::from_group(self.store, self.expected)
    }

    /// Frees the memory of all cases so far, including their modules' variables.
    pub fn clear(&mut self) {
        self.store.free_copies(self.device);
        self.store.retain(self.device, &[]);
        self.expected.retain(&[]);
        if let Some(kernels) = &mut self.store.kernels {
            kernels.free_expected(self.device);
        }
        self.modules.unload(self.device);
    }

    pub fn say(&mut self, event: Event) {
        (self.emit)(event);
    }

    pub fn note(&mut self, job: &CaseJob, note: Note) {
        self.say(Event::CaseNote { case: job.case.clone(), note });
    }

    /// Announces a step that must end within `limit` seconds. The device is told too: one that ends kernels itself can
    /// report where the kernel was.
    pub fn announce(&mut self, job: &'a CaseJob, activity: Activity, limit: f64) {
        let span = Duration::try_from_secs_f64(limit).unwrap_or(Duration::MAX);
        let limit = if self.device.set_time_limit(span) { limit + GRACE } else { limit };
        self.say(Event::CaseActive { case: job.case.clone(), activity, limit });
    }

    /// Attributes the time from now on to `phase`; returns the previous phase.
    pub fn spend(&mut self, phase: Phase) -> Phase {
        self.clock.switch(phase)
    }

    /// Whether a profiler is counting this device's launches.
    pub fn is_profiled(&mut self) -> bool {
        self.device.counter().is_some_and(|counter| counter.marks_launches())
    }

    /// Index of a variant's case at the same axis values.
    pub fn find_variant(&self, own: &CaseJob, variant: &str) -> Option<usize> {
        let key = &own.case.key;
        self.job.cases.iter().position(|job| job.case.key.variant == variant && job.case.key.axes == key.axes)
    }

    /// Checks of other cases that expect this case's results.
    pub fn checks_against(&self, own: &CaseJob) -> Vec<&'a CheckPlan> {
        let jobs: &'a [CaseJob] = &self.job.cases;
        let others = jobs.iter().filter(|job| job.case.key.axes == own.case.key.axes);
        let named = |check: &&CheckPlan| matches!(&check.expect, ExpectPlan::Variant(n) if *n == own.case.key.variant);
        others.flat_map(|job| &job.checks).filter(named).collect()
    }
}

/// Seconds that host work for a case may take before something must be wrong. Assumes 50 MB/s for inputs and
/// comparisons, 10^8 multiplications per second for products, functions that run one after the other, and ten seconds
/// for other load on the host.
pub fn host_allowance(job: &CaseJob) -> f64 {
    let products = multiplications(job);
    let functions = job.checks.iter().filter(|check| called(&check.expect).is_some()).count();
    job.measure.timeout * (1 + functions) as f64 + 10.0 + job.buffer_bytes().0 as f64 / 50e6 + products / 1e8
}

/// Counts the multiplications in the matrix products and convolutions that a case's checks expect.
pub fn multiplications(job: &CaseJob) -> f64 {
    let expected = job.checks.iter().filter_map(|check| match &check.expect {
        ExpectPlan::Reference(expression) => Some(expression),
        _ => None,
    });
    expected.map(products).sum()
}

fn products(expression: &RefExpr) -> f64 {
    let (buffers, integers) = match expression {
        RefExpr::Call { buffers, integers, .. } => (buffers, integers.as_slice()),
        RefExpr::Elementwise { operands, .. } => (operands, &[][..]),
        RefExpr::Buffer(_) | RefExpr::Constant(_) => return 0.0,
    };
    let own = if integers.len() >= 3 { integers.iter().map(|n| *n as f64).product() } else { 0.0 };
    own + buffers.iter().map(products).sum::<f64>()
}

/// Total time per phase.
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

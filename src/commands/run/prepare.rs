//! What has to be known before the first group runs: the matrix, the compiler, the code, the work that is left.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use super::worker::Worker;
use crate::commands::cli::{BackendChoice, RunArgs};
use crate::commands::{Console, Failure};
use crate::compile::{self, Cache, CompileOptions, Network, Nvcc, Target, Toolkit, Want};
use crate::dispatch::{Interrupt, Ready, Urgency};
use crate::journal::Held;
use crate::model::{
    BackendKind, Case, CompileUnit, DeviceInfo, Diagnostics, Environment, Event, GroupJob, Machine, Manifest, Outcome,
    Phase, RunContext, RunHeader, WorkAmount,
};
use crate::plan::link::{CompiledUnits, link};
use crate::plan::{self, Plan, PlanOptions, ResolvedGroup};
use crate::programs::Programs;

pub fn options(args: &RunArgs, sizes: BackendKind, device: &DeviceInfo) -> PlanOptions {
    PlanOptions {
        backend: device.backend,
        sizes,
        device: Some(device.clone()),
        set: args.narrowing.set.clone(),
        filter: args.narrowing.filter.clone(),
        variants: args.narrowing.variant.clone(),
    }
}

/// What is wrong with the narrowing, as far as it can be told without a device: a filter that names a device's
/// attributes waits for one.
pub fn narrowing_fault(args: &RunArgs, manifest: &Manifest) -> Option<Diagnostics> {
    let backend = match args.backend {
        BackendChoice::Auto | BackendChoice::Cuda => BackendKind::Cuda,
        BackendChoice::Sim => BackendKind::Sim,
    };
    let waits = |filter: &String| DeviceInfo::ATTRIBUTE_NAMES.iter().any(|name| filter.contains(name));
    let options = PlanOptions {
        set: args.narrowing.set.clone(),
        filter: args.narrowing.filter.clone().filter(|filter| !waits(filter)),
        variants: args.narrowing.variant.clone(),
        ..PlanOptions::of(backend)
    };
    plan::expand(manifest, &options).err()
}

/// The compiler that suits the device, fetched where there is none and fetching is allowed.
pub fn toolkit(args: &RunArgs, worker: &Worker, console: &mut Console) -> Result<Toolkit, Failure> {
    let cache = Cache::locate().map_err(|e| Failure::environment(e.to_string()))?;
    let want = match worker.ready.driver_cuda {
        Some(driver) => Want::Gpu { driver, compute_capability: worker.ready.device.compute_capability },
        None => Want::Pinned,
    };
    let network = if args.offline { Network::Forbidden } else { Network::Allowed };
    Toolkit::ensure(want, &cache, network, &mut |line| console.say(line))
        .map_err(|e| Failure::environment(e.to_string()))
}

pub fn environment(
    ready: &Ready,
    (toolkit, nvcc): (&Toolkit, Option<&Nvcc>),
    counting_method: Option<String>,
    machine: Machine,
) -> Environment {
    Environment {
        device: ready.device.clone(),
        driver: ready.driver.clone(),
        driver_cuda: ready.driver_cuda,
        toolkit: toolkit.info.clone(),
        host_compiler: nvcc.map(Nvcc::name),
        runner: env!("CARGO_PKG_VERSION").to_owned(),
        timing_method: ready.timing_method.clone(),
        counting_method,
        machine,
    }
}

pub fn run_started(
    args: &RunArgs,
    command: Option<String>,
    manifest: &Manifest,
    plan: &Plan,
    environment: &Environment,
) -> Event {
    let header = RunHeader {
        experiment: manifest.name.clone(),
        title: manifest.title.clone(),
        question: manifest.question.clone(),
        backend: environment.device.backend,
        axes: plan.axis_columns(),
        variants: plan.variants().iter().map(|variant| variant.name.clone()).collect(),
        baseline: plan.baseline().cloned(),
        manifest_path: args.manifest.display().to_string(),
        manifest_text: manifest.source.text.clone(),
        manifest_hash: manifest.hash.clone(),
        narrowed: args.narrowing.describe(),
        complete: false,
        counters_missing: None,
        command,
        noise: Vec::new(),
    };
    Event::RunStarted {
        header: Box::new(header),
        environment: Box::new(environment.clone()),
        context: context(args),
        cases: plan.cells().len() as u64,
        groups: plan.group_count() as u32,
    }
}

fn context(args: &RunArgs) -> RunContext {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    RunContext {
        host,
        revision: revision(args.manifest.parent()),
        started: jiff::Timestamp::now().to_string(),
        arguments: std::env::args().collect(),
    }
}

/// The revision of the checkout that the manifest lies in; `None` outside one or without git.
fn revision(dir: Option<&std::path::Path>) -> Option<String> {
    let dir = dir.filter(|d| !d.as_os_str().is_empty()).unwrap_or_else(|| std::path::Path::new("."));
    let git = |args: &[&str]| {
        let output = std::process::Command::new("git").arg("-C").arg(dir).args(args).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let head = git(&["rev-parse", "HEAD"])?;
    let dirty = git(&["status", "--porcelain", "--untracked-files=no"]).is_some_and(|s| !s.is_empty());
    Some(if dirty { format!("{head}-dirty") } else { head })
}

pub fn resolve(manifest: &Manifest, plan: &Plan) -> Vec<ResolvedGroup> {
    (0..plan.group_count()).map(|index| plan::resolve(manifest, plan, index)).collect()
}

/// The compiler of host functions, where the plan has any; without one, they are excluded.
pub fn nvcc(plan: &mut Plan, toolkit: &Toolkit) -> Option<Nvcc> {
    if !plan.calls_host() {
        return None;
    }
    let nvcc = Nvcc::find(toolkit, &Programs::of_this_machine());
    if nvcc.is_none() {
        plan.exclude_host(
            "nvcc was not found, which builds host functions: install a CUDA toolkit and name its folder in CUDA_HOME",
        );
    }
    nvcc
}

/// Compiles every unit that the groups name.
pub fn compile(
    groups: &[ResolvedGroup],
    worker: &Worker,
    (toolkit, nvcc): (&Toolkit, Option<Nvcc>),
    interrupt: &Interrupt,
    emit: &mut dyn FnMut(Event),
) -> Result<CompiledUnits, Failure> {
    let started = Instant::now();
    let units: Vec<CompileUnit> = units(groups).into_iter().collect();
    emit(Event::CompileStarted { units: units.len() as u32 });
    let cache = Cache::locate().map_err(|e| Failure::environment(e.to_string()))?;
    let mut options = CompileOptions::new(cache).map_err(|e| Failure::environment(e.to_string()))?;
    let stop = Arc::new(AtomicBool::new(false));
    options.stop = Arc::clone(&stop);
    options.nvcc = nvcc;
    let target = match worker.backend() {
        BackendKind::Sim => Target::Ptx(worker.ready.device.compute_capability),
        BackendKind::Cuda | BackendKind::Fake => Target::Gpu(worker.ready.device.compute_capability),
    };
    let compiled = compile::compile_all(&units, target, toolkit, &options, &mut |unit, result, seconds| {
        if interrupt.urgency() > Urgency::None {
            stop.store(true, Ordering::Relaxed);
        }
        emit(Event::UnitCompiled {
            key: result.as_ref().map(|c| c.key.0.clone()).unwrap_or_default(),
            label: unit.kernels.join(", "),
            seconds,
            cached: result.as_ref().is_ok_and(|c| c.cached),
            failed: result.is_err(),
        });
    });
    emit(Event::PhaseSpent { phase: Phase::Compile, seconds: started.elapsed().as_secs_f64() });
    Ok(compiled)
}

fn units(groups: &[ResolvedGroup]) -> BTreeSet<CompileUnit> {
    let cases = groups.iter().flat_map(|group| &group.job.cases);
    cases.flat_map(|case| case.body.units()).cloned().collect()
}

/// What is left to do, and what is settled without doing it.
#[derive(Debug, Default)]
pub struct Work {
    pub jobs: Vec<GroupJob>,
    pub settled: Vec<(Case, Outcome, WorkAmount)>,
    /// The groups of the cases that are held over.
    pub held_groups: Vec<GroupJob>,
    held: Vec<Case>,
}

impl Work {
    /// Gives every case its code. A group whose every case has a stored result that still holds is left out; any other
    /// is run whole, since its ratios are formed within rounds.
    pub fn link(groups: Vec<ResolvedGroup>, compiled: &CompiledUnits, environment: &Environment, held: &Held) -> Self {
        let mut work = Self::default();
        for group in groups {
            let (job, failed) = link(group.job, compiled, environment);
            let without_work = |(case, outcome)| (case, outcome, WorkAmount::default());
            work.settled.extend(group.settled.into_iter().chain(failed).map(without_work));
            let stands = |case: &crate::model::CaseJob| {
                case.fingerprint.as_ref().is_some_and(|fingerprint| held.holds(&case.case.key, fingerprint))
            };
            if job.cases.is_empty() {
                continue;
            }
            if job.cases.iter().all(stands) {
                work.held.extend(job.cases.iter().map(|case| case.case.clone()));
                work.held_groups.push(job);
            } else {
                work.jobs.push(job);
            }
        }
        work
    }

    /// The groups of this run and of those before it that it continues.
    pub fn all_groups(&self) -> Vec<GroupJob> {
        self.jobs.iter().chain(&self.held_groups).cloned().collect()
    }

    /// The cells of the run, for the journal.
    pub fn planned(&self) -> Event {
        let settled = self.settled.iter().map(|(case, ..)| case.clone());
        let jobs = self.jobs.iter().flat_map(|job| &job.cases).map(|case| case.case.clone());
        Event::CasesPlanned { todo: settled.chain(jobs).collect(), held: self.held.clone() }
    }
}

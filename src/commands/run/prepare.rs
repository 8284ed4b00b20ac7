//! What has to be known before the first group runs: the matrix, the environment, the compiler.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use super::feed::OnDone;
use super::worker::Worker;
use crate::commands::cli::{BackendChoice, RunArgs};
use crate::commands::{Console, Failure};
use crate::compile::{self, Cache, CompileOptions, Network, Nvcc, Target, Toolkit, Want};
use crate::dispatch::Ready;
use crate::model::{
    BackendKind, CompileUnit, DeviceInfo, Diagnostics, Environment, Event, GroupJob, Machine, Manifest, RunContext,
    RunHeader,
};
use crate::plan::waiting::hears_host;
use crate::plan::{self, Plan, PlanOptions, ResolvedGroup};
use crate::programs::Programs;
use crate::revision;

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
        steps: manifest.steps,
        manifest_path: args.manifest.display().to_string(),
        manifest_text: manifest.source.text.clone(),
        manifest_hash: manifest.hash.clone(),
        narrowed: args.narrowing.describe(),
        complete: false,
        counters_missing: None,
        energy_missing: None,
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
    let dir = args.manifest.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    RunContext {
        host,
        revision: revision::of(dir, &Programs::of_this_machine()),
        started: jiff::Timestamp::now().to_string(),
        arguments: std::env::args().collect(),
    }
}

pub fn resolve(args: &RunArgs, manifest: &Manifest, plan: &Plan) -> Vec<ResolvedGroup> {
    let mut groups: Vec<_> = (0..plan.group_count()).map(|index| plan::resolve(manifest, plan, index)).collect();
    if args.passes.energy {
        let cases = groups.iter_mut().flat_map(|group| &mut group.job.cases);
        cases.for_each(|case| case.measure.energy = true);
    }
    groups
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

/// What turns units into code for the device.
#[derive(Debug)]
pub struct Compiler {
    target: Target,
    toolkit: Toolkit,
    options: CompileOptions,
    overlap: bool,
}

impl Compiler {
    /// For the worker's device. Fails where the cache cannot be written.
    pub fn new(worker: &Worker, toolkit: Toolkit, nvcc: Option<Nvcc>) -> Result<Self, Failure> {
        let cache = Cache::locate().map_err(|e| Failure::environment(e.to_string()))?;
        let mut options = CompileOptions::new(cache).map_err(|e| Failure::environment(e.to_string()))?;
        options.nvcc = nvcc;
        let overlap = may_overlap(&worker.ready, options.jobs);
        if overlap {
            // The worker's.
            options.jobs -= 1;
        }
        let target = match worker.backend() {
            BackendKind::Sim => Target::Ptx(worker.ready.device.compute_capability),
            BackendKind::Cuda | BackendKind::Fake => Target::Gpu(worker.ready.device.compute_capability),
        };
        Ok(Self { target, toolkit, options, overlap })
    }

    /// Set to end early.
    pub fn stop(&self) -> &AtomicBool {
        &self.options.stop
    }

    /// Which groups start only when nothing is left to compile.
    pub fn needs_quiet(&self) -> fn(&GroupJob) -> bool {
        if self.overlap { hears_host } else { |_| true }
    }

    pub fn make(&self, units: &[CompileUnit], on_done: OnDone<'_>) {
        compile::compile_all(units, self.target, &self.toolkit, &self.options, on_done);
    }
}

/// Whether groups may run beside compilers. The host must not show in the times that the device takes, and a core must
/// be left for the worker. A simulator takes all cores for itself.
fn may_overlap(ready: &Ready, cores: usize) -> bool {
    ready.shuts_out_host && cores > 1
}

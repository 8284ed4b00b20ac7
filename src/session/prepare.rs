//! Everything that must be known before the first group runs: the matrix, the environment, the compiler.
//!
//! A run that cannot start fails here, before it has written a file.

use std::borrow::Borrow;
use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Instant, SystemTime};

use super::against::{Base, BaseRun, PlannedBase};
use super::consent::HostCode;
use super::destination::Destination;
use super::machine::{self, Site};
use super::outputs::outputs_of;
use super::recorder::Recorder;
use super::worker::Worker;
use crate::cli::options::{Kind, RunOptions, Target as Place};
use crate::commands::plan::narrowed;
use crate::console::Console;
use crate::failure::Failure;
use crate::templates;
use runner_compile::{
    self, Cache, CompileOptions, Installed, Network, Nvcc, OnDemand, Requirement, Target, Toolkit, UnitResult,
};
use runner_experiment::Manifest;
use runner_files::project::Project;
use runner_lang::diagnostics::Diagnostics;
use runner_plan::link::CompiledUnits;
use runner_plan::{self, GroupCost, Plan, PlanOptions, ResolvedGroup, Shards};
use runner_process::programs::Programs;
use runner_progress::above_bars;
use runner_results::journal::Held;
use runner_tune::Finalists;
use runner_types::{
    BackendKind, CaseJob, CaseKey, CompileFailure, CompileUnit, DeviceInfo, Environment, Event, FINALISTS, GroupJob,
    GroupKey, KernelCompiler, Machine, PageTemplate, Phase, RunContext, RunHeader, calendar_time,
};
use runner_workers::feed::{self, Feed, OnCompiled, Ran};
use runner_workers::pending;
use runner_workers::{Interrupt, Pool, Ready};

#[derive(Debug, Clone, Copy)]
pub struct ManifestRun<'a> {
    pub manifest: &'a Manifest,
    pub options: &'a RunOptions,
}

#[derive(Debug)]
pub struct Task<'a> {
    pub run: ManifestRun<'a>,
    /// Command to show in the report, unless it is a plain run.
    pub command: Option<String>,
    pub counting_method: Option<String>,
    pub base: Option<&'a Base>,
    /// Cases that a search selected; `None` for the whole plan.
    pub only: Option<&'a Finalists<'a>>,
    pub started: Instant,
}

#[derive(Debug)]
pub struct Prepared {
    pub work: Work,
    pub recorder: Recorder,
    pub destination: Destination,
    /// Cases of the base, if there is one.
    pub beside: Option<BaseRun>,
}

#[derive(Debug)]
pub struct Work {
    groups: Vec<ResolvedGroup>,
    compiler: Compiler,
    environment: Environment,
    pub held: Held,
}

impl Work {
    pub fn run(&mut self, pool: &mut Pool, emit: &mut (dyn FnMut(Event) + Send), interrupt: &Interrupt) -> Ran {
        let Self { groups, compiler, environment, held } = self;
        let work = feed::Work {
            groups: std::mem::take(groups),
            environment,
            held,
            needs_quiet: compiler.needs_quiet(),
            stop: compiler.stop(),
            fault: &compiler.options.fault,
        };
        let compile = |units: &[CompileUnit], on_compiled: OnCompiled<'_>| drop(compiler.compile(units, on_compiled));
        let consume = |feed: &mut Feed<'_>, emit: &mut dyn FnMut(Event)| pool.run_supplied(feed, emit, interrupt);
        feed::run(work, &compile, consume, emit, interrupt)
    }
}

/// Plans, finds the compiler, calibrates the device and starts the journal.
pub fn get_ready(
    task: Task<'_>,
    worker: &mut Worker,
    interrupt: &Interrupt,
    console: &mut Console,
) -> Result<Prepared, Failure> {
    let ManifestRun { options, manifest } = task.run;
    let (mut planned, base) = Planned::make(task.run, (task.base, task.only), worker, console)?;
    let destination = Destination::choose(options, manifest, &worker.ready.device);
    destination.may_be_written(options)?;
    let (ordinal, toolkit) = (options.target.ordinal(), planned.toolkit());
    let machine = machine::known(&mut worker.pool, Site { ready: &worker.ready, ordinal, toolkit, interrupt }, console);
    // Variants that are compared within one run share a process, so that variation between processes does not matter,
    // unless the user asks for several processes.
    let compares_within = task.base.is_some() || matches!(options.kind, Kind::Try { .. });
    worker.pool.spread_samples(machine.spread.filter(|_| !compares_within));
    let (backend, device) = (planned.plan.backend(), planned.plan.device());
    let launch = |job: &GroupJob| GroupCost::estimate(job, backend, device).shortest_launch * 1e9;
    worker.pool.start_early(planned.groups.iter().map(|group| (&group.job, launch(&group.job))), interrupt);
    let environment = planned.environment(&worker.ready, task.counting_method, machine);
    let absolute = |folder: &PathBuf| std::path::absolute(folder).unwrap_or_else(|_| folder.clone());
    let [outputs, line_counts] =
        [&options.keep_outputs, &options.line_counts].map(|folder| folder.as_ref().map(absolute));
    for case in planned.groups.iter_mut().flat_map(|group| &mut group.job.cases) {
        let own = |folder: &PathBuf| outputs_of(folder, &case.case.key);
        (case.outputs, case.line_counts) = (outputs.as_ref().map(own), line_counts.as_ref().map(own));
    }

    // A run that cannot start leaves nothing behind: files are written only from here on.
    let (mut recorder, held) = Recorder::open(options, &manifest.name, &destination, console)?;
    recorder.expect(manifest, &planned.plan, "", &BTreeMap::new());
    let sources = base.as_ref().and_then(|base| base.compare_sources(manifest, &planned.groups, planned.toolkit()));
    let beside = base.map(|base| base.join((task.run.manifest, sources), &mut planned.groups, &mut recorder));
    // The simulator knows the lines anyway, and a trial says at which one the kernels differ.
    let is_simulated_trial = matches!(options.kind, Kind::Try { .. }) && backend == BackendKind::Sim;
    for case in planned.groups.iter_mut().flat_map(|group| &mut group.job.cases) {
        case.lines = options.passes.lines || is_simulated_trial;
    }
    let mut begun = planned.start((task.run, task.command), &environment, worker.ready.uuid.clone());
    if let Some(beside) = &beside {
        beside.announce(&mut begun);
    }
    if let (Some(_), Event::RunStarted { header, .. }) = (task.only, &mut begun) {
        header.narrowed = Some(FINALISTS.to_owned());
    }
    recorder.emit(&begun);
    recorder.emit(&Event::PhaseSpent { phase: Phase::Plan, seconds: task.started.elapsed().as_secs_f64() });
    let Planned { groups, compiler, .. } = planned;
    Ok(Prepared { work: Work { groups, compiler, environment, held }, recorder, destination, beside })
}

#[derive(Debug)]
pub struct Planned {
    pub plan: Plan,
    pub groups: Vec<ResolvedGroup>,
    pub compiler: Compiler,
    template: Option<PageTemplate>,
}

impl Planned {
    /// Plans the run and its base for the worker's device, finds the compiler, and asks for consent to host code.
    fn make<'b>(
        run: ManifestRun<'_>,
        (base, only): (Option<&'b Base>, Option<&Finalists<'_>>),
        worker: &Worker,
        console: &mut Console,
    ) -> Result<(Self, Option<PlannedBase<'b>>), Failure> {
        let own = own_groups(run, &plan_options(run.options, &worker.ready.device), console)?;
        let (mut planned, mut base) = Self::unresolved(run, base, worker, console)?;
        if let Some(only) = only {
            planned.plan.keep(&only.keys);
        }
        planned.groups = resolve(run, &planned.plan, own.as_ref());
        if let Some(only) = only {
            let cases = planned.groups.iter_mut().flat_map(|group| &mut group.job.cases);
            cases.for_each(|case| only.prepare(case));
        }
        let of_base = base.iter_mut().flat_map(PlannedBase::resolve);
        let cases = planned.groups.iter().chain(of_base).flat_map(|group| &group.job.cases);
        planned.compiler.ask_consent(run.options, cases, console)?;
        Ok((planned, base))
    }

    /// Plans the run and its base for the worker's device, and finds the compiler. Does not resolve any case yet.
    pub fn unresolved<'b>(
        run: ManifestRun<'_>,
        base: Option<&'b Base>,
        worker: &Worker,
        console: &mut Console,
    ) -> Result<(Self, Option<PlannedBase<'b>>), Failure> {
        let ManifestRun { options, manifest } = run;
        let planned = plan_options(options, &worker.ready.device);
        let template = templates::of_manifest(manifest, console)?;
        let expanded = match &options.portion {
            Some(portion) => runner_plan::expand_groups(manifest, &planned, &portion.groups),
            None => runner_plan::expand(manifest, &planned),
        };
        let mut plan = expanded.map_err(|faults| console.faults(&faults))?;
        let mut planned_base = base.map(|base| base.plan(planned, console));
        let toolkit = find_toolkit(options, worker, console)?;
        let plans = [&mut plan].into_iter().chain(planned_base.iter_mut().filter_map(|base| base.plan.as_mut()));
        let installed = installed(plans, &toolkit, (options.network, console))?;
        let of_base = base.and_then(Base::project);
        let project = of_base.map_or_else(|| manifest.project.clone(), |base| manifest.project.and(base));
        let compiler = Compiler::new(worker, (toolkit, installed), project, (options.network, console))?;
        Ok((Self { plan, groups: Vec::new(), compiler, template }, planned_base))
    }

    pub const fn toolkit(&self) -> &Toolkit {
        &self.compiler.toolkit
    }

    /// Everything that results on a device depend on.
    pub fn environment(&self, ready: &Ready, counting_method: Option<String>, machine: Machine) -> Environment {
        Environment {
            device: ready.device.clone(),
            driver: ready.driver.clone(),
            driver_cuda: ready.driver_cuda,
            toolkit: self.toolkit().info.clone(),
            host_compiler: self.compiler.options.installed.names(),
            runner: env!("CARGO_PKG_VERSION").to_owned(),
            timing_method: ready.timing_method.clone(),
            counting_method,
            machine,
        }
    }

    /// Start event of a run on the device with this UUID. `command` reproduces the report.
    pub fn start(
        &self,
        (ManifestRun { options, manifest }, command): (ManifestRun<'_>, Option<String>),
        environment: &Environment,
        device_uuid: Option<String>,
    ) -> Event {
        let plan = &self.plan;
        let header = RunHeader {
            experiment: manifest.name.clone(),
            title: manifest.title.clone(),
            question: manifest.question.clone(),
            backend: environment.device.backend,
            axes: plan.axis_columns(),
            variants: plan.variants().iter().map(|variant| variant.name.clone()).collect(),
            baseline: plan.baseline().cloned(),
            steps: manifest.steps,
            manifest_path: options.manifest.display().to_string(),
            manifest_text: manifest.source.text.clone(),
            manifest_hash: manifest.hash.clone(),
            narrowed: options.narrowing.describe(),
            complete: false,
            planned: None,
            counters_missing: None,
            energy_missing: None,
            command,
            noise: Vec::new(),
            claims: manifest.claims.clone(),
            comparison: manifest.comparison.clone(),
            template: self.template.clone(),
        };
        Event::RunStarted {
            header: Box::new(header),
            environment: Box::new(environment.clone()),
            context: context(options, device_uuid),
            cases: options.portion.as_ref().map_or(plan.cells().len() as u64, |portion| portion.cases),
            groups: options.portion.as_ref().map_or(plan.group_count() as u32, |portion| portion.group_count),
        }
    }
}

impl runner_tune::Compiler for Planned {
    fn jobs(&self) -> usize {
        self.compiler.options.jobs
    }

    fn begin(&self) {
        self.compiler.stop().store(false, Ordering::Relaxed);
    }

    fn compile(&self, unit: &CompileUnit) -> (UnitResult, f64) {
        let started = Instant::now();
        let mut compiled = self.compiler.compile(std::slice::from_ref(unit), &mut |_, _, _| {});
        let result = compiled.remove(unit).unwrap_or_else(|| {
            let summary = format!("`{}` was never compiled", unit.source.display());
            Err(CompileFailure { summary, log: String::new() })
        });
        (result, started.elapsed().as_secs_f64())
    }

    fn stop(&self) {
        self.compiler.stop().store(true, Ordering::Relaxed);
    }

    fn fault(&self) -> Option<String> {
        self.compiler.options.fault.get().cloned()
    }
}

/// Plans for the worker's device, and compiles every unit.
pub fn compile_ahead(
    run: ManifestRun<'_>,
    worker: &Worker,
    console: &mut Console,
) -> Result<(Planned, CompiledUnits), Failure> {
    let (planned, _) = Planned::make(run, (None, None), worker, console)?;
    let mut known = HashSet::new();
    let needed = planned.groups.iter().flat_map(|group| &group.job.cases).flat_map(|case| case.body.units());
    let units: Vec<CompileUnit> = needed.filter(|unit| known.insert(*unit)).cloned().collect();
    let compiled = planned.compiler.compile(&units, &mut |_, _, _| {});
    match planned.compiler.options.fault.get() {
        Some(fault) => Err(Failure::environment(fault)),
        None => Ok((planned, compiled)),
    }
}

/// Compiles every unit of one case for a target.
pub fn compile_case(
    run: ManifestRun<'_>,
    (case, target): (&CaseKey, Target),
    worker: &Worker,
    console: &mut Console,
) -> Result<Vec<(CompileUnit, UnitResult)>, Failure> {
    let (planned, _) = Planned::make(run, (None, None), worker, console)?;
    let job = planned.groups.iter().flat_map(|group| &group.job.cases).find(|job| job.case.key == *case);
    let units: Vec<CompileUnit> = job.map_or_else(Vec::new, |job| job.body.units().into_iter().cloned().collect());
    let compiler = &planned.compiler;
    let compiled = runner_compile::compile_all(&units, target, &compiler.toolkit, &compiler.options, &mut |_, _, _| {});
    match compiler.options.fault.get() {
        Some(fault) => Err(Failure::environment(fault)),
        None => Ok(compiled.into_iter().collect()),
    }
}

/// The narrowing fault, if there is one, since it explains the others; otherwise `failure`.
pub fn explain_empty_selection(run: ManifestRun<'_>, console: &Console, failure: Failure) -> Failure {
    narrowing_fault(run).map_or(failure, |faults| console.faults(&faults))
}

/// Plan options of the command line, for a device.
pub fn plan_options(args: &RunOptions, device: &DeviceInfo) -> PlanOptions {
    let sizes = args.sizes.unwrap_or(device.backend);
    PlanOptions { sizes, ..narrowed(&args.narrowing, device.backend, Some(device.clone())) }
}

/// Faults in the narrowing options that can be found without a device. Filters on device attributes are skipped.
fn narrowing_fault(ManifestRun { options: args, manifest }: ManifestRun<'_>) -> Option<Diagnostics> {
    let backend = match args.target {
        Place::Auto | Place::Gpu(_) => BackendKind::Cuda,
        Place::Simulator(_) => BackendKind::Sim,
    };
    let needs_device = |filter: &String| DeviceInfo::attribute_names().any(|name| filter.contains(name));
    let mut options = narrowed(&args.narrowing, backend, None);
    options.filter = options.filter.filter(|filter| !needs_device(filter));
    runner_plan::expand(manifest, &options).err()
}

/// Compiler that supports the device. Downloads one if there is none and the network may be used.
fn find_toolkit(options: &RunOptions, worker: &Worker, console: &mut Console) -> Result<Toolkit, Failure> {
    let cache = Cache::locate().map_err(Failure::environment)?;
    let want = match worker.ready.driver_cuda {
        Some(driver) => Requirement::Gpu { driver, compute_capability: worker.ready.device.compute_capability },
        None => Requirement::Pinned,
    };
    let toolkit =
        Toolkit::ensure(want, &cache, options.network, &mut |line| console.say(line)).map_err(Failure::environment)?;
    let odd = toolkit.include_dirs.iter().chain([&toolkit.library]).find(|path| path.to_str().is_none());
    odd.map_or(Ok(toolkit.clone()), |odd| {
        Err(Failure::environment(format!(
            "the path of the toolkit, {}, is not UTF-8, as NVRTC requires: set RUNNER_TOOLKIT or RUNNER_CACHE to \
             another folder",
            odd.display()
        )))
    })
}

fn context(args: &RunOptions, device_uuid: Option<String>) -> RunContext {
    let dir = args.manifest.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    RunContext {
        host,
        revision: match &args.portion {
            Some(portion) => portion.revision.clone(),
            None => runner_revision::describe_checkout(dir, &Programs::of_this_machine()),
        },
        started: humantime::format_rfc3339_micros(calendar_time(SystemTime::now())).to_string(),
        arguments: std::env::args_os().map(|argument| argument.to_string_lossy().into_owned()).collect(),
        device_uuid,
        shard: args.shard,
        files: args.portion.as_ref().map(|portion| portion.files.clone()),
    }
}

/// Groups of the shard; `None` for the whole plan.
fn own_groups(
    ManifestRun { options: args, manifest }: ManifestRun<'_>,
    planned: &PlanOptions,
    console: &Console,
) -> Result<Option<HashSet<GroupKey>>, Failure> {
    let Some(shard) = args.shard.filter(|_| args.portion.is_none()) else { return Ok(None) };
    // The division must not depend on the device, since every machine computes it independently.
    let anywhere = PlanOptions { device: None, ..planned.clone() };
    let shards = Shards::plan(manifest, &anywhere).map_err(|faults| console.faults(&faults))?;
    Ok(Some(shards.keys(shard)))
}

fn resolve(run: ManifestRun<'_>, plan: &Plan, own: Option<&HashSet<GroupKey>>) -> Vec<ResolvedGroup> {
    let ManifestRun { options: args, manifest } = run;
    let is_own = |index: &usize| own.is_none_or(|keys| keys.contains(&plan.group_key(*index)));
    let own = (0..plan.group_count()).filter(is_own);
    let mut groups: Vec<_> = own.map(|index| runner_plan::resolve(manifest, plan, index)).collect();
    for case in groups.iter_mut().flat_map(|group| &mut group.job.cases) {
        case.measure.energy |= args.passes.energy;
        case.measure.processes = args.passes.processes.or(case.measure.processes);
        case.thorough = args.passes.thorough;
    }
    groups
}

/// Compilers besides NVRTC that the plans need. Without nvcc, host functions are excluded, but a kernel's own compiler
/// is required.
fn installed<'a>(
    plans: impl Iterator<Item = &'a mut Plan>,
    toolkit: &Toolkit,
    (network, console): (Network, &mut Console),
) -> Result<Installed, Failure> {
    let (mut calls_host, mut wanted) = (Vec::new(), BTreeMap::new());
    for plan in plans {
        wanted.extend(plan.compilers().into_iter().map(|(compiler, variant)| (compiler, variant.to_owned())));
        if plan.calls_host() {
            calls_host.push(plan);
        }
    }
    wanted.remove(&KernelCompiler::Nvrtc);
    if calls_host.is_empty() && wanted.is_empty() {
        return Ok(Installed::default());
    }
    let Installed { nvcc, clang } = Installed::find(toolkit, &Programs::of_this_machine());
    for plan in calls_host.into_iter().filter(|_| nvcc.is_none()) {
        plan.exclude_host(
            "host functions need nvcc, which was not found: install a CUDA toolkit and set CUDA_HOME to its folder",
        );
    }
    let clang = clang.filter(|_| wanted.contains_key(&KernelCompiler::Clang));
    let lacks = |variant: &str, compiler: KernelCompiler, why: &str| {
        Failure::environment(format!(
            "cannot compile variant `{variant}` with {}: {why}; `runner doctor` shows the compilers that are found",
            compiler.name()
        ))
    };
    if let Some(variant) = wanted.get(&KernelCompiler::Clang).filter(|_| clang.is_none()) {
        let why = match nvcc {
            None => "it needs nvcc, which was not found: install a CUDA toolkit and set CUDA_HOME to its folder",
            Some(_) => "clang was not found: install it and put it on the search path",
        };
        return Err(lacks(variant, KernelCompiler::Clang, why));
    }
    let nvcc = match wanted.get(&KernelCompiler::Nvcc) {
        Some(variant) if nvcc.is_none() => {
            let cache = Cache::locate().map_err(Failure::environment)?;
            let fetched = Nvcc::ensure(toolkit, &cache, network, &mut |line| console.say(line));
            Some(fetched.map_err(|e| lacks(variant, KernelCompiler::Nvcc, &e.to_string()))?)
        }
        _ => nvcc,
    };
    Ok(Installed { nvcc, clang })
}

/// Compiles the units of a plan for a device.
#[derive(Debug)]
pub struct Compiler {
    target: Target,
    toolkit: Toolkit,
    options: CompileOptions,
    overlap: bool,
}

impl Compiler {
    /// Creates a compiler for the worker's device. Fails if the cache is not writable.
    fn new(
        worker: &Worker,
        (toolkit, installed): (Toolkit, Installed),
        project: Project,
        (network, console): (Network, &Console),
    ) -> Result<Self, Failure> {
        let cache = Cache::locate().map_err(Failure::environment)?;
        let mut options = CompileOptions::new(cache.clone()).map_err(Failure::environment)?;
        options.installed = installed;
        let console = Console { ..*console };
        options.on_demand = Some(OnDemand::new(cache, network, move |line| {
            above_bars(|| Console { ..console }.say(line));
        }));
        options.project = project;
        let overlap = may_overlap(&worker.ready, options.jobs);
        if overlap {
            // One core is reserved for the worker.
            options.jobs -= 1;
        }
        let target = match worker.backend() {
            BackendKind::Sim => Target::Ptx(worker.ready.device.compute_capability),
            BackendKind::Cuda | BackendKind::Fake => Target::Gpu(worker.ready.device.compute_capability),
        };
        Ok(Self { target, toolkit, options, overlap })
    }

    /// Asks for consent to the host functions and scripts of cases. Without nvcc, no case has host functions.
    pub fn ask_consent(
        &self,
        options: &RunOptions,
        cases: impl Iterator<Item = impl Borrow<CaseJob>>,
        console: &mut Console,
    ) -> Result<(), Failure> {
        let headers = [self.toolkit.include_dirs.as_slice(), self.options.installed.include_dirs()].concat();
        let code = HostCode::find(cases, &self.options.project, &headers);
        let project = Project::folder_of(&options.manifest);
        let place = (project.as_path(), options.manifest.as_path());
        code.map_or(Ok(()), |code| code.ask(place, options.trust.allow_host_code, console))
    }

    /// Flag that stops compilation early.
    fn stop(&self) -> &AtomicBool {
        &self.options.stop
    }

    /// Selects the groups that may start only after everything is compiled.
    fn needs_quiet(&self) -> fn(&GroupJob) -> bool {
        if self.overlap { pending::needs_quiet } else { |_| true }
    }

    fn compile(&self, units: &[CompileUnit], on_compiled: OnCompiled<'_>) -> CompiledUnits {
        runner_compile::compile_all(units, self.target, &self.toolkit, &self.options, on_compiled)
    }
}

/// Whether groups may run while others compile. The host must not affect the device's times, and the worker needs a
/// free core. A simulator uses all cores itself.
fn may_overlap(ready: &Ready, cores: usize) -> bool {
    ready.excludes_host && cores > 1
}

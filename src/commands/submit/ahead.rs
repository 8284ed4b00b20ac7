//! Prepares a job before its first task starts: copies what the tasks need, and compiles all kernels into the shared
//! cache.
//!
//! So nodes need neither a toolkit nor a network, and see no later edit.

use std::collections::HashMap;
use std::env;
use std::path::{Path, PathBuf};

use super::describe::Described;
use super::needs::Needs;
use crate::cli::SubmitArgs;
use crate::cli::options::network;
use crate::commands::plan::narrowed;
use crate::console::Console;
use crate::failure::Failure;
use runner_cluster::{Snapshot, hash_of_program, keep_program, remove_unused_programs};
use runner_compile::{self, Cache, CompileOptions, Installed, Requirement, Target, Toolkit};
use runner_experiment::Manifest;
use runner_files::project::Project;
use runner_lang::format::{plural, seconds};
use runner_plan::link::{CompiledUnits, link};
use runner_plan::{self, PlanOptions};
use runner_process::programs::Programs;
use runner_types::{BackendKind, CaseHashes, CaseKey, CompileUnit, DeviceInfo, Environment, Machine};

/// Kernels compiled before the job starts.
#[derive(Debug)]
pub struct CompiledKernels {
    units: CompiledUnits,
    options: PlanOptions,
    /// Environment of the nodes, as far as this machine knows it. Case hashes do not depend on the rest.
    environment: Environment,
}

impl CompiledKernels {
    pub fn hashes(&self, manifest: &Manifest) -> HashMap<CaseKey, CaseHashes> {
        let Ok(plan) = runner_plan::expand(manifest, &self.options) else { return HashMap::new() };
        let groups = (0..plan.group_count()).map(|index| runner_plan::resolve(manifest, &plan, index).job);
        let cases = groups.flat_map(|job| link(job, &self.units, &self.environment).0.cases);
        cases.filter_map(|case| Some((case.case.key, case.hashes?))).collect()
    }
}

/// Files and code for a submission's tasks.
#[derive(Debug)]
pub struct Ready {
    pub kernels: CompiledKernels,
    /// Hash that identifies the snapshot.
    pub snapshot: String,
    /// Hash of the files alone.
    pub files: String,
    /// Whether tasks run host code, which the user has allowed.
    pub has_host_code: bool,
}

fn this_program() -> Result<PathBuf, Failure> {
    env::current_exe().map_err(|e| Failure::environment(format!("cannot find the path of this program: {e}")))
}

pub fn hash_of_this_program() -> Result<String, Failure> {
    let program = this_program()?;
    hash_of_program(&program).map_err(|e| Failure::environment(format!("cannot read {}: {e}", program.display())))
}

/// Keeps a copy of this program next to the jobs, so that tasks can run it even after it has been replaced, and returns
/// its path. Removes copies for deleted jobs. Fails if the program no longer has this hash.
pub fn keep_this_program(dir: &Path, hash: &str) -> Result<PathBuf, Failure> {
    let program = this_program()?;
    let jobs = dir.parent().unwrap_or(dir);
    remove_unused_programs(jobs);
    let (place, kept) = keep_program(jobs, &program).map_err(|e| {
        Failure::environment(format!("cannot copy {} for the tasks of {}: {e}", program.display(), dir.display()))
    })?;
    if kept != hash {
        return Err(Failure::environment(format!("{} was replaced meanwhile: submit again", program.display())));
    }
    Ok(place)
}

/// Compilers for the units of a job.
struct Compilers {
    target: Target,
    toolkit: Toolkit,
    options: PlanOptions,
    compiler: CompileOptions,
    /// Header folders of the compilers.
    headers: Vec<PathBuf>,
}

impl Compilers {
    fn find(args: &SubmitArgs, described: &Described, console: &mut Console) -> Result<Self, Failure> {
        let capability = described.device.compute_capability;
        let (target, want) = match described.backend {
            BackendKind::Cuda => (Target::Gpu(capability), gpu_toolkit(capability)),
            BackendKind::Sim | BackendKind::Fake => (Target::Ptx(capability), Requirement::Pinned),
        };
        let cache = Cache::locate().map_err(Failure::environment)?;
        let toolkit = Toolkit::ensure(want, &cache, network(args.offline), &mut |line| console.say(line))
            .map_err(Failure::environment)?;
        let options = narrowed(&args.narrowing, described.backend, Some(described.device.clone()));
        let mut compiler = CompileOptions::new(cache).map_err(Failure::environment)?;
        compiler.installed = Installed::find(&toolkit, &Programs::of_this_machine());
        let headers = [toolkit.include_dirs.as_slice(), compiler.installed.include_dirs()].concat();
        Ok(Self { target, toolkit, options, compiler, headers })
    }

    /// Compiles in the working directory. Returns the kernels and the number of units that failed to compile.
    fn compile(self, units: &[CompileUnit], device: &DeviceInfo) -> (CompiledKernels, u64) {
        let mut failed = 0_u64;
        let units =
            runner_compile::compile_all(units, self.target, &self.toolkit, &self.compiler, &mut |_, result, _| {
                failed += u64::from(result.is_err());
            });
        let environment = Environment {
            device: device.clone(),
            driver: None,
            driver_cuda: None,
            toolkit: self.toolkit.info,
            host_compiler: None,
            runner: env!("CARGO_PKG_VERSION").to_owned(),
            timing_method: None,
            counting_method: None,
            machine: Machine::default(),
        };
        (CompiledKernels { units, options: self.options, environment }, failed)
    }
}

/// Compiles the kernels in place, to compare their hashes with those of finished shards.
pub fn compile_in_place(
    args: &SubmitArgs,
    manifests: &[(&Path, Manifest)],
    described: &Described,
    console: &mut Console,
) -> Result<CompiledKernels, Failure> {
    let mut compilers = Compilers::find(args, described, console)?;
    let needs = Needs::find(manifests, &compilers.options, &compilers.headers, &args.trust, console)?;
    let projects = manifests.iter().map(|(_, manifest)| manifest.project.clone());
    if let Some(all) = projects.reduce(|one, other| one.and(&other)) {
        compilers.compiler.project = all;
    }
    Ok(compilers.compile(&needs.units, &described.device).0)
}

pub fn get_ready(
    args: &SubmitArgs,
    manifests: &[(&Path, Manifest)],
    described: &Described,
    program: String,
    console: &mut Console,
) -> Result<Ready, Failure> {
    let mut compilers = Compilers::find(args, described, console)?;
    let needs = Needs::find(manifests, &compilers.options, &compilers.headers, &args.trust, console)?;
    let dir = described.dir.as_path();
    let revision = manifests.first().and_then(|(path, _)| {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        runner_revision::describe_checkout(folder, &Programs::of_this_machine())
    });
    let snapshot =
        Snapshot::copy(dir, (&needs.files, &needs.folders), program, revision).map_err(Failure::environment)?;
    let id = snapshot.write(dir).map_err(Failure::environment)?;

    let directory = Snapshot::directory(dir, &id, &described.job.directory).map_err(Failure::environment)?;
    compilers.compiler.project = if args.trust.reach.allow_outside {
        Project::everywhere()
    } else {
        Project::at(&Snapshot::root(dir, &id)).map_err(Failure::environment)?
    };
    let started = std::time::Instant::now();
    let there = WorkingDirectory::enter(&directory).map_err(Failure::environment)?;
    if let Some(unit) = needs.differing(&compilers.compiler.project, &compilers.headers) {
        return Err(Failure::environment(format!(
            "{} changed while it was copied for the tasks: submit again",
            unit.source.display()
        )));
    }
    let (kernels, failed) = compilers.compile(&needs.units, &described.device);
    drop(there);
    let took = seconds(started.elapsed().as_secs_f64());
    console.say(&format!("compiled {} in {took}", plural(needs.units.len() as u64, "unit")));
    if failed > 0 {
        // The command continues: the rows of the report state the reasons.
        console.say(&format!("warning: {} did not compile; their cases will report the error", plural(failed, "unit")));
    }
    Ok(Ready { kernels, snapshot: id, files: snapshot.of_files(), has_host_code: needs.has_host_code })
}

/// Toolkit for a GPU on another machine, whose driver is unknown.
fn gpu_toolkit(compute_capability: (u32, u32)) -> Requirement {
    runner_backend::cuda::driver_version()
        .map_or(Requirement::Pinned, |driver| Requirement::Gpu { driver: driver.cuda, compute_capability })
}

/// Changes the working directory until dropped. The cache identifies compiled code by its source paths, so code is
/// compiled in the folder where the tasks run.
struct WorkingDirectory {
    before: PathBuf,
}

impl WorkingDirectory {
    fn enter(directory: &Path) -> std::io::Result<Self> {
        let before = env::current_dir()?;
        env::set_current_dir(directory)?;
        Ok(Self { before })
    }
}

impl Drop for WorkingDirectory {
    fn drop(&mut self) {
        // The folder existed a moment ago. If it is gone, later paths are absolute anyway.
        let _ = env::set_current_dir(&self.before);
    }
}

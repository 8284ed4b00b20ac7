//! Compiles every kernel into the shared cache before the first task starts, so that nodes need neither toolkit nor
//! network.

use std::collections::HashMap;
use std::path::Path;

use super::describe::Described;
use crate::commands::cli::SubmitArgs;
use crate::commands::options::network;
use crate::commands::session::HostCode;
use crate::commands::{Console, Failure};
use crate::compile::{self, Cache, CompileOptions, Installed, Requirement, Target, Toolkit};
use crate::experiment::Manifest;
use crate::format::{plural, seconds};
use crate::model::{BackendKind, CaseHashes, CaseKey, CompileUnit, Environment, Machine};
use crate::plan::link::{CompiledUnits, link};
use crate::plan::{self, PlanOptions, ResolvedGroup};
use crate::programs::Programs;
use crate::project::Project;

/// The kernels that are compiled before the job starts.
#[derive(Debug)]
pub struct CompiledKernels {
    units: CompiledUnits,
    options: PlanOptions,
    /// The environment of the nodes, as far as it is known here: hashes of cases do not depend on it.
    environment: Environment,
}

impl CompiledKernels {
    /// Returns the hashes of every case that compiles.
    pub fn hashes(&self, manifest: &Manifest) -> HashMap<CaseKey, CaseHashes> {
        let Ok(plan) = plan::expand(manifest, &self.options) else { return HashMap::new() };
        let groups = (0..plan.group_count()).map(|index| plan::resolve(manifest, &plan, index).job);
        let cases = groups.flat_map(|job| link(job, &self.units, &self.environment).0.cases);
        cases.filter_map(|case| Some((case.case.key, case.hashes?))).collect()
    }
}

pub fn compile(
    args: &SubmitArgs,
    manifests: &[(&Path, Manifest)],
    described: &Described,
    console: &mut Console,
) -> Result<CompiledKernels, Failure> {
    let environment = |error: &dyn std::fmt::Display| Failure::environment(error.to_string());
    let capability = described.device.compute_capability;
    let (target, want) = match described.backend {
        BackendKind::Cuda => (Target::Gpu(capability), gpu_toolkit(capability)),
        BackendKind::Sim | BackendKind::Fake => (Target::Ptx(capability), Requirement::Pinned),
    };
    let cache = Cache::locate().map_err(|e| environment(&e))?;
    let toolkit = Toolkit::ensure(want, &cache, network(args.offline), &mut |line| console.say(line))
        .map_err(|e| environment(&e))?;
    let options = PlanOptions {
        device: Some(described.device.clone()),
        set: args.narrowing.set.clone(),
        filter: args.narrowing.filter.clone(),
        variants: args.narrowing.variant.clone(),
        ..PlanOptions::for_backend(described.backend)
    };
    let installed = Installed::find(&toolkit, &Programs::of_this_machine());
    let mut units: Vec<CompileUnit> = Vec::new();
    for (path, manifest) in manifests {
        let groups = groups(&options, manifest, console)?;
        let headers = [toolkit.include_dirs.as_slice(), installed.include_dirs()].concat();
        let code = HostCode::find(groups.iter(), &manifest.project, &headers);
        let project = Project::folder_of(path);
        code.map_or(Ok(()), |code| code.ask((&project, path), args.trust.allow_host_code, console))?;
        let cases = groups.iter().flat_map(|group| &group.job.cases);
        units.extend(cases.flat_map(|case| case.body.units()).cloned());
    }
    units.sort();
    units.dedup();
    let mut compiler = CompileOptions::new(cache).map_err(|e| environment(&e))?;
    let projects = manifests.iter().map(|(_, manifest)| manifest.project.clone());
    compiler.project = projects.reduce(|all, project| all.and(&project)).unwrap_or_default();
    compiler.installed = installed;
    let started = std::time::Instant::now();
    let mut failed = 0_u64;
    let compiled = compile::compile_all(&units, target, &toolkit, &compiler, &mut |_, result, _| {
        failed += u64::from(result.is_err());
    });
    let took = seconds(started.elapsed().as_secs_f64());
    console.say(&format!("compiled {} in {took}", plural(units.len() as u64, "unit")));
    if failed > 0 {
        // This does not end the command: the rows of the report say why.
        console.say(&format!("warning: {} did not compile; their cases will have the error", plural(failed, "unit")));
    }
    let environment = Environment {
        device: described.device.clone(),
        driver: None,
        driver_cuda: None,
        toolkit: toolkit.info.clone(),
        host_compiler: None,
        runner: env!("CARGO_PKG_VERSION").to_owned(),
        timing_method: None,
        counting_method: None,
        machine: Machine::default(),
    };
    Ok(CompiledKernels { units: compiled, options, environment })
}

/// Returns the toolkit for a GPU whose driver is on another machine.
fn gpu_toolkit(compute_capability: (u32, u32)) -> Requirement {
    crate::backend::cuda::driver_version()
        .map_or(Requirement::Pinned, |driver| Requirement::Gpu { driver: driver.cuda, compute_capability })
}

fn groups(options: &PlanOptions, manifest: &Manifest, console: &Console) -> Result<Vec<ResolvedGroup>, Failure> {
    let plan = plan::expand(manifest, options).map_err(|faults| console.faults(&faults))?;
    Ok((0..plan.group_count()).map(|index| plan::resolve(manifest, &plan, index)).collect())
}

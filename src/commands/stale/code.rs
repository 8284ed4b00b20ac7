//! Whether cases still have the measured code, although their sources or options differ.

use std::collections::{BTreeMap, HashMap};

use super::tree::{Definition, TreeCase};
use runner_compile::{Cache, CompileOptions, Installed, Network, OnDemand, Target, Toolkit, UnitResult, compile_all};
use runner_process::programs::Programs;
use runner_types::{BackendKind, BodyPlan, CaseKey, CaseRecord, CompileUnit, Records, ToolkitInfo};

type Units = BTreeMap<CompileUnit, UnitResult>;

/// Whether each case still has the measured code, or why that is unknown. If the same compiler is available, the code
/// is compared with the records; otherwise the measured sources are compiled too.
pub fn compare<'r>(
    records: &Records,
    cases: &[&'r CaseRecord],
    (then, now): (Option<&Definition>, &Definition),
    toolkit: Option<&Toolkit>,
) -> HashMap<&'r CaseKey, Result<bool, String>> {
    let compiler = match Compiler::new(records, toolkit) {
        Ok(compiler) => compiler,
        Err(why) => return cases.iter().map(|record| (&record.case.key, Err(why.clone()))).collect(),
    };
    let recorded = |record: &CaseRecord| {
        let is_same_compiler = is_same(&records.environment.toolkit, &compiler.toolkit.info);
        record.hashes.as_ref()?.code.clone().filter(|_| is_same_compiler)
    };
    let of_now = compiler.compile(now, cases.iter().filter_map(|record| now.case(&record.case.key)));
    let without = cases.iter().filter(|record| recorded(record).is_none());
    let of_then = then.map(|then| (then, compiler.compile(then, without.filter_map(|record| then.measured(record)))));
    let judge = |record: &CaseRecord| -> Result<bool, String> {
        let case = now.case(&record.case.key).ok_or("the manifest excludes it")?;
        let code = code_of(case, &of_now).map_err(|why| now.without_root(&why))?;
        if let Some(recorded) = recorded(record) {
            return Ok(recorded == code);
        }
        let then = of_then.as_ref().and_then(|(tree, units)| Some((tree, tree.measured(record)?, units)));
        let (tree, then, units) = then.ok_or_else(|| lacks_code(record, records, &compiler.toolkit.info))?;
        Ok(code_of(then, units).map_err(|why| tree.without_root(&why))? == code)
    };
    cases.iter().map(|record| (&record.case.key, judge(record))).collect()
}

fn lacks_code(record: &CaseRecord, records: &Records, here: &ToolkitInfo) -> String {
    if record.hashes.as_ref().is_some_and(|hashes| hashes.code.is_some()) {
        let [then, here] = [&records.environment.toolkit, here].map(version);
        return format!("it was compiled by NVRTC {then}, but this machine has {here}");
    }
    "the records have no code hash, and git has no revision with the measured sources".to_owned()
}

fn is_same(a: &ToolkitInfo, b: &ToolkitInfo) -> bool {
    a.version == b.version && a.build == b.build
}

fn version(ToolkitInfo { version: (major, minor), build, .. }: &ToolkitInfo) -> String {
    build.clone().unwrap_or_else(|| format!("{major}.{minor}"))
}

/// Compiles for a report's device.
struct Compiler<'a> {
    toolkit: &'a Toolkit,
    target: Target,
    options: CompileOptions,
}

impl<'a> Compiler<'a> {
    fn new(records: &Records, toolkit: Option<&'a Toolkit>) -> Result<Self, String> {
        let toolkit = toolkit.ok_or("no CUDA compiler found; `runner setup` downloads one")?;
        let capability = records.environment.device.compute_capability;
        let target = match records.header.backend {
            BackendKind::Cuda => Target::Gpu(capability),
            BackendKind::Sim | BackendKind::Fake => Target::Ptx(capability),
        };
        let cache = Cache::locate().map_err(|error| error.to_string())?;
        let mut options = CompileOptions::new(cache).map_err(|error| error.to_string())?;
        options.on_demand = Some(OnDemand::new(options.cache.clone(), Network::Forbidden, |_| {}));
        options.installed = Installed::find(toolkit, &Programs::of_this_machine());
        Ok(Self { toolkit, target, options })
    }

    fn compile<'c>(&self, tree: &Definition, cases: impl Iterator<Item = &'c TreeCase>) -> Units {
        let units: Vec<CompileUnit> = cases.flat_map(|case| case.job.body.units()).cloned().collect();
        let options = CompileOptions { project: tree.project().clone(), ..self.options.clone() };
        compile_all(&units, self.target, self.toolkit, &options, &mut |_, _, _| {})
    }
}

/// Hash of a case's code, without debug information about source lines.
fn code_of(case: &TreeCase, units: &Units) -> Result<String, String> {
    let mut job = case.job.clone();
    let BodyPlan::Launches(launches) = &mut job.body else {
        return Err("host code has no hash".to_owned());
    };
    for launch in launches {
        let Some(compiled) = units.get(&launch.unit) else { return Err("it was not compiled".to_owned()) };
        let compiled = compiled.clone();
        let compiled =
            compiled.map_err(|failure| format!("it does not compile on this machine: {}", failure.summary))?;
        launch.compiled = Some(compiled);
    }
    runner_plan::hash_code(&job).ok_or_else(|| "its code has no hash".to_owned())
}

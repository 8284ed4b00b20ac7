//! Combines resolved cases with their compiled code, and computes their fingerprints.
//!
//! The fingerprint depends on the identity of the code, so it is known only here.

use std::collections::BTreeMap;

use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};

use super::hashes;
use runner_types::{
    ArgPlan, BlockPlan, BodyPlan, BufferPlan, Case, CaseJob, CaseKey, CheckPlan, CompileFailure, CompileUnit, Compiled,
    Environment, Fingerprint, GridPlan, GroupJob, LaunchPlan, MeasurePlan, Outcome, PrintedPlan, StepsPlan, WorkAmount,
    sha256_hex,
};

pub type CompiledUnits = BTreeMap<CompileUnit, Result<Compiled, CompileFailure>>;

/// Attaches the compiled code to each launch of the group. Removes cases with a unit that did not compile and returns
/// their outcomes.
pub fn link(mut job: GroupJob, units: &CompiledUnits, environment: &Environment) -> (GroupJob, Vec<(Case, Outcome)>) {
    let mut settled = Vec::new();
    let mut kept = Vec::with_capacity(job.cases.len());
    let baseline = job.baseline.take();
    for (index, mut case) in job.cases.into_iter().enumerate() {
        match link_case(&mut case, units) {
            Ok(()) => {
                case.fingerprint = Some(fingerprint(&case, environment));
                case.hashes = Some(hashes::hash_case(&case));
                if baseline == Some(index) {
                    job.baseline = Some(kept.len());
                }
                kept.push(case);
            }
            Err(outcome) => settled.push((case.case, outcome)),
        }
    }
    job.cases = kept;
    (job, settled)
}

fn link_case(case: &mut CaseJob, units: &CompiledUnits) -> Result<(), Outcome> {
    match &mut case.body {
        BodyPlan::Launches(launches) => {
            for launch in launches {
                launch.compiled = Some(code_of(&launch.unit, units)?);
            }
        }
        BodyPlan::Host(host) => host.compiled = Some(code_of(&host.unit, units)?),
        BodyPlan::Memcpy(_) | BodyPlan::Cpu(_) => {}
    }
    Ok(())
}

fn code_of(unit: &CompileUnit, units: &CompiledUnits) -> Result<Compiled, Outcome> {
    match units.get(unit) {
        Some(Ok(compiled)) => Ok(compiled.clone()),
        Some(Err(failure)) => Err(Outcome::CompileError { summary: failure.summary.clone(), log: failure.log.clone() }),
        None => {
            let summary = format!("`{}` was never compiled", unit.source.display());
            Err(Outcome::CompileError { summary, log: String::new() })
        }
    }
}

/// Everything that a stored result depends on. Other changes do not make it stale.
#[derive(Serialize)]
struct Identity<'a> {
    key: &'a CaseKey,
    /// Hashes of the input files and the files of expected values.
    files: Vec<String>,
    buffers: &'a [BufferPlan],
    launches: Vec<LaunchIdentity<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    host: Option<HostIdentity<'a>>,
    /// Order of the launches, unless each is made once.
    #[serde(skip_serializing_if = "Option::is_none")]
    steps: Option<&'a StepsPlan>,
    /// Body of a case without compiled code.
    body: Option<&'a BodyPlan>,
    checks: &'a [CheckPlan],
    /// Omitted if printed output is not checked, so that the hashes of other cases stay the same as before this field
    /// existed.
    #[serde(skip_serializing_if = "Option::is_none")]
    printed: Option<&'a PrintedPlan>,
    /// Omitted if all blocks run, so that the hashes of these cases stay the same as before this field existed.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    sampled: bool,
    work: &'a WorkAmount,
    measure: &'a MeasurePlan,
    device: &'a str,
    compute_capability: (u32, u32),
    driver: &'a Option<String>,
    runner: &'a str,
}

#[derive(Serialize)]
struct LaunchIdentity<'a> {
    /// Covers source, included files, options, architecture and toolkit, but not the location of the code.
    code: &'a str,
    kernel: &'a str,
    plan: (&'a GridPlan, &'a BlockPlan, u64, bool, &'a [ArgPlan]),
    /// Omitted for launches in the first stream, so that their hashes stay the same as before this field existed.
    #[serde(skip_serializing_if = "Option::is_none")]
    stream: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pending_launches: Option<i64>,
    /// All other settings that are given, by key.
    #[serde(skip_serializing_if = "Attributes::is_empty")]
    attributes: Attributes<'a>,
}

/// Attributes of a launch by key, in a fixed order, so that stored hashes stay valid.
struct Attributes<'a>(&'a LaunchPlan);

impl Attributes<'_> {
    /// Settings without a separate field in [`LaunchIdentity`].
    fn others(&self) -> impl Iterator<Item = (&'static str, Option<&i64>)> {
        let apart = ["shared", "cooperative", "stream", "pending_launches"];
        let given = self.0.settings.given().map(|(setting, number)| (setting.name, number));
        given.filter(move |(name, _)| !apart.contains(name))
    }

    fn is_empty(&self) -> bool {
        self.0.cluster.is_none() && self.0.persist.is_none() && self.others().next().is_none()
    }
}

impl Serialize for Attributes<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        self.0.cluster.iter().try_for_each(|cluster| map.serialize_entry("cluster", cluster))?;
        self.others().try_for_each(|(name, number)| match number {
            Some(number) => map.serialize_entry(name, number),
            None => map.serialize_entry(name, &true),
        })?;
        self.0.persist.iter().try_for_each(|persist| map.serialize_entry("persist", persist))?;
        map.end()
    }
}

#[derive(Serialize)]
struct HostIdentity<'a> {
    code: &'a str,
    function: &'a str,
    args: &'a [ArgPlan],
}

fn fingerprint(case: &CaseJob, environment: &Environment) -> Fingerprint {
    let launches = match &case.body {
        BodyPlan::Launches(launches) => launches.iter().map(launch_identity).collect(),
        BodyPlan::Memcpy(_) | BodyPlan::Cpu(_) | BodyPlan::Host(_) => Vec::new(),
    };
    let host = match &case.body {
        BodyPlan::Host(host) => {
            Some(HostIdentity { code: key_of(host.compiled.as_ref()), function: &host.function, args: &host.args })
        }
        _ => None,
    };
    let identity = Identity {
        key: &case.case.key,
        files: files(case),
        buffers: &case.buffers,
        steps: case.steps.as_ref(),
        body: (launches.is_empty() && host.is_none()).then_some(&case.body),
        host,
        launches,
        checks: &case.checks,
        printed: case.printed.as_ref(),
        sampled: case.sampled,
        work: &case.work,
        measure: &case.measure,
        device: &environment.device.name,
        compute_capability: environment.device.compute_capability,
        driver: &environment.driver,
        runner: &environment.runner,
    };
    // Serialization cannot fail: plain data with string keys. An empty string would only make a result stale.
    let text = serde_json::to_vec(&identity).unwrap_or_default();
    Fingerprint(sha256_hex(&text))
}

/// Hashes of the input files and the files of expected values. An unreadable file hashes as empty; the case reports the
/// error when it reads the file.
fn files(case: &CaseJob) -> Vec<String> {
    let fills = case.buffers.iter().filter_map(|buffer| buffer.fill.as_ref()?.file());
    let goldens = case.checks.iter().filter_map(|check| hashes::golden(&check.expect));
    let lines = case.printed.iter().filter_map(|printed| match printed {
        PrintedPlan::File(path) => Some(path.as_path()),
        PrintedPlan::Lines(_) => None,
    });
    fills.map(hashes::content).chain(goldens).chain(lines.map(hashes::content)).collect()
}

fn launch_identity(launch: &LaunchPlan) -> LaunchIdentity<'_> {
    let settings = &launch.settings;
    LaunchIdentity {
        code: key_of(launch.compiled.as_ref()),
        kernel: &launch.kernel,
        plan: (&launch.grid, &launch.block, settings.shared_bytes(), settings.cooperative, &launch.args),
        stream: settings.stream.filter(|stream| *stream > 0),
        pending_launches: settings.pending_launches,
        attributes: Attributes(launch),
    }
}

fn key_of(compiled: Option<&Compiled>) -> &str {
    compiled.map_or("", |compiled| compiled.key.0.as_str())
}

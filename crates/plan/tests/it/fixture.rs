//! Manifests built from text, and the device that they are planned for.

use std::sync::Arc;

use fake_backend::device_info;
use runner_experiment::Manifest;
use runner_plan::{self, Plan, PlanOptions, PlannedOutcome, ResolvedGroup};
use runner_types::{BackendKind, BodyPlan, Bytes, CaseJob, DeviceInfo, LaunchPlan, Outcome, SourceText};

/// Start of every manifest in these tests.
const HEAD: &str = "[experiment]\nname = \"t\"\ntitle = \"T\"\n";

/// Parses a manifest; `text` may start with more lines of `[experiment]`.
pub fn manifest(text: &str) -> Manifest {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/manifests/t.toml").into();
    let source = Arc::new(SourceText { path, text: format!("{HEAD}{text}") });
    runner_manifest::parse(&source).unwrap_or_else(|faults| panic!("{faults}"))
}

/// A variant that launches one kernel; `lines` are its other keys.
pub fn variant(name: &str, lines: &str) -> String {
    let defaults = [("source", "\"k.cu\""), ("kernel", "\"k\""), ("grid", "[1]"), ("block", "[1]"), ("args", "[]")];
    let missing = defaults.iter().filter(|(key, _)| !lines.lines().any(|line| line.trim_start().starts_with(key)));
    let missing: Vec<String> = missing.map(|(key, value)| format!("{key} = {value}\n")).collect();
    format!("[[variant]]\nname = \"{name}\"\n{}{lines}\n", missing.concat())
}

pub fn cuda() -> PlanOptions {
    PlanOptions::for_backend(BackendKind::Cuda)
}

pub fn on_device() -> PlanOptions {
    PlanOptions { device: Some(device()), ..cuda() }
}

pub fn expand(manifest: &Manifest, options: &PlanOptions) -> Plan {
    runner_plan::expand(manifest, options).unwrap_or_else(|faults| panic!("{faults}"))
}

/// Faults that prevent planning: message and hint.
pub fn faults(manifest: &Manifest, options: &PlanOptions) -> Vec<(String, Option<String>)> {
    let faults = runner_plan::expand(manifest, options).unwrap_err();
    faults.items.into_iter().map(|item| (item.message, item.hint)).collect()
}

/// Names of all cells, in the order of the groups; `-` marks those that are left out.
pub fn names(plan: &Plan) -> Vec<String> {
    let name = |cell: &runner_plan::Cell| {
        let mark = if cell.outcome == PlannedOutcome::Kept { "" } else { "-" };
        format!("{mark}{}", plan.case(*cell).key)
    };
    plan.cells().iter().map(name).collect()
}

/// The only group of a manifest.
pub fn only_group(manifest: &Manifest, options: &PlanOptions) -> ResolvedGroup {
    let plan = expand(manifest, options);
    assert_eq!(plan.group_count(), 1);
    runner_plan::resolve(manifest, &plan, 0)
}

/// The only case of a manifest; it must run.
pub fn only_job(manifest: &Manifest, options: &PlanOptions) -> CaseJob {
    let group = only_group(manifest, options);
    let [job] = group.job.cases.as_slice() else { panic!("{group:#?}") };
    job.clone()
}

/// Outcome of the only case of a manifest; it must not run.
pub fn only_outcome(manifest: &Manifest, options: &PlanOptions) -> Outcome {
    let group = only_group(manifest, options);
    let [(_, outcome)] = group.settled.as_slice() else { panic!("{group:#?}") };
    outcome.clone()
}

pub fn launches(job: &CaseJob) -> &[LaunchPlan] {
    match &job.body {
        BodyPlan::Launches(launches) => launches,
        other => panic!("{other:?}"),
    }
}

/// A device with round numbers.
pub fn device() -> DeviceInfo {
    DeviceInfo {
        backend: BackendKind::Cuda,
        name: "Test 1".to_owned(),
        sm_count: 10,
        shared_per_block_optin: 100_000,
        shared_per_sm: 102_400,
        memory_bytes: Bytes(1 << 30),
        memory_bus_bits: 512,
        cooperative_launch: false,
        ..device_info()
    }
}

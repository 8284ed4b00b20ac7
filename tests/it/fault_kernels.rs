//! The manifests and kernels of the fault tests, as far as they can be checked without a GPU: each manifest is valid,
//! each kernel compiles except the one that must not, and launches that exceed a limit of the device are refused.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use fake_backend::device_info;
use runner_compile::{Cache, CompileOptions, Network, Requirement, Target, Toolkit, compile_all};
use runner_experiment::Manifest;
use runner_plan::{self, Plan, PlanOptions};
use runner_types::{BackendKind, BodyPlan, CompileUnit, DeviceInfo, Outcome};

fn manifests() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/faults");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let manifests: Vec<PathBuf> = files.filter(|path| path.extension().is_some_and(|e| e == "toml")).collect();
    assert!(manifests.len() >= 8, "{manifests:?}");
    manifests
}

fn planned(path: &Path) -> (Manifest, Plan) {
    let manifest = runner_manifest::load(path).unwrap();
    let device = DeviceInfo { backend: BackendKind::Cuda, ..device_info() };
    let plan = runner_plan::expand(
        &manifest,
        &PlanOptions { device: Some(device), ..PlanOptions::for_backend(BackendKind::Cuda) },
    );
    (manifest, plan.unwrap())
}

#[test]
fn every_manifest_is_sound() {
    let check = Command::new(env!("CARGO_BIN_EXE_runner")).arg("check").args(manifests()).output().unwrap();
    assert!(check.status.success(), "{}", String::from_utf8_lossy(&check.stderr));
}

#[test]
fn every_kernel_compiles_but_the_one_that_must_not() {
    let mut units: BTreeMap<CompileUnit, String> = BTreeMap::new();
    for path in manifests() {
        let (manifest, plan) = planned(&path);
        for index in 0..plan.group_count() {
            for case in runner_plan::resolve(&manifest, &plan, index).job.cases {
                let BodyPlan::Launches(launches) = case.body else { continue };
                units.extend(launches.into_iter().map(|launch| (launch.unit, case.case.key.variant.clone())));
            }
        }
    }
    let cache = Cache::locate().unwrap();
    let toolkit = Toolkit::ensure(Requirement::Pinned, &cache, Network::Allowed, &mut |_| {}).unwrap();
    let compiler = PathBuf::from(env!("CARGO_BIN_EXE_runner"));
    let options = CompileOptions { compiler, ..CompileOptions::new(cache).unwrap() };
    let wanted: Vec<CompileUnit> = units.keys().cloned().collect();
    let compiled = compile_all(&wanted, Target::Gpu((9, 0)), &toolkit, &options, &mut |_, _, _| {});
    let mut refused = BTreeSet::new();
    for (unit, result) in &compiled {
        let Err(failure) = result else { continue };
        let variant = units[unit].as_str();
        assert_eq!(variant, "does_not_compile", "{}\n{}", failure.summary, failure.log);
        assert!(failure.log.contains("this kernel is here to be refused"), "{}", failure.log);
        refused.insert(variant);
    }
    assert_eq!((compiled.len(), refused.len()), (wanted.len(), 1));
}

#[test]
fn what_a_device_cannot_hold_is_refused_by_arithmetic() {
    let (manifest, plan) = planned(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/faults/controls.toml"));
    let mut settled = BTreeMap::new();
    for index in 0..plan.group_count() {
        for (case, outcome) in runner_plan::resolve(&manifest, &plan, index).settled {
            settled.entry(case.key.variant).or_insert_with(Vec::new).push(outcome);
        }
    }
    let limit = |variant: &str| match &settled[variant][..] {
        [Outcome::Invalid { limit }, Outcome::Invalid { limit: other }] if limit == other => limit.clone(),
        other => panic!("{variant}: {other:?}"),
    };
    assert!(limit("block_too_large").starts_with("2048 threads per block, the device allows "));
    assert!(limit("shared_too_large").starts_with("1048576 bytes of shared memory per block, the device allows "));
    assert_eq!(limit("empty_grid"), "grid.x is 0, but must be at least 1");
    for outcome in &settled["larger_than_memory"] {
        let Outcome::OutOfMemory { needed, available } = outcome else { panic!("{outcome:?}") };
        // Four bytes for every byte of device memory, plus two small buffers.
        assert!(*needed > 4 * device_info().memory_bytes.0 && *available <= device_info().memory_bytes.0);
    }
    assert_eq!(settled["divides_by_zero"].len(), 2);
    for outcome in &settled["divides_by_zero"] {
        assert!(matches!(outcome, Outcome::Unresolved { message } if message.contains("zero")), "{outcome:?}");
    }
}

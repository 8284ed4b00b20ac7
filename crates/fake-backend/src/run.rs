//! Makes what the tests of a run need besides a device: code, an environment, one sample per case.

use std::collections::BTreeMap;
use std::path::PathBuf;

use runner_model::model::{
    BodyPlan, Case, CaseJob, CaseKey, CodeKind, CompileKey, Compiled, DeviceInfo, Environment, GroupJob, GroupKey,
    Machine, MeasurePlan, Regime, ToolkitInfo, WorkAmount,
};

fn toolkit() -> ToolkitInfo {
    ToolkitInfo { version: (13, 0), build: None }
}

/// Returns code that has no kernel and is in no file.
pub fn compiled(key: &str) -> Compiled {
    Compiled {
        key: CompileKey(key.to_owned()),
        kind: CodeKind::Cubin,
        code: PathBuf::new(),
        kernels: BTreeMap::new(),
        symbols: BTreeMap::new(),
        resources: BTreeMap::new(),
        toolkit: toolkit(),
        log: String::new(),
        device_runtime: None,
        source: String::new(),
        options: String::new(),
        parts: Vec::new(),
        cached: false,
    }
}

/// Returns a machine of which nothing but the device is known.
pub fn environment(device: DeviceInfo) -> Environment {
    Environment {
        device,
        driver: None,
        driver_cuda: None,
        toolkit: toolkit(),
        host_compiler: None,
        runner: "0".to_owned(),
        timing_method: None,
        counting_method: None,
        machine: Machine::default(),
    }
}

/// Returns settings that take one sample of a regime, however wide its interval; `timeout` is in seconds.
pub fn one_sample(regime: Regime, timeout: f64) -> MeasurePlan {
    MeasurePlan {
        regimes: vec![regime],
        precision: 0.01,
        timeout,
        warmup: 0,
        min_samples: 1,
        max_samples: 1,
        budget: 1.0,
        energy: false,
    }
}

/// Returns a case that copies nothing and checks nothing, for tests without kernels; `timeout` in seconds.
pub fn idle_case(case: Case, timeout: f64) -> CaseJob {
    CaseJob {
        case,
        fingerprint: None,
        hashes: None,
        buffers: Vec::new(),
        body: BodyPlan::Memcpy(Vec::new()),
        steps: None,
        outputs: None,
        unsanitized: None,
        sampled: false,
        thorough: false,
        checks: Vec::new(),
        printed: None,
        work: WorkAmount::default(),
        measure: one_sample(Regime::Cold, timeout),
    }
}

/// Returns a group with one idle case per variant, numbered from a hundred times the group's `ordinal`; the first is
/// the baseline.
pub fn idle_group(experiment: &str, ordinal: u32, variants: &[&str], timeout: f64) -> GroupJob {
    let case = |(i, variant): (usize, &&str)| {
        let key = CaseKey { experiment: experiment.to_owned(), variant: (*variant).to_owned(), axes: Vec::new() };
        let case = Case { ordinal: u64::from(ordinal) * 100 + i as u64, key, group: GroupKey(Vec::new()) };
        idle_case(case, timeout)
    };
    let cases = variants.iter().enumerate().map(case).collect();
    GroupJob { ordinal, key: GroupKey(Vec::new()), cases, baseline: Some(0), seed: 1 }
}

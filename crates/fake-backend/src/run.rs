//! What tests need to run cases besides a device: code, an environment, one sample per case.

use std::collections::BTreeMap;
use std::path::PathBuf;

use runner_types::{
    Access, Allocation, BlockPlan, BodyPlan, BufferPlan, Case, CaseJob, CaseKey, CodeKind, CompileKey, CompileUnit,
    Compiled, DeviceInfo, ElementType, Environment, GridPlan, GroupJob, GroupKey, LaunchPlan, LaunchSettings, Machine,
    MeasurePlan, Regime, Sharing, ToolkitInfo, WorkAmount,
};

fn toolkit() -> ToolkitInfo {
    ToolkitInfo { version: (13, 0), build: None }
}

/// Compiled code without kernels or a file.
pub fn compiled(key: &str) -> Compiled {
    Compiled {
        key: CompileKey(key.to_owned()),
        kind: CodeKind::Cubin,
        code: PathBuf::new(),
        kernels: BTreeMap::new(),
        symbols: BTreeMap::new(),
        resources: BTreeMap::new(),
        digests: BTreeMap::new(),
        operations: BTreeMap::new(),
        toolkit: toolkit(),
        log: String::new(),
        machine: None,
        listing: None,
        device_runtime: None,
        source: String::new(),
        options: String::new(),
        parts: Vec::new(),
        cached: false,
    }
}

/// Environment in which only the device is known.
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

/// Plan that takes one sample of a regime, however wide its interval; `timeout` is in seconds.
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
        processes: None,
        drop_above: None,
    }
}

/// A case without buffers or checks.
pub fn case_job(case: Case, body: BodyPlan, measure: MeasurePlan) -> CaseJob {
    CaseJob {
        case,
        fingerprint: None,
        hashes: None,
        buffers: Vec::new(),
        body,
        steps: None,
        outputs: None,
        line_counts: None,
        unsanitized: None,
        sampled: false,
        lines: false,
        thorough: false,
        checks: Vec::new(),
        printed: None,
        work: WorkAmount::default(),
        measure,
    }
}

/// A buffer without content, allocated only once.
pub fn buffer_plan(name: &str, element: ElementType, len: u64, access: Access) -> BufferPlan {
    BufferPlan {
        name: name.to_owned(),
        element,
        len,
        fill: None,
        access,
        symbol: None,
        allocate: Allocation::Once,
        vary: None,
        poison: false,
    }
}

/// A launch of one block of one thread, without arguments, of a kernel that is not compiled.
pub fn launch_plan(unit: CompileUnit, kernel: &str) -> LaunchPlan {
    LaunchPlan {
        label: kernel.to_owned(),
        unit,
        compiled: None,
        kernel: kernel.to_owned(),
        grid: GridPlan::Fixed([1, 1, 1]),
        block: BlockPlan::Fixed([1, 1, 1]),
        settings: LaunchSettings::default(),
        cluster: None,
        persist: None,
        args: Vec::new(),
    }
}

/// A launch of a compiled kernel whose mangled name equals its name.
pub fn ready_launch(source: &str, kernel: &str) -> LaunchPlan {
    let kernels = BTreeMap::from([(kernel.to_owned(), kernel.to_owned())]);
    let compiled = Some(Compiled { kernels, ..compiled(kernel) });
    LaunchPlan { compiled, ..launch_plan(CompileUnit::from_kernels(source, [kernel]), kernel) }
}

/// A case that copies and checks nothing, for tests without kernels; `timeout` is in seconds.
pub fn idle_case(case: Case, timeout: f64) -> CaseJob {
    case_job(case, BodyPlan::Memcpy(Vec::new()), one_sample(Regime::Cold, timeout))
}

/// A group with one idle case per variant, numbered from `100 * ordinal`. The first is the baseline.
pub fn idle_group(experiment: &str, ordinal: u32, variants: &[&str], timeout: f64) -> GroupJob {
    let case = |(i, variant): (usize, &&str)| {
        let key = CaseKey { experiment: experiment.to_owned(), variant: (*variant).to_owned(), axes: Vec::new() };
        let case = Case { ordinal: u64::from(ordinal) * 100 + i as u64, key, group: GroupKey(Vec::new()) };
        idle_case(case, timeout)
    };
    let cases = variants.iter().enumerate().map(case).collect();
    GroupJob { ordinal, key: GroupKey(Vec::new()), cases, baseline: Some(0), seed: 1, sharing: Sharing::Alone }
}

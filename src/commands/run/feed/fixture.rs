//! Groups of small cases: a case is named like the unit that it needs.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::backend::fake::device_info;
use crate::model::{
    BlockPlan, BodyPlan, Case, CaseJob, CaseKey, CodeKind, CompileFailure, CompileKey, CompileUnit, Compiled,
    Environment, GridPlan, GroupJob, GroupKey, LaunchPlan, Machine, MeasurePlan, Regime, ToolkitInfo, Value,
    WorkAmount,
};

/// The unit of a source.
pub fn unit(source: &str) -> CompileUnit {
    CompileUnit {
        source: PathBuf::from(source),
        kernels: vec!["k".to_owned()],
        symbols: Vec::new(),
        defines: Vec::new(),
        options: Vec::new(),
        include_paths: Vec::new(),
        debug: false,
        max_registers: None,
        relocatable: false,
        plugin: None,
    }
}

/// A group in which each variant launches one kernel of the unit after which it is called.
pub fn group(ordinal: u32, variants: &[&str], regime: Regime) -> GroupJob {
    let key = GroupKey(vec![("n".to_owned(), Value::Int(i64::from(ordinal)))]);
    let case = |(index, source): (usize, &&str)| CaseJob {
        case: Case {
            ordinal: u64::from(ordinal) * 100 + index as u64,
            key: CaseKey { experiment: "e".into(), variant: (*source).to_owned(), axes: key.0.clone() },
            group: key.clone(),
        },
        fingerprint: None,
        buffers: Vec::new(),
        body: BodyPlan::Launches(vec![launch(source)]),
        checks: Vec::new(),
        printed: None,
        work: WorkAmount::default(),
        measure: MeasurePlan {
            regimes: vec![regime],
            precision: 0.01,
            timeout: 1.0,
            warmup: 0,
            min_samples: 1,
            max_samples: 1,
            budget: 1.0,
            energy: false,
        },
    };
    let cases = variants.iter().enumerate().map(case).collect();
    GroupJob { ordinal, key: key.clone(), cases, baseline: None, seed: 1 }
}

fn launch(source: &str) -> LaunchPlan {
    LaunchPlan {
        label: "k".to_owned(),
        unit: unit(source),
        compiled: None,
        kernel: "k".to_owned(),
        grid: GridPlan::Fixed([1, 1, 1]),
        block: BlockPlan::Fixed([1, 1, 1]),
        shared: 0,
        cooperative: false,
        args: Vec::new(),
        stream: 0,
        pending_launches: None,
    }
}

pub fn compiled(unit: &CompileUnit) -> Compiled {
    Compiled {
        key: CompileKey(unit.source.display().to_string()),
        kind: CodeKind::Cubin,
        code: PathBuf::new(),
        kernels: BTreeMap::new(),
        symbols: BTreeMap::new(),
        resources: BTreeMap::new(),
        toolkit: toolkit(),
        log: String::new(),
        device_runtime: None,
        cached: false,
    }
}

pub fn failure() -> CompileFailure {
    CompileFailure { summary: "line 1: no".to_owned(), log: String::new() }
}

fn toolkit() -> ToolkitInfo {
    ToolkitInfo { version: (13, 0), build: None }
}

pub fn environment() -> Environment {
    Environment {
        device: device_info(),
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

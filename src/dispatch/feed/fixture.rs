//! Groups of small cases. A case is named after the unit that it needs.

use crate::model::{
    BlockPlan, BodyPlan, Case, CaseJob, CaseKey, CompileFailure, CompileUnit, Compiled, Environment, GridPlan,
    GroupJob, GroupKey, LaunchPlan, LaunchSettings, Regime, Value, WorkAmount,
};
use fake_backend::one_sample;

/// Returns the unit of a source.
pub fn unit(source: &str) -> CompileUnit {
    CompileUnit::from_kernels(source, ["k"])
}

/// Returns a group in which each variant launches one kernel of the unit of its name.
pub fn group(ordinal: u32, variants: &[&str], regime: Regime) -> GroupJob {
    let key = GroupKey(vec![("n".to_owned(), Value::Int(i64::from(ordinal)))]);
    let case = |(index, source): (usize, &&str)| CaseJob {
        case: Case {
            ordinal: u64::from(ordinal) * 100 + index as u64,
            key: CaseKey { experiment: "e".into(), variant: (*source).to_owned(), axes: key.0.clone() },
            group: key.clone(),
        },
        fingerprint: None,
        hashes: None,
        buffers: Vec::new(),
        body: BodyPlan::Launches(vec![launch(source)]),
        steps: None,
        outputs: None,
        unsanitized: None,
        sampled: false,
        thorough: false,
        checks: Vec::new(),
        printed: None,
        work: WorkAmount::default(),
        measure: one_sample(regime, 1.0),
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
        settings: LaunchSettings::default(),
        args: Vec::new(),
        cluster: None,
        persist: None,
    }
}

pub fn compiled(unit: &CompileUnit) -> Compiled {
    fake_backend::compiled(&unit.source.display().to_string())
}

pub fn failure() -> CompileFailure {
    CompileFailure { summary: "line 1: no".to_owned(), log: String::new() }
}

pub fn environment() -> Environment {
    fake_backend::environment(fake_backend::device_info())
}

//! Groups of small cases, each named after its unit.

use fake_backend::{case_job, launch_plan, one_sample};
use runner_types::{
    BodyPlan, Case, CaseKey, CompileFailure, CompileUnit, Compiled, Environment, GroupJob, GroupKey, Regime, Sharing,
    Value,
};

pub fn unit(source: &str) -> CompileUnit {
    CompileUnit::from_kernels(source, ["k"])
}

/// A group in which each variant launches one kernel of the unit with the same name.
pub fn group(ordinal: u32, variants: &[&str], regime: Regime) -> GroupJob {
    let key = GroupKey(vec![("n".to_owned(), Value::Int(i64::from(ordinal)))]);
    let case = |(index, source): (usize, &&str)| {
        let case = Case {
            ordinal: u64::from(ordinal) * 100 + index as u64,
            key: CaseKey { experiment: "e".into(), variant: (*source).to_owned(), axes: key.0.clone() },
            group: key.clone(),
        };
        case_job(case, BodyPlan::Launches(vec![launch_plan(unit(source), "k")]), one_sample(regime, 1.0))
    };
    let cases = variants.iter().enumerate().map(case).collect();
    GroupJob { ordinal, key: key.clone(), cases, baseline: None, seed: 1, sharing: Sharing::Alone }
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

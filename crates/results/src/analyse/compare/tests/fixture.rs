//! Creates reports of an experiment `e` with an axis `n`.

use crate::analyse::compare::{Change, Comparison, Options, Pair, compare};
use runner_types::{
    Calibration, Case, CaseHashes, CaseKey, CaseRecord, Clock, ComparisonRules, Counters, Dim3, Environment, Estimate,
    Fingerprint, GroupKey, KernelResources, LaunchRecord, Machine, Outcome, Records, Regime, RegimeResult, RunHeader,
    Spread, ToolkitInfo, Value, Verdict, WorkAmount, h100,
};

pub const SPREAD: Spread = Spread { nanoseconds: 50.0, relative: 0.001, processes: 5 };

pub fn records(cases: Vec<CaseRecord>) -> Records {
    let clock = Calibration {
        constant: 2300.0,
        uncertainty: 80.0,
        kernels: 9,
        reference_clock: "CUPTI 13.0".to_owned(),
        empty: 1250.0,
    };
    let device = h100();
    Records {
        header: RunHeader {
            experiment: "e".to_owned(),
            title: "An experiment".to_owned(),
            question: None,
            backend: device.backend,
            axes: Vec::new(),
            variants: Vec::new(),
            baseline: None,
            steps: true,
            manifest_path: "e.toml".to_owned(),
            manifest_text: String::new(),
            manifest_hash: String::new(),
            narrowed: None,
            complete: true,
            planned: None,
            command: None,
            counters_missing: None,
            template: None,
            energy_missing: None,
            noise: Vec::new(),
            claims: Vec::new(),
            comparison: ComparisonRules::default(),
        },
        environment: Environment {
            device,
            driver: Some("580.159.04".to_owned()),
            driver_cuda: Some((13, 0)),
            toolkit: ToolkitInfo { version: (13, 0), build: Some("13.0.88".to_owned()) },
            host_compiler: None,
            runner: "0.1.0".to_owned(),
            timing_method: Some("CUDA events".to_owned()),
            counting_method: None,
            machine: Machine {
                gpu: Some("0123456789ab".to_owned()),
                clock: Some(Clock::Calibrated(clock)),
                spread: Some(SPREAD),
                ..Machine::default()
            },
        },
        cases,
    }
}

/// A measured case without a time.
pub fn case(n: i64) -> CaseRecord {
    let axes = vec![("n".to_owned(), Value::Int(n))];
    let hash = |name: &str| format!("{name:0>12}");
    CaseRecord {
        case: Case {
            ordinal: n as u64,
            key: CaseKey { experiment: "e".to_owned(), variant: "v".to_owned(), axes: axes.clone() },
            group: GroupKey(axes),
        },
        fingerprint: Some(Fingerprint("f".repeat(64))),
        hashes: Some(CaseHashes {
            source: hash("5"),
            options: hash("0"),
            inputs: hash("1"),
            check: hash("c"),
            code: None,
            operations: None,
        }),
        outcome: Outcome::Measured,
        verdict: Verdict::Pass,
        launches: vec![launch()],
        work: WorkAmount { bytes: Some(1 << 20), flops: None },
        result: None,
        counters: None,
        each_counters: Vec::new(),
        lines: Vec::new(),
        error: None,
        energy: None,
        notes: Vec::new(),
    }
}

/// A launch without compile facts.
pub fn launch() -> LaunchRecord {
    LaunchRecord {
        label: "v".to_owned(),
        grid: Dim3::new(1, 1, 1),
        block: Dim3::new(32, 1, 1),
        shared: 0,
        resources: KernelResources::default(),
        occupancy: None,
        stream: 0,
    }
}

/// A time with a 95 % interval of ± `half`, in logarithms.
pub fn estimate(nanoseconds: f64, half: f64) -> Estimate {
    Estimate { point: nanoseconds, low: nanoseconds * (-half).exp(), high: nanoseconds * half.exp(), confidence: 0.95 }
}

/// A case with a time from [`estimate`].
pub fn timed(n: i64, nanoseconds: f64, half: f64) -> CaseRecord {
    in_regime(case(n), Regime::Cold, estimate(nanoseconds, half))
}

pub fn in_regime(case: CaseRecord, regime: Regime, time: Estimate) -> CaseRecord {
    let result = RegimeResult {
        regime,
        unit: regime.unit(),
        time,
        samples: 40,
        launches: 1,
        sets: 1,
        working_set: None,
        sm_clock: None,
        discarded: 0,
        processes: None,
        each: Vec::new(),
        against_baseline: None,
        against_previous: None,
    };
    CaseRecord { result: Some(result), ..case }
}

pub fn counted(n: i64, counts: &[(&str, f64)]) -> CaseRecord {
    let counters = counts.iter().map(|(name, count)| ((*name).to_owned().into(), *count)).collect();
    CaseRecord { counters: Some(Counters(counters)), ..case(n) }
}

pub fn ended(n: i64, outcome: Outcome) -> CaseRecord {
    CaseRecord { outcome, ..case(n) }
}

pub fn compared(base: &Records, new: &Records, options: &Options) -> Comparison {
    compare(&[Pair { base, new }], options)
}

/// The change of a case that is the only one on both sides.
pub fn change(base: CaseRecord, new: CaseRecord, options: &Options) -> Change {
    let comparison = compared(&records(vec![base]), &records(vec![new]), options);
    let changes: Vec<&Change> = comparison.changes().collect();
    assert_eq!(changes.len(), 1, "{changes:?}");
    changes[0].clone()
}

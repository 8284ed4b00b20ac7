//! Runs that look like real ones: an H100, a reduction over sizes, a landscape of block shapes, every way to fail.
//!
//! Samples are made by arithmetic from a seed, so that everything downstream is the same each time.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use fake_backend::device_info;
use runner_results::journal::FolderLock;
use runner_types::{
    AxisColumn, BackendKind, Bytes, Capabilities, Case, CaseHashes, CaseKey, ComparisonRules, Counters, DeviceInfo,
    Dim3, Environment, Event, Failure, Fingerprint, GroupKey, KernelResources, LaunchRecord, Machine, Measurement,
    Mismatch, Note, Occupancy, OccupancyLimiter, Outcome, Records, Regime, Round, RunContext, RunHeader, Spread,
    ToolkitInfo, Unit, Value, Verdict, WorkAmount,
};

/// Values of axes, by name.
pub type Axes<'a> = &'a [(&'a str, Value)];

/// The limits are those of the fake, which has an H100's.
pub fn h100() -> DeviceInfo {
    DeviceInfo {
        backend: BackendKind::Cuda,
        name: "NVIDIA H100 80GB HBM3".to_owned(),
        sm_count: 132,
        l2_bytes: 50 << 20,
        memory_bytes: Bytes(85_520_809_984),
        memory_free: Some(Bytes(84_000_000_000)),
        memory_bus_bits: 5120,
        memory_clock_khz: 2_619_000,
        sm_clock_khz: 1_980_000,
        ecc: true,
        ..device_info()
    }
}

pub fn environment(device: DeviceInfo) -> Environment {
    let timed = device.capabilities.has_clock;
    Environment {
        driver: timed.then(|| "580.159.04".to_owned()),
        driver_cuda: timed.then_some((13, 0)),
        toolkit: ToolkitInfo { version: (13, 0), build: Some("13.0.88".to_owned()) },
        host_compiler: None,
        runner: "0.1.0".to_owned(),
        counting_method: None,
        timing_method: timed.then(|| "Cold: L2 flushed by reads before each launch; CUDA events around it.".to_owned()),
        device,
        machine: Machine::default(),
    }
}

/// What `Run::new` needs to know of the experiment.
pub struct Experiment<'a> {
    pub name: &'a str,
    pub title: &'a str,
    pub question: &'a str,
    /// Name, and whether it is compared.
    pub axes: &'a [(&'a str, bool)],
    pub variants: &'a [&'a str],
    pub baseline: Option<(&'a str, Axes<'a>)>,
    pub manifest: &'a str,
}

/// A run in the making.
pub struct Run {
    pub events: Vec<Event>,
    pub header: RunHeader,
    next: u64,
    noise: u64,
}

fn owned(axes: Axes<'_>) -> Vec<(String, Value)> {
    axes.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect()
}

pub fn hashes() -> CaseHashes {
    let digest = |part: &str| format!("{part:0<16}");
    CaseHashes {
        source: digest("50"),
        options: digest("09"),
        inputs: digest("14"),
        check: digest("c4"),
        code: None,
        operations: None,
    }
}

pub fn fingerprint() -> Fingerprint {
    Fingerprint("9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08".to_owned())
}

impl Run {
    pub fn new(experiment: &Experiment<'_>, device: DeviceInfo) -> Self {
        let header = RunHeader {
            experiment: experiment.name.to_owned(),
            title: experiment.title.to_owned(),
            question: Some(experiment.question.to_owned()),
            backend: device.backend,
            axes: experiment
                .axes
                .iter()
                .map(|(name, compared)| AxisColumn { name: (*name).to_owned(), compared: *compared })
                .collect(),
            variants: experiment.variants.iter().map(|v| (*v).to_owned()).collect(),
            baseline: experiment.baseline.map(|(variant, at)| (variant.to_owned(), owned(at))),
            steps: true,
            manifest_path: format!("experiments/{}.toml", experiment.name),
            manifest_text: experiment.manifest.to_owned(),
            manifest_hash: "2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae".to_owned(),
            narrowed: None,
            complete: false,
            planned: None,
            command: None,
            counters_missing: None,
            template: None,
            energy_missing: None,
            noise: Vec::new(),
            claims: Vec::new(),
            comparison: ComparisonRules::default(),
        };
        let mut run = Self { events: Vec::new(), header, next: 0, noise: 0x9e37_79b9_7f4a_7c15 };
        run.start(device);
        run
    }

    /// Begins a run, or a resumption of one.
    pub fn start(&mut self, device: DeviceInfo) {
        self.events.push(Event::RunStarted {
            header: Box::new(self.header.clone()),
            environment: Box::new(environment(device)),
            context: RunContext {
                host: "gpu-node-7".to_owned(),
                revision: Some("0123abcd-dirty".to_owned()),
                started: "2026-01-02T03:04:05Z".to_owned(),
                arguments: vec!["runner".to_owned(), "run".to_owned()],
                device_uuid: None,
                shard: None,
            },
            cases: 0,
            groups: 0,
        });
    }

    /// The next case of the matrix.
    pub fn case(&mut self, variant: &str, axes: Axes<'_>) -> Case {
        let compared = |name: &str| self.header.axes.iter().any(|a| a.name == name && a.compared);
        let axes = owned(axes);
        let case = Case {
            ordinal: self.next,
            group: GroupKey(axes.iter().filter(|(name, _)| !compared(name)).cloned().collect()),
            key: CaseKey { experiment: self.header.experiment.clone(), variant: variant.to_owned(), axes },
        };
        self.next += 1;
        case
    }

    pub fn checked(&mut self, case: &Case, launches: Vec<LaunchRecord>) {
        let verdict = Verdict::Pass;
        self.events.push(Event::CaseChecked {
            case: case.clone(),
            fingerprint: Some(fingerprint()),
            hashes: Some(hashes()),
            verdict,
            launches,
        });
    }

    /// Rounds around `nanoseconds`: a drift that all cases share by round, and noise of each sample's own.
    pub fn rounds(&mut self, nanoseconds: f64, parts: &[f64]) -> Vec<Round> {
        (0..40)
            .map(|round| {
                let drift = 0.004 * (f64::from(round) / 6.0).sin();
                self.noise ^= self.noise << 13;
                self.noise ^= self.noise >> 7;
                self.noise ^= self.noise << 17;
                let own = ((self.noise >> 11) as f64 / (1_u64 << 53) as f64 - 0.35) * 0.003;
                // The step of the clock: 32 ns.
                let whole = (nanoseconds * (1.0 + drift + own) / 32.0).round() * 32.0;
                Round { round, whole, each: parts.iter().map(|share| whole * share).collect(), ..Round::default() }
            })
            .collect()
    }

    pub fn measured(&mut self, case: &Case, regime: Regime, unit: Unit, nanoseconds: f64, parts: &[f64]) {
        let rounds = self.rounds(nanoseconds, parts);
        let measurement = Measurement::from_rounds(regime, unit, rounds);
        self.events.push(Event::CaseMeasured { case: case.clone(), measurement });
    }

    pub fn settled(&mut self, case: &Case, outcome: Outcome, bytes: Option<u64>) {
        self.events.push(Event::CaseSettled {
            case: case.clone(),
            fingerprint: Some(fingerprint()),
            outcome,
            work: WorkAmount { bytes, flops: None },
        });
    }

    pub fn finish(&mut self, complete: bool) {
        self.events.push(Event::RunFinished { complete, wall_seconds: 12.5 });
    }
}

pub fn launch(label: &str, grid: Dim3, block: Dim3, registers: u32) -> LaunchRecord {
    let threads = block.count();
    let by_registers = 65_536 / (u64::from(registers) * threads).max(1) * threads;
    let resident = by_registers.min(2048);
    LaunchRecord {
        label: label.to_owned(),
        grid,
        block,
        shared: 0,
        resources: KernelResources {
            registers: Some(registers),
            shared_static: Some(0),
            local: Some(0),
            spill_stores: Some(0),
            spill_loads: Some(0),
            max_threads: Some(1024),
            cluster: None,
        },
        occupancy: Some(Occupancy {
            blocks_per_sm: (resident / threads) as u32,
            fraction: resident as f64 / 2048.0,
            limiter: Some(if resident < 2048 { OccupancyLimiter::Registers } else { OccupancyLimiter::Warps }),
        }),
        stream: 0,
    }
}

const REDUCE_MANIFEST: &str = r#"[experiment]
name     = "reduce"
title    = "Parallel reduction, from neighbouring pairs to full bandwidth"
baseline = "neighbored"

[axes]
n     = { pow2 = [20, 28, 2] }
block = [256, 512]
type  = ["i32"]
"#;

/// Time of a memory-bound kernel: a floor, and the bytes at a rate.
fn time(bytes: f64, floor: f64, gigabytes: f64) -> f64 {
    floor + bytes / gigabytes
}

/// A sweep over five sizes and two blocks, with a sequence of launches, a host reference and an exclusion.
pub fn reduce() -> Run {
    let experiment = Experiment {
        name: "reduce",
        title: "Parallel reduction, from neighbouring pairs to full bandwidth",
        question: "How far from the memory's speed is the textbook kernel, and which step of the ladder pays most?",
        axes: &[("n", false), ("block", false), ("type", false)],
        variants: &["neighbored", "neighbored_less", "interleaved", "unroll2", "unroll8", "shuffle", "two_pass", "cpu"],
        baseline: Some(("neighbored", &[])),
        manifest: REDUCE_MANIFEST,
    };
    let mut run = Run::new(&experiment, h100());
    let rates = [313.0, 480.0, 690.0, 1300.0, 2480.0, 2870.0, 2610.0];
    for exponent in [20, 22, 24, 26, 28] {
        for block in [256_i64, 512] {
            let n = 1_i64 << exponent;
            let axes = [("n", Value::Int(n)), ("block", Value::Int(block)), ("type", Value::from_text("i32"))];
            let bytes = n as u64 * 4;
            let first = run.next as u32;
            let key = run.case("neighbored", &axes).group;
            run.next -= 1;
            run.events.push(Event::GroupStarted { ordinal: first / 8, key: key.clone(), cases: 8 });
            for (variant, rate) in experiment.variants.iter().zip(rates) {
                let case = run.case(variant, &axes);
                if *variant == "unroll8" && exponent == 20 {
                    run.settled(&case, Outcome::Excluded { why: "n >= 2**22".to_owned() }, None);
                    continue;
                }
                let nanoseconds = time(bytes as f64, 2600.0, rate * if block == 512 { 1.0 } else { 1.04 });
                let grid = Dim3::new((n / block) as u32, 1, 1);
                let wide = Dim3::new(block as u32, 1, 1);
                if *variant == "two_pass" {
                    let second = launch("sum_partials", Dim3::new(1, 1, 1), wide, 18);
                    run.checked(&case, vec![launch("reduce_blocks", grid, wide, 24), second]);
                    run.measured(&case, Regime::Cold, Unit::DeviceNanoseconds, nanoseconds, &[0.93, 0.07]);
                } else {
                    run.checked(&case, vec![launch(variant, grid, wide, 16)]);
                    run.measured(&case, Regime::Cold, Unit::DeviceNanoseconds, nanoseconds, &[]);
                }
                run.settled(&case, Outcome::Measured, Some(bytes));
            }
            let cpu = run.case("cpu", &axes);
            run.checked(&cpu, Vec::new());
            run.measured(&cpu, Regime::Cold, Unit::HostNanoseconds, bytes as f64 / 11.0, &[]);
            run.settled(&cpu, Outcome::Measured, Some(bytes));
            run.events.push(Event::GroupFinished { ordinal: first / 8, key });
        }
    }
    run.finish(true);
    run
}

/// The 36 block shapes of a matrix sum, ten of them too large for the device.
pub fn sum_matrix() -> Run {
    let at = [("bx", Value::Int(32)), ("by", Value::Int(32))];
    let experiment = Experiment {
        name: "sum_matrix",
        title: "Block shapes for the sum of two matrices",
        question: "Which block shape sums two matrices fastest?",
        axes: &[("n", false), ("bx", true), ("by", true)],
        variants: &["sum"],
        baseline: Some(("sum", &at)),
        manifest: "[experiment]\nname = \"sum_matrix\"\ncompare = [\"bx\", \"by\"]\n",
    };
    let mut run = Run::new(&experiment, h100());
    let n = 16_384_u32;
    for bx in [16_u32, 32, 64, 128, 256, 512] {
        for by in [1_u32, 2, 4, 8, 16, 32] {
            let axes =
                [("n", Value::Int(i64::from(n))), ("bx", Value::Int(i64::from(bx))), ("by", Value::Int(i64::from(by)))];
            let case = run.case("sum", &axes);
            let threads = bx * by;
            if threads > 1024 {
                let limit = format!("{threads} threads per block, the device allows 1024");
                run.settled(&case, Outcome::Invalid { limit }, None);
                continue;
            }
            let rows = if bx < 32 { 4.2 } else { 1.0 };
            let few = if threads < 64 { 1.0 + 2.0 * f64::from(64 - threads) / 48.0 } else { 1.0 };
            let many = 1.0 + f64::from(threads) / 1024.0 * 0.12;
            run.checked(&case, vec![launch("sum", Dim3::new(n / bx, n / by, 1), Dim3::new(bx, by, 1), 12)]);
            run.measured(&case, Regime::Cold, Unit::DeviceNanoseconds, 1.15e6 * rows * few * many, &[]);
            run.settled(&case, Outcome::Measured, Some(3 * 4 * u64::from(n) * u64::from(n)));
        }
    }
    run.finish(true);
    run
}

/// Many variants in two regimes, without a word on how many bytes they move, over sizes that are no powers of two.
pub fn regimes() -> Run {
    let names: Vec<String> = (0..12).map(|i| format!("variant{i}")).collect();
    let variants: Vec<&str> = names.iter().map(String::as_str).collect();
    let experiment = Experiment {
        name: "regimes",
        title: "Cold, warm, and many variants",
        question: "Does the order of the variants depend on the caches?",
        axes: &[("n", false)],
        variants: &variants,
        baseline: Some(("variant0", &[])),
        manifest: "[measure]\nregimes = [\"cold\", \"warm\"]\n",
    };
    let mut run = Run::new(&experiment, h100());
    for n in [1000_i64, 3000, 19_260_817] {
        let axes = [("n", Value::Int(n))];
        for (i, variant) in variants.iter().enumerate() {
            let case = run.case(variant, &axes);
            run.checked(&case, vec![launch("k", Dim3::new((n / 256) as u32 + 1, 1, 1), Dim3::new(256, 1, 1), 40)]);
            let nanoseconds = 3000.0 + n as f64 / (1.0 + i as f64);
            run.measured(&case, Regime::Cold, Unit::DeviceNanoseconds, nanoseconds, &[]);
            run.measured(&case, Regime::Warm, Unit::DeviceNanoseconds, nanoseconds * 0.6, &[]);
            let stable = i % 4 != 3;
            let outcome = if stable { Outcome::Measured } else { Outcome::Unstable { reached: 0.01 * i as f64 } };
            run.settled(&case, outcome, None);
        }
    }
    run.finish(true);
    run
}

pub fn mismatch() -> Mismatch {
    Mismatch {
        what: "sum(partial) = sum(input)".to_owned(),
        index: 0,
        expected: "2139095040".to_owned(),
        got: "2139094785".to_owned(),
        error: Some(255.0),
        wrong: 1,
        of: 1,
        allowed: None,
    }
}

/// One case of each outcome, with names that need escaping, a hostile one among the axes.
pub fn faults() -> Run {
    let variants = [
        "plain",
        "pipe|name",
        "not_a_number",
        "left_out",
        "too_large",
        "bad_template",
        "refused",
        "unresolved",
        "null_pointer",
        "endless",
        "greedy",
        "trapped",
        "lesson",
        "harmless",
        "never_run",
    ];
    let experiment = Experiment {
        name: "faults",
        title: "Every way to end | with *markup*",
        question: "Is every planned cell in the report?",
        axes: &[("layout", false)],
        variants: &variants,
        baseline: Some(("not_a_number", &[])),
        manifest: "# a manifest with a fence\n# ```\n[experiment]\nname = \"faults\"\n",
    };
    let mut run = Run::new(&experiment, h100());
    let axes = [("layout", Value::Str("a|b <c>".to_owned()))];
    let outcomes = [
        Outcome::Measured,
        Outcome::Unstable { reached: 0.0123 },
        Outcome::Wrong { mismatch: Mismatch { wrong: 3, of: 1024, got: "NaN".to_owned(), error: None, ..mismatch() } },
        Outcome::Excluded { why: "accumulated rounding is studied elsewhere".to_owned() },
        Outcome::Invalid { limit: "2048 threads per block, the device allows 1024".to_owned() },
        Outcome::CompileError {
            summary: "kernels/faults.cu(12): error: identifier \"blockIdy\" is undefined".to_owned(),
            log: "kernels/faults.cu(12): error: identifier \"blockIdy\" is undefined\n  int i = blockIdy.x;\n          ^\n\n1 error detected.\n".to_owned(),
        },
        Outcome::LaunchError { message: "cuLaunchKernel: too many resources requested".to_owned() },
        Outcome::Unresolved { message: "division by zero in ceil_div(n, block) where block = 0".to_owned() },
        Outcome::Crashed { message: "an illegal memory access; the worker was replaced".to_owned() },
        Outcome::TimedOut { limit_seconds: 30.0, message: None },
        Outcome::OutOfMemory { needed: 137_438_953_472, available: 84_000_000_000 },
        Outcome::Trap { message: "read past the end of `input` at reduce.cu:17, block 3, thread 31".to_owned() },
        Outcome::FailedAsExpected { end: Box::new(Outcome::Wrong { mismatch: mismatch() }) },
        Outcome::DidNotFail { fails: vec![Failure::Trap, Failure::CompileError] },
    ];
    let todo: Vec<Case> = variants.iter().map(|variant| run.case(variant, &axes)).collect();
    run.events.push(Event::CasesPlanned { todo: todo.clone(), held: Vec::new() });
    for (case, outcome) in todo.iter().zip(outcomes) {
        if matches!(outcome, Outcome::Measured | Outcome::Unstable { .. } | Outcome::Wrong { .. }) {
            run.checked(case, vec![launch("k", Dim3::new(64, 1, 1), Dim3::new(256, 1, 1), 32)]);
            run.measured(case, Regime::Cold, Unit::DeviceNanoseconds, 5000.0 * (1.0 + case.ordinal as f64), &[]);
        }
        if matches!(outcome, Outcome::Measured) {
            run.events.push(Event::CasePrinted { case: case.clone(), text: "hello\nfrom the device\n".to_owned() });
            let note = Note::Text("clocks fell to 1410 MHz in 3 of 40 rounds".to_owned());
            run.events.push(Event::CaseNote { case: case.clone(), note });
        }
        run.settled(case, outcome, Some(1 << 24));
    }
    run.finish(false);
    run
}

/// A run on the simulator: counts, no times.
pub fn simulated() -> Run {
    let experiment = Experiment {
        name: "reduce",
        title: "Parallel reduction, counted",
        question: "How many transactions does each step of the ladder save?",
        axes: &[("n", false)],
        variants: &["neighbored", "interleaved"],
        baseline: Some(("neighbored", &[])),
        manifest: REDUCE_MANIFEST,
    };
    let mut device = h100();
    device.backend = BackendKind::Sim;
    "H100 (simulated)".clone_into(&mut device.name);
    device.capabilities = Capabilities { has_clock: false, has_counters: true };
    let mut run = Run::new(&experiment, device);
    let axes = [("n", Value::Int(16_384))];
    for (variant, loads, stores) in [("neighbored", 6128.0, 3072.0), ("interleaved", 1168.0, 592.0)] {
        let case = run.case(variant, &axes);
        run.checked(&case, vec![launch(variant, Dim3::new(16, 1, 1), Dim3::new(1024, 1, 1), 16)]);
        let counters = Counters(BTreeMap::from([
            ("global_load_sectors".into(), loads),
            ("global_store_sectors".into(), stores),
            ("branch_efficiency".into(), 68.75),
        ]));
        run.events.push(Event::CaseCounted { case: case.clone(), counters, each: Vec::new(), lines: Vec::new() });
        run.settled(&case, Outcome::Measured, Some(65_536));
    }
    run.finish(true);
    run
}

/// The records of a run on a machine that knows how much its processes differ.
pub fn calibrated(run: &Run) -> Records {
    let mut records = runner_results::analyse::records(&run.events).unwrap();
    records.environment.machine.spread = Some(Spread { nanoseconds: 50.0, relative: 0.001, processes: 5 });
    records
}

/// Writes a report, as a command does that has the folder.
pub fn write(dir: &Path, records: &Records) {
    fs::create_dir_all(dir).unwrap();
    let lock = FolderLock::take(dir).unwrap();
    runner_report::write_all(dir, &lock, records).unwrap();
    drop(lock);
    fs::remove_file(dir.join("journal.lock")).unwrap();
}

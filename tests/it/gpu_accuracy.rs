//! Calibrated times of twenty kernels, from 1 µs to 10 ms, compared with CUPTI's activity records and Nsight Compute.
//!
//! Prints the comparison as a Markdown table, and writes it to `RUNNER_ACCURACY_TABLE`, if set. Like a process that
//! runs experiments, each process subtracts its own constant. It comes from the ladder that `runner doctor --calibrate`
//! stores, which uses other kernels than these. The placement of a process's memory affects short copies, so both sides
//! are medians over several processes. `RUNNER_ACCURACY_NCU` names the output of `ncu --csv --metrics
//! gpu__time_duration.sum` for the test `under_a_profiler`, which launches the same kernels in the same order.
//! `RUNNER_BIN` overrides the binary that cargo built.

use std::fmt::Write;
use std::process::Command;

use crate::gpu::{gpu, launch, load, scalar, timed, untimed};
use runner_backend::cuda::Cuda;
use runner_backend::{Backend, BufferId, Device, LaunchArg, ModuleId, Step};
use runner_calibrate::Store;
use runner_compile::{Cache, CompileOptions, Network, Requirement, Target, Toolkit, compile_all};
use runner_stats::median;
use runner_types::{ElementType, ReferenceTimes, SurveyRequest};

/// Set in child processes to what they do: `timed`, `traced` by CUPTI, or `profiled`.
const SIDE: &str = "RUNNER_ACCURACY_SIDE";
/// File with the output of Nsight Compute.
const NCU: &str = "RUNNER_ACCURACY_NCU";
const TABLE: &str = "RUNNER_ACCURACY_TABLE";
/// Launches of each kernel under the profiler; the first is discarded.
const PROFILED: u32 = 8;
/// Number of processes per side.
const PROCESSES: usize = 5;
/// Prefix of each line that a child process reports.
const MARK: &str = "seen by one side:";
const SAMPLES: u32 = 51;
/// Samples of the longest kernels, which take ten milliseconds each.
const FEW: u32 = 11;

/// A kernel and its arguments.
#[derive(Clone, Copy)]
enum Work {
    /// Duration in microseconds; one thread.
    Spin(u64),
    /// Size in MiB.
    Copy(u64),
    /// Base-2 logarithm of the number of elements.
    Add(u32),
    /// Copies by the driver: their number, and the size of each in MiB.
    Memcpy(u32, u64),
}

const KERNELS: [Work; 20] = [
    Work::Spin(1),
    Work::Spin(2),
    Work::Spin(3),
    Work::Spin(5),
    Work::Spin(10),
    Work::Spin(20),
    Work::Spin(50),
    Work::Spin(100),
    Work::Spin(1000),
    Work::Spin(10_000),
    Work::Copy(1),
    Work::Copy(4),
    Work::Copy(16),
    Work::Copy(64),
    Work::Copy(256),
    Work::Copy(1024),
    Work::Add(16),
    Work::Add(20),
    Work::Add(24),
    Work::Add(27),
];

/// Bodies that consist of copies by the driver, which a kernel profiler does not see.
const COPIES: [Work; 4] = [Work::Memcpy(1, 4), Work::Memcpy(1, 64), Work::Memcpy(1, 1024), Work::Memcpy(2, 64)];

fn works() -> Vec<Work> {
    KERNELS.into_iter().chain(COPIES).collect()
}

/// A device with the kernels loaded and enough memory for all of them.
struct Bench {
    device: Box<dyn Device>,
    module: ModuleId,
    from: BufferId,
    to: BufferId,
    _folder: tempfile::TempDir,
}

impl Bench {
    fn new(backend: &dyn Backend) -> Self {
        let (id, _) = backend.devices().unwrap().swap_remove(0);
        let mut device = backend.open(&id).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let module = load(device.as_mut(), &folder, include_str!("gpu/kernels.ptx"), &["add", "copy", "spin"]).unwrap();
        let (from, to) = (device.alloc(1 << 30, 0).unwrap(), device.alloc(1 << 30, 0).unwrap());
        Self { device, module, from, to, _folder: folder }
    }

    /// The steps that are timed as one body.
    fn body(&mut self, work: Work) -> Vec<Step> {
        let Work::Memcpy(copies, mib) = work else { return vec![self.step(work)] };
        let mut alloc = || self.device.alloc((mib << 20) as usize, 0).unwrap();
        (0..copies).map(|_| Step::Copy { from: alloc(), to: alloc() }).collect()
    }

    fn step(&mut self, work: Work) -> Step {
        let (from, to) = (LaunchArg::Buffer(self.from), LaunchArg::Buffer(self.to));
        let mut kernel = |name| self.device.kernel(self.module, name).unwrap();
        match work {
            Work::Spin(us) => launch(kernel("spin"), (1, 1, 1), (1, 1, 1), vec![scalar(ElementType::U64, us * 1000)]),
            Work::Copy(mib) => {
                let vectors = mib << 16;
                let args = vec![from, to, scalar(ElementType::U64, vectors)];
                launch(kernel("copy"), ((vectors / 256) as u32, 1, 1), (256, 1, 1), args)
            }
            Work::Add(log) => {
                let n = 1_u32 << log;
                let args = vec![from.clone(), from, to, scalar(ElementType::U32, u64::from(n))];
                launch(kernel("add"), (n / 256, 1, 1), (256, 1, 1), args)
            }
            Work::Memcpy(..) => panic!("copies are a body, not a step"),
        }
    }

    /// Median time in nanoseconds, measured with events and, if there is one, with the reference clock.
    fn time(&mut self, work: Work) -> (f64, Option<f64>) {
        let body = self.body(work);
        self.device.run(&untimed(Vec::new(), body.clone(), 1)).unwrap();
        let samples = if matches!(work, Work::Spin(10_000)) { FEW } else { SAMPLES };
        let report = self.device.clock().unwrap().time(&timed(body.clone(), samples)).unwrap();
        let read: Vec<f64> = report.times.iter().map(|sample| sample.whole).collect();
        for step in body {
            if let Step::Copy { from, to } = step {
                self.device.free(from).unwrap();
                self.device.free(to).unwrap();
            }
        }
        (median(&read).unwrap(), median(&report.reference))
    }
}

fn label(work: Work) -> String {
    match work {
        Work::Spin(us) => format!("wait {us} µs, 1 thread"),
        Work::Copy(mib) => format!("copy {mib} MiB"),
        Work::Add(log) => format!("add 2^{log} floats"),
        Work::Memcpy(1, mib) => format!("driver's copy of {mib} MiB"),
        Work::Memcpy(copies, mib) => format!("{copies} driver's copies of {mib} MiB"),
    }
}

/// Not a test on its own: the body of one child process, timed or traced.
#[test]
#[ignore = "one of the processes of the test below"]
fn one_side() {
    let side = std::env::var(SIDE).unwrap_or_default();
    let mut bench = match side.as_str() {
        "timed" => Bench::new(&Cuda::Timed),
        "traced" => Bench::new(&Cuda::Traced),
        _ => return,
    };
    let constant = if side == "timed" { own_constant(bench.device.as_mut()).unwrap_or_default() } else { 0.0 };
    for work in works() {
        let (read, reference) = bench.time(work);
        println!("{MARK}{read} {} {constant}", reference.unwrap_or_default());
    }
}

/// Not a test on its own: the body of the process that a profiler watches. Each kernel runs once before it is profiled.
#[test]
#[ignore = "the process that a profiler watches"]
fn under_a_profiler() {
    if std::env::var_os(SIDE).is_none_or(|side| side != "profiled") {
        return;
    }
    let mut bench = Bench::new(&Cuda::Timed);
    for work in KERNELS {
        let step = bench.step(work);
        bench.device.run(&untimed(Vec::new(), vec![step], PROFILED)).unwrap();
    }
}

/// Times of one kernel in one process, in nanoseconds.
struct Seen {
    /// Measured with events.
    read: f64,
    /// From CUPTI; zero if it does not trace.
    record: f64,
    /// The constant that the process subtracts from its intervals.
    constant: f64,
}

/// Runs a process of this side; one result per kernel.
fn process(side: &str) -> Vec<Seen> {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "gpu_accuracy::one_side", "--ignored", "--nocapture", "--test-threads=1"])
        .env(SIDE, side)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    let seen = |line: &str| {
        let mut numbers = line.split(' ').map(|number| number.parse().unwrap_or_else(|_| panic!("{line:?} in {text}")));
        Seen { read: numbers.next().unwrap(), record: numbers.next().unwrap(), constant: numbers.next().unwrap() }
    };
    // The test harness may print the test's name before the first line.
    let all: Vec<_> = text.lines().filter_map(|line| line.split_once(MARK)).map(|(_, line)| seen(line)).collect();
    assert_eq!(all.len(), works().len(), "{text}");
    all
}

/// One kernel across the processes of both sides, in nanoseconds.
struct Row {
    /// Medians: by events without tracing, by events under tracing, and from CUPTI.
    read: f64,
    under_tracing: f64,
    record: f64,
    /// By events, minus each process's constant.
    calibrated: f64,
    /// Range of the calibrated times over the processes.
    spread: f64,
    ncu: Option<f64>,
}

impl Row {
    /// Slowdown of the kernel and its events due to tracing; both sides are timed with events.
    fn slowed(&self) -> f64 {
        self.under_tracing - self.read
    }

    fn allowed(&self) -> f64 {
        300.0 + 0.005 * self.record
    }

    fn is_slowed(&self) -> bool {
        self.slowed().abs() > self.allowed()
    }

    /// Deviation of the calibrated time from CUPTI's record. If tracing slows the kernel, the record is corrected for
    /// the slowdown.
    fn off_cupti(&self) -> f64 {
        let record = if self.is_slowed() { self.record - self.slowed() } else { self.record };
        self.calibrated - record
    }

    fn faults(&self, name: &str) -> Vec<String> {
        let mut faults = Vec::new();
        let off = self.off_cupti();
        if off.abs() > self.allowed() {
            faults.push(format!("{name}: {off:.0} ns off CUPTI"));
        }
        if let Some(ncu) = self.ncu {
            let off = self.calibrated - ncu;
            if off.abs() > 1500.0 + 0.005 * ncu {
                faults.push(format!("{name}: {off:.0} ns off ncu"));
            }
        }
        faults
    }

    fn cells(&self, name: &str) -> String {
        let us = |ns: f64| format!("{:.2}", ns / 1e3);
        let calibrated = self.calibrated;
        let ncu = self.ncu.map_or([String::new(), String::new()], |ncu| [us(ncu), us(calibrated - ncu)]);
        let [ncu, off_ncu] = ncu;
        let numbers =
            [self.read, calibrated, self.spread, self.record, calibrated - self.record, self.slowed()].map(us);
        let judged = us(self.off_cupti()) + if self.is_slowed() { " ¹" } else { "" };
        format!("| {name} | {} | {judged} | {ncu} | {off_ncu} |", numbers.join(" | "))
    }
}

/// Every kernel, and the constants of the untraced processes.
fn rows() -> (Vec<Row>, Vec<f64>) {
    let [timed, traced] = ["timed", "traced"].map(|side| (0..PROCESSES).map(|_| process(side)).collect::<Vec<_>>());
    let profiled = profiled();
    let row = |kernel: usize| {
        let values = |side: &[Vec<Seen>], value: fn(&Seen) -> f64| {
            side.iter().map(|process| value(&process[kernel])).collect::<Vec<f64>>()
        };
        let calibrated = values(&timed, |seen| seen.read - seen.constant);
        let extreme = |pick: fn(f64, f64) -> f64| calibrated.iter().copied().reduce(pick).unwrap();
        Row {
            read: median(&values(&timed, |seen| seen.read)).unwrap(),
            under_tracing: median(&values(&traced, |seen| seen.read)).unwrap(),
            record: median(&values(&traced, |seen| seen.record)).unwrap(),
            calibrated: median(&calibrated).unwrap(),
            spread: extreme(f64::max) - extreme(f64::min),
            ncu: profiled.get(kernel).copied(),
        }
    };
    ((0..works().len()).map(row).collect(), timed.iter().map(|process| process[0].constant).collect())
}

/// Nsight Compute's median duration of each kernel, in nanoseconds; empty without profiler output.
fn profiled() -> Vec<f64> {
    let Some(path) = std::env::var_os(NCU) else { return Vec::new() };
    let text = std::fs::read_to_string(path).unwrap();
    let of_test = |line: &&str| {
        line.contains("gpu__time_duration.sum") && ["\"spin\"", "\"copy\"", "\"add\""].iter().any(|n| line.contains(n))
    };
    let value = |line: &str| {
        let cells: Vec<&str> = line.trim().trim_matches('"').split("\",\"").collect();
        let number: f64 = cells.last()?.replace(',', "").parse().ok()?;
        let unit = cells.get(cells.len().checked_sub(2)?)?;
        Some(
            number
                * if unit.starts_with('u') {
                    1e3
                } else if unit.starts_with('m') {
                    1e6
                } else {
                    1.0
                },
        )
    };
    let all: Vec<f64> = text.lines().filter(of_test).filter_map(value).collect();
    assert_eq!(all.len(), PROFILED as usize * KERNELS.len(), "ncu has not seen all launches of each kernel");
    all.chunks(PROFILED as usize).map(|launches| median(&launches[1..]).unwrap()).collect()
}

/// Stored reference times of the device, if any.
fn reference_times(device: &dyn Device) -> Option<ReferenceTimes> {
    let store = Store::at(Cache::locate().ok()?.root().join("machine"));
    store.load(&device.uuid()?, &device.driver()?.version?)?.reference
}

/// The constant of this process, determined as a worker does; `None` without reference times.
fn own_constant(device: &mut dyn Device) -> Option<f64> {
    let known = reference_times(device)?;
    let cache = Cache::locate().unwrap();
    let unit = runner_calibrate::unit(runner_calibrate::write_source(&cache.root().join("machine")).unwrap());
    let compute_capability = device.info().compute_capability;
    let want = Requirement::Gpu { driver: device.driver().unwrap().cuda, compute_capability };
    let toolkit = Toolkit::ensure(want, &cache, Network::Allowed, &mut |_| {}).unwrap();
    let compiler = std::env::var_os("RUNNER_BIN").unwrap_or_else(|| env!("CARGO_BIN_EXE_runner").into()).into();
    let options = CompileOptions { compiler, ..CompileOptions::new(cache).unwrap() };
    let compiled = compile_all(&[unit], Target::Gpu(compute_capability), &toolkit, &options, &mut |_, _, _| {});
    let code = compiled.into_values().next().unwrap().unwrap_or_else(|failure| panic!("{}", failure.log));
    let survey = runner_calibrate::survey(device, &SurveyRequest { code, spread: false, ceilings: false }).unwrap();
    runner_calibrate::constant(&survey, &known)
}

#[test]
#[ignore = "needs a GPU"]
fn calibrated_times_agree_with_both_reference_clocks() {
    let held = gpu();
    let found = reference_times(held.device.as_ref());
    let name = held.device.info().name.clone();
    // Other processes measure here; no other test may use the GPU meanwhile.
    let _alone = held.close();
    assert!(found.is_some(), "run `runner doctor --calibrate` first");
    let (rows, mut constants) = rows();
    constants.sort_by(f64::total_cmp);
    let mut table = format!(
        "# How far times lie from two reference clocks\n\nBy `tests/it/gpu_accuracy.rs`: CUPTI's record of the same kernels, and Nsight \
         Compute's `gpu__time_duration`, which is larger by what it counts of each launch. The page on \
         [calibration](../docs/explanation/calibration.md) says how.\n\n{}: its processes take {:.0} to {:.0} ns off each interval. All figures are µs; medians over {PROCESSES} processes of \
         {SAMPLES} samples each.\n\n| kernel | events | calibrated | between processes | CUPTI | off | by tracing | off, judged | ncu | off \
         |\n| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n",
        name,
        constants[0],
        constants[PROCESSES - 1]
    );
    let mut wrong = Vec::new();
    for (row, work) in rows.iter().zip(works()) {
        let _ = writeln!(table, "{}", row.cells(&label(work)));
        wrong.extend(row.faults(&label(work)));
    }
    let _ = writeln!(
        table,
        "\n¹ Tracing itself changes this kernel by more than what is allowed, as events in the traced process show; the \
         record is judged without that."
    );
    println!("{table}");
    if let Some(path) = std::env::var_os(TABLE) {
        std::fs::write(path, &table).unwrap();
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

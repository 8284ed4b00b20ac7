//! Calibrated times of twenty kernels, from 1 µs to 10 ms, against CUPTI's activity records and Nsight Compute.
//!
//! Prints the comparison as a Markdown table. It takes the constant that `runner doctor --calibrate` keeps, which other
//! kernels than these gave. Without a device, or without a calibration, it says so and passes, unless
//! `RUNNER_REQUIRE_GPU` is set. `RUNNER_ACCURACY_NCU` names what `ncu --csv --metrics gpu__time_duration.sum` printed of
//! the test `under_a_profiler`, whose launches are the same kernels in the same order.
#![expect(clippy::unwrap_used, reason = "a test panics to fail")]
#![expect(clippy::print_stdout, reason = "the table is the test's output")]

#[expect(dead_code, reason = "the tests of the device use the rest")]
mod gpu;

use std::fmt::Write;
use std::process::Command;

use gpu::{gpu, launch, load, scalar, timed, untimed};
use runner::backend::cuda::{Cuda, TracedCuda};
use runner::backend::{Backend, BufferId, Device, LaunchArg, ModuleId, Step};
use runner::compile::Cache;
use runner::machine::Store;
use runner::model::{Clock, ElementType};
use runner::stats::median;

/// Set in the process that CUPTI traces, and in the one that a profiler watches.
const SIDE: &str = "RUNNER_ACCURACY_SIDE";
const NCU: &str = "RUNNER_ACCURACY_NCU";
/// What a line of the traced process begins with.
const MARK: &str = "accuracy:";
const SAMPLES: u32 = 51;
/// The longest kernels are sampled less: ten milliseconds each.
const FEW: u32 = 11;

/// A kernel with its arguments chosen.
#[derive(Clone, Copy)]
enum Work {
    /// Microseconds of one thread.
    Spin(u64),
    /// MiB.
    Copy(u64),
    /// Logarithm of the elements.
    Add(u32),
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

/// A device with the kernels and memory for all of them.
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
                let args = vec![from, from, to, scalar(ElementType::U32, u64::from(n))];
                launch(kernel("add"), (n / 256, 1, 1), (256, 1, 1), args)
            }
        }
    }

    /// Median nanoseconds by events, and by the witness where there is one.
    fn time(&mut self, work: Work) -> (f64, Option<f64>) {
        let step = self.step(work);
        self.device.run(&untimed(Vec::new(), vec![step.clone()], 1)).unwrap();
        let samples = if matches!(work, Work::Spin(10_000)) { FEW } else { SAMPLES };
        let report = self.device.run(&timed(vec![step], samples)).unwrap();
        let read: Vec<f64> = report.samples.iter().map(|sample| sample.whole).collect();
        (median(&read).unwrap(), median(&report.witnessed))
    }
}

fn label(work: Work) -> String {
    match work {
        Work::Spin(us) => format!("wait {us} µs, 1 thread"),
        Work::Copy(mib) => format!("copy {mib} MiB"),
        Work::Add(log) => format!("add 2^{log} floats"),
    }
}

/// Not a test of its own: the side that CUPTI traces.
#[test]
fn traced_side() {
    if std::env::var_os(SIDE).is_none_or(|side| side != "traced") {
        return;
    }
    let mut bench = Bench::new(&TracedCuda);
    for work in KERNELS {
        let (read, witnessed) = bench.time(work);
        println!("{MARK}{read} {}", witnessed.unwrap());
    }
}

/// Not a test of its own: the side that a profiler watches. Each kernel runs once before it is looked at.
#[test]
fn under_a_profiler() {
    if std::env::var_os(SIDE).is_none_or(|side| side != "profiled") {
        return;
    }
    let mut bench = Bench::new(&Cuda);
    for work in KERNELS {
        let step = bench.step(work);
        bench.device.run(&untimed(Vec::new(), vec![step], 2)).unwrap();
    }
}

/// Events and records of each kernel, from the process that CUPTI traces.
fn traced() -> Vec<(f64, f64)> {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "traced_side", "--nocapture", "--test-threads=1"])
        .env(SIDE, "traced")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    let pair = |line: &str| {
        let (read, witnessed) = line.split_once(' ')?;
        Some((read.parse().ok()?, witnessed.parse().ok()?))
    };
    // The harness may write the test's name in front of the first line.
    text.lines().filter_map(|line| pair(line.split_once(MARK)?.1)).collect()
}

/// Nanoseconds of each kernel's second launch by Nsight Compute; empty where nobody took them.
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
    assert_eq!(all.len(), 2 * KERNELS.len(), "ncu has not seen two launches of each kernel");
    all.into_iter().skip(1).step_by(2).collect()
}

/// The constant that is kept for the first device; `None` where none is.
fn constant(device: &dyn Device) -> Option<f64> {
    let store = Store::at(Cache::locate().ok()?.root().join("machine"));
    let driver = device.driver().and_then(|driver| driver.version)?;
    match store.load(&device.uuid()?, &driver)?.clock? {
        Clock::Calibrated(calibration) => Some(calibration.constant),
        Clock::Uncalibrated { .. } => None,
    }
}

#[test]
fn calibrated_times_agree_with_both_witnesses() {
    let Some(held) = gpu() else { return };
    let found = constant(held.device.as_ref());
    drop(held);
    let Some(constant) = found else {
        assert!(std::env::var_os("RUNNER_REQUIRE_GPU").is_none(), "run `runner doctor --calibrate` first");
        println!("skipped: no calibration of this device is kept");
        return;
    };
    let mut bench = Bench::new(&Cuda);
    let read: Vec<f64> = KERNELS.iter().map(|work| bench.time(*work).0).collect();
    drop(bench);
    let (traced, profiled) = (traced(), profiled());
    assert_eq!(traced.len(), KERNELS.len());
    let mut table = format!(
        "constant {constant:.0} ns; all figures in µs, medians\n\n| kernel | events | calibrated | CUPTI | off | events \
         under tracing | slowed by it | off without that | ncu | off |\n| --- | ---: | ---: | ---: | ---: | ---: | \
         ---: | ---: | ---: | ---: |\n"
    );
    let mut wrong = Vec::new();
    for (i, work) in KERNELS.iter().enumerate() {
        let (name, calibrated) = (label(*work), read[i] - constant);
        let (under_tracing, record) = traced[i];
        // Events in both processes see the same kernel: what more they read under tracing is tracing's.
        let slowed = under_tracing - read[i];
        let without_that = calibrated - (record - slowed);
        let allowed = 300.0 + 0.005 * record;
        let off = if slowed > allowed { without_that } else { calibrated - record };
        if off.abs() > allowed {
            wrong.push(format!("{name}: {off:.0} ns off CUPTI"));
        }
        let ncu = profiled.get(i).copied();
        let off_ncu = ncu.map(|ncu| calibrated - ncu);
        if off_ncu.zip(ncu).is_some_and(|(off, ncu)| off.abs() > 1500.0 + 0.005 * ncu) {
            wrong.push(format!("{name}: {:.0} ns off ncu", off_ncu.unwrap()));
        }
        let us = |ns: f64| format!("{:.2}", ns / 1e3);
        let maybe = |ns: Option<f64>| ns.map_or_else(String::new, us);
        let cells = [us(read[i]), us(calibrated), us(record), us(calibrated - record), us(under_tracing), us(slowed)];
        let _ = writeln!(
            table,
            "| {name} | {} | {} | {} | {} |",
            cells.join(" | "),
            us(without_that),
            maybe(ncu),
            maybe(off_ncu)
        );
    }
    println!("{table}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

//! Quality of measurements on a real GPU: how often identical kernels are called different, how often a planted
//! difference is found, and how long it takes to reach a given precision. Prints its figures as Markdown.
//!
//! `RUNNER_MEASURE_EVENTS` names a folder in which every sample is stored. `RUNNER_MEASURE_REPLAY` judges stored
//! samples again, on a machine without a GPU.

use std::path::PathBuf;
use std::sync::MutexGuard;
use std::time::Instant;

use runner_backend::Device;
use runner_execute::{GroupCache, run_group};
use runner_results::analyse::{self, Call};
use runner_types::{
    Access, ArgPlan, AxisColumn, BlockPlan, BodyPlan, BufferPlan, Case, CaseJob, CaseKey, CodeKind, CompileUnit,
    Compiled, ElementType, Environment, Event, FillPlan, GridPlan, GroupJob, GroupKey, LaunchPlan, MeasurePlan,
    Outcome, Records, Regime, RunContext, RunHeader, ScalarValue, Sharing, Value,
};

/// Folder to store samples in.
const KEEP: &str = "RUNNER_MEASURE_EVENTS";
/// Folder to read stored samples from instead of measuring.
const REPLAY: &str = "RUNNER_MEASURE_REPLAY";

struct Gpu {
    device: Box<dyn Device>,
    compiled: Compiled,
    _folder: tempfile::TempDir,
    _turn: MutexGuard<'static, ()>,
}

fn gpu() -> Gpu {
    let (device, turn) = crate::gpu::first::device();
    let folder = tempfile::tempdir().unwrap();
    let ptx = folder.path().join("kernels.ptx");
    std::fs::write(&ptx, include_str!("gpu/kernels.ptx")).unwrap();
    Gpu { device, compiled: compiled(&ptx), _folder: folder, _turn: turn }
}

/// One kernel at one size; the scalar argument sets the amount of work.
#[derive(Clone, Copy)]
struct Load {
    kernel: &'static str,
    amount: u64,
    /// Amount of work that takes 2 % longer.
    more: u64,
    /// Capacity of each buffer, in 16-byte vectors.
    room: u64,
}

/// Copies 16-byte vectors. Beyond the first microseconds, the time is proportional to their number.
const fn copy(vectors: u64) -> Load {
    Load { kernel: "copy", amount: vectors, more: vectors + vectors / 50, room: vectors + vectors / 50 }
}

/// Spins one thread for a number of cycles. The overhead in the events' interval equals about 6900 cycles: on an H100
/// at 1980 MHz, 5000 cycles take 6.0 µs and 80,000 take 43.6 µs.
const fn busy(cycles: u64) -> Load {
    Load { kernel: "busy", amount: cycles, more: cycles + (cycles + 6900) / 50, room: 1 }
}

/// From about 5 µs to 1 ms.
const LOADS: [Load; 5] = [busy(5_000), copy(1 << 16), busy(80_000), copy(1 << 22), copy(80_000_000)];

/// Loads that are slowed by 2 %.
const SLOWED: [Load; 4] = [LOADS[0], LOADS[2], LOADS[3], LOADS[4]];

/// Names of the sample files.
const IDENTICAL: &str = "identical.jsonl";
const PLANTED: &str = "planted.jsonl";
const SHORT: &str = "short.jsonl";

fn measure() -> MeasurePlan {
    MeasurePlan {
        regimes: vec![Regime::Cold],
        precision: 0.005,
        timeout: 30.0,
        warmup: 2,
        min_samples: 15,
        max_samples: 2000,
        budget: 0.5,
        energy: false,
        processes: None,
        drop_above: None,
    }
}

/// The test kernels as a compiled unit.
fn compiled(ptx: &std::path::Path) -> Compiled {
    Compiled {
        kind: CodeKind::Ptx,
        code: ptx.to_owned(),
        kernels: ["copy", "busy"].iter().map(|name| ((*name).to_owned(), (*name).to_owned())).collect(),
        ..fake_backend::compiled(&"1".repeat(64))
    }
}

fn launch(load: Load, amount: u64, compiled: &Compiled) -> LaunchPlan {
    let unit = CompileUnit::from_kernels("kernels.ptx", [""; 0]);
    let amount = ArgPlan::Scalar(ScalarValue { element: ElementType::U64, bits: amount });
    let (grid, args) = if load.kernel == "copy" {
        (1056, vec![ArgPlan::Buffer("from".to_owned()), ArgPlan::Buffer("to".to_owned()), amount])
    } else {
        (1, vec![amount])
    };
    LaunchPlan {
        compiled: Some(compiled.clone()),
        grid: GridPlan::Fixed([grid, 1, 1]),
        block: BlockPlan::Fixed([256, 1, 1]),
        args,
        ..fake_backend::launch_plan(unit, load.kernel)
    }
}

/// A group of a baseline and other variants, each with its amount of work.
fn group(ordinal: u32, load: Load, amounts: &[u64], compiled: &Compiled) -> GroupJob {
    let key = GroupKey(vec![("group".to_owned(), Value::Int(i64::from(ordinal)))]);
    let buffer = |name: &str, access, fill| BufferPlan {
        fill,
        ..fake_backend::buffer_plan(name, ElementType::U32, load.room * 4, access)
    };
    let case = |(nth, amount): (usize, &u64)| {
        let case = Case {
            ordinal: u64::from(ordinal) * 100 + nth as u64,
            key: CaseKey { experiment: "aa".to_owned(), variant: format!("v{nth}"), axes: key.0.clone() },
            group: key.clone(),
        };
        let body = BodyPlan::Launches(vec![launch(load, *amount, compiled)]);
        let buffers =
            vec![buffer("from", Access::In, Some(FillPlan::Constant(Value::Int(7)))), buffer("to", Access::Out, None)];
        CaseJob { buffers, ..fake_backend::case_job(case, body, measure()) }
    };
    let cases = amounts.iter().enumerate().map(case).collect();
    GroupJob { ordinal, key: key.clone(), cases, baseline: Some(0), seed: u64::from(ordinal), sharing: Sharing::Alone }
}

/// The records that a journal of these groups would yield. Stores the samples under `name` if that was requested.
fn records(gpu: &mut Gpu, groups: &[GroupJob], name: &str) -> Records {
    let device = gpu.device.info().clone();
    let started = Event::RunStarted {
        header: Box::new(header()),
        environment: Box::new(environment(&device)),
        context: RunContext {
            host: String::new(),
            revision: None,
            started: "2026-01-01T00:00:00Z".to_owned(),
            arguments: vec![],
            device_uuid: None,
            shard: None,
            files: None,
        },
        cases: 0,
        groups: groups.len() as u32,
    };
    let mut events = vec![started];
    for group in groups {
        run_group(gpu.device.as_mut(), group, &mut GroupCache::default(), &mut |event| events.push(event)).unwrap();
    }
    if let Some(folder) = std::env::var_os(KEEP) {
        let lines: Vec<String> = events.iter().map(|event| serde_json::to_string(event).unwrap()).collect();
        std::fs::write(PathBuf::from(folder).join(name), lines.join("\n")).unwrap();
    }
    analyse::records(&events).unwrap()
}

/// Records computed from samples stored under `name`.
fn replayed(name: &str) -> Option<Records> {
    let folder = PathBuf::from(std::env::var_os(REPLAY)?);
    let text = std::fs::read_to_string(folder.join(name)).unwrap();
    let events: Vec<Event> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    Some(analyse::records(&events).unwrap())
}

fn environment(device: &runner_types::DeviceInfo) -> Environment {
    let text = serde_json::json!({
        "device": device, "driver": null, "driver_cuda": null, "toolkit": {"version": [13, 0], "build": null},
        "runner": "", "timing_method": null,
    });
    serde_json::from_value(text).unwrap()
}

fn header() -> RunHeader {
    let text = serde_json::json!({
        "experiment": "aa", "title": "", "question": null, "backend": "cuda",
        "axes": [AxisColumn { name: "group".to_owned(), compared: false }],
        "variants": (0..26).map(|nth| format!("v{nth}")).collect::<Vec<_>>(),
        "baseline": ["v0", []], "manifest_path": "", "manifest_text": "", "manifest_hash": "", "narrowed": null,
        "complete": true,
    });
    serde_json::from_value(text).unwrap()
}

/// For every comparison with a baseline: the group's index, the verdict and the speedup.
fn calls(records: &Records) -> Vec<(usize, Call, f64)> {
    let compare = |record: &runner_types::CaseRecord| {
        let group = record.case.ordinal as usize / 100;
        let ratio = record.result.as_ref()?.against_baseline.as_ref()?;
        Some((group, analyse::call(&ratio.speedup, ratio.noise.unwrap_or(0.0)), ratio.speedup.point))
    };
    records.cases.iter().filter_map(compare).collect()
}

fn times(records: &Records, groups: std::ops::Range<usize>) -> String {
    let time = |group: usize| {
        let base = records.cases.iter().find(|record| record.case.ordinal as usize == group * 100)?;
        Some(base.result.as_ref()?.time.point / 1e3)
    };
    let times: Vec<f64> = groups.filter_map(time).collect();
    format!("{:.1}", times.iter().sum::<f64>() / times.len() as f64)
}

/// Eight groups of 25 comparisons at each of five loads.
fn identical() -> Records {
    let mut gpu = gpu();
    let compiled = gpu.compiled.clone();
    let load = |n: u32| LOADS[n as usize / 8];
    let groups: Vec<GroupJob> = (0..40).map(|n| group(n, load(n), &[load(n).amount; 26], &compiled)).collect();
    records(&mut gpu, &groups, IDENTICAL)
}

#[test]
#[ignore = "needs a GPU"]
fn identical_kernels_are_hardly_ever_called_different() {
    let begun = Instant::now();
    let records = replayed(IDENTICAL).unwrap_or_else(identical);
    let calls = calls(&records);
    assert_eq!(calls.len(), 1000);
    println!("\n| kernel | time (µs) | comparisons | called different | called same | largest deviation (%) |");
    println!("| --- | ---: | ---: | ---: | ---: | ---: |");
    let mut all = 0;
    for (nth, load) in LOADS.iter().enumerate() {
        let here: Vec<_> = calls.iter().filter(|(group, ..)| group / 8 == nth).collect();
        let different = here.iter().filter(|(_, call, _)| matches!(call, Call::Faster | Call::Slower)).count();
        let same = here.iter().filter(|(_, call, _)| *call == Call::Same).count();
        let largest = here.iter().map(|(.., ratio)| (ratio - 1.0).abs()).fold(0.0, f64::max);
        let time = times(&records, nth * 8..nth * 8 + 8);
        println!("| {} | {time} | {} | {different} | {same} | {:.2} |", load.kernel, here.len(), largest * 100.0);
        all += different;
    }
    let noise = records.header.noise[0];
    let outside = records.cases.iter().filter_map(|r| r.result.as_ref()?.against_baseline.as_ref());
    let outside = outside.filter(|ratio| ratio.speedup.low > 1.0 || ratio.speedup.high < 1.0).count();
    let (width, seconds) = (noise.width * 100.0, begun.elapsed().as_secs_f64());
    println!(
        "\n{all} of 1000 called different beyond the noise floor of ± {width:.2} % ({} twins); the 95 % interval",
        noise.comparisons
    );
    println!("alone would exclude 1 for {outside}. {seconds:.1} s.");
    assert!(all <= 10, "{all} of 1000 identical kernels were called different");
}

/// Five groups of ten trials at each of four loads.
fn planted() -> Records {
    let mut gpu = gpu();
    let compiled = gpu.compiled.clone();
    let load = |n: u32| SLOWED[n as usize / 5];
    let amounts = |load: Load| [vec![load.amount], vec![load.more; 10]].concat();
    let groups: Vec<GroupJob> = (0..20).map(|n| group(n, load(n), &amounts(load(n)), &compiled)).collect();
    records(&mut gpu, &groups, PLANTED)
}

#[test]
#[ignore = "needs a GPU"]
fn a_difference_of_two_percent_is_found() {
    let records = replayed(PLANTED).unwrap_or_else(planted);
    let calls = calls(&records);
    assert_eq!(calls.len(), 200);
    println!("\n| kernel | time (µs) | trials | called slower | mean difference (%) |");
    println!("| --- | ---: | ---: | ---: | ---: |");
    let mut found = 0;
    for (nth, load) in SLOWED.iter().enumerate() {
        let here: Vec<_> = calls.iter().filter(|(group, ..)| group / 5 == nth).collect();
        let slower = here.iter().filter(|(_, call, _)| *call == Call::Slower).count();
        let mean = here.iter().map(|(.., ratio)| 1.0 / ratio - 1.0).sum::<f64>() / here.len() as f64;
        let time = times(&records, nth * 5..nth * 5 + 5);
        println!("| {} | {time} | {} | {slower} | {:.2} |", load.kernel, here.len(), mean * 100.0);
        found += slower;
    }
    println!("\n{found} of 200 called slower, noise floor ± {:.2} %.", records.header.noise[0].width * 100.0);
    assert!(found >= 190, "a planted 2 % was found in {found} of 200 trials");
}

#[test]
#[ignore = "needs a GPU"]
fn half_a_percent_of_a_short_kernel_takes_less_than_three_tenths_of_a_second() {
    let mut gpu = gpu();
    let compiled = gpu.compiled.clone();
    println!("\n| kernel | time (µs) | ± (%) | samples | runs a sample | seconds |");
    println!("| --- | ---: | ---: | ---: | ---: | ---: |");
    for load in [busy(5_000), copy(1 << 14), copy(1 << 16)] {
        let job = group(0, load, &[load.amount], &compiled);
        let begun = Instant::now();
        let records = records(&mut gpu, &[job], SHORT);
        let seconds = begun.elapsed().as_secs_f64();
        let result = records.cases[0].result.as_ref().unwrap();
        let half = result.time.relative_half_width() * 100.0;
        let time = result.time.point / 1e3;
        println!(
            "| {} | {time:.2} | {half:.2} | {} | {} | {seconds:.3} |",
            load.kernel, result.samples, result.launches
        );
        assert_eq!(records.cases[0].outcome, Outcome::Measured, "{}", load.kernel);
        assert!(half <= 0.5 && seconds <= 0.3, "{}: ± {half} % in {seconds} s", load.kernel);
    }
}

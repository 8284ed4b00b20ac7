//! Times of the CUDA backend on a real GPU, through the traits that `execute` uses.

use crate::gpu::{gpu, in_child, launch, scalar, timed, untimed, words};
use runner_backend::{DeviceError, KernelId, LaunchArg, Prepare, Series, Step, TimedBatch};
use runner_stats::median;
use runner_types::{Allocation, ElementType, Regime};

const ONE: (u32, u32, u32) = (1, 1, 1);

fn spin(kernel: KernelId, microseconds: u64) -> Step {
    launch(kernel, ONE, ONE, vec![scalar(ElementType::U64, microseconds * 1000)])
}

#[test]
#[ignore = "needs a GPU"]
fn a_copy_of_256_mib_runs_near_the_memory_s_peak() {
    let mut gpu = gpu();
    let bytes = 256_u64 << 20;
    let from = gpu.device.alloc(bytes as usize, 0).unwrap();
    let to = gpu.device.alloc(bytes as usize, 0).unwrap();
    let kernel = gpu.kernel("copy");
    let blocks = gpu.device.info().sm_count * 8;
    let args = vec![LaunchArg::Buffer(from), LaunchArg::Buffer(to), scalar(ElementType::U64, bytes / 16)];
    let steps = vec![launch(kernel, (blocks, 1, 1), (256, 1, 1), args)];
    gpu.run(steps.clone()).unwrap();
    let least = 2.0 * bytes as f64 / gpu.device.info().peak_bandwidth().unwrap() * 1e9;
    for (name, steps) in [("kernel", steps), ("memcpy", vec![Step::Copy { from, to }])] {
        let samples = gpu.time(&timed(steps, 50)).unwrap().times;
        let mut times: Vec<f64> = samples.iter().map(|sample| sample.whole).collect();
        times.sort_by(f64::total_cmp);
        println!(
            "copy of 256 MiB by {name}: median {:.1} µs, {:.1} to {:.1}",
            times[25] / 1e3,
            times[0] / 1e3,
            times[49] / 1e3
        );
        assert!(times[25] > least && times[25] < 2.0 * least, "{} ns, at the peak it takes {least}", times[25]);
    }
}

#[test]
#[ignore = "needs a GPU"]
fn a_sample_holds_the_kernel_s_time_and_no_launch() {
    let mut gpu = gpu();
    println!("{}", gpu.clock().method());
    let kernel = gpu.kernel("spin");
    gpu.run(vec![spin(kernel, 1)]).unwrap();
    let samples = gpu.time(&timed(vec![spin(kernel, 1000)], 20)).unwrap().times;
    assert_eq!(samples.len(), 20);
    for sample in &samples {
        assert!(sample.each.is_empty());
        assert!((1_000_000.0..1_020_000.0).contains(&sample.whole), "{} ns for 1 ms", sample.whole);
    }
}

#[test]
#[ignore = "needs a GPU"]
fn the_parts_of_a_sequence_are_timed_one_by_one() {
    let mut gpu = gpu();
    let kernel = gpu.kernel("spin");
    gpu.run(vec![spin(kernel, 1)]).unwrap();
    let steps = vec![spin(kernel, 200), spin(kernel, 600)];
    let mut apart = Vec::new();
    for sample in gpu.time(&timed(steps, 20)).unwrap().times {
        let [first, second] = sample.each[..] else { panic!("{sample:?}") };
        assert!((200_000.0..220_000.0).contains(&first), "{sample:?}");
        assert!((600_000.0..620_000.0).contains(&second), "{sample:?}");
        apart.push((first + second - sample.whole).abs());
    }
    // Each interval includes some overhead, and the whole is a single interval from another run.
    let apart = median(&apart).unwrap();
    assert!(apart < 1_500.0, "the parts are {apart} ns off the whole");
}

/// On an H100, three 5 µs kernels take 22.4 µs between two events, and 24.7 µs with two more events between the
/// kernels.
#[test]
#[ignore = "needs a GPU"]
fn events_among_the_launches_of_a_sequence_are_no_part_of_it() {
    let mut gpu = gpu();
    let kernel = gpu.kernel("spin");
    gpu.run(vec![spin(kernel, 1)]).unwrap();
    let steps: Vec<Step> = (0..3).map(|_| spin(kernel, 5)).collect();
    let samples = gpu.time(&timed(steps, 31)).unwrap().times;
    let whole = median(&samples.iter().map(|sample| sample.whole).collect::<Vec<f64>>()).unwrap();
    let parts = median(&samples.iter().map(|sample| sample.each.iter().sum()).collect::<Vec<f64>>()).unwrap();
    println!("three launches of 5 µs: {whole} ns as a whole, {parts} ns one by one");
    assert!(whole >= 15_000.0 && whole < parts - 1_000.0, "{whole} ns as a whole, {parts} ns one by one");
}

#[test]
#[ignore = "needs a GPU"]
fn a_long_sequence_is_timed_without_a_gate() {
    let mut gpu = gpu();
    let kernel = gpu.kernel("spin");
    let steps: Vec<Step> = (0..600).map(|_| spin(kernel, 2)).collect();
    let samples = gpu.time(&timed(steps, 2)).unwrap().times;
    assert!(samples.iter().all(|s| s.each.len() == 600 && s.whole >= 1_200_000.0));
}

/// In each regime, the mean time over ten runs of a kernel that spins for 20 µs is little more than 20 µs.
#[test]
#[ignore = "needs a GPU"]
fn a_span_of_runs_takes_each_of_them_once() {
    let mut gpu = gpu();
    let kernel = gpu.kernel("spin");
    let run = timed(vec![spin(kernel, 20)], 5);
    gpu.run(run.steps.clone()).unwrap();
    for regime in [Regime::Cold, Regime::Warm, Regime::Graph, Regime::Rotate] {
        let others = if regime == Regime::Rotate { vec![run.steps.clone()] } else { Vec::new() };
        let series = Series { launches: 10, others, lead: u32::from(regime != Regime::Cold), ..Series::default() };
        let samples = gpu.time(&TimedBatch { regime, series, ..run.clone() }).unwrap().times;
        let times: Vec<f64> = samples.iter().map(|sample| sample.whole).collect();
        println!("{regime}: {times:?}");
        assert_eq!(times.len(), 5);
        assert!(times.iter().all(|time| (20_000.0..30_000.0).contains(time)), "{regime}: {times:?}");
    }
}

/// The host waits at least as long as the kernel spins. The existing word stays 0, because each run increments a word
/// of its own.
#[test]
#[ignore = "needs a GPU"]
fn on_the_hosts_clock_a_run_has_memory_of_its_own() {
    let mut gpu = gpu();
    let (spinning, increment) = (gpu.kernel("spin"), gpu.kernel("increment"));
    let word = gpu.buffer(&[0; 4]);
    let steps = vec![spin(spinning, 200), launch(increment, ONE, ONE, vec![LaunchArg::Buffer(word)])];
    for how in [Allocation::EachRun, Allocation::EachRunAsync] {
        let series = Series { fresh: vec![(word, how)], ..Series::default() };
        let batch = TimedBatch { regime: Regime::Host, series, ..timed(steps.clone(), 5) };
        let samples = gpu.time(&batch).unwrap().times;
        println!("{how:?}: {samples:?}");
        assert!(samples.len() == 5 && samples.iter().all(|s| (200_000.0..20_000_000.0).contains(&s.whole)));
        assert_eq!(gpu.read(word), [0; 4]);
    }
    gpu.run(steps).unwrap();
    assert_eq!(gpu.read(word), [1, 0, 0, 0]);
}

/// Each run increments a word in its own set; ten runs alternate between three sets.
#[test]
#[ignore = "needs a GPU"]
fn runs_rotate_over_the_sets_and_those_before_the_span_start_with_the_last() {
    let mut gpu = gpu();
    for regime in [Regime::Warm, Regime::Graph, Regime::Rotate] {
        let kernel = gpu.kernel("increment");
        let sets: Vec<_> = (0..3).map(|_| gpu.buffer(&[0; 4])).collect();
        let mut bodies: Vec<Vec<Step>> =
            sets.iter().map(|set| vec![launch(kernel, ONE, ONE, vec![LaunchArg::Buffer(*set)])]).collect();
        gpu.run(bodies[0].clone()).unwrap();
        let series = Series { launches: 10, others: bodies.split_off(1), lead: 1, ..Series::default() };
        let batch = TimedBatch { regime, series, ..timed(bodies.remove(0), 1) };
        gpu.time(&batch).unwrap();
        let counts: Vec<u8> = sets.iter().map(|set| gpu.read(*set)[0]).collect();
        // The first set also had the untimed run, the last one the leading run.
        assert_eq!(counts, [5, 3, 4], "{regime}");
    }
}

#[test]
#[ignore = "needs a GPU"]
fn the_clock_steps_by_a_few_nanoseconds_at_most_a_microsecond() {
    let mut gpu = gpu();
    let tick = gpu.clock().tick().unwrap();
    println!("the events' clock steps by {tick} ns");
    assert!((1.0..=1000.0).contains(&tick), "{tick}");
}

#[test]
#[ignore = "needs a GPU"]
fn a_launch_that_the_driver_refuses_behind_the_gate_does_not_hang() {
    let test = "gpu_timing::a_launch_that_the_driver_refuses_behind_the_gate_does_not_hang";
    let ran = in_child(test, &[], |gpu| {
        let kernel = gpu.kernel("strict");
        let step = |threads| vec![launch(kernel, ONE, (threads, 1, 1), Vec::new())];
        gpu.run(step(64)).unwrap();
        assert_eq!(gpu.time(&timed(step(64), 3)).unwrap().times.len(), 3);
        let refused = gpu.time(&timed(step(32), 3)).unwrap_err();
        assert!(matches!(refused, DeviceError::Driver { call: "cuLaunchKernel", .. }), "{refused}");
        assert_eq!(gpu.time(&timed(step(64), 3)).unwrap().times.len(), 3);
    });
    if let Some(text) = ran {
        assert!(!text.contains("skipped"), "{text}");
    }
}

#[test]
#[ignore = "needs a GPU"]
fn blocking_launches_are_timed_without_a_gate_and_the_method_says_so() {
    let test = "gpu_timing::blocking_launches_are_timed_without_a_gate_and_the_method_says_so";
    in_child(test, &[("CUDA_LAUNCH_BLOCKING", "1")], |gpu| {
        let method = gpu.clock().method();
        assert!(method.contains("not gated (CUDA_LAUNCH_BLOCKING is set)"), "{method}");
        let kernel = gpu.kernel("spin");
        for sample in gpu.time(&timed(vec![spin(kernel, 500)], 5)).unwrap().times {
            assert!(sample.whole >= 500_000.0, "{sample:?}");
        }
    });
}

/// One-block kernels: as many run at once as there are streams, and no timed span is shorter than its longest stream.
#[test]
#[ignore = "needs a GPU"]
fn launches_of_several_streams_run_beside_each_other_in_every_regime() {
    let mut gpu = gpu();
    let kernel = gpu.kernel("spin");
    let counter = gpu.device.symbol(gpu.module, "counter").unwrap();
    let count = gpu.kernel("count");
    let body = |streams: i64| {
        let spins = (0..4).map(|nth| (nth % streams, spin(kernel, 500)));
        let counts = (0..4).map(|nth| (nth % streams, launch(count, (2, 1, 1), (64, 1, 1), Vec::new())));
        let place = |(stream, step)| match step {
            Step::Launch(mut launch) => {
                launch.settings.stream = Some(stream);
                Step::Launch(launch)
            }
            other => other,
        };
        spins.chain(counts).map(place).collect::<Vec<_>>()
    };
    for regime in [Regime::Cold, Regime::Warm, Regime::Graph] {
        for (streams, least, most) in [(1, 2000.0, 2300.0), (2, 1000.0, 1200.0), (4, 500.0, 650.0)] {
            let zero = vec![Prepare::Fill { buffer: counter, byte: 0 }];
            gpu.device.run(&untimed(Vec::new(), body(streams), 1)).unwrap();
            let series = Series { launches: 2, ..Series::default() };
            let batch = TimedBatch { prepare: zero, regime, series, ..timed(body(streams), 3) };
            for sample in gpu.time(&batch).unwrap().times {
                let microseconds = sample.whole / 1e3;
                println!("{regime:?}, 4 kernels of 500 us in {streams} streams: {microseconds:.1} us");
                assert!((least..most).contains(&microseconds), "{regime:?}, {streams} streams: {microseconds} us");
                assert_eq!(sample.each.len(), if streams == 1 && regime == Regime::Cold { 8 } else { 0 });
            }
            // Every launch has run. Cold runs are prepared one by one; the other regimes prepare both runs together.
            let runs = if regime == Regime::Cold { 1 } else { 2 };
            assert_eq!(words(&gpu.read(counter))[0], runs * 4 * 128);
        }
    }
}

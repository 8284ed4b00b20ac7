//! The CUDA backend on a real GPU, through the seam that `execute` uses.
//!
//! Without a device each test prints `skipped: no CUDA device` and passes, unless `RUNNER_REQUIRE_GPU` is set.

use std::time::Instant;

use crate::gpu::{gpu, in_child, launch, scalar, shaped, timed, untimed, words};
use runner::backend::{DeviceError, KernelId, Launch, LaunchArg, Prepare, Series, Step, TimedBatch};
use runner::model::{Allocation, ElementType, Regime};
use runner::stats::median;

const ONE: (u32, u32, u32) = (1, 1, 1);

fn floats(values: impl Iterator<Item = f32>) -> Vec<u8> {
    values.flat_map(f32::to_le_bytes).collect()
}

fn spin(kernel: KernelId, microseconds: u64) -> Step {
    launch(kernel, ONE, ONE, vec![scalar(ElementType::U64, microseconds * 1000)])
}

#[test]
fn a_sum_of_vectors_is_right_to_the_last_element() {
    let Some(mut gpu) = gpu() else { return };
    let n = 1_000_003_u32;
    let left = gpu.buffer(&floats((0..n).map(|i| i as f32)));
    let right = gpu.buffer(&floats((0..n).map(|i| 0.5 * (i % 7) as f32)));
    let to = gpu.device.alloc(n as usize * 4, 256).unwrap();
    let kernel = gpu.kernel("add");
    let args = [left, right, to].map(LaunchArg::Buffer).into_iter();
    let args = args.chain([scalar(ElementType::U32, u64::from(n))]).collect();
    gpu.run(vec![launch(kernel, (n.div_ceil(256), 1, 1), (256, 1, 1), args)]).unwrap();
    let got = gpu.read(to);
    let expected = floats((0..n).map(|i| i as f32 + 0.5 * (i % 7) as f32));
    assert!(got == expected);
}

#[test]
fn scalars_of_every_width_arrive_whole() {
    let Some(mut gpu) = gpu() else { return };
    let to = gpu.device.alloc(40, 0).unwrap();
    let kernel = gpu.kernel("echo");
    let args = vec![
        LaunchArg::Buffer(to),
        scalar(ElementType::U8, 0xFE),
        scalar(ElementType::U16, 0xFEDC),
        scalar(ElementType::I32, u64::from((-5_i32).cast_unsigned())),
        scalar(ElementType::U64, 0xFEDC_BA98_7654_3210),
        scalar(ElementType::F64, (-2.5_f64).to_bits()),
    ];
    gpu.run(vec![launch(kernel, ONE, ONE, args)]).unwrap();
    let expected = [0xFE, 0xFEDC, 0xFFFF_FFFB, 0xFEDC_BA98_7654_3210, (-2.5_f64).to_bits()];
    assert_eq!(words(&gpu.read(to)), expected);
}

#[test]
fn arguments_that_the_kernel_does_not_take_are_refused_before_the_launch() {
    let Some(mut gpu) = gpu() else { return };
    let kernel = gpu.kernel("poke");
    let short = gpu.run(vec![launch(kernel, ONE, ONE, vec![scalar(ElementType::U64, 0)])]);
    assert_eq!(short.unwrap_err().to_string(), "cuLaunchKernel: kernel `poke` takes 2 arguments, the launch gives 1");
    let wide = vec![scalar(ElementType::U64, 0), scalar(ElementType::U64, 0)];
    assert_eq!(
        gpu.run(vec![launch(kernel, ONE, ONE, wide)]).unwrap_err().to_string(),
        "cuLaunchKernel: kernel `poke` takes 1 bytes as argument 2, the launch gives 8"
    );
}

#[test]
fn a_write_one_past_either_end_lands_in_a_guard() {
    let Some(mut gpu) = gpu() else { return };
    let (bytes, guard) = (1000, 64);
    let buffer = gpu.device.alloc(bytes, guard).unwrap();
    gpu.device.write_guards(buffer, 0xA5).unwrap();
    gpu.device.upload(buffer, 0, &vec![0x11; bytes]).unwrap();
    let intact = vec![0xA5_u8; guard];
    assert_eq!(gpu.device.read_guards(buffer).unwrap(), (intact.clone(), intact.clone()));

    let address = gpu.address(buffer);
    assert_eq!(address % 256, 0);
    let kernel = gpu.kernel("poke");
    let mut poke = |at: u64| {
        let args = vec![scalar(ElementType::U64, at), scalar(ElementType::U8, 7)];
        gpu.run(vec![launch(kernel, ONE, ONE, args)]).unwrap();
        gpu.device.read_guards(buffer).unwrap()
    };
    let mut damaged = intact.clone();
    damaged[0] = 7;
    assert_eq!(poke(address + bytes as u64), (intact, damaged.clone()));
    let (before, behind) = poke(address - 1);
    assert_eq!((before[guard - 1], before[guard - 2], behind), (7, 0xA5, damaged));
    assert_eq!(gpu.read(buffer), vec![0x11; bytes]);
}

#[test]
fn an_empty_buffer_has_an_address_and_guards() {
    let Some(mut gpu) = gpu() else { return };
    let buffer = gpu.device.alloc(0, 256).unwrap();
    gpu.device.write_guards(buffer, 3).unwrap();
    assert_eq!(gpu.device.read_guards(buffer).unwrap(), (vec![3; 256], vec![3; 256]));
    assert!(gpu.address(buffer) != 0);
    let bare = gpu.device.alloc(0, 0).unwrap();
    assert!(gpu.address(bare) != 0);
    assert_eq!(gpu.read(bare), Vec::<u8>::new());
    let fill = untimed(vec![Prepare::Fill { buffer: bare, byte: 1 }], Vec::new(), 1);
    gpu.device.run(&fill).unwrap();
}

#[test]
fn preparation_comes_before_every_repetition() {
    let Some(mut gpu) = gpu() else { return };
    let counter = gpu.device.symbol(gpu.module, "counter").unwrap();
    assert_eq!(gpu.device.size(counter), 16);
    let kernel = gpu.kernel("count");
    let step = || vec![launch(kernel, (2, 1, 1), (64, 1, 1), Vec::new())];
    let zero = || vec![Prepare::Fill { buffer: counter, byte: 0 }];
    gpu.device.run(&untimed(zero(), step(), 3)).unwrap();
    assert_eq!(words(&gpu.read(counter))[0], 128);
    gpu.device.run(&untimed(Vec::new(), step(), 3)).unwrap();
    assert_eq!(words(&gpu.read(counter))[0], 512);
    let report = gpu.time(&TimedBatch { prepare: zero(), ..timed(step(), 5) }).unwrap();
    assert_eq!(report.times.len(), 5);
    assert_eq!(words(&gpu.read(counter))[0], 128);
}

#[test]
fn a_gibibyte_goes_and_comes_back_unchanged() {
    let Some(mut gpu) = gpu() else { return };
    let mut data: Vec<u8> = (0..1_usize << 20).map(|i| (i * 31 % 251) as u8).collect();
    data = data.repeat(1024);
    for (index, piece) in data.chunks_mut(1 << 20).enumerate() {
        piece[..8].copy_from_slice(&(index as u64).to_le_bytes());
    }
    data.truncate(data.len() - 3);
    let buffer = gpu.device.alloc(data.len(), 0).unwrap();
    let mut back = vec![0; data.len()];
    for round in ["first", "second"] {
        let begin = Instant::now();
        gpu.device.upload(buffer, 0, &data).unwrap();
        let up = begin.elapsed().as_secs_f64();
        let begin = Instant::now();
        gpu.device.download(buffer, 0, &mut back).unwrap();
        let down = begin.elapsed().as_secs_f64();
        let speed = |seconds: f64| data.len() as f64 / seconds / 1e9;
        println!("{round} copy of 1 GiB: {:.1} GB/s up, {:.1} GB/s down", speed(up), speed(down));
        assert!(back == data);
        back.fill(0);
    }
    let mut piece = [0; 16];
    gpu.device.download(buffer, 5 << 20, &mut piece).unwrap();
    assert_eq!(piece, data[5 << 20..][..16]);
    assert!(gpu.device.download(buffer, data.len() - 8, &mut piece).is_err());
}

#[test]
fn more_memory_than_there_is_is_refused_with_both_numbers() {
    let Some(mut gpu) = gpu() else { return };
    let asked = gpu.device.info().memory_bytes.0 * 2;
    let before = gpu.device.memory_free().unwrap();
    match gpu.device.alloc(asked as usize, 256).unwrap_err() {
        DeviceError::OutOfMemory { needed, available } => {
            assert_eq!(needed, asked + 512);
            assert!(available > 0 && available <= before, "{available} of {before}");
        }
        other => panic!("{other}"),
    }
    assert!(matches!(gpu.device.alloc(usize::MAX, 256), Err(DeviceError::OutOfMemory { .. })));
    let small = gpu.device.alloc(64 << 20, 0).unwrap();
    gpu.device.free(small).unwrap();
    // The driver may keep a little for itself once it was asked for more.
    assert!(gpu.device.memory_free().unwrap() + (16 << 20) >= before);
}

#[test]
fn a_copy_of_256_mib_runs_near_the_memory_s_peak() {
    let Some(mut gpu) = gpu() else { return };
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
fn a_sample_holds_the_kernel_s_time_and_no_launch() {
    let Some(mut gpu) = gpu() else { return };
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
fn the_parts_of_a_sequence_are_timed_one_by_one() {
    let Some(mut gpu) = gpu() else { return };
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
    // Each interval reads more than its kernel takes, and the whole is one interval of another run.
    let apart = median(&apart).unwrap();
    assert!(apart < 1_500.0, "the parts are {apart} ns off the whole");
}

/// On an H100 three kernels of 5 µs take 22.4 µs between two events, and 24.7 µs with two more events among them.
#[test]
fn events_among_the_launches_of_a_sequence_are_no_part_of_it() {
    let Some(mut gpu) = gpu() else { return };
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
fn a_long_sequence_is_timed_without_a_gate() {
    let Some(mut gpu) = gpu() else { return };
    let kernel = gpu.kernel("spin");
    let steps: Vec<Step> = (0..600).map(|_| spin(kernel, 2)).collect();
    let samples = gpu.time(&timed(steps, 2)).unwrap().times;
    assert!(samples.iter().all(|s| s.each.len() == 600 && s.whole >= 1_200_000.0));
}

/// A kernel that spins for 20 µs, in each regime, by the mean of ten runs: its own time, and little beside it.
#[test]
fn a_span_of_runs_takes_each_of_them_once() {
    let Some(mut gpu) = gpu() else { return };
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

/// The host waits at least as long as the kernel spins. The word that is there stays 0: each run adds to one of its own.
#[test]
fn on_the_hosts_clock_a_run_has_memory_of_its_own() {
    let Some(mut gpu) = gpu() else { return };
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

/// Each run adds one to a word of its own set; ten runs alternate between three sets.
#[test]
fn sets_take_turns_and_the_runs_before_the_span_start_with_the_last() {
    let Some(mut gpu) = gpu() else { return };
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
fn the_clock_steps_by_a_few_nanoseconds_at_most_a_microsecond() {
    let Some(mut gpu) = gpu() else { return };
    let tick = gpu.clock().tick().unwrap();
    println!("the events' clock steps by {tick} ns");
    assert!((1.0..=1000.0).contains(&tick), "{tick}");
}

#[test]
fn a_launch_that_the_driver_refuses_behind_the_gate_does_not_hang() {
    let test = "gpu_device::a_launch_that_the_driver_refuses_behind_the_gate_does_not_hang";
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
fn a_write_through_a_null_pointer_costs_the_context() {
    let ran = in_child("gpu_device::a_write_through_a_null_pointer_costs_the_context", &[], |gpu| {
        let kernel = gpu.kernel("poke");
        let target = gpu.device.alloc(1, 0).unwrap();
        let poke = |at| vec![launch(kernel, ONE, ONE, vec![at, scalar(ElementType::U8, 1)])];
        gpu.run(poke(LaunchArg::Buffer(target))).unwrap();
        let lost = gpu.time(&timed(poke(scalar(ElementType::U64, 0)), 3)).unwrap_err();
        println!("lost: {lost}");
        assert!(matches!(lost, DeviceError::ContextLost(_)), "{lost:?}");
        let after = gpu.device.alloc(1, 0).unwrap_err();
        assert!(matches!(after, DeviceError::ContextLost(_)), "{after:?}");
    });
    if let Some(text) = ran {
        assert!(text.contains("lost: CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access was encountered"), "{text}");
    }
}

#[test]
fn a_trap_costs_the_context() {
    let ran = in_child("gpu_device::a_trap_costs_the_context", &[], |gpu| {
        let kernel = gpu.kernel("stop");
        let lost = gpu.run(vec![launch(kernel, ONE, ONE, Vec::new())]).unwrap_err();
        println!("lost: {lost}");
        assert!(matches!(lost, DeviceError::ContextLost(_)), "{lost:?}");
    });
    if let Some(text) = ran {
        assert!(text.contains("lost: CUDA_ERROR_"), "{text}");
    }
}

#[test]
fn printf_of_the_device_goes_to_standard_output() {
    let ran = in_child("gpu_device::printf_of_the_device_goes_to_standard_output", &[], |gpu| {
        let kernel = gpu.kernel("say");
        gpu.run(vec![launch(kernel, ONE, (2, 1, 1), Vec::new())]).unwrap();
    });
    if let Some(text) = ran {
        assert_eq!(text.matches("hello from the device\n").count(), 2, "{text}");
    }
}

#[test]
fn blocking_launches_are_timed_without_a_gate_and_the_method_says_so() {
    let test = "gpu_device::blocking_launches_are_timed_without_a_gate_and_the_method_says_so";
    in_child(test, &[("CUDA_LAUNCH_BLOCKING", "1")], |gpu| {
        let method = gpu.clock().method();
        assert!(method.contains("not gated (CUDA_LAUNCH_BLOCKING is set)"), "{method}");
        let kernel = gpu.kernel("spin");
        for sample in gpu.time(&timed(vec![spin(kernel, 500)], 5)).unwrap().times {
            assert!(sample.whole >= 500_000.0, "{sample:?}");
        }
    });
}

#[test]
fn launches_past_a_limit_are_judged_before_they_run() {
    let Some(mut gpu) = gpu() else { return };
    let info = gpu.device.info().clone();
    let (count, shared) = (gpu.kernel("count"), gpu.kernel("shared"));
    let to = gpu.device.alloc(4096, 0).unwrap();
    let mut refusal = |step| match gpu.run(vec![step]) {
        Err(DeviceError::InvalidLaunch(text)) => text,
        other => panic!("{other:?}"),
    };
    let threads = info.max_threads_per_block;
    assert_eq!(
        refusal(launch(count, ONE, (64, 32, 1), Vec::new())),
        format!("2048 threads a block, the device allows {threads}")
    );
    assert_eq!(
        refusal(launch(count, (1, 65536, 1), (32, 1, 1), Vec::new())),
        format!("grid.y is 65536, the device allows {}", info.max_grid_dim.y)
    );
    let optin = info.shared_per_block_optin;
    let asked = optin - 4096 + 1;
    assert_eq!(
        refusal(Step::Launch(shaped(shared, ONE, (32, 1, 1), asked, vec![LaunchArg::Buffer(to)]))),
        format!(
            "{} bytes of shared memory a block (4096 static, {asked} dynamic), the device allows {optin}",
            optin + 1
        )
    );
}

#[test]
fn all_shared_memory_of_a_block_can_be_used() {
    let Some(mut gpu) = gpu() else { return };
    let kernel = gpu.kernel("shared");
    let to = gpu.device.alloc(128, 0).unwrap();
    let dynamic = gpu.device.info().shared_per_block_optin - 4096;
    let step = shaped(kernel, ONE, (32, 1, 1), dynamic, vec![LaunchArg::Buffer(to)]);
    gpu.run(vec![Step::Launch(step)]).unwrap();
    let expected: Vec<u8> = (0..32_u32).flat_map(u32::to_le_bytes).collect();
    assert_eq!(gpu.read(to), expected);
}

#[test]
fn a_cooperative_grid_is_as_large_as_what_resides() {
    let Some(mut gpu) = gpu() else { return };
    let kernel = gpu.kernel("count");
    let resident = gpu.device.occupancy(kernel, 256, 0).unwrap().blocks_per_sm * gpu.device.info().sm_count;
    let mut run = |blocks| {
        let mut launch = shaped(kernel, (blocks, 1, 1), (256, 1, 1), 0, Vec::new());
        launch.cooperative = true;
        gpu.run(vec![Step::Launch(launch)])
    };
    run(resident).unwrap();
    assert_eq!(
        run(resident + 1).unwrap_err(),
        DeviceError::InvalidLaunch(format!(
            "a cooperative grid of {} blocks, {resident} are resident on the device at once",
            resident + 1
        ))
    );
}

#[test]
fn text_that_is_no_ptx_is_refused_with_the_compilers_words() {
    let Some(mut gpu) = gpu() else { return };
    let text = include_str!("gpu/kernels.ptx").replace("add.f32", "advertise.f32");
    let refused = gpu.load(&text, &[]).unwrap_err().to_string();
    assert!(refused.starts_with("cuModuleLoadDataEx: CUDA_ERROR_INVALID_PTX"), "{refused}");
    assert!(refused.contains("advertise"), "{refused}");
    let missing = gpu.load(include_str!("gpu/kernels.ptx"), &["absent"]).unwrap_err().to_string();
    assert!(missing.starts_with("cuModuleGetFunction: kernel `absent`: CUDA_ERROR_NOT_FOUND"), "{missing}");
}

#[test]
fn a_module_takes_its_kernels_and_variables_along() {
    let Some(mut gpu) = gpu() else { return };
    let module = gpu.load(include_str!("gpu/kernels.ptx"), &[]).unwrap();
    let kernel = gpu.device.kernel(module, "count").unwrap();
    assert_eq!(gpu.device.kernel(module, "count").unwrap(), kernel);
    let counter = gpu.device.symbol(module, "counter").unwrap();
    gpu.device.unload(module).unwrap();
    assert!(gpu.device.resources(kernel).is_err());
    assert_eq!(gpu.device.size(counter), 0);
    assert!(gpu.device.unload(module).is_err());
}

/// Kernels of one block: as many as there are streams run at once, and no timed span is shorter than its longest stream.
#[test]
fn launches_of_several_streams_run_beside_each_other_in_every_regime() {
    let Some(mut gpu) = gpu() else { return };
    let kernel = gpu.kernel("spin");
    let counter = gpu.device.symbol(gpu.module, "counter").unwrap();
    let count = gpu.kernel("count");
    let body = |streams: u32| {
        let spins = (0..4).map(|nth| (nth % streams, spin(kernel, 500)));
        let counts = (0..4).map(|nth| (nth % streams, launch(count, (2, 1, 1), (64, 1, 1), Vec::new())));
        let place = |(stream, step)| match step {
            Step::Launch(launch) => Step::Launch(Launch { stream, ..launch }),
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
            // Every launch has run: cold runs are prepared one by one, the two of the other regimes together.
            let runs = if regime == Regime::Cold { 1 } else { 2 };
            assert_eq!(words(&gpu.read(counter))[0], runs * 4 * 128);
        }
    }
}

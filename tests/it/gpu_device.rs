//! The CUDA backend on a real GPU, through the traits that `execute` uses.

use std::time::Instant;

use crate::gpu::{gpu, in_child, launch, scalar, shaped, timed, untimed, words};
use runner_backend::{DeviceError, LaunchArg, Prepare, Step, TimedBatch};
use runner_types::ElementType;

const ONE: (u32, u32, u32) = (1, 1, 1);

fn floats(values: impl Iterator<Item = f32>) -> Vec<u8> {
    values.flat_map(f32::to_le_bytes).collect()
}

#[test]
#[ignore = "needs a GPU"]
fn a_sum_of_vectors_is_right_to_the_last_element() {
    let mut gpu = gpu();
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
#[ignore = "needs a GPU"]
fn scalars_of_every_width_arrive_whole() {
    let mut gpu = gpu();
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
#[ignore = "needs a GPU"]
fn arguments_that_the_kernel_does_not_take_are_refused_before_the_launch() {
    let mut gpu = gpu();
    let kernel = gpu.kernel("poke");
    let short = gpu.run(vec![launch(kernel, ONE, ONE, vec![scalar(ElementType::U64, 0)])]);
    assert_eq!(
        short.unwrap_err().to_string(),
        "cuLaunchKernel: kernel `poke` takes 2 arguments, but the launch passes 1"
    );
    let wide = vec![scalar(ElementType::U64, 0), scalar(ElementType::U64, 0)];
    assert_eq!(
        gpu.run(vec![launch(kernel, ONE, ONE, wide)]).unwrap_err().to_string(),
        "cuLaunchKernel: kernel `poke` takes 1 bytes as argument 2, but the launch passes 8"
    );
}

#[test]
#[ignore = "needs a GPU"]
fn a_write_one_past_either_end_lands_in_a_guard() {
    let mut gpu = gpu();
    let (bytes, guard) = (1000, 64);
    let buffer = gpu.device.alloc(bytes, guard).unwrap();
    gpu.device.write_guards(buffer, 0xA5).unwrap();
    gpu.device.upload(buffer, 0, &vec![0x11; bytes]).unwrap();
    // The rear guard extends to the end of the mapping, because the data starts on a 512-byte boundary.
    let (intact, longer) = (vec![0xA5_u8; guard], vec![0xA5_u8; (bytes + guard).next_multiple_of(512) - bytes]);
    assert_eq!(gpu.device.read_guards(buffer).unwrap(), (intact.clone(), longer.clone()));

    let address = gpu.address(buffer);
    assert_eq!(address % 512, 0);
    let kernel = gpu.kernel("poke");
    let mut poke = |at: u64| {
        let args = vec![scalar(ElementType::U64, at), scalar(ElementType::U8, 7)];
        gpu.run(vec![launch(kernel, ONE, ONE, args)]).unwrap();
        gpu.device.read_guards(buffer).unwrap()
    };
    let mut damaged = longer;
    damaged[0] = 7;
    assert_eq!(poke(address + bytes as u64), (intact, damaged.clone()));
    let (before, behind) = poke(address - 1);
    assert_eq!((before[guard - 1], before[guard - 2], behind), (7, 0xA5, damaged));
    assert_eq!(gpu.read(buffer), vec![0x11; bytes]);
}

#[test]
#[ignore = "needs a GPU"]
fn an_empty_buffer_has_an_address_and_guards() {
    let mut gpu = gpu();
    let buffer = gpu.device.alloc(0, 256).unwrap();
    gpu.device.write_guards(buffer, 3).unwrap();
    assert_eq!(gpu.device.read_guards(buffer).unwrap(), (vec![3; 256], vec![3; 512]));
    assert!(gpu.address(buffer) != 0);
    let bare = gpu.device.alloc(0, 0).unwrap();
    assert!(gpu.address(bare) != 0);
    assert_eq!(gpu.read(bare), Vec::<u8>::new());
    let fill = untimed(vec![Prepare::Fill { buffer: bare, byte: 1 }], Vec::new(), 1);
    gpu.device.run(&fill).unwrap();
}

#[test]
#[ignore = "needs a GPU"]
fn preparation_comes_before_every_repetition() {
    let mut gpu = gpu();
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
#[ignore = "needs a GPU"]
fn a_gibibyte_goes_and_comes_back_unchanged() {
    let mut gpu = gpu();
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
#[ignore = "needs a GPU"]
fn more_memory_than_there_is_is_refused_with_both_numbers() {
    let mut gpu = gpu();
    let asked = gpu.device.info().memory_bytes.0 * 2;
    let before = gpu.device.memory_free().unwrap();
    match gpu.device.alloc(asked as usize, 256).unwrap_err() {
        DeviceError::OutOfMemory { needed, available } => {
            assert_eq!(needed, asked + 512 + 256);
            assert!(available > 0 && available <= before, "{available} of {before}");
        }
        other => panic!("{other}"),
    }
    assert!(matches!(gpu.device.alloc(usize::MAX, 256), Err(DeviceError::OutOfMemory { .. })));
    let small = gpu.device.alloc(64 << 20, 0).unwrap();
    gpu.device.free(small).unwrap();
    // The driver may keep a little memory for itself after a large request.
    assert!(gpu.device.memory_free().unwrap() + (16 << 20) >= before);
}

#[test]
#[ignore = "needs a GPU"]
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
#[ignore = "needs a GPU"]
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
#[ignore = "needs a GPU"]
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
#[ignore = "needs a GPU"]
fn launches_past_a_limit_are_judged_before_they_run() {
    let mut gpu = gpu();
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
        format!("2048 threads per block, the device allows {threads}")
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
            "{} bytes of shared memory per block (4096 static, {asked} dynamic), the device allows {optin}",
            optin + 1
        )
    );
}

#[test]
#[ignore = "needs a GPU"]
fn all_shared_memory_of_a_block_can_be_used() {
    let mut gpu = gpu();
    let kernel = gpu.kernel("shared");
    let to = gpu.device.alloc(128, 0).unwrap();
    let dynamic = gpu.device.info().shared_per_block_optin - 4096;
    let step = shaped(kernel, ONE, (32, 1, 1), dynamic, vec![LaunchArg::Buffer(to)]);
    gpu.run(vec![Step::Launch(step)]).unwrap();
    let expected: Vec<u8> = (0..32_u32).flat_map(u32::to_le_bytes).collect();
    assert_eq!(gpu.read(to), expected);
}

#[test]
#[ignore = "needs a GPU"]
fn a_cooperative_grid_is_as_large_as_what_resides() {
    let mut gpu = gpu();
    let kernel = gpu.kernel("count");
    let resident = gpu.device.occupancy(kernel, 256, 0).unwrap().blocks_per_sm * gpu.device.info().sm_count;
    let mut run = |blocks| {
        let mut launch = shaped(kernel, (blocks, 1, 1), (256, 1, 1), 0, Vec::new());
        launch.settings.cooperative = true;
        gpu.run(vec![Step::Launch(launch)])
    };
    run(resident).unwrap();
    assert_eq!(
        run(resident + 1).unwrap_err(),
        DeviceError::InvalidLaunch(format!(
            "a cooperative grid of {} blocks, but only {resident} fit on the device at once",
            resident + 1
        ))
    );
}

#[test]
#[ignore = "needs a GPU"]
fn text_that_is_no_ptx_is_refused_with_the_compilers_words() {
    let mut gpu = gpu();
    let text = include_str!("gpu/kernels.ptx").replace("add.f32", "advertise.f32");
    let refused = gpu.load(&text, &[]).unwrap_err().to_string();
    assert!(refused.starts_with("cuModuleLoadDataEx: CUDA_ERROR_INVALID_PTX"), "{refused}");
    assert!(refused.contains("advertise"), "{refused}");
    let missing = gpu.load(include_str!("gpu/kernels.ptx"), &["absent"]).unwrap_err().to_string();
    assert!(missing.starts_with("cuModuleGetFunction: kernel `absent`: CUDA_ERROR_NOT_FOUND"), "{missing}");
}

#[test]
#[ignore = "needs a GPU"]
fn a_module_takes_its_kernels_and_variables_along() {
    let mut gpu = gpu();
    let module = gpu.load(include_str!("gpu/kernels.ptx"), &[]).unwrap();
    let kernel = gpu.device.kernel(module, "count").unwrap();
    assert_eq!(gpu.device.kernel(module, "count").unwrap(), kernel);
    let counter = gpu.device.symbol(module, "counter").unwrap();
    gpu.device.unload(module).unwrap();
    assert!(gpu.device.resources(kernel).is_err());
    assert_eq!(gpu.device.size(counter), 0);
    assert!(gpu.device.unload(module).is_err());
}

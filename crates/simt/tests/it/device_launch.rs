//! Launches from the device: order, visibility, limits, error codes and faults. All are the same for any number of host
//! threads.

use simt::{Options, TrapKind};

use crate::bench::{Arg, Bench, trap};

const KERNELS: &str = include_str!("../ptx/kernels/device_launch.ptx");

const ONE: [u32; 3] = [1, 1, 1];

fn bench() -> Bench {
    Bench::new(KERNELS)
}

/// Returns what the grids log in a launch of one block.
fn logged(kernel: &str, threads: u32) -> Vec<i32> {
    let mut b = bench();
    let log = b.buffer(&[0; 64]);
    b.launch(kernel, ONE, [threads, 1, 1], &[Arg::Address(log)]).unwrap();
    let log = b.ints(log, 64);
    log[1..=log[0] as usize].to_vec()
}

#[test]
fn streams_run_in_the_order_of_their_calls_and_the_tail_after_all_that_children_launch() {
    assert_eq!(logged("order", 1), [1, 10, 11, 12, 13, 20, 21, 22, 30, 31, 32, 40, 41, 42]);
}

#[test]
fn lanes_of_a_warp_that_launch_do_so_each_for_itself() {
    assert_eq!(logged("lanes", 32), (0..32).filter(|t| t % 3 == 1).collect::<Vec<_>>());
}

#[test]
fn a_child_sees_what_its_parent_wrote_and_the_next_one_what_it_wrote() {
    let mut b = bench();
    let data = b.buffer(&[0; 64]);
    let report = b.launch("relay", ONE, [64, 1, 1], &[Arg::Address(data)]).unwrap();
    assert_eq!(b.ints(data, 64), (0..64).map(|t| ((t + 1) * 10 + 1) * 2 + 5).collect::<Vec<_>>());
    // The counts cover all three grids, of two warps each.
    assert_eq!((report.counters.device_launches, report.counters.warps, report.counters.blocks), (2, 6, 3));
}

/// The results are the same on an H100. The first recursion would not end by itself; the second ends at 40.
#[test]
fn launches_nest_as_deep_as_there_are_slots_which_a_grid_keeps_until_all_below_it_has_ended() {
    for (kernel, deepest, refusal) in [("descend", 2048, 69), ("descend_by_tail", 40, 0)] {
        let mut b = bench();
        let (reached, code) = (b.buffer(&[0]), b.buffer(&[0]));
        let args = [Arg::Address(reached), Arg::Address(code), Arg::Int(0)];
        let report = b.launch(kernel, ONE, ONE, &args).unwrap();
        assert_eq!((b.ints(reached, 1), b.ints(code, 1)), (vec![deepest], vec![refusal]), "{kernel}");
        assert_eq!(report.counters.device_launches, deepest as u64, "{kernel}");
    }
}

#[test]
fn launches_that_have_not_ended_are_limited_and_the_limit_can_be_raised() {
    let mut b = bench();
    let out = b.buffer(&[0, 0]);
    let args = [Arg::Address(out), Arg::Int(5000)];
    b.launch("flood", ONE, ONE, &args).unwrap();
    assert_eq!(b.ints(out, 2), [2048, 69]);
    // All launches have ended since then, so the slots are free again.
    b.launch("flood", ONE, ONE, &args).unwrap();
    assert_eq!(b.ints(out, 2), [2048, 69]);
    b.machine.set_pending_launches(Some(6000));
    b.launch("flood", ONE, ONE, &args).unwrap();
    assert_eq!(b.ints(out, 2), [5000, 0]);
}

#[test]
fn what_is_refused_comes_back_as_a_code_which_is_also_the_threads_last_error() {
    let mut b = bench();
    let codes = b.buffer(&[-1; 16]);
    let report = b.launch("refused", ONE, ONE, &[Arg::Address(codes)]).unwrap();
    let expected = [9, 9, 9, 9, 9, 9, 9, 0, 1, 21, 1, 0, 9, 9, 0];
    assert_eq!(b.ints(codes, expected.len()), expected);
    assert_eq!(report.counters.device_launches, 0);
}

#[test]
fn nested_hello_world_prints_what_the_book_shows() {
    let report = bench().launch("hello", ONE, [8, 1, 1], &[Arg::Int(8), Arg::Int(0)]).unwrap();
    let mut expected = String::new();
    for (depth, threads) in [8, 4, 2, 1].into_iter().enumerate() {
        for t in 0..threads {
            expected += format!("Recursion={depth}: Hello World from thread {t} block 0\n").as_str();
        }
        if threads > 1 {
            expected += format!("-------> nested execution depth: {}\n", depth + 1).as_str();
        }
    }
    assert_eq!(report.printed, expected);
}

#[test]
fn a_fault_of_a_child_names_the_child_and_who_launched_it() {
    let mut b = bench();
    let data = b.buffer(&[0; 4]);
    let (kind, message) = trap(b.launch("careless", ONE, ONE, &[Arg::Address(data), Arg::Int(4)]));
    assert_eq!(kind, TrapKind::OutOfBounds);
    assert!(
        message.contains("0 bytes past the end of buffer 0 (16 bytes) in kernel `overrun` at device_launch.cu:"),
        "{message}"
    );
    assert!(message.contains("block (0,0,0), thread (0,0,0), launched by `careless` at "), "{message}");
    assert!(message.ends_with("(depth 1)"), "{message}");
}

/// Adds to `sum` what the kernel `spread` adds with this many blocks of four threads, in one possible order. Counts its
/// launches.
fn spread(sum: &mut f32, blocks: u32, depth: i32, launches: &mut u64) {
    for block in 0..blocks {
        for thread in 0..4 {
            *launches += 1;
            let what = 1.0 / (1.0 + (block * 4 + thread) as f32);
            (0..4).for_each(|_| *sum += what);
        }
        if depth > 0 {
            *launches += 1;
            spread(sum, 2, depth - 1, launches);
        }
    }
}

#[test]
fn results_and_counts_are_the_same_for_any_number_of_host_threads() {
    let (mut expected, mut launches) = (0.0, 0);
    spread(&mut expected, 3, 2, &mut launches);
    let mut counters = None;
    for threads in [1, 2, 4] {
        let mut b = Bench::load(KERNELS, Options { threads: Some(threads), ..Options::default() });
        let sum = b.buffer(&[0]);
        let report = b.launch("spread", [3, 1, 1], [4, 1, 1], &[Arg::Address(sum), Arg::Int(2)]).unwrap();
        assert_eq!(f32::from_bits(b.ints(sum, 1)[0] as u32).to_bits(), expected.to_bits(), "{threads} threads");
        assert_eq!(report.counters.device_launches, launches);
        assert_eq!(*counters.get_or_insert(report.counters), report.counters, "{threads} threads");
    }
}

#[test]
fn copies_and_fills_run_in_the_order_of_their_stream() {
    let mut b = bench();
    let (to, from) = (b.buffer(&[5; 24]), b.buffer(&(100..124).collect::<Vec<_>>()));
    b.launch("transfers", ONE, ONE, &[Arg::Address(to), Arg::Address(from)]).unwrap();
    let ones = 0x0101_0101;
    let expected = [
        [100, 101, 105, 113, 121, -1, ones, ones],
        [-1, 108, 109, 110, -1, -1, 0, 0],
        [-1, 116, 117, 118, -1, -1, 0, 0],
    ];
    assert_eq!(b.ints(to, 24), expected.concat());
}

#[test]
fn a_copy_beyond_an_allocation_is_a_fault_of_the_kernel_that_queued_it() {
    let mut b = bench();
    let (to, from) = (b.buffer(&[5; 24]), b.buffer(&[0; 8]));
    let (kind, message) = trap(b.launch("transfers", ONE, ONE, &[Arg::Address(to), Arg::Address(from)]));
    assert_eq!(kind, TrapKind::OutOfBounds);
    assert!(message.contains("a transfer that the kernel queued: 12 bytes at address"), "{message}");
    assert!(message.contains("in kernel `transfers` at "), "{message}");
}

#[test]
fn kernels_can_ask_what_device_and_kernels_are_like() {
    let mut b = bench();
    let (out, text) = (b.buffer(&[-1; 16]), b.buffer(&[0; 8]));
    b.launch("queries", ONE, ONE, &[Arg::Address(out), Arg::Address(text)]).unwrap();
    // As on an H100: 132 multiprocessors with 2,048 threads each, in which four blocks of 512 fit. A block with 100 KiB
    // of shared memory would have to opt in.
    assert_eq!(b.ints(out, 13), [132, 2048, 0, 1, 6000, 64, 0, 4, 0, 2048, 0, 7, 0]);
    assert_eq!(b.ints(text, 8), "cudaErro".bytes().map(i32::from).collect::<Vec<_>>());
}

#[test]
fn launches_that_programs_make_by_hand_are_the_same() {
    let mut b = bench();
    let data = b.buffer(&(0..64).collect::<Vec<_>>());
    b.launch("by_hand", ONE, ONE, &[Arg::Address(data)]).unwrap();
    let mut expected: Vec<i32> = (0..64).map(|t| if t < 32 { t * 3 + 4 } else { t }).collect();
    (expected[62], expected[63]) = (0, 0);
    assert_eq!(b.ints(data, 64), expected);
}

#[test]
fn a_kernel_that_calls_an_unknown_function_of_the_device_runtime_is_refused_and_the_others_run() {
    let unknown = KERNELS.replace("__cudaCDP2PeekAtLastError", "__cudaCDP2DeviceSynchronize");
    let mut b = Bench::new(&unknown);
    let refused: Vec<(String, String)> =
        b.machine.refused(b.module).map(|(name, reason)| (name.to_owned(), reason.to_string())).collect();
    let [(name, message)] = &refused[..] else { panic!("{refused:?}") };
    assert_eq!(name, "refused");
    assert!(message.starts_with("kernel `refused`, "), "{message}");
    assert!(
        message.contains("the simulator has no device runtime function `__cudaCDP2DeviceSynchronize`"),
        "{message}"
    );
    let log = b.buffer(&[0; 64]);
    let error = b.launch("refused", ONE, ONE, &[Arg::Address(log), Arg::Address(log)]).unwrap_err().to_string();
    assert_eq!(&error, message);
    b.launch("order", ONE, ONE, &[Arg::Address(log)]).unwrap();
    assert_eq!(b.ints(log, 1), [14]);
}

//! Planted faults: each must be found, where it is, and in the right words.

use runner::sim::{Options, TrapKind};

use crate::bench::{Arg, Bench, trap};

const FAULTS: &str = include_str!("../ptx/kernels/faults.ptx");

/// Runs a kernel on `bytes` fresh ints; what it is caught at.
fn caught(kernel: &str, threads: u32, args: impl Fn(&mut Bench) -> Vec<Arg>) -> (TrapKind, String) {
    let mut b = Bench::with(FAULTS, Options { watchdog: 1_000_000, ..Options::default() });
    let args = args(&mut b);
    trap(b.launch(kernel, [1, 1, 1], [threads, 1, 1], &args))
}

#[test]
fn a_store_past_the_end_names_the_buffer_the_thread_and_the_line() {
    let (kind, message) = caught("out_of_bounds", 64, |b| vec![Arg::Address(b.buffer(&[0; 64])), Arg::Int(1)]);
    assert_eq!(kind, TrapKind::OutOfBounds);
    assert!(message.contains("0 bytes past buffer 0 (256 bytes)"), "{message}");
    assert!(message.contains("faults.cu:8, block (0,0,0), thread (63,0,0)"), "{message}");
}

#[test]
fn bounds_are_checked_without_the_sanitizer_too() {
    let mut b = Bench::with(FAULTS, Options { sanitize: false, ..Options::default() });
    let data = b.buffer(&[0; 64]);
    let (kind, _) = trap(b.launch("out_of_bounds", [1, 1, 1], [64, 1, 1], &[Arg::Address(data), Arg::Int(1)]));
    assert_eq!(kind, TrapKind::OutOfBounds);
}

#[test]
fn misaligned_stores_are_caught() {
    let (kind, message) = caught("misaligned", 1, |b| vec![Arg::Address(b.buffer(&[0; 4]))]);
    assert_eq!(kind, TrapKind::Misaligned, "{message}");
    assert!(message.contains("access of 4 bytes at 0x") && message.contains("(buffer 0 + 2)"), "{message}");
}

#[test]
fn reads_of_memory_that_was_never_written_are_caught() {
    let (kind, message) = caught("uninitialised_global", 32, |b| {
        let data = b.machine.alloc(128).unwrap();
        b.machine.write(data, &[0; 100]).unwrap();
        vec![Arg::Address(data), Arg::Address(b.buffer(&[0; 32]))]
    });
    assert_eq!(kind, TrapKind::Uninitialised);
    assert!(message.contains("(buffer 0 + 100)") && message.contains("thread (25,0,0)"), "{message}");
}

#[test]
fn reads_of_shared_memory_that_was_never_written_are_caught() {
    let (kind, message) = caught("uninitialised_shared", 64, |b| vec![Arg::Address(b.buffer(&[0; 64]))]);
    assert_eq!(kind, TrapKind::Uninitialised);
    assert!(message.contains("thread (10,0,0)"), "{message}");
}

#[test]
fn warps_that_meet_in_shared_memory_without_a_barrier_race() {
    let (kind, message) = caught("shared_race", 64, |b| vec![Arg::Address(b.buffer(&[0; 64]))]);
    assert!(matches!(kind, TrapKind::Race | TrapKind::Uninitialised), "{message}");
}

#[test]
fn a_barrier_that_a_part_of_a_warp_reaches_is_caught() {
    let (kind, message) = caught("partial_barrier", 32, |b| vec![Arg::Address(b.buffer(&[0; 32]))]);
    assert_eq!(kind, TrapKind::Barrier);
    assert!(message.contains("lanes 0x0000007f"), "{message}");
}

#[test]
fn a_shuffle_from_a_lane_that_is_not_there_is_caught() {
    let (kind, message) = caught("absent_lane", 32, |b| vec![Arg::Address(b.buffer(&[0; 32]))]);
    assert_eq!(kind, TrapKind::Shuffle, "{message}");
}

#[test]
fn shared_memory_has_an_end() {
    let args = |b: &mut Bench| vec![Arg::Address(b.buffer(&[0; 32])), Arg::Int(3)];
    let (kind, message) = caught("shared_out_of_range", 32, args);
    assert_eq!(kind, TrapKind::OutOfBounds);
    assert!(message.contains("128 bytes of shared memory") && message.contains("thread (29,0,0)"), "{message}");
}

#[test]
fn the_watchdog_ends_what_never_ends() {
    let (kind, message) = caught("never_ends", 1, |b| vec![Arg::Address(b.buffer(&[0]))]);
    assert_eq!(kind, TrapKind::Watchdog, "{message}");
}

#[test]
fn a_failed_assertion_says_which_and_where() {
    let (kind, message) = caught("failed_assertion", 8, |b| vec![Arg::Address(b.buffer(&[0, 1, 2, 3, 4, 5, 6, 7]))]);
    assert_eq!(kind, TrapKind::Assert);
    assert!(message.contains("data[threadIdx.x] != 3") && message.contains("thread (3,0,0)"), "{message}");
}

#[test]
fn a_trap_names_the_first_thread_that_reached_it() {
    let (kind, message) = caught("trapped", 8, |_| Vec::new());
    assert_eq!(kind, TrapKind::Trap);
    assert!(message.contains("thread (5,0,0)"), "{message}");
}

#[test]
fn a_null_pointer_is_called_that() {
    let (kind, message) = caught("null_pointer", 1, |b| vec![Arg::Address(b.buffer(&[0]))]);
    assert_eq!(kind, TrapKind::OutOfBounds);
    assert!(message.contains("a null pointer"), "{message}");
}

#[test]
fn an_unknown_opcode_is_refused_at_load_with_its_line_and_kernel() {
    let text = ".version 9.0\n.target sm_90\n.address_size 64\n.file 1 \"k.cu\"\n.visible .entry k()\n{\n.loc 1 7 3\nwmma.load.a.sync %r1;\nret;\n}\n";
    let mut machine = runner::sim::Machine::new(runner::sim::profiles().remove(0), Options::default()).unwrap();
    let error = machine.load(text).unwrap_err().to_string();
    assert_eq!(error, "kernel `k`, k.cu:7 (line 8 of the PTX): opcode `wmma.load.a.sync` is not simulated");
}

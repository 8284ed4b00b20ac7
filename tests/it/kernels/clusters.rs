//! Thread block clusters.

use simt::{Trap, TrapKind};

use super::lab::{Lab, Shape, ints, line};

const KERNELS: [&str; 13] = [
    "histogram",
    "sums",
    "hand_on",
    "places",
    "send",
    "relay",
    "too_early",
    "too_late",
    "not_met",
    "not_asked",
    "both_store",
    "beyond",
    "unwritten",
];

fn lab() -> Lab {
    Lab::new("clusters.cu", &KERNELS)
}

/// The fault of a kernel that only takes an output.
fn fault(kernel: &str, grid: u32) -> Box<Trap> {
    let mut lab = lab();
    let output = lab.fresh(4 * 8);
    lab.trap(kernel, line(grid, 1), &[output.into()])
}

/// The fault of a kernel in which one of two blocks reads memory of the other.
fn fault_of(kernel: &str, reader: i32) -> Box<Trap> {
    let mut lab = lab();
    let output = lab.fresh(4);
    lab.trap(kernel, line(2, 1), &[output.into(), reader.into()])
}

#[test]
fn bins_are_spread_over_the_blocks_of_a_cluster() {
    let (n, bins) = (10_000, 64_usize);
    let values = ints(n, bins as u64, 1);
    let mut lab = lab();
    let (input, output) = (lab.buffer(&values), lab.buffer(&vec![0_i32; bins]));
    let shape = Shape { shared: 4 * bins as u32 / 4, ..line(8, 128) };
    let args = [input.into(), (n as i32).into(), output.into(), (bins as i32).into()];
    let report = lab.launch("histogram", shape, &args);
    let counted = |bin: usize| values.iter().filter(|v| **v as usize == bin).count() as i32;
    assert_eq!(lab.read::<i32>(output), (0..bins).map(counted).collect::<Vec<_>>());
    assert_eq!(report.notes, Vec::<String>::new());
    // Two barriers for each of four warps in each of eight blocks.
    assert_eq!(report.counters.barriers, 2 * 4 * 8);
}

#[test]
fn a_cluster_of_three_dimensions_sums_its_blocks_parts() {
    let each = 100_usize;
    let grid = [4, 2, 6];
    let blocks: usize = 48;
    let values = ints(blocks * each, 1000, 2);
    let mut lab = lab();
    let (input, output) = (lab.buffer(&values), lab.fresh(4 * blocks / 8));
    let shape = Shape { grid, ..line(1, 64) };
    lab.launch("sums", shape, &[input.into(), output.into(), (each as i32).into()]);
    let mut expected = vec![0_i32; blocks / 8];
    for (block, part) in values.chunks(each).enumerate() {
        let (x, y, z) = (block % 4, block / 4 % 2, block / 8);
        expected[(z / 2 + y / 2) * 2 + x / 2] += part.iter().sum::<i32>();
    }
    assert_eq!(lab.read::<i32>(output), expected);
}

#[test]
fn values_are_handed_on_around_the_cluster() {
    for rounds in 0..7_usize {
        let values = ints(6 * 64, 1000, 3);
        let mut lab = lab();
        let (input, output) = (lab.buffer(&values), lab.fresh(4 * 6 * 64));
        let report = lab.launch("hand_on", line(6, 64), &[input.into(), output.into(), (rounds as i32).into()]);
        let source = |block: usize| block / 3 * 3 + (block % 3 + 3 * rounds - rounds) % 3;
        let expected: Vec<i32> = (0..6 * 64).map(|k| values[source(k / 64) * 64 + k % 64] + rounds as i32).collect();
        assert_eq!(lab.read::<i32>(output), expected, "{rounds} rounds");
        assert_eq!(report.notes, Vec::<String>::new());
    }
}

#[test]
fn a_thread_knows_its_place_in_the_cluster() {
    let mut lab = lab();
    let output = lab.fresh(4 * 8 * 24);
    lab.launch("places", Shape { grid: [4, 6, 1], ..line(1, 32) }, &[output.into()]);
    let got = lab.read::<i32>(output);
    for block in 0..24 {
        let (x, y) = (block % 4, block / 4);
        let rank = y % 3 * 2 + x % 2;
        let first = y / 3 * 3 * 4 + x / 2 * 2;
        let expected = [rank, rank, 6, 6 * 32, first, 0, rank, rank * 32];
        assert_eq!(got[block as usize * 8..][..8], expected, "block ({x},{y})");
    }
}

#[test]
fn a_block_waits_for_the_bytes_that_another_one_sends() {
    let values = ints(4 * 128, 1000, 4);
    let mut lab = lab();
    let (input, output) = (lab.buffer(&values), lab.fresh(4 * 4 * 128));
    let report = lab.launch("send", line(4, 128), &[input.into(), output.into()]);
    let expected: Vec<i32> = (0..4 * 128).map(|k| values[k ^ 128]).collect();
    assert_eq!(lab.read::<i32>(output), expected);
    assert_eq!(report.notes, Vec::<String>::new());
}

#[test]
fn what_a_block_wrote_to_global_memory_is_ordered_by_barrier_objects() {
    let mut lab = lab();
    let output = lab.buffer(&[0_i32; 3]);
    lab.launch("relay", line(6, 32), &[output.into(), 10.into()]);
    // Blocks 0 and 1 append their digits in turn.
    assert_eq!(lab.read::<i32>(output), [0b01_0101_0101; 3]);
}

#[test]
fn memory_of_a_block_that_may_not_have_begun_is_not_reached() {
    let trap = fault("too_early", 2);
    assert_eq!(trap.kind, TrapKind::Race);
    assert!(trap.message.contains("before the blocks of the cluster have synchronised"), "{trap}");
}

#[test]
fn memory_of_a_block_that_may_have_ended_is_not_reached() {
    let trap = fault_of("too_late", 0);
    assert!(trap.message.contains("of block (1,0,0), which ends with no cluster barrier in between"), "{trap}");
    assert_eq!((trap.kind, trap.block), (TrapKind::Race, [0, 0, 0]));
    let trap = fault_of("too_late", 1);
    assert!(trap.message.contains("of block (0,0,0), which has ended"), "{trap}");
    assert_eq!((trap.kind, trap.block), (TrapKind::OutOfBounds, [1, 0, 0]));
}

#[test]
fn blocks_that_have_not_met_race() {
    let trap = fault_of("not_met", 1);
    assert_eq!((trap.kind, trap.block, trap.thread), (TrapKind::Race, [1, 0, 0], Some([0, 0, 0])));
    let what = "race on shared memory + 0 of block (0,0,0): read here, written by its thread (0,0,0) at clusters.cu:";
    assert!(trap.message.contains(what), "{trap}");
    let trap = fault_of("not_met", 0);
    assert_eq!((trap.kind, trap.block), (TrapKind::Race, [1, 0, 0]));
    assert!(trap.message.contains("written here, read by thread (0,0,0) of block (0,0,0) at clusters.cu:"), "{trap}");
}

#[test]
fn a_block_races_with_a_visitor_on_its_own_memory() {
    let trap = fault("not_asked", 2);
    assert_eq!((trap.kind, trap.block), (TrapKind::Race, [1, 0, 0]));
    assert!(trap.message.contains("read here, written by thread (0,0,0) of block (0,0,0) at clusters.cu:"), "{trap}");
}

#[test]
fn two_visitors_race_on_the_memory_of_a_third_block() {
    let trap = fault("both_store", 3);
    assert_eq!((trap.kind, trap.block), (TrapKind::Race, [2, 0, 0]));
    assert!(
        trap.message.contains("of block (0,0,0): written here, written by thread (0,0,0) of block (1,0,0)"),
        "{trap}"
    );
}

#[test]
fn bounds_and_unwritten_words_are_found_in_other_blocks() {
    let trap = fault("beyond", 2);
    assert_eq!(trap.kind, TrapKind::OutOfBounds);
    assert!(trap.message.contains("access to shared memory, at offset 0x10: it has 16 bytes"), "{trap}");
    let trap = fault("unwritten", 2);
    assert_eq!(trap.kind, TrapKind::Uninitialised);
    assert!(trap.message.contains("shared memory + 4 of block (1,0,0), which was never written"), "{trap}");
}

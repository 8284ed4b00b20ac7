//! Features of the machine other than arithmetic, tested by what kernels leave in memory.

use simt::Options;

use crate::bench::{Arg, Bench};

const FEATURES: &str = include_str!("../ptx/kernels/features.ptx");

fn bench() -> Bench {
    Bench::new(FEATURES)
}

#[test]
fn printf_is_captured_in_the_order_of_blocks() {
    let mut b = bench();
    let data = b.buffer(&[42]);
    let report = b.launch("print", [3, 1, 1], [2, 1, 1], &[Arg::Address(data)]).unwrap();
    let mut expected = String::new();
    for (block, t) in (0..3).flat_map(|block| (0..2).map(move |t| (block, t))) {
        expected += format!("thread {t} of block {block}: {:.2} text 42\n", 1.5 * f64::from(t)).as_str();
    }
    assert_eq!(report.printed, expected);
}

#[test]
fn the_barrier_of_the_grid_holds_every_block() {
    let mut b = bench();
    let n = 8 * 64;
    let data = b.buffer(&vec![0; n]);
    let shape = ([8, 1, 1], [64, 1, 1], 0, true);
    b.launch_with("grid_reverse", shape, &[Arg::Address(data), Arg::Int(n as i32)]).unwrap();
    assert_eq!(b.ints(data, n), (0..n as i32).rev().collect::<Vec<_>>());
}

#[test]
fn lanes_recurse_to_different_depths() {
    let mut b = bench();
    let out = b.buffer(&[0; 64]);
    b.launch("recursion", [1, 1, 1], [64, 1, 1], &[Arg::Address(out)]).unwrap();
    let numbers = [0, 1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89];
    assert_eq!(b.ints(out, 64), (0..64).map(|t| numbers[t % 12]).collect::<Vec<_>>());
}

#[test]
fn lanes_call_different_functions_through_one_instruction() {
    let mut b = bench();
    let out = b.buffer(&(0..64).collect::<Vec<_>>());
    b.launch("indirect", [1, 1, 1], [64, 1, 1], &[Arg::Address(out)]).unwrap();
    let expected: Vec<i32> = (0..64).map(|t| [t + 1, t * 2, t * t][t as usize % 3]).collect();
    assert_eq!(b.ints(out, 64), expected);
}

#[test]
fn a_lock_between_lanes_of_a_warp_is_won_by_each_in_turn() {
    let mut b = bench();
    let (lock, counter) = (b.buffer(&[0]), b.buffer(&[0]));
    let args = [Arg::Address(lock), Arg::Address(counter)];
    let report = b.launch("spin_lock", [4, 1, 1], [96, 1, 1], &args).unwrap();
    assert_eq!(b.ints(counter, 1), [384]);
    assert!(report.notes.iter().any(|n| n.contains("independent thread scheduling")), "{:?}", report.notes);
}

#[test]
fn local_arrays_belong_to_each_thread() {
    let mut b = bench();
    let values: Vec<i32> = (0..32).map(|i| i * i + 1).collect();
    let (data, out) = (b.buffer(&values), b.buffer(&[0; 32]));
    b.launch("local_array", [1, 1, 1], [32, 1, 1], &[Arg::Address(data), Arg::Address(out), Arg::Int(5)]).unwrap();
    let expected: Vec<i32> =
        (0..32).map(|t| (0..32).map(|i| values[((i * 5 + t * i) & 31) as usize] * 5).sum()).collect();
    assert_eq!(b.ints(out, 32), expected);
}

#[test]
fn structures_are_passed_by_value() {
    let mut b = bench();
    let out = b.buffer(&[0; 40]);
    let many: Vec<u8> = (0..20_i32).flat_map(|i| (i * 11).to_le_bytes()).collect();
    b.launch("by_value", [1, 1, 1], [40, 1, 1], &[Arg::Bytes(many), Arg::Address(out)]).unwrap();
    assert_eq!(b.ints(out, 40), (0..40).map(|t| t % 20 * 11).collect::<Vec<_>>());
}

#[test]
fn tiles_and_coalesced_groups_shuffle_among_themselves() {
    let mut b = bench();
    let data = b.buffer(&(0..64).collect::<Vec<_>>());
    b.launch("partitions", [1, 1, 1], [64, 1, 1], &[Arg::Address(data)]).unwrap();
    let left = b.ints(data, 64);
    for first in (0..64).step_by(8) {
        let group =
            if first % 3 == 0 { (first / 32 * 32..first / 32 * 32 + 32).filter(|t| t % 3 == 0).count() } else { 0 };
        let sum: i32 = (first..first + 8).sum();
        assert_eq!(left[first as usize], sum + 1000 * group as i32, "thread {first}");
    }
}

#[test]
fn the_devices_heap_gives_each_thread_its_own_piece() {
    let mut b = bench();
    let out = b.buffer(&[0; 48]);
    b.launch("heap", [1, 1, 1], [48, 1, 1], &[Arg::Address(out)]).unwrap();
    assert_eq!(b.ints(out, 48), (0..48).collect::<Vec<_>>());
}

#[test]
fn float_atomics_happen_in_the_order_of_blocks_on_any_number_of_threads() {
    let mut expected = 1e8_f32;
    for _ in 1..200 {
        expected += 3.0;
    }
    for threads in [1, 2, 4] {
        let mut b = Bench::load(FEATURES, Options { threads: Some(threads), ..Options::default() });
        let sum = b.buffer(&[0]);
        b.launch("float_sum", [200, 1, 1], [32, 1, 1], &[Arg::Address(sum)]).unwrap();
        assert_eq!(f32::from_bits(b.ints(sum, 1)[0] as u32).to_bits(), expected.to_bits(), "{threads} threads");
    }
}

#[test]
fn tickets_are_drawn_in_the_order_of_blocks() {
    let mut b = Bench::load(FEATURES, Options { threads: Some(4), ..Options::default() });
    let (next, out) = (b.buffer(&[0]), b.buffer(&[-1; 300]));
    b.launch("tickets", [300, 1, 1], [64, 1, 1], &[Arg::Address(next), Arg::Address(out)]).unwrap();
    assert_eq!(b.ints(out, 300), (0..300).collect::<Vec<_>>());
}

#[test]
fn the_last_block_sees_what_all_others_left() {
    let mut b = Bench::load(FEATURES, Options { threads: Some(4), ..Options::default() });
    let values: Vec<i32> = (0..64 * 50).map(|i| i % 97).collect();
    let (data, partial) = (b.buffer(&values), b.buffer(&[0; 50]));
    let (done, sum) = (b.buffer(&[0]), b.buffer(&[0]));
    let args = [data, partial, done, sum].map(Arg::Address);
    b.launch("last_block", [50, 1, 1], [64, 1, 1], &args).unwrap();
    assert_eq!(b.ints(sum, 1), [values.iter().sum::<i32>()]);
}

#[test]
fn a_block_that_waits_for_a_later_one_is_scheduled_fairly_and_noted() {
    let mut b = bench();
    let (flag, out) = (b.buffer(&[0]), b.buffer(&[0]));
    let report = b.launch("waits_for_later", [20, 1, 1], [32, 1, 1], &[flag, out].map(Arg::Address)).unwrap();
    assert_eq!(b.ints(out, 1), [7]);
    assert!(report.notes.iter().any(|n| n.contains("wait for later ones")), "{:?}", report.notes);
}

#[test]
fn dynamic_shared_memory_starts_behind_static_arrays() {
    let mut b = bench();
    let data = b.buffer(&(0..64).collect::<Vec<_>>());
    b.launch_with("dynamic_shared", ([1, 1, 1], [64, 1, 1], 256, false), &[Arg::Address(data)]).unwrap();
    assert_eq!(b.ints(data, 64), (0..64).rev().collect::<Vec<_>>());
}

#[test]
fn a_column_of_an_unpadded_tile_meets_in_one_bank() {
    let mut b = bench();
    let (data, out) = (b.buffer(&(0..1024).collect::<Vec<_>>()), b.buffer(&[0; 1024]));
    let report = b.launch("column_sums", [1, 1, 1], [32, 32, 1], &[data, out].map(Arg::Address)).unwrap();
    let expected: Vec<i32> = (0..1024).map(|i| i % 32 * 32 + i / 32).collect();
    assert_eq!(b.ints(out, 1024), expected);
    // Each of 32 warps loads a column, in 32 passes instead of one. Their stores are rows.
    assert_eq!(report.counters.shared_load.conflicts, 32 * 31);
    assert_eq!(report.counters.shared_store.conflicts, 0);
    assert_eq!((report.counters.shared_load.requests, report.counters.shared_store.requests), (32, 32));
}

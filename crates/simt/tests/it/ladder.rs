//! Reductions and sums whose 128-byte transactions were published for a K80, on 16,384 integers in blocks of 1,024.

use simt::{Counters, Options};

use crate::bench::{Arg, Bench};

const LADDER: &str = include_str!("../ptx/kernels/ladder.ptx");
const N: usize = 16384;

/// Runs one kernel on 16,384 integers. Returns its counts and the sum of its results.
fn reduce(kernel: &str, per_block: usize, options: Options) -> (Counters, i64) {
    let mut bench = Bench::load(LADDER, options);
    let values: Vec<i32> = (0..N as i32).map(|i| i % 251).collect();
    let blocks = N / per_block;
    let (data, sums) = (bench.buffer(&values), bench.buffer(&vec![0; blocks]));
    let report =
        bench.launch(kernel, [blocks as u32, 1, 1], [1024, 1, 1], &[Arg::Address(data), Arg::Address(sums)]).unwrap();
    let total = bench.ints(sums, blocks).into_iter().map(i64::from).sum();
    (report.counters, total)
}

/// Checks the published counts of load and store transactions, and checks the sum against the host's.
fn check(kernel: &str, per_block: usize, loads: u64, stores: u64) {
    let (counters, total) = reduce(kernel, per_block, Options::default());
    assert_eq!(total, (0..N as i64).map(|i| i % 251).sum::<i64>(), "{kernel}");
    assert_eq!((counters.global_load.lines, counters.global_store.lines), (loads, stores), "{kernel}");
}

#[test]
fn neighbouring_pairs_move_the_published_transactions() {
    check("neighboured", 1024, 6128, 3072);
    check("neighboured_dense", 1024, 6128, 3072);
}

#[test]
fn the_unrolled_warp_moves_the_published_transactions() {
    let (counters, _) = reduce("neighboured_unrolled_warp", 1024, Options::default());
    assert_eq!((counters.global_load.lines, counters.global_store.lines), (7200, 3600));
}

#[test]
fn interleaved_pairs_move_the_published_transactions() {
    check("interleaved1", 1024, 1168, 592);
    check("interleaved2", 2048, 1096, 552);
    check("interleaved4", 4096, 804, 276);
    check("interleaved8", 8192, 658, 138);
}

#[test]
fn matrix_sums_move_a_fixed_number_of_transactions_an_element() {
    // 16384² elements have 16,777,216 loads and 8,388,608 stores with blocks 32 wide, and twice as many with blocks 16
    // wide. Both scale with the number of elements.
    let mut bench = Bench::new(LADDER);
    let (nx, ny) = (256, 64);
    let scale = 16384 * 16384 / (nx * ny) as u64;
    let a: Vec<i32> = (0..nx * ny).collect();
    let b: Vec<i32> = (0..nx * ny).map(|i| 3 * i).collect();
    for (bx, by, loads, stores) in [
        (32, 32, 16_777_216, 8_388_608),
        (32, 16, 16_777_216, 8_388_608),
        (16, 32, 33_554_432, 16_777_216),
        (16, 16, 33_554_432, 16_777_216),
    ] {
        let (a, b, c) = (bench.buffer(&a), bench.buffer(&b), bench.buffer(&vec![0; a.len()]));
        let args = [Arg::Address(a), Arg::Address(b), Arg::Address(c), Arg::Int(nx), Arg::Int(ny)];
        let grid = [nx as u32 / bx, ny as u32 / by, 1];
        let counters = bench.launch("sum_matrix", grid, [bx, by, 1], &args).unwrap().counters;
        assert_eq!(
            (counters.global_load.lines * scale, counters.global_store.lines * scale),
            (loads, stores),
            "{bx}×{by}"
        );
        assert!(bench.ints(c, (nx * ny) as usize).iter().enumerate().all(|(i, &v)| v == 4 * i as i32));
    }
}

#[test]
fn neighbouring_pairs_count_what_the_profiler_counted_on_an_h100() {
    // For 2^24 integers in blocks of 512, Nsight Compute counts 6,258,688 load requests, 16,744,448 load sectors and
    // 8,388,608 store sectors. The counts for 2^14 integers are 1/1024 of these.
    let mut bench = Bench::new(LADDER);
    let (data, sums) = (bench.buffer(&vec![1; N]), bench.buffer(&[0; N / 512]));
    let args = [Arg::Address(data), Arg::Address(sums)];
    let c = bench.launch("neighboured", [(N / 512) as u32, 1, 1], [512, 1, 1], &args).unwrap().counters;
    assert_eq!(c.global_load.requests * 1024, 6_258_688);
    assert_eq!(c.global_load.sectors * 1024, 16_744_448);
    assert_eq!(c.global_store.sectors * 1024, 8_388_608);
}

#[test]
fn counts_and_results_do_not_depend_on_the_number_of_threads_or_on_checking() {
    let base = reduce("neighboured", 1024, Options { threads: Some(1), ..Options::default() });
    for threads in [2, 3, 8] {
        assert_eq!(base, reduce("neighboured", 1024, Options { threads: Some(threads), ..Options::default() }));
    }
    assert_eq!(base, reduce("neighboured", 1024, Options { sanitize: false, ..Options::default() }));
}

#[test]
fn blocks_of_any_shape_number_their_threads() {
    for (block, grid) in
        [([80, 1, 1], [3, 1, 1]), ([8, 8, 8], [2, 2, 2]), ([1, 1, 1], [5, 3, 2]), ([33, 3, 2], [1, 2, 1])]
    {
        let mut bench = Bench::new(LADDER);
        let count = (block.iter().product::<u32>() * grid.iter().product::<u32>()) as usize;
        let out = bench.buffer(&vec![-1; count]);
        let report = bench.launch("linear_index", grid, block, &[Arg::Address(out)]).unwrap();
        assert_eq!(bench.ints(out, count), (0..count as i32).collect::<Vec<_>>(), "{block:?}");
        let warps = block.iter().product::<u32>().div_ceil(32) * grid.iter().product::<u32>();
        assert_eq!(report.counters.warps, u64::from(warps));
    }
}

//! Communication between blocks of a cluster: bulk copies to several blocks, words, and both kinds of reductions.

use simt::{Trap, TrapKind};

use super::lab::{Buffer, Lab, Shape, ints, line};

const KERNELS: [&str; 10] = [
    "spread",
    "transpose",
    "histogram",
    "columns",
    "not_waited",
    "not_asked",
    "told_elsewhere",
    "not_fenced",
    "unwritten",
    "too_soon",
];
const BLOCKS: usize = 4;
const TILE: usize = 256;
const THREADS: usize = 128;

fn lab() -> Lab {
    Lab::new("sending.cu", &KERNELS)
}

/// The fault of a kernel in which both blocks of a cluster write to an output.
fn fault(kernel: &str, threads: u32) -> Box<Trap> {
    let mut lab = lab();
    let output = lab.fresh(4 * TILE);
    lab.trap(kernel, line(2, threads), &[output.into()])
}

#[test]
fn a_piece_comes_to_all_blocks_of_a_cluster_at_once() {
    for tiles in [1, 6] {
        let (n, rows) = (tiles * TILE, 2 * BLOCKS * THREADS);
        let (matrix, vector) = (ints(n * rows, 100, 1), ints(n, 100, 2));
        let mut lab = lab();
        let (m, v, output) = (lab.buffer(&matrix), lab.buffer(&vector), lab.fresh(4 * rows));
        let args = [m.into(), v.into(), output.into(), (n as i32).into()];
        let report = lab.launch("spread", line(2 * BLOCKS as u32, THREADS as u32), &args);
        let product = |row: &[i32]| row.iter().zip(&vector).map(|(a, b)| a * b).sum::<i32>();
        assert_eq!(lab.read::<i32>(output), matrix.chunks(n).map(product).collect::<Vec<_>>(), "{tiles} tiles");
        assert_eq!(report.notes, Vec::<String>::new());
        // Each piece of the vector is read once per cluster, the matrix once.
        assert_eq!(report.counters.global_load.bytes, (4 * n * rows + 2 * 4 * n) as u64);
    }
}

#[test]
fn values_change_places_between_blocks_by_words_pairs_and_fours() {
    let whole = BLOCKS * THREADS;
    let values = ints(2 * BLOCKS * whole, 1 << 30, 3);
    for width in [1, 2, 4] {
        let mut lab = lab();
        let (input, output) = (lab.buffer(&values), lab.fresh(4 * values.len()));
        let args = [input.into(), output.into(), width.into()];
        let report = lab.launch("transpose", line(2 * BLOCKS as u32, THREADS as u32), &args);
        let expected: Vec<i32> = (0..values.len())
            .map(|at| {
                let (cluster, block, from, k) =
                    (at / (BLOCKS * whole), at / whole % BLOCKS, at / THREADS % BLOCKS, at % THREADS);
                values[(cluster * BLOCKS + from) * whole + block * THREADS + k]
            })
            .collect();
        assert_eq!(lab.read::<i32>(output), expected, "{width} at once");
        assert_eq!(report.notes, Vec::<String>::new());
        // Each sending warp makes one request per destination block; its lanes store to adjacent addresses.
        let stores = report.counters.shared_store;
        assert_eq!((stores.requests, stores.conflicts), (2 * 4 * 4 * (4 / width as u64), 0), "{width} at once");
    }
}

#[test]
fn bins_are_counted_by_reductions_through_the_cluster() {
    let (each, bins) = (1000_usize, 64_usize);
    let values = ints(2 * BLOCKS * each, bins as u64, 4);
    let mut lab = lab();
    let (input, output) = (lab.buffer(&values), lab.fresh(2 * 4 * (bins + 4)));
    let shape = Shape { shared: 4 * (bins / BLOCKS) as u32, ..line(2 * BLOCKS as u32, THREADS as u32) };
    let args = [input.into(), (each as i32).into(), output.into(), (bins as i32).into()];
    let report = lab.launch("histogram", shape, &args);
    let mut expected = Vec::new();
    for part in values.chunks(BLOCKS * each) {
        expected.extend([part.iter().sum::<i32>(), 0]);
        expected.extend([*part.iter().max().unwrap(), part.iter().fold(0, |all, v| all | v)]);
        expected.extend((0..bins).map(|bin| part.iter().filter(|v| **v as usize == bin).count() as i32));
    }
    assert_eq!(lab.read::<i32>(output), expected);
    assert_eq!(report.notes, Vec::<String>::new());
}

#[test]
fn columns_are_summed_by_bulk_reductions_in_shared_and_global_memory() {
    let (clusters, tiles) = (3, 2);
    let values = ints(clusters * BLOCKS * tiles * TILE, 1000, 5);
    let mut lab = lab();
    let (input, sums, floats) = (lab.buffer(&values), lab.buffer(&vec![7_i32; TILE]), lab.buffer(&vec![0.5_f32; TILE]));
    let args = [input.into(), sums.into(), floats.into(), (tiles as i32).into()];
    let report = lab.launch("columns", line((clusters * BLOCKS) as u32, THREADS as u32), &args);
    let column = |k: usize| values.iter().skip(k).step_by(TILE).sum::<i32>();
    assert_eq!(lab.read::<i32>(sums), (0..TILE).map(|k| 7 + column(k)).collect::<Vec<_>>());
    assert_eq!(lab.read::<f32>(floats), (0..TILE).map(|k| 0.5 + column(k) as f32).collect::<Vec<_>>());
    assert_eq!(report.notes, Vec::<String>::new());
    let stores = report.counters.global_store;
    assert_eq!((stores.requests, stores.bytes), (2 * clusters as u64, (2 * clusters * 4 * TILE) as u64));
}

#[test]
fn what_others_add_to_is_not_read_before_it_was_waited_for() {
    let trap = fault("not_waited", 32);
    assert_eq!((trap.kind, trap.block), (TrapKind::Race, [1, 0, 0]));
    assert!(trap.message.contains("is read with no wait for the asynchronous copy into it at sending.cu:"), "{trap}");
}

#[test]
fn a_block_is_sent_nothing_to_what_it_may_be_reading() {
    let trap = fault("not_asked", 32);
    assert_eq!((trap.kind, trap.block), (TrapKind::Race, [1, 0, 0]));
    assert!(trap.message.contains("of block (0,0,0): written here, read by its thread"), "{trap}");
}

#[test]
fn the_block_that_is_sent_something_is_the_one_that_is_told() {
    let trap = fault("told_elsewhere", 32);
    assert_eq!(trap.kind, TrapKind::Barrier);
    assert!(
        trap.message.contains("an asynchronous write to one block that completes on an mbarrier object of another"),
        "{trap}"
    );
}

#[test]
fn what_threads_of_another_block_have_stored_is_fenced_before_it_is_added_to() {
    let trap = fault("not_fenced", TILE as u32);
    assert_eq!(trap.kind, TrapKind::Race);
    let what = "is changed by a bulk copy, and was written by its thread (0,0,0) at sending.cu:";
    assert!(trap.message.contains(what) && trap.message.contains("no `fence.proxy.async` in between"), "{trap}");
}

#[test]
fn nothing_is_added_to_bytes_that_were_never_written() {
    let trap = fault("unwritten", TILE as u32);
    assert_eq!(trap.kind, TrapKind::Uninitialised);
    assert!(trap.message.contains("which was never written"), "{trap}");
}

#[test]
fn a_piece_for_all_blocks_waits_until_all_are_done_with_the_last() {
    let mut lab = lab();
    let input = lab.buffer(&ints(2 * TILE, 9, 6));
    let output: Buffer = lab.fresh(4 * 4 * TILE);
    let trap = lab.trap("too_soon", line(2, TILE as u32), &[input.into(), output.into()]);
    assert_eq!((trap.kind, trap.block), (TrapKind::Race, [0, 0, 0]));
    assert!(trap.message.contains("of block (1,0,0) is written with no wait for a bulk copy into it"), "{trap}");
}

//! Bulk copies, and mbarrier objects that count their bytes.

use simt::TrapKind;

use super::lab::{Arg, Lab, Plain, ints, line};

const KERNELS: [&str; 8] =
    ["double_buffered", "there_and_back", "ring", "not_waited", "half_waited", "not_fenced", "not_read", "not_stayed"];
const TILE: usize = 256;

fn lab() -> Lab {
    Lab::new("bulk.cu", &KERNELS)
}

#[test]
fn tiles_are_summed_while_others_come() {
    for (tiles, threads) in [(1, 256), (2, 256), (7, 256), (8, 64)] {
        let values = ints(3 * tiles * TILE, 1000, 1);
        let mut lab = lab();
        let (input, sums) = (lab.buffer(&values), lab.buffer(&[0_i32; 3]));
        let report =
            lab.launch("double_buffered", line(3, threads), &[input.into(), sums.into(), (tiles as i32).into()]);
        let expected: Vec<i32> = values.chunks(tiles * TILE).map(|block| block.iter().sum()).collect();
        assert_eq!(lab.read::<i32>(sums), expected);
        // One request of 32 sectors per tile.
        let read = report.counters.global_load;
        let copies = 3 * tiles as u64;
        assert_eq!((read.requests, read.sectors, read.bytes), (copies, 32 * copies, 1024 * copies));
        assert_eq!(report.notes, Vec::<String>::new());
    }
}

#[test]
fn a_tile_comes_is_changed_and_goes() {
    let values: Vec<f32> = ints(5 * TILE, 1000, 2).into_iter().map(|v| v as f32).collect();
    let mut lab = lab();
    let (input, output) = (lab.buffer(&values), lab.fresh(4 * 5 * TILE));
    let factor = Arg::Bytes(2.5_f32.to_bytes());
    let report = lab.launch("there_and_back", line(5, 128), &[input.into(), output.into(), factor]);
    assert_eq!(lab.read::<f32>(output), values.iter().map(|v| v * 2.5).collect::<Vec<_>>());
    assert_eq!(report.counters.global_store.bytes, 4 * 5 * TILE as u64);
    assert_eq!(report.notes, Vec::<String>::new());
}

#[test]
fn one_warp_fetches_for_the_others() {
    for tiles in [1, 3, 10] {
        let values = ints(4 * tiles * TILE, 1_000_000, 3);
        let mut lab = lab();
        let (input, output) = (lab.buffer(&values), lab.buffer(&[i32::MIN; 4]));
        lab.launch("ring", line(4, 160), &[input.into(), output.into(), (tiles as i32).into()]);
        let expected: Vec<i32> = values.chunks(tiles * TILE).map(|block| *block.iter().max().unwrap()).collect();
        assert_eq!(lab.read::<i32>(output), expected);
    }
}

#[test]
fn a_tile_that_was_not_waited_for_is_not_read() {
    let mut lab = lab();
    let (input, output) = (lab.buffer(&ints(TILE, 9, 4)), lab.fresh(4 * TILE));
    let trap = lab.trap("not_waited", line(1, TILE as u32), &[input.into(), output.into()]);
    assert_eq!(trap.kind, TrapKind::Race);
    assert!(trap.message.contains("is read with no wait for the asynchronous copy into it at"), "{trap}");
}

#[test]
fn a_warp_that_has_not_waited_races_with_the_copy() {
    let mut lab = lab();
    let (input, output) = (lab.buffer(&ints(TILE, 9, 5)), lab.fresh(4 * TILE));
    let trap = lab.trap("half_waited", line(1, TILE as u32), &[input.into(), output.into()]);
    assert_eq!((trap.kind, trap.thread), (TrapKind::Race, Some([32, 0, 0])));
    assert!(trap.message.contains("race on shared memory"), "{trap}");
}

#[test]
fn what_threads_have_stored_is_fenced_before_it_is_sent() {
    let mut lab = lab();
    let output = lab.fresh(4 * TILE);
    let trap = lab.trap("not_fenced", line(1, TILE as u32), &[output.into()]);
    assert_eq!((trap.kind, trap.thread), (TrapKind::Race, Some([0, 0, 0])));
    assert!(trap.message.contains("no `fence.proxy.async` in between"), "{trap}");
}

#[test]
fn what_is_being_sent_is_not_stored_to() {
    let mut lab = lab();
    let output = lab.fresh(2 * 4 * TILE);
    let trap = lab.trap("not_read", line(1, TILE as u32), &[output.into()]);
    assert_eq!(trap.kind, TrapKind::Race);
    assert!(trap.message.contains("is written with no wait for the bulk copy from it at"), "{trap}");
}

#[test]
fn a_block_that_ends_before_its_tile_was_read_is_noted() {
    let mut lab = lab();
    let output = lab.fresh(4 * TILE);
    let report = lab.launch("not_stayed", line(1, TILE as u32), &[output.into()]);
    assert_eq!(lab.read::<i32>(output), (0..TILE as i32).collect::<Vec<_>>());
    let [note] = &report.notes[..] else { panic!("{:?}", report.notes) };
    assert!(note.contains("block (0,0,0) ends before thread (0,0,0) has waited for its bulk copy at"), "{note}");
}

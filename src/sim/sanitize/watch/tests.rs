//! What a block remembers between its own accesses, told request by request.

#![expect(clippy::unwrap_used, reason = "a test panics to fail")]

use super::*;

/// A request of single words by the lanes of `mask`, lane `k` at `first` plus four times `k`.
fn touch(watch: &mut Watch, op: Op, warp: u32, mask: u32, first: u64, strength: Strength) -> Option<Hazard> {
    let offsets: [u64; 32] = std::array::from_fn(|k| first + 4 * k as u64);
    let request = Request {
        space: Space::Global,
        op,
        offsets: &offsets,
        mask,
        bytes: 4,
        straight: true,
        together: mask.is_power_of_two(),
        warp,
        line: op as u16,
        strength,
        quiet: false,
    };
    watch.touch(&request, |lane, _| lane as u32 + 100 * warp, |_| false)
}

fn started(board: &Board) -> Watch {
    let mut watch = Watch::default();
    watch.begin(board, 1, 0);
    watch
}

fn board() -> Board {
    Board::new(true, 4, std::iter::once(10))
}

#[test]
fn a_word_is_not_taken_for_another_whose_storage_it_got() {
    let board = board();
    for op in [Op::Load, Op::Store, Op::Change] {
        let mut watch = started(&board);
        assert_eq!(touch(&mut watch, op, 0, u32::MAX, 0, Strength::Plain), None);
        // What the block did so far is summed up, in the middle of an epoch.
        watch.hear(&board, false, std::iter::once(4096));
        assert_eq!(touch(&mut watch, Op::Store, 1, 1, 1280, Strength::Plain), None, "after {op:?}");
        assert_eq!(touch(&mut watch, Op::Change, 2, 4, 1280, Strength::Plain), None, "after {op:?}");
    }
}

#[test]
fn warps_that_meet_in_a_word_race_until_a_barrier_lies_between() {
    let board = board();
    let mut watch = started(&board);
    assert_eq!(touch(&mut watch, Op::Store, 0, u32::MAX, 256, Strength::Plain), None);
    let met = touch(&mut watch, Op::Load, 3, 0b10, 252, Strength::Plain).unwrap();
    assert_eq!((met.fault, met.offset, met.tag.thread(), met.earlier.thread()), (Fault::Race, 256, 97, 0));
    watch.barrier();
    assert_eq!(touch(&mut watch, Op::Load, 3, 0b10, 252, Strength::Plain), None);
}

#[test]
fn a_block_that_ended_leaves_nothing_to_the_one_that_takes_its_storage() {
    let board = board();
    let mut watch = started(&board);
    assert_eq!(touch(&mut watch, Op::Store, 0, u32::MAX, 0, Strength::Plain), None);
    watch.end(&board);
    watch.begin(&board, 2, 0);
    assert_eq!(touch(&mut watch, Op::Store, 1, u32::MAX, 0, Strength::Plain), None);
}

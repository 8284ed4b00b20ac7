//! Compares the shadow state of a launch with a comparison of all pairs of accesses, in any order of publication.

#![expect(clippy::unwrap_used, reason = "a test panics to fail")]

use crate::sanitize::log::AccessRecord;
use crate::sanitize::summary::NEVER;
use crate::sanitize::tag::Tag;
use crate::sanitize::words::{WORDS, byte_mask};

use proptest::prelude::*;

use super::*;

/// A block's access to some words of a line.
#[derive(Debug, Clone)]
struct Access {
    block: u32,
    number: u32,
    op: Op,
    words: u32,
    value: u32,
    acquired: bool,
    released: bool,
}

fn access() -> impl Strategy<Value = Access> {
    let op = prop_oneof![Just(Op::Load), Just(Op::Store), Just(Op::Change), Just(Op::Poll)];
    let words = prop_oneof![
        any::<u32>(),
        (0..32_u32).prop_map(|w| 1 << w),
        Just(u32::MAX),
        (0..32_u32).prop_map(|w| u32::MAX << w)
    ];
    (0..5_u32, 0..3_u32, op, words, any::<u32>(), any::<bool>(), any::<bool>()).prop_map(
        |(block, number, op, words, value, acquired, released)| Access {
            block,
            number,
            op,
            words,
            value,
            acquired,
            released,
        },
    )
}

/// Generates accesses. Each block releases its first ones, and its last ones know about earlier blocks' releases.
fn accesses() -> impl Strategy<Value = Vec<Access>> {
    prop::collection::vec(access(), 0..14).prop_map(|mut all| {
        let (mut released, mut acquired) = ([true; 5], [false; 5]);
        for (a, value) in all.iter_mut().zip(0..) {
            let block = a.block as usize;
            released[block] &= a.released;
            acquired[block] |= a.acquired;
            (a.released, a.acquired, a.value) = (released[block], acquired[block], value);
        }
        all
    })
}

fn record(grid: &GridShadow, a: &Access) -> AccessRecord {
    let sets = grid.knowledge();
    let earlier = 0..if a.acquired { a.block } else { 0 };
    let acquired = earlier.fold(NOTHING, |set, block| lock(&sets).with(set, block, 1));
    let words = || (0..WORDS).filter(|w| a.words >> w & 1 == 1);
    let (mut who, mut values) = ([0; WORDS], [0; WORDS]);
    for word in words() {
        who[word] = Tag::new(1, 0, 0, a.op as u16).of_lane(word as u64).who();
        values[word] = if a.op == Op::Store { a.value as u8 } else { 0 };
    }
    let bytes = words().fold(0, |m, w| m | byte_mask(w, 1));
    AccessRecord { number: a.number, op: a.op, bytes, acquired, who, values, partial: None }
}

/// Finds the worst conflict by comparing every pair. Returns its fault and the word's offset.
fn worst(all: &[Access]) -> Option<(Fault, u64)> {
    let mut found = Vec::new();
    for x in all {
        for y in all.iter().filter(|y| y.block > x.block && y.number == x.number) {
            // A block knows about the atomics on a word whose results it has read.
            let before = all.iter().take_while(|a| !std::ptr::eq(*a, y));
            let own = before.filter(|a| a.block == y.block && a.number == y.number && a.op == Op::Poll);
            let known = if matches!(x.op, Op::Change | Op::Poll) { own.fold(0, |words, a| words | a.words) } else { 0 };
            let words = x.words & y.words & !known;
            let ordered = (x.released && y.acquired) || words == 0;
            let ops = [x.op, y.op];
            let alike = !(ops.contains(&Op::Store) || ops.contains(&Op::Load) && ops.contains(&Op::Change));
            if !ordered && !alike {
                let race = x.op == Op::Store || y.op == Op::Store || y.acquired;
                let offset = u64::from(x.number) * 128 + u64::from(words.trailing_zeros()) * 4;
                found.push((if race { Fault::Race } else { Fault::Mixed }, offset));
            }
        }
    }
    found.into_iter().min()
}

fn conflicts(all: &[Access]) -> Vec<BlockConflict> {
    let grid = GridShadow::new(true, 5, std::iter::once(10));
    for a in all {
        let mut log = Log::default();
        log.add(&record(&grid, a));
        let mut logs: [Log; 4] = Default::default();
        logs[a.op as usize] = log;
        grid.publish(a.block, if a.released { 1 } else { NEVER }, &logs, false);
    }
    grid.conflicts()
}

proptest! {
    #[test]
    fn the_worst_conflict_is_that_of_all_pairs(all in accesses()) {
        let found = conflicts(&all);
        prop_assert_eq!(found.first().map(|m| (m.fault(), m.offset)), worst(&all));
    }

    #[test]
    fn the_order_of_publishing_does_not_matter(
        all in accesses()
            .prop_flat_map(|all| (Just(all.clone()), Just(all).prop_shuffle())),
    ) {
        // The accesses of each block keep their order.
        let (first, mut second) = all;
        for block in 0..5 {
            let mut own = first.iter().filter(|a| a.block == block);
            for a in second.iter_mut().filter(|a| a.block == block) {
                a.clone_from(own.next().unwrap());
            }
        }
        prop_assert_eq!(conflicts(&first), conflicts(&second));
    }
}

#[test]
fn a_full_shadow_state_keeps_the_same_lines_in_any_order_of_blocks() {
    let store =
        |number| Access { block: 0, number, op: Op::Store, words: 1, value: 0, acquired: false, released: false };
    let kept = |numbers: &mut dyn Iterator<Item = u32>| {
        let mut shard = Shard::default();
        let grid = GridShadow::new(true, 5, std::iter::once(10));
        for number in numbers {
            let a = store(number);
            shard.add(number, Entry::new(&record(&grid, &a), a.block, NEVER), &lock(&grid.knowledge()));
        }
        let mut lines: Vec<u32> = shard.summary.lines.keys().copied().collect();
        lines.sort_unstable();
        (shard.sparse, lines)
    };
    let many = 3 * MOST as u32;
    let (sparse, lines) = kept(&mut (0..many));
    assert_eq!((sparse, lines.clone()), kept(&mut (0..many).rev()));
    assert!(sparse == 2 && lines.len() <= MOST && lines.len() > MOST / 2, "{sparse}, {} lines", lines.len());
}

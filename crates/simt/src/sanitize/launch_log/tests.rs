//! A launch's log keeps the accesses that may conflict, and drops the same ranges for any order of blocks.

use std::collections::BTreeSet;

use crate::sanitize::knowledge::NOTHING;
use crate::sanitize::log::AccessRecord;
use crate::sanitize::summary::NEVER;
use crate::sanitize::words;
use crate::sanitize::words::WORDS;

use super::*;

fn log(number: u32, op: Op, words: u32) -> Log {
    let bytes = words::bytes_of(words);
    let who = std::array::from_fn(|w| if words >> w & 1 == 1 { w as u32 } else { 0 });
    let mut log = Log::default();
    log.add(&AccessRecord { number, op, bytes, acquired: NOTHING, who, values: [0; WORDS], partial: None });
    log
}

fn judged(launch_log: &mut LaunchLog) -> BTreeSet<(u32, u32)> {
    let mut left = BTreeSet::new();
    launch_log.judge(|number, entry| {
        left.insert((number, entry.block()));
    });
    left
}

#[test]
fn only_lines_in_which_blocks_may_conflict_are_compared() {
    let mut launch_log = LaunchLog::new(1 << 20);
    // Four lines: read by all blocks; each word written by one block; read and written by one block; read by one block
    // and written by another.
    for block in 0..4 {
        launch_log.add(block, NEVER, &log(1, Op::Load, u32::MAX));
        launch_log.add(block, NEVER, &log(2, Op::Store, 1 << block));
        launch_log.add(block, NEVER, &log(2000, Op::Change, 1));
    }
    for op in [Op::Load, Op::Store] {
        launch_log.add(1, NEVER, &log(3, op, u32::MAX));
        launch_log.add(op as u32, NEVER, &log(5000, op, 0x8000_0001));
    }
    assert_eq!(judged(&mut launch_log), BTreeSet::from([(5000, 0), (5000, 1)]));
}

#[test]
fn a_full_log_keeps_the_same_stretches_in_any_order_of_blocks() {
    let kept = |blocks: &mut dyn Iterator<Item = u32>| {
        let mut launch_log = LaunchLog::new(4000);
        for block in blocks {
            // Two blocks conflict in every line.
            launch_log.add(block, NEVER, &log(block / 2 * 8, Op::Store, u32::MAX));
        }
        (launch_log.sparse(), judged(&mut launch_log))
    };
    let (sparse, left) = kept(&mut (0..4000));
    assert_eq!((sparse, left.clone()), kept(&mut (0..4000).rev()));
    // A record has 3 words plus 8 of stored values: 44,000 in all, of which at most 4,000 remain.
    assert!(sparse >= 4 && !left.is_empty() && left.len() * 11 <= 4000, "{sparse}, {} records", left.len());
    assert!(left.iter().all(|&(number, _)| is_tracked(number, sparse)));
    let all: BTreeSet<_> = (0..4000).map(|block| (block / 2 * 8, block)).collect();
    assert!(all.into_iter().all(|record| left.contains(&record) == is_tracked(record.0, sparse)));
}

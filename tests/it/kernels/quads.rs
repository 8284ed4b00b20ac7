//! 128-bit values.

use super::lab::{Lab, line, random};

fn lab() -> Lab {
    Lab::new("quads.cu", &["largest", "relay"])
}

#[test]
fn two_words_are_compared_and_swapped_together() {
    let n = 10_000;
    // Few distinct values, so that the largest one occurs many times.
    let values: Vec<u64> = random(n, 50, 1);
    let mut lab = lab();
    let (input, best) = (lab.buffer(&values), lab.buffer(&[u64::MAX, u64::MAX]));
    let report = lab.launch("largest", line(6, 128), &[input.into(), (n as i32).into(), best.into()]);
    let most = *values.iter().max().unwrap();
    let first = values.iter().position(|&v| v == most).unwrap() as u64;
    assert_eq!(lab.read::<u64>(best), [most, first]);
    assert_eq!(report.notes, Vec::<String>::new());
}

#[test]
fn pairs_are_exchanged_as_a_whole() {
    let (blocks, threads) = (3, 96);
    let mut lab = lab();
    let output = lab.fresh(16 * blocks * (threads + 1));
    let report = lab.launch("relay", line(blocks as u32, threads as u32), &[output.into()]);
    for block in lab.read::<u64>(output).chunks(2 * (threads + 1)) {
        let mut pairs: Vec<(i64, i64)> =
            block.chunks(2).map(|pair| (pair[0].cast_signed(), pair[1].cast_signed())).collect();
        pairs.sort_unstable();
        assert_eq!(pairs, (-1..threads as i64).map(|v| (v, v * v)).collect::<Vec<_>>());
    }
    // One request per warp.
    assert_eq!(report.counters.shared_atomics, (blocks * threads / 32) as u64);
}

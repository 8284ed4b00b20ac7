//! The table finds every line again, whichever share their low bits.

use super::*;

#[test]
fn lines_whose_numbers_share_their_low_bits_are_told_apart() {
    let mut table = Table::default();
    for round in 0..3_u32 {
        let slots = SLOTS as u32;
        let numbers: Vec<u32> = (0..40).map(|k| k % 4 * slots + k / 4 * (round + 1)).collect();
        for (k, &number) in numbers.iter().enumerate() {
            let line = table.line(number, 1);
            assert_eq!(line.stored, 0, "line {number} in round {round} is not a new one");
            line.stored = k as u128 + 1;
        }
        for (k, &number) in numbers.iter().enumerate() {
            assert_eq!(table.line(number, 1).stored, k as u128 + 1);
        }
        let mut sorted = numbers.clone();
        sorted.sort_unstable();
        assert!(table.sorted().map(|(number, _)| number).eq(sorted));
        table.clear();
    }
}

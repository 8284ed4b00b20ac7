//! The table finds every line again, no matter which lines share slots.

use super::*;

#[test]
fn lines_whose_numbers_share_a_slot_are_distinguished() {
    let mut table = Table::default();
    for round in 0..3_u32 {
        let sharing = (0..).filter(|&number| slot_of(number) == slot_of(round));
        let mut numbers: Vec<u32> = sharing.take(20).flat_map(|number| [number, number + 1]).collect();
        numbers.rotate_left(7);
        for (k, &number) in numbers.iter().enumerate() {
            let line = table.line(number);
            assert_eq!(line.stored, 0, "line {number} in round {round} is not a new one");
            line.stored = k as u128 + 1;
        }
        for (k, &number) in numbers.iter().enumerate() {
            assert_eq!(table.line(number).stored, k as u128 + 1);
        }
        let mut sorted = numbers.clone();
        sorted.sort_unstable();
        assert!(table.sorted().map(|(number, _)| number).eq(sorted));
        table.clear();
    }
}

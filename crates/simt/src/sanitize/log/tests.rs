//! A log returns the entries added to it and stores them in few words.

use crate::sanitize::words::bytes_of;

use proptest::prelude::*;

use super::*;

/// Generates threads, both in patterns that are typical of kernels and at random.
fn who() -> impl Strategy<Value = [u32; WORDS]> {
    let run = (0..992_u32, 0..3_u32, 0..9_u32)
        .prop_map(|(first, shift, line)| std::array::from_fn(|w| line << 10 | (first + (w as u32 >> shift))));
    let near = (0..32_u32, any::<[u8; 32]>())
        .prop_map(|(warp, lanes)| lanes.map(|b| (u32::from(b >> 5) << 10) + warp * 32 + u32::from(b & 31)));
    let any = any::<[u32; 32]>().prop_map(|who| who.map(|w| w & 0x3ff_ffff));
    prop_oneof![run, near, any]
}

fn record() -> impl Strategy<Value = AccessRecord> {
    let op = prop_oneof![Just(Op::Load), Just(Op::Store), Just(Op::Change)];
    let whole = any::<u32>().prop_map(bytes_of);
    let bytes = prop_oneof![Just(u128::MAX), whole, any::<u128>()].prop_map(|bytes| bytes.max(1));
    let acquired = prop_oneof![Just(NOTHING), 1..u32::MAX];
    let stored = (any::<[u8; 32]>(), any::<u32>(), any::<[u32; 32]>());
    (any::<u32>(), op, bytes, acquired, who(), stored).prop_map(|(number, op, bytes, acquired, who, stored)| {
        // A word that was not accessed has neither a thread nor a value.
        let mask = words_of(bytes);
        let (values, words, whole) = stored;
        let words = words & mask;
        let partial = (op == Op::Store && words != 0).then(|| {
            let values = std::array::from_fn(|w| if words >> w & 1 == 1 { whole[w] } else { 0 });
            Box::new(Partial { words, values })
        });
        let has_word = |w: usize| mask >> w & 1 == 1;
        let values = std::array::from_fn(|w| if has_word(w) && op == Op::Store { values[w] } else { 0 });
        let who = std::array::from_fn(|w| if has_word(w) { who[w] } else { 0 });
        AccessRecord { number, op, bytes, acquired, who, values, partial }
    })
}

proptest! {
    #[test]
    fn a_log_returns_the_entries_that_were_added(all in prop::collection::vec(record(), 0..20)) {
        let mut log = Log::default();
        for record in &all {
            log.add(record);
        }
        prop_assert_eq!(access_records(log.words(), |_| true).collect::<Vec<_>>(), all.clone());
        let alone = |record: &AccessRecord| {
            let mut log = Log::default();
            log.add(record);
            prop_assert_eq!(log.weight(), log.words().len() as u64);
            Ok(log.weight())
        };
        let weights: Result<Vec<u64>, TestCaseError> = all.iter().map(alone).collect();
        prop_assert_eq!(log.weight(), weights?.iter().sum::<u64>());
    }
}

#[test]
fn adjacent_lines_of_one_instruction_make_one_record() {
    for (op, words) in [(Op::Load, 0), (Op::Store, 8)] {
        let mut log = Log::default();
        for line in 0..16_u32 {
            let who = std::array::from_fn(|w| 7 << 10 | (line * 32 + w as u32));
            let values = if op == Op::Store { [line as u8; WORDS] } else { [0; WORDS] };
            let (bytes, acquired) = (u128::MAX, NOTHING);
            log.add(&AccessRecord { number: 100 + line, op, bytes, acquired, who, values, partial: None });
        }
        assert_eq!(log.words().len(), HEAD + 16 * words);
        assert_eq!(spans(log.words()).collect::<Vec<_>>(), [(100, 16, op, u32::MAX)]);
        assert!(
            access_records(log.words(), |_| true)
                .map(|record| record.who[31])
                .eq((0..16).map(|line| 7 << 10 | (line * 32 + 31)))
        );
    }
}

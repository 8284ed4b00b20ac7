//! A block's shadow state for its own accesses, tested request by request.

#![expect(clippy::unwrap_used, reason = "a test panics to fail")]

use proptest::prelude::*;

use super::*;

use crate::sanitize::log::access_records;

/// Records a request for single words by the lanes in `mask`. Lane `k` accesses `first + 4 * k`.
fn touch(block: &mut BlockShadow, op: Op, warp: u32, mask: u32, first: u64, strength: Strength) -> Option<Hazard> {
    let offsets: [u64; 32] = std::array::from_fn(|k| first + 4 * k as u64);
    let request = Request {
        space: Space::Global,
        op,
        addresses: &offsets,
        origin: 0,
        mask,
        bytes: 4,
        contiguous: true,
        together: mask.is_power_of_two(),
        warp,
        line: op as u16,
        strength,
        narrow: false,
    };
    block.touch(&request, |lane, _| lane as u32 + 100 * warp, |_| false)
}

fn started(grid: &GridShadow) -> BlockShadow {
    let mut block = BlockShadow::default();
    block.begin(grid, 1, 0..0, 0);
    block
}

fn grid() -> GridShadow {
    GridShadow::new(true, 4, std::iter::once(10))
}

#[test]
fn a_reused_line_has_no_accesses_of_its_earlier_use() {
    let grid = grid();
    for op in [Op::Load, Op::Store, Op::Change] {
        let mut block = started(&grid);
        assert_eq!(touch(&mut block, op, 0, u32::MAX, 0, Strength::Plain), None);
        // The block's accesses so far are condensed in the middle of an epoch.
        block.condense();
        assert_eq!(touch(&mut block, Op::Store, 1, 1, 1280, Strength::Plain), None, "after {op:?}");
        assert_eq!(touch(&mut block, Op::Change, 2, 4, 1280, Strength::Plain), None, "after {op:?}");
    }
}

#[test]
fn accesses_of_two_warps_to_a_word_race_without_a_barrier_in_between() {
    let grid = grid();
    let mut block = started(&grid);
    assert_eq!(touch(&mut block, Op::Store, 0, u32::MAX, 256, Strength::Plain), None);
    let conflict = touch(&mut block, Op::Load, 3, 0b10, 252, Strength::Plain).unwrap();
    assert_eq!(
        (conflict.fault, conflict.offset, conflict.tag.thread(), conflict.earlier.thread()),
        (Fault::Race, 256, 97, 0)
    );
    block.barrier();
    assert_eq!(touch(&mut block, Op::Load, 3, 0b10, 252, Strength::Plain), None);
}

#[test]
fn a_block_has_no_accesses_of_the_earlier_block_in_its_storage() {
    let grid = grid();
    let mut block = started(&grid);
    assert_eq!(touch(&mut block, Op::Store, 0, u32::MAX, 0, Strength::Plain), None);
    block.end(&grid);
    block.begin(&grid, 2, 0..0, 0);
    assert_eq!(touch(&mut block, Op::Store, 1, u32::MAX, 0, Strength::Plain), None);
}

#[test]
fn a_word_that_one_lane_has_stored_and_all_lanes_load_is_a_lint() {
    let mut block = started(&grid());
    let store = Step::Touch {
        op: Op::Store,
        space: Space::Global,
        warp: 0,
        mask: u32::MAX,
        first: 80,
        bytes: 8,
        pattern: Pattern::Straight,
        same: false,
        line: 0,
    };
    assert_eq!(take(&mut block, &store, true), None);
    let load = Step::Touch {
        op: Op::Load,
        space: Space::Global,
        warp: 0,
        mask: u32::MAX,
        first: 80,
        bytes: 4,
        pattern: Pattern::Together,
        same: false,
        line: 1,
    };
    assert_eq!(take(&mut block, &load, true), None);
    assert_eq!(lints(&block), [(Fault::Warp, 1)]);
}

/// Addresses of a request's lanes.
#[derive(Debug, Clone)]
enum Pattern {
    /// The lanes access contiguous words.
    Straight,
    Together,
    /// Neighbouring lanes access words that are this many words apart.
    Stride(u64),
    /// Offset of each lane from the first, in accesses.
    Anywhere(Vec<u64>),
}

#[derive(Debug, Clone)]
enum Step {
    Barrier,
    Sync(u32),
    Touch {
        op: Op,
        space: Space,
        warp: u32,
        mask: u32,
        first: u64,
        bytes: u32,
        pattern: Pattern,
        same: bool,
        line: u16,
    },
}

fn step(warps: u32) -> impl Strategy<Value = Step> {
    let op = prop_oneof![4 => Just(Op::Load), 4 => Just(Op::Store), 1 => Just(Op::Change)];
    let mask = prop_oneof![
        Just(u32::MAX),
        any::<u32>(),
        (0..32_u32).prop_map(|k| 1 << k),
        (0..32_u32).prop_map(|k| u32::MAX >> k)
    ];
    let pattern = prop_oneof![
        4 => Just(Pattern::Straight),
        1 => Just(Pattern::Together),
        2 => (2..5_u64).prop_map(Pattern::Stride),
        2 => prop::collection::vec(0..40_u64, 32).prop_map(Pattern::Anywhere)
    ];
    let space = prop_oneof![Just(Space::Global), Just(Space::Shared)];
    let bytes = prop_oneof![1 => Just(2_u32), 6 => Just(4_u32), 2 => Just(8_u32), 1 => Just(16_u32)];
    let touch = (op, space, 0..warps, mask, 0..40_u64, bytes, pattern, any::<bool>(), 0..3_u16).prop_map(
        |(op, space, warp, mask, first, bytes, pattern, same, line)| {
            let mask = mask.max(1);
            Step::Touch { op, space, warp, mask, first: first * u64::from(bytes), bytes, pattern, same, line }
        },
    );
    prop_oneof![1 => Just(Step::Barrier), 2 => (0..warps).prop_map(Step::Sync), 9 => touch]
}

/// Executes a step, in compact form if that is requested and possible.
fn take(block: &mut BlockShadow, step: &Step, in_short: bool) -> Option<Hazard> {
    let &Step::Touch { op, space, warp, mask, first, bytes, ref pattern, same, line } = step else {
        match step {
            Step::Sync(warp) => block.warp_sync(*warp, u32::MAX, u32::MAX),
            _ => block.barrier(),
        }
        return None;
    };
    let far = |k: u64| match pattern {
        Pattern::Straight => k,
        Pattern::Together => 0,
        Pattern::Stride(stride) => stride * k,
        Pattern::Anywhere(places) => places[k as usize],
    };
    let origin = 1 << 20;
    let addresses = std::array::from_fn(|k| origin + first + u64::from(bytes) * far(k as u64));
    let active: Vec<u64> = (0..32).filter(|k| mask >> k & 1 == 1).map(|k| addresses[k]).collect();
    let request = Request {
        space,
        op,
        addresses: &addresses,
        origin,
        mask,
        bytes,
        contiguous: matches!(pattern, Pattern::Straight) || active.len() == 1,
        together: active.iter().all(|a| *a == active[0]),
        warp,
        line,
        strength: Strength::Plain,
        narrow: false,
    };
    let value = |lane: usize, word: usize| if same { 5 } else { (lane * 8 + word) as u32 };
    if in_short && block.plain(&request, None, value) {
        return None;
    }
    block.touch(&request, value, |_| false)
}

/// Returns the parts of a lint that do not depend on which earlier access it names.
fn lints(block: &BlockShadow) -> Vec<(Fault, u16)> {
    let mut all: Vec<_> = block.lints.iter().map(|h| (h.fault, h.tag.line())).collect();
    all.sort_unstable();
    all.dedup();
    all
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn compact_and_full_shadow_state_report_the_same(
        (warps, steps) in (1..4_u32).prop_flat_map(|warps| (Just(warps), prop::collection::vec(step(warps), 1..30))),
    ) {
        let grid = grid();
        let (mut short, mut long) = (BlockShadow::default(), BlockShadow::default());
        for block in [&mut short, &mut long] {
            block.begin(&grid, 1, 0..4096, 0);
            block.shared.iter_mut().for_each(|line| line.written = u128::MAX);
        }
        for step in &steps {
            let (now, wanted) = (take(&mut short, step, true), take(&mut long, step, false));
            let about = |h: Hazard| (h.fault, h.space, h.offset, h.now, h.tag.thread());
            prop_assert_eq!(now.map(about), wanted.map(about));
            if now.is_some() {
                break;
            }
        }
        let (found, wanted) = (lints(&short), lints(&long));
        // The compact form tracks synchronisation only for a line's first warp. If an access conflicts with two others,
        // the note may therefore name either.
        let lines: Vec<u16> = wanted.iter().map(|(_, line)| *line).collect();
        prop_assert!(found.iter().all(|(_, line)| lines.contains(line)), "{:?} {:?}", found, wanted);
        prop_assert!(warps > 1 || found == wanted, "{:?} {:?}", found, wanted);
        let done = |block: &mut BlockShadow| {
            block.condense();
            let mut all: Vec<_> = block.pending.iter().flat_map(|log| access_records(log.words(), |_| true)).collect();
            for record in &mut all {
                record.who = [0; WORDS];
            }
            all
        };
        prop_assert_eq!(done(&mut short), done(&mut long));
    }
}

//! Compares the allocator with one that examines every allocation each time.

#![expect(clippy::unwrap_used, reason = "a test panics to fail")]

use proptest::prelude::*;

use super::*;

const CAPACITY: u64 = 64 << 10;

/// An operation to perform on both allocators.
#[derive(Debug, Clone)]
enum Action {
    Alloc(u64),
    /// Frees the live allocation with this index, if any.
    Free(usize),
    /// Looks up an address, relative to the start of memory.
    Find(u64),
}

fn action() -> impl Strategy<Value = Action> {
    prop_oneof![
        3 => prop_oneof![0..300_u64, 0..9000_u64].prop_map(Action::Alloc),
        2 => any::<usize>().prop_map(Action::Free),
        1 => (0..CAPACITY).prop_map(Action::Find),
    ]
}

/// Start and end of each allocation, in order.
#[derive(Debug, Default)]
struct Naive(Vec<(u64, u64)>);

impl Naive {
    /// Returns the first multiple of 256 with at least [`GAP`] free bytes on both sides.
    fn alloc(&mut self, bytes: u64) -> Option<u64> {
        let bytes = bytes.max(1);
        let is_free = |at: &u64| {
            at + bytes + GAP <= GLOBAL_BASE + CAPACITY
                && self.0.iter().all(|(start, end)| at + bytes + GAP <= *start || end + GAP <= *at)
        };
        let at = (1..CAPACITY / 256).map(|k| GLOBAL_BASE + 256 * k).find(is_free)?;
        self.0.push((at, at + bytes));
        self.0.sort_unstable();
        Some(at)
    }
}

/// A change to bytes, relative to the start of the allocation.
#[derive(Debug, Clone)]
enum Change {
    Write(u64, u64),
    Undefine(u64, u64),
    Copy(u64, u64, u64),
}

/// Size of the allocation in which written bytes are tracked.
const TRACKED: u64 = 400;

fn change() -> impl Strategy<Value = Change> {
    let range = || (0..TRACKED, 0..200_u64).prop_map(|(at, bytes)| (at, bytes.min(TRACKED - at)));
    prop_oneof![
        range().prop_map(|(at, bytes)| Change::Write(at, bytes)),
        range().prop_map(|(at, bytes)| Change::Undefine(at, bytes)),
        (range(), 0..TRACKED).prop_map(|((from, bytes), to)| Change::Copy(from, to, bytes.min(TRACKED - to))),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn bytes_are_written_that_were_stored_or_copied_from_written_ones(
        changes in prop::collection::vec(change(), 1..30),
    ) {
        let memory = Memory::new(CAPACITY, None).unwrap();
        let at = memory.alloc(TRACKED, "x", Use::Data).unwrap();
        let mut written = vec![false; TRACKED as usize];
        for change in changes {
            match change {
                Change::Write(from, bytes) => {
                    memory.write(at + from, &vec![1; bytes as usize]).unwrap();
                    written[from as usize..(from + bytes) as usize].fill(true);
                }
                Change::Undefine(from, bytes) => {
                    memory.undefine(at + from, bytes, 2).unwrap();
                    written[from as usize..(from + bytes) as usize].fill(false);
                }
                Change::Copy(from, to, bytes) => {
                    memory.copy(at + from, at + to, bytes).unwrap();
                    written.copy_within(from as usize..(from + bytes) as usize, to as usize);
                }
            }
            let mut expected = vec![true; TRACKED as usize];
            let ranges = memory.unwritten(at, TRACKED).unwrap();
            prop_assert!(ranges.windows(2).all(|pair| pair[0].end < pair[1].start), "{ranges:?}");
            for range in ranges {
                expected[range.start as usize..range.end as usize].fill(false);
            }
            prop_assert_eq!(&expected, &written);
            let ends = memory.unwritten(at + 37, 100).unwrap().iter().map(|range| range.end).max();
            let last = (37..137).rev().find(|byte| !written[*byte]).map(|byte| byte as u64 - 36);
            prop_assert_eq!(ends, last);
        }
    }

    #[test]
    fn allocations_are_those_of_a_search_through_all(actions in prop::collection::vec(action(), 1..60)) {
        let (memory, mut naive) = (Memory::new(CAPACITY, None).unwrap(), Naive::default());
        for action in actions {
            match action {
                Action::Alloc(bytes) => {
                    prop_assert_eq!(memory.alloc(bytes, "x", Use::Data), naive.alloc(bytes));
                }
                Action::Free(number) if !naive.0.is_empty() => {
                    let (start, end) = naive.0.remove(number % naive.0.len());
                    // Only the start address frees an allocation, and only once.
                    prop_assert!(!memory.free(start + 1));
                    prop_assert_eq!([memory.free(start), memory.free(start)], [true, false]);
                    prop_assert!(!memory.owns(start, end - start));
                }
                Action::Free(_) => {}
                Action::Find(at) => {
                    let at = GLOBAL_BASE + at;
                    let known = naive.0.iter().find(|(start, end)| (*start..*end).contains(&at));
                    prop_assert_eq!(memory.find(at).map(|a| (a.start, a.end())), known.copied());
                }
            }
            let used: u64 = naive.0.iter().map(|(start, end)| end - start).sum();
            prop_assert_eq!(memory.free_bytes(), CAPACITY - used);
        }
    }
}

/// Returns the number of pages of an allocation that the system has provided.
fn pages(memory: &Memory, at: u64, bytes: u64) -> usize {
    use std::os::unix::fs::FileExt as _;
    let mut entries = vec![0; bytes as usize / PAGE * 8];
    let map = std::fs::File::open("/proc/self/pagemap").unwrap();
    map.read_exact_at(&mut entries, (memory.host(at).addr() / PAGE * 8) as u64).unwrap();
    // The top bit of an entry says whether the page is in memory.
    entries.chunks(8).filter(|entry| entry[7] >> 7 == 1).count()
}

#[test]
fn a_long_variable_of_zeros_takes_no_memory_of_the_host() {
    let bytes = 1 << 30;
    let memory = Memory::new(bytes + (1 << 20), None).unwrap();
    let at = memory.alloc(bytes, "x", Use::Data).unwrap();
    memory.zero(at, bytes).unwrap();
    assert!(pages(&memory, at, bytes) < 4, "{}", pages(&memory, at, bytes));
    assert!(memory.unwritten(at, bytes).unwrap().is_empty());
}

#[test]
fn a_long_range_is_zeroed_to_its_ends_and_no_further() {
    let (bytes, first, count) = (LONG as u64 + 30_000, 4097, LONG as u64 + 9_001);
    let memory = Memory::new(bytes + (1 << 20), None).unwrap();
    let at = memory.alloc(bytes, "x", Use::Data).unwrap();
    memory.fill(at, bytes, 0xab).unwrap();
    memory.zero(at + first, count).unwrap();
    let mut found = vec![1; bytes as usize];
    memory.read(at, &mut found).unwrap();
    let zeros = found.iter().enumerate().filter(|(_, byte)| **byte == 0).map(|(place, _)| place as u64);
    assert!(zeros.eq(first..first + count));
    assert!(found.iter().all(|byte| [0, 0xab].contains(byte)));
}

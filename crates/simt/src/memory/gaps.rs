//! Free ranges of device memory, for first fit.
//!
//! Ranges are indexed by address and by size class, which is a power of two. An allocation skips the classes that are
//! too small, so many small holes do not slow down larger allocations.

use std::collections::{BTreeMap, BTreeSet};

/// Free address ranges, no two of which touch.
#[derive(Debug, Default)]
pub struct Gaps {
    /// End of each range, by start.
    ranges: BTreeMap<u64, u64>,
    /// Starts of ranges, by the position of the highest bit of their size.
    classes: BTreeMap<u32, BTreeSet<u64>>,
}

const fn class(size: u64) -> u32 {
    size.ilog2()
}

impl Gaps {
    pub fn from_range(start: u64, end: u64) -> Self {
        let mut gaps = Self::default();
        gaps.insert(start, end);
        gaps
    }

    fn insert(&mut self, start: u64, end: u64) {
        if start < end {
            self.ranges.insert(start, end);
            self.classes.entry(class(end - start)).or_default().insert(start);
        }
    }

    fn remove(&mut self, start: u64) -> Option<u64> {
        let end = self.ranges.remove(&start)?;
        let class = class(end - start);
        let starts = self.classes.get_mut(&class)?;
        starts.remove(&start);
        if starts.is_empty() {
            self.classes.remove(&class);
        }
        Some(end)
    }

    /// Returns the start of the first range with at least `size` bytes.
    pub fn first(&self, size: u64) -> Option<u64> {
        let own = class(size.max(1));
        let holds = |start: &&u64| self.ranges.get(start).is_some_and(|end| end - *start >= size);
        let larger = self.classes.range(own + 1..).filter_map(|(_, starts)| starts.first());
        // Any range of a larger class fits. Ranges of the same class are examined only if they come before the first of
        // these.
        let sure = larger.min().copied();
        let same = self.classes.get(&own);
        let near = same.and_then(|starts| starts.range(..sure.unwrap_or(u64::MAX)).find(holds));
        near.copied().or(sure)
    }

    /// Takes the start of the range at `start`; the remainder begins at `rest`.
    pub fn take(&mut self, start: u64, rest: u64) {
        if let Some(end) = self.remove(start) {
            self.insert(rest, end);
        }
    }

    /// Marks `start..end` as free, and merges it with free ranges inside it or next to it.
    pub fn free(&mut self, start: u64, end: u64) {
        let (mut start, mut end) = (start, end);
        while let Some((&before, &until)) = self.ranges.range(..=end).next_back().filter(|(_, until)| **until >= start)
        {
            self.remove(before);
            (start, end) = (start.min(before), end.max(until));
        }
        self.insert(start, end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_range_that_is_large_enough_is_found_in_any_class() {
        let mut gaps = Gaps::default();
        for (start, end) in [(0, 10), (100, 115), (200, 300), (400, 412)] {
            gaps.free(start, end);
        }
        let found = [1, 10, 11, 13, 15, 16, 100, 101].map(|size| gaps.first(size));
        assert_eq!(found, [Some(0), Some(0), Some(100), Some(100), Some(100), Some(200), Some(200), None]);
    }

    #[test]
    fn ranges_that_touch_become_one() {
        let mut gaps = Gaps::from_range(0, 10);
        gaps.free(20, 30);
        gaps.free(10, 20);
        assert_eq!(gaps.first(30), Some(0));
        gaps.take(0, 25);
        assert_eq!((gaps.first(5), gaps.first(6)), (Some(25), None));
    }
}

//! Linear equations between counts, some of which are unknown. [`executed`](super::executed) uses them to describe the
//! flow through basic blocks.

use std::collections::BTreeMap;

/// Unknown counts, and equations between them.
#[derive(Debug, Clone, Default)]
pub struct Balance {
    counts: Vec<Option<u64>>,
    /// Equations of the form `constant + Σ coefficient · count = 0`, with coefficients by count.
    sums: Vec<(i128, BTreeMap<usize, i128>)>,
}

impl Balance {
    pub fn new(counts: usize) -> Self {
        Self { counts: vec![None; counts], sums: Vec::new() }
    }

    pub fn get(&self, count: usize) -> Option<u64> {
        self.counts[count]
    }

    pub fn set(&mut self, count: usize, value: u64) {
        self.counts[count] = Some(value);
    }

    /// Adds the equation `number + Σ left = Σ right`.
    pub fn equate(
        &mut self,
        number: u64,
        left: impl IntoIterator<Item = usize>,
        right: impl IntoIterator<Item = usize>,
    ) {
        let mut terms: BTreeMap<usize, i128> = BTreeMap::new();
        left.into_iter().for_each(|count| *terms.entry(count).or_default() += 1);
        right.into_iter().for_each(|count| *terms.entry(count).or_default() -= 1);
        terms.retain(|_, factor| *factor != 0);
        self.sums.push((i128::from(number), terms));
    }

    /// Derives the counts that follow from the known ones. Skips equations that cannot hold, which means that some
    /// known count is wrong.
    pub fn solve(&mut self) {
        let mut has_changed = true;
        while has_changed {
            has_changed = false;
            for (number, terms) in &self.sums {
                let known =
                    |(count, factor): (&usize, &i128)| self.counts[*count].map(|value| factor * i128::from(value));
                let total = number + terms.iter().filter_map(known).sum::<i128>();
                let unknown = || terms.iter().filter(|(count, _)| self.counts[**count].is_none());
                let is_positive = |(_, factor): &(&usize, &i128)| **factor > 0;
                let found = match unknown().count() {
                    0 => continue,
                    1 => {
                        unknown().next().filter(|(_, factor)| total % **factor == 0).map(|(_, factor)| -total / factor)
                    }
                    // The counts all have the same sign and add up to zero, so each of them is 0.
                    _ => (total == 0
                        && (unknown().all(|term| is_positive(&term)) || !unknown().any(|term| is_positive(&term))))
                    .then_some(0),
                };
                let Some(value) = found.and_then(|value| u64::try_from(value).ok()) else { continue };
                let solved: Vec<usize> = unknown().map(|(count, _)| *count).collect();
                for count in solved {
                    self.counts[count] = Some(value);
                }
                has_changed = true;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_follow_from_those_that_are_known() {
        // Block 0 splits into 1 and 2, with 3 more arriving along the way. Both lead to 3.
        let mut balance = Balance::new(4);
        balance.equate(3, [0], [1, 2]);
        balance.equate(0, [1, 2], [3]);
        balance.set(0, 10);
        balance.solve();
        assert_eq!((0..4).map(|count| balance.get(count)).collect::<Vec<_>>(), [Some(10), None, None, None]);
        balance.set(1, 4);
        balance.solve();
        assert_eq!((balance.get(2), balance.get(3)), (Some(9), Some(13)));
    }

    #[test]
    fn nothing_is_shared_between_several_as_zeros_and_no_count_is_negative() {
        let mut balance = Balance::new(4);
        balance.equate(0, [0], [1, 2]);
        balance.set(0, 0);
        balance.equate(5, [3], []);
        balance.solve();
        assert_eq!((balance.get(1), balance.get(2), balance.get(3)), (Some(0), Some(0), None));
    }
}

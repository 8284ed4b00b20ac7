//! Sorted order of the objectives, maintained as evaluations are added.

use std::collections::BTreeSet;

/// Fraction of the objectives that count as good.
const GOOD: f64 = 0.7;

/// Evaluations sorted by objective, ties in order of evaluation. Finds the best and the worst good one without sorting
/// all evaluations, of which there may be a million.
#[derive(Debug, Clone, Default)]
pub struct Ranking {
    good: BTreeSet<Rank>,
    rest: BTreeSet<Rank>,
}

/// Bit pattern of a positive objective, which sorts like the number, and the index of its evaluation.
type Rank = (u64, u32);

impl Ranking {
    /// Adds a positive objective with the index of its evaluation.
    pub fn insert(&mut self, value: f64, place: u32) {
        let rank = (value.to_bits(), place);
        if self.good.last().is_none_or(|last| rank < *last) {
            self.good.insert(rank);
        } else {
            self.rest.insert(rank);
        }
        // A new objective changes the number of good ones by at most one.
        let wanted = ((self.len() - 1) as f64 * GOOD) as usize + 1;
        if self.good.len() > wanted {
            self.rest.extend(self.good.pop_last());
        } else if self.good.len() < wanted {
            self.good.extend(self.rest.pop_first());
        }
    }

    pub fn len(&self) -> usize {
        self.good.len() + self.rest.len()
    }

    /// Indices of the evaluations, best first.
    pub fn places(&self) -> impl Iterator<Item = u32> {
        self.good.iter().chain(&self.rest).map(|&(_, place)| place)
    }

    /// The worst good objective.
    pub fn worst_good(&self) -> Option<f64> {
        self.good.last().map(|&(value, _)| f64::from_bits(value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn the_order_and_the_limit_are_those_of_a_sorted_list() {
        let mut random = Random::new(1);
        let (mut ranking, mut list) = (Ranking::default(), Vec::new());
        for place in 0..500 {
            // Few distinct values, so that many are equal.
            let value = (1 + random.below(60)) as f64 / 8.0;
            ranking.insert(value, place);
            list.push((value, place));
            list.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
            assert!(ranking.places().eq(list.iter().map(|&(_, place)| place)));
            assert_eq!(ranking.worst_good(), Some(list[((list.len() - 1) as f64 * 0.7) as usize].0));
        }
    }
}

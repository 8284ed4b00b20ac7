//! Evaluations of a search so far, and pending points. A strategy learns only from these.

use std::collections::{BTreeSet, HashMap, HashSet};

/// Result of evaluating a point.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Outcome {
    /// The objective to minimise: a positive time or count.
    Value(f64),
    /// The point could not be compiled, launched or checked.
    Failed,
}

impl Outcome {
    /// Outcome for a measured value, which is a failure unless it is positive and finite.
    #[must_use]
    pub fn of_measured(value: Option<f64>) -> Self {
        value.filter(|value| value.is_finite() && *value > 0.0).map_or(Self::Failed, Self::Value)
    }

    /// The objective, unless the point failed.
    #[must_use]
    pub fn value(self) -> Option<f64> {
        match self {
            Self::Value(value) => Some(value),
            Self::Failed => None,
        }
    }
}

/// An evaluated point.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Evaluation {
    /// Index of the point in its space.
    pub point: u64,
    /// The objective, or a failure.
    pub outcome: Outcome,
}

/// All evaluations in the order in which they finished, and the pending points.
#[derive(Debug, Clone, Default)]
pub struct History {
    evaluations: Vec<Evaluation>,
    places: HashMap<u64, u32>,
    pending: HashSet<u64>,
    /// Points to propose only when no others are left.
    last: HashSet<u64>,
    ranking: Ranking,
    /// Part of the space to evaluate here, if others evaluate the rest.
    part: Option<Part>,
}

/// One of several parts of a space, all with about the same number of points.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    index: u64,
    of: u64,
}

impl Part {
    /// Creates part `index` of `of` (1-based).
    #[must_use]
    pub fn new(index: u32, of: u32) -> Self {
        Self { index: u64::from(index) - 1, of: u64::from(of) }
    }

    /// Whether a point is in this part. Neighbours are in the same part no more often than other points.
    #[must_use]
    pub fn has(self, point: u64) -> bool {
        // Output function of SplitMix64: a bijection that mixes all bits.
        let mixed = (point ^ (point >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % self.of == self.index
    }
}

impl History {
    /// Restricts proposals to a part of the space. Evaluations of other points can still be added.
    pub fn keep(&mut self, part: Part) {
        self.part = Some(part);
    }

    /// Holds back points until no others are left.
    pub fn put_last(&mut self, points: &[u64]) {
        self.last.extend(points);
    }

    /// Releases the points of [`Self::put_last`] and returns whether there were any.
    pub fn release_last(&mut self) -> bool {
        !std::mem::take(&mut self.last).is_empty()
    }

    /// Marks a point as pending.
    pub fn start(&mut self, point: u64) {
        self.pending.insert(point);
    }

    /// Records the outcome of a point. Ignores a second outcome of the same point.
    pub fn finish(&mut self, point: u64, outcome: Outcome) {
        self.pending.remove(&point);
        let place = self.evaluations.len() as u32;
        if self.places.contains_key(&point) {
            return;
        }
        self.places.insert(point, place);
        self.evaluations.push(Evaluation { point, outcome });
        if let Some(value) = outcome.value() {
            self.ranking.insert(value, point);
        }
    }

    /// Records that a pending evaluation will not finish.
    pub fn give_up(&mut self, point: u64) {
        self.pending.remove(&point);
    }

    /// Replaces the outcomes of all evaluations, in order, after the objective has changed.
    pub fn replace(&mut self, outcomes: &[Outcome]) {
        self.ranking = Ranking::default();
        for (evaluation, &outcome) in self.evaluations.iter_mut().zip(outcomes) {
            evaluation.outcome = outcome;
            if let Some(value) = outcome.value() {
                self.ranking.insert(value, evaluation.point);
            }
        }
    }

    /// All evaluations in the order in which they finished.
    #[must_use]
    pub fn evaluations(&self) -> &[Evaluation] {
        &self.evaluations
    }

    /// Number of evaluated points, including failed ones.
    #[must_use]
    pub fn len(&self) -> usize {
        self.evaluations.len()
    }

    /// Whether no evaluation has finished.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.evaluations.is_empty()
    }

    /// Outcome of a point, if evaluated.
    #[must_use]
    pub fn outcome(&self, point: u64) -> Option<Outcome> {
        self.places.get(&point).map(|&place| self.evaluations[place as usize].outcome)
    }

    /// Whether a point must not be proposed: it is evaluated, pending, in another part, or held back.
    #[must_use]
    pub fn is_taken(&self, point: u64) -> bool {
        self.places.contains_key(&point)
            || self.is_pending(point)
            || self.last.contains(&point)
            || self.part.is_some_and(|part| !part.has(point))
    }

    /// Whether a point is being evaluated.
    #[must_use]
    pub fn is_pending(&self, point: u64) -> bool {
        self.pending.contains(&point)
    }

    /// Points being evaluated, in ascending order.
    #[must_use]
    pub fn pending(&self) -> Vec<u64> {
        let mut pending: Vec<u64> = self.pending.iter().copied().collect();
        pending.sort_unstable();
        pending
    }

    /// Best point with its objective.
    #[must_use]
    pub fn best(&self) -> Option<(u64, f64)> {
        self.ranked().next()
    }

    /// Points that did not fail, with their objectives, best first. Ties are in order of the points.
    pub fn ranked(&self) -> impl Iterator<Item = (u64, f64)> {
        self.ranking.points()
    }

    /// Number of points that did not fail.
    #[must_use]
    pub fn right(&self) -> usize {
        self.ranking.len()
    }

    /// Worst objective among the best 70 % of the points that did not fail.
    pub(crate) fn worst_good(&self) -> Option<f64> {
        self.ranking.worst_good()
    }

    /// Number of points that are neither evaluated nor pending, including those in other parts.
    #[must_use]
    pub fn untouched(&self, size: u64) -> u64 {
        size.saturating_sub((self.evaluations.len() + self.pending.len()) as u64)
    }
}

/// Fraction of the objectives that count as good.
const GOOD: f64 = 0.7;

/// Evaluated points sorted by objective, ties by point: a resumed search may evaluate in another order. Finds the best
/// and the worst good one without sorting all evaluations, of which there may be a million.
#[derive(Debug, Clone, Default)]
struct Ranking {
    good: BTreeSet<Rank>,
    rest: BTreeSet<Rank>,
}

/// Bit pattern of a positive objective, which sorts like the number, and its point.
type Rank = (u64, u64);

impl Ranking {
    /// Adds a point with its objective, which must be positive.
    fn insert(&mut self, value: f64, point: u64) {
        let rank = (value.to_bits(), point);
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

    fn len(&self) -> usize {
        self.good.len() + self.rest.len()
    }

    /// Points with their objectives, best first.
    fn points(&self) -> impl Iterator<Item = (u64, f64)> {
        self.good.iter().chain(&self.rest).map(|&(value, point)| (point, f64::from_bits(value)))
    }

    /// The worst good objective.
    fn worst_good(&self) -> Option<f64> {
        self.good.last().map(|&(value, _)| f64::from_bits(value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn each_point_is_of_one_part_and_parts_are_about_equal() {
        let parts: Vec<Part> = (1..=3).map(|index| Part::new(index, 3)).collect();
        let mut counts = [0_u32; 3];
        for point in 0..30_000 {
            let owners: Vec<usize> = (0..3).filter(|&place| parts[place].has(point)).collect();
            assert_eq!(owners.len(), 1, "{point}");
            counts[owners[0]] += 1;
        }
        // The standard deviation of each count is 82.
        assert!(counts.iter().all(|count| count.abs_diff(10_000) < 500), "{counts:?}");
        // Points that differ only in the last parameter, which has two values, are in the same part no more often than
        // by chance.
        let pairs = (0..10_000).filter(|pair| parts[0].has(2 * pair) && parts[0].has(2 * pair + 1)).count();
        assert!(pairs.abs_diff(10_000 / 9) < 200, "{pairs}");
    }

    #[test]
    fn points_of_other_parts_are_taken_and_not_pending() {
        let mut history = History::default();
        let part = Part::new(1, 2);
        history.keep(part);
        let (own, foreign): (Vec<u64>, Vec<u64>) = (0..100).partition(|&point| part.has(point));
        assert!(!history.is_taken(own[0]) && history.is_taken(foreign[0]) && !history.is_pending(foreign[0]));
        history.finish(foreign[0], Outcome::Value(2.0));
        assert_eq!(history.best(), Some((foreign[0], 2.0)));
    }

    #[test]
    fn the_order_and_the_limit_are_those_of_a_sorted_list() {
        let mut random = Random::new(1);
        let (mut ranking, mut list) = (Ranking::default(), Vec::new());
        // A bijection of 0 to 499 that is not sorted.
        for point in (0..500).map(|at| at * 123 % 500) {
            // Few distinct values, so that many are equal.
            let value = (1 + random.below(60)) as f64 / 8.0;
            ranking.insert(value, point);
            list.push((value, point));
            list.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
            assert!(ranking.points().eq(list.iter().map(|&(value, point)| (point, value))));
            assert_eq!(ranking.worst_good(), Some(list[((list.len() - 1) as f64 * 0.7) as usize].0));
        }
    }
}

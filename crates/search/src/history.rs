//! What has been evaluated so far, and what is being evaluated.

use std::collections::{HashMap, HashSet};

use crate::ranking::Ranking;

/// How the evaluation of a point ended.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Outcome {
    /// The objective, which is minimised: a positive time or count.
    Value(f64),
    /// The point could not be compiled, launched or checked.
    Failed,
}

impl Outcome {
    /// Returns the outcome of a measurement, which must be positive and finite to be one.
    #[must_use]
    pub fn of_measured(value: Option<f64>) -> Self {
        value.filter(|value| value.is_finite() && *value > 0.0).map_or(Self::Failed, Self::Value)
    }

    /// Returns the objective of a point that did not fail.
    #[must_use]
    pub fn value(self) -> Option<f64> {
        match self {
            Self::Value(value) => Some(value),
            Self::Failed => None,
        }
    }
}

/// One evaluated point.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Evaluation {
    /// The index of the point in its space.
    pub point: u64,
    /// How its evaluation ended.
    pub outcome: Outcome,
}

/// All evaluations in the order in which they ended, and the points that are being evaluated.
#[derive(Debug, Clone, Default)]
pub struct History {
    evaluations: Vec<Evaluation>,
    places: HashMap<u64, u32>,
    pending: HashSet<u64>,
    ranking: Ranking,
}

impl History {
    /// Notes that a point is being evaluated.
    pub fn start(&mut self, point: u64) {
        self.pending.insert(point);
    }

    /// Notes how the evaluation of a point ended. A second outcome of a point is ignored.
    pub fn finish(&mut self, point: u64, outcome: Outcome) {
        self.pending.remove(&point);
        let place = self.evaluations.len() as u32;
        if self.places.contains_key(&point) {
            return;
        }
        self.places.insert(point, place);
        self.evaluations.push(Evaluation { point, outcome });
        if let Some(value) = outcome.value() {
            self.ranking.insert(value, place);
        }
    }

    /// Notes that a point is not evaluated after all.
    pub fn give_up(&mut self, point: u64) {
        self.pending.remove(&point);
    }

    /// Gives each evaluation another outcome, in the order in which they ended: the objective is another one from now on.
    pub fn replace(&mut self, outcomes: &[Outcome]) {
        self.ranking = Ranking::default();
        for ((evaluation, &outcome), place) in self.evaluations.iter_mut().zip(outcomes).zip(0..) {
            evaluation.outcome = outcome;
            if let Some(value) = outcome.value() {
                self.ranking.insert(value, place);
            }
        }
    }

    /// Returns all evaluations in the order in which they ended.
    #[must_use]
    pub fn evaluations(&self) -> &[Evaluation] {
        &self.evaluations
    }

    /// Returns how many points have been evaluated, failed ones included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.evaluations.len()
    }

    /// Says whether no evaluation has ended.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.evaluations.is_empty()
    }

    /// Returns the outcome of a point that has been evaluated.
    #[must_use]
    pub fn outcome(&self, point: u64) -> Option<Outcome> {
        self.places.get(&point).map(|&place| self.evaluations[place as usize].outcome)
    }

    /// Says whether a point has been evaluated or is being evaluated.
    #[must_use]
    pub fn is_taken(&self, point: u64) -> bool {
        self.places.contains_key(&point) || self.pending.contains(&point)
    }

    /// Returns the points that are being evaluated, in increasing order.
    #[must_use]
    pub fn pending(&self) -> Vec<u64> {
        let mut pending: Vec<u64> = self.pending.iter().copied().collect();
        pending.sort_unstable();
        pending
    }

    /// Returns the best point with its objective.
    #[must_use]
    pub fn best(&self) -> Option<(u64, f64)> {
        self.ranked().next()
    }

    /// Returns the points that did not fail with their objectives, best first.
    pub fn ranked(&self) -> impl Iterator<Item = (u64, f64)> {
        let evaluations = self.ranking.places().map(|place| self.evaluations[place as usize]);
        evaluations.filter_map(|evaluation| Some((evaluation.point, evaluation.outcome.value()?)))
    }

    /// Returns how many points did not fail.
    #[must_use]
    pub fn right(&self) -> usize {
        self.ranking.len()
    }

    /// Returns the objective that seven of ten points that did not fail reach.
    pub(crate) fn worst_good(&self) -> Option<f64> {
        self.ranking.worst_good()
    }

    /// Returns how many points of the space have neither been evaluated nor are being evaluated.
    #[must_use]
    pub fn untouched(&self, size: u64) -> u64 {
        size.saturating_sub((self.evaluations.len() + self.pending.len()) as u64)
    }
}

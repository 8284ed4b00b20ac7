//! How good strategies are, in the terms of the published methodology for comparing autotuners.
//!
//! A strategy is compared with random search: at each time its score is how much of the way from what random search is
//! expected to have found to the optimum it has gone. 0 is random search, 1 is the optimum from the first moment.

use crate::history::History;
use crate::replay::Measured;

/// The share of the way from the median to the optimum that random search must cover: the time that it takes is the
/// budget of every strategy.
const SHARE: f64 = 0.95;
/// The score is the mean over so many times, evenly spread over the budget.
const TIMES: usize = 50;

/// What random search does in a measured space.
#[derive(Debug, Clone)]
pub struct Baseline {
    /// The objectives, worst first.
    worst_first: Vec<f64>,
    /// How long one evaluation takes: the median of seconds, or 1 if no times are known.
    cost: f64,
    /// After how many evaluations random search is expected to be near the optimum.
    evaluations: usize,
}

impl Baseline {
    /// Works out random search in a space; `None` if all of it failed.
    #[must_use]
    pub fn new(measured: &Measured) -> Option<Self> {
        let mut worst_first = measured.sorted();
        let best = *worst_first.first()?;
        let median = worst_first[worst_first.len() / 2];
        worst_first.reverse();
        let cutoff = best + (median - best) * (1.0 - SHARE);
        let n = worst_first.len();
        let index = worst_first.iter().position(|&value| value <= cutoff).unwrap_or(n - 1) + 1;
        let mut costs: Vec<f64> = (0..measured.space.len()).filter_map(|point| measured.seconds(point)).collect();
        costs.sort_by(f64::total_cmp);
        let cost = costs.get(costs.len() / 2).copied().filter(|cost| *cost > 0.0).unwrap_or(1.0);
        Some(Self { worst_first, cost, evaluations: (index as f64 / (n + 1 - index) as f64).ceil() as usize })
    }

    /// Returns the number of evaluations that random search needs, which is the budget of a comparison.
    #[must_use]
    pub fn evaluations(&self) -> usize {
        self.evaluations
    }

    /// Returns the objective that random search is expected to have found after some evaluations.
    #[must_use]
    pub fn expected(&self, evaluations: f64) -> f64 {
        let n = self.worst_first.len();
        let index = (evaluations * (n as f64 + 1.0) / (evaluations + 1.0)).round() as usize;
        self.worst_first[index.clamp(1, n) - 1]
    }

    /// Returns the optimum.
    #[must_use]
    pub fn optimum(&self) -> f64 {
        self.worst_first.last().copied().unwrap_or(f64::NAN)
    }

    /// Returns the score of a strategy at each of the times, from several of its searches.
    #[must_use]
    pub fn scores(&self, measured: &Measured, searches: &[History]) -> Vec<f64> {
        let budget = self.evaluations as f64;
        let curves: Vec<Vec<(f64, f64)>> = searches.iter().map(|search| self.curve(measured, search)).collect();
        (1..=TIMES)
            .map(|step| {
                let time = budget * step as f64 / TIMES as f64;
                let found: f64 = curves
                    .iter()
                    .map(|curve| {
                        let after = curve.partition_point(|(at, _)| *at <= time);
                        if after == 0 { self.worst_first[0] } else { curve[after - 1].1 }
                    })
                    .sum::<f64>()
                    / curves.len().max(1) as f64;
                let random = self.expected(time);
                let left = random - self.optimum();
                // Where random search is expected to have the optimum, there is no way left to compare.
                if left <= 0.0 { f64::from(u8::from(found <= self.optimum())) } else { (random - found) / left }
            })
            .collect()
    }

    /// Returns when a search found its best points, in evaluations of the median cost, and the best objective since then.
    fn curve(&self, measured: &Measured, search: &History) -> Vec<(f64, f64)> {
        let mut time = 0.0;
        let mut best = f64::INFINITY;
        let mut curve = Vec::new();
        for evaluation in search.evaluations() {
            time += measured.seconds(evaluation.point).map_or(1.0, |seconds| seconds / self.cost);
            if let Some(value) = evaluation.outcome.value().filter(|value| *value < best) {
                best = value;
                curve.push((time, best));
            }
        }
        curve
    }
}

/// Returns the mean of the scores of several spaces over all times, which is one number for a strategy.
#[must_use]
pub fn mean(scores: &[Vec<f64>]) -> f64 {
    let means: Vec<f64> = scores.iter().map(|scores| scores.iter().sum::<f64>() / scores.len().max(1) as f64).collect();
    means.iter().sum::<f64>() / means.len().max(1) as f64
}

//! Scores strategies with the published methodology for comparing autotuners.
//!
//! At each time, the score is the fraction of the gap between the expected result of random search and the optimum that
//! the strategy has closed. Random search scores 0; finding the optimum at once scores 1.

use crate::history::History;
use crate::replay::Measured;

/// Fraction of the gap between the median and the optimum. The time that random search needs to close it is the budget
/// of every strategy.
const SHARE: f64 = 0.95;
/// Number of evenly spaced times within the budget over which the score is averaged.
const TIMES: usize = 50;

/// Expected progress of random search in a measured space.
#[derive(Debug, Clone)]
pub struct Baseline {
    /// Objectives, worst first.
    worst_first: Vec<f64>,
    /// Cost of an evaluation: the median duration in seconds, or 1 if unknown.
    cost: f64,
    /// Number of evaluations after which random search is expected to close [`SHARE`] of the gap.
    evaluations: usize,
}

impl Baseline {
    /// Computes the progress of random search; `None` if all points failed.
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

    /// Number of evaluations that random search needs, which is the budget of a comparison.
    #[must_use]
    pub fn evaluations(&self) -> usize {
        self.evaluations
    }

    /// Expected best objective of random search after a number of evaluations.
    #[must_use]
    pub fn expected(&self, evaluations: f64) -> f64 {
        let n = self.worst_first.len();
        let index = (evaluations * (n as f64 + 1.0) / (evaluations + 1.0)).round() as usize;
        self.worst_first[index.clamp(1, n) - 1]
    }

    /// Best objective of the space.
    #[must_use]
    pub fn optimum(&self) -> f64 {
        self.worst_first.last().copied().unwrap_or(f64::NAN)
    }

    /// Score of a strategy at each time, averaged over several searches.
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
                // If random search is expected to be at the optimum, the score is 1 or 0.
                if left <= 0.0 { f64::from(u8::from(found <= self.optimum())) } else { (random - found) / left }
            })
            .collect()
    }

    /// Times of improvements, in evaluations of median cost, with the best objective from then on.
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

/// Mean over all times and spaces: a strategy's overall score.
#[must_use]
pub fn mean(scores: &[Vec<f64>]) -> f64 {
    let means: Vec<f64> = scores.iter().map(|scores| scores.iter().sum::<f64>() / scores.len().max(1) as f64).collect();
    means.iter().sum::<f64>() / means.len().max(1) as f64
}

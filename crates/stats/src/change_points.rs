//! Change points of a series by E-divisive (Matteson and James, *A Nonparametric Approach for Multiple Change Point
//! Analysis of Multivariate Data*, JASA 109, 2014), with weights, and with a t-test instead of permutations.
//!
//! **Where.** For two adjacent parts X and Y of the series, the divergence is
//!
//! ```text
//! E = 2 Σ wᵢ wⱼ |xᵢ − yⱼ| / Σ wᵢ wⱼ  −  Σ wᵢ wₖ |xᵢ − xₖ| / Σ wᵢ wₖ  −  Σ wⱼ wₗ |yⱼ − yₗ| / Σ wⱼ wₗ
//! Q = E · W(X) W(Y) / (W(X) + W(Y))
//! ```
//!
//! with sums over pairs of distinct elements, and W the sum of a part's weights. Equal weights give the published
//! formula with α = 1. The candidate is the end of the X with the largest Q, over all X that start at the beginning of
//! the series and all Y that follow. Both sides of a change point are searched again.
//!
//! **Whether.** A permutation test needs a random generator, cannot reach small p values in reasonable time, and needs
//! about fifteen values to find anything. So a candidate is tested with Student's t-test between X and Y, as in
//! `MongoDB` and Apache Otava. Three things make the test strict. The p value is multiplied by the number of
//! candidates. The standard error is never below the one implied by the known errors of the values. And the change must
//! remain significant when any single value is left out, so that one outlier cannot cause a change.
//!
//! **Outliers** could also hide a change, because their distances dominate. So distances are capped at the one that
//! clearly separates two values, and the test moves a value that is far from its part's median towards it.

use super::quantile::median;
use super::student::{student_of_95_percent, student_two_sided};

/// Minimum number of values in a part.
const LEAST_PART: usize = 2;

/// Minimum number of values in which a change can be found. With fewer, leaving one out leaves a single value on one
/// side.
pub const FEWEST_READINGS: usize = 2 * LEAST_PART + 1;

/// Distance that clearly separates two values, in standard deviations.
const FAR: f64 = 3.5;

/// Standard deviation of a normal distribution divided by its median absolute deviation.
const NORMAL_OF_MEDIAN: f64 = 1.482_602_218_505_602;

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reading {
    pub value: f64,
    /// Known standard error, in the unit of `value`; may be 0.
    pub error: f64,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ChangePoint {
    pub index: usize,
    /// Weighted mean from here to the next change, minus the weighted mean before.
    pub shift: f64,
    /// Half-width of the shift's 95 % confidence interval.
    pub half_width: f64,
    /// Upper bound on the probability that noise alone produces a change this clear anywhere in both parts.
    pub p: f64,
}

/// Changes of a series in order, with a p value of at most `level` and a shift of at least `least`.
///
/// Empty if a value or an error is not finite. Takes O(n²) time and memory.
pub fn change_points(readings: &[Reading], level: f64, least: f64) -> Vec<ChangePoint> {
    let is_number = |reading: &Reading| reading.value.is_finite() && reading.error.is_finite();
    if readings.len() < FEWEST_READINGS || !readings.iter().all(is_number) {
        return Vec::new();
    }
    let series = Series::new(readings);
    let mut ends = vec![0, readings.len()];
    series.split(0, readings.len(), level, &mut ends);
    ends.sort_unstable();
    series.settle(ends, level, least)
}

/// Half-open range of indices.
type Part = (usize, usize);

/// Values with their variances; weights are reciprocal variances.
struct Series {
    values: Vec<f64>,
    weights: Vec<f64>,
    known: Vec<f64>,
    /// Largest deviation of each value that counts in full.
    far: Vec<f64>,
}

impl Series {
    /// Computes the weights. A value's variance is its squared known error plus the scatter of all values beyond their
    /// errors. The scatter is estimated from the median step between neighbours, which a few changes and outliers do
    /// not affect.
    fn new(readings: &[Reading]) -> Self {
        let steps: Vec<f64> = readings.windows(2).map(|pair| (pair[1].value - pair[0].value).abs()).collect();
        let squares: Vec<f64> = readings.iter().map(|reading| reading.error.powi(2)).collect();
        let middle = |values: &[f64]| median(values).unwrap_or(0.0);
        let between = ((middle(&steps) * NORMAL_OF_MEDIAN).powi(2) / 2.0 - middle(&squares)).max(0.0);
        let variances: Vec<f64> = squares.iter().map(|square| square + between).collect();
        // A value with a zero-width interval counts as precise as the most precise of the others.
        let least = variances.iter().copied().filter(|variance| *variance > 0.0).min_by(f64::total_cmp);
        let weight = |variance: &f64| least.map_or(1.0, |least| 1.0 / variance.max(least));
        // If all values are exact, distances are not capped.
        let far = |variance: &f64| if least.is_some() { FAR * variance.sqrt() } else { f64::INFINITY };
        Self {
            far: variances.iter().map(far).collect(),
            values: readings.iter().map(|reading| reading.value).collect(),
            weights: variances.iter().map(weight).collect(),
            known: squares,
        }
    }

    /// Adds the change points between two indices to `found`.
    fn split(&self, start: usize, end: usize, level: f64, found: &mut Vec<usize>) {
        let Some((_, change, window_end)) = self.candidate(start, end) else { return };
        let change = self.nearer((start, change), (change, window_end));
        if self.probability((start, change), (change, window_end), end - start) <= level {
            found.push(change);
            self.split(start, change, level, found);
            self.split(change, end, level, found);
        }
    }

    /// Largest Q, with the ends of its X and its Y. `None` if there is no room for two parts or all values are equal.
    fn candidate(&self, start: usize, end: usize) -> Option<(f64, usize, usize)> {
        let sums = Sums::new(&self.values[start..end], &self.weights[start..end], &self.far[start..end]);
        let n = end - start;
        let mut best: Option<(f64, usize, usize)> = None;
        for change in LEAST_PART..(n + 1).saturating_sub(LEAST_PART) {
            for window_end in change + LEAST_PART..=n {
                let q = sums.divergence(change, window_end);
                if q > best.map_or(0.0, |(q, ..)| q) {
                    best = Some((q, change, window_end));
                }
            }
        }
        best.map(|(q, change, window_end)| (q, start + change, start + window_end))
    }

    /// Start of Y after moving values next to the boundary to the side whose median is nearer. Distances are capped, so
    /// Q alone could put an outlier on either side.
    fn nearer(&self, x: Part, y: Part) -> usize {
        let middle = |part: Part| median(&self.values[part.0..part.1]).unwrap_or(0.0);
        let (left, right) = (middle(x), middle(y));
        let is_left = |i: usize| (self.values[i] - left).abs() < (self.values[i] - right).abs();
        let mut change = y.0;
        while change > x.0 + LEAST_PART && !is_left(change - 1) {
            change -= 1;
        }
        while change + LEAST_PART < y.1 && is_left(change) {
            change += 1;
        }
        change
    }

    /// Largest p value over all choices of at most one left-out value, multiplied by the number of candidates in `n`
    /// values.
    fn probability(&self, x: Part, y: Part, n: usize) -> f64 {
        if self.is_torn(x) || self.is_torn(y) {
            return 1.0;
        }
        let without = (x.0..y.1).map(|left_out| self.test(x, y, Some(left_out)).p);
        let worst = without.fold(self.test(x, y, None).p, f64::max);
        (worst * candidates(n)).min(1.0)
    }

    /// Whether a part consists of two values far apart: two outliers, not a level.
    fn is_torn(&self, (start, end): Part) -> bool {
        let far = || self.far[start].hypot(self.far[start + 1]);
        end - start == 2 && (self.values[start] - self.values[start + 1]).abs() > far()
    }

    /// Student's t-test between two parts with known relative weights.
    fn test(&self, x: Part, y: Part, left_out: Option<usize>) -> Difference {
        let mean = |part: Part| self.mean(part, left_out);
        let (x, y) = (mean(x), mean(y));
        let shift = y.value - x.value;
        let freedom = (x.count + y.count).saturating_sub(2);
        if x.count == 0 || y.count == 0 || freedom == 0 {
            return Difference { shift, error: f64::INFINITY, freedom, p: 1.0 };
        }
        // Scales errors like the Particle Data Group: up if the values scatter more than their errors, never down.
        let scatter = (x.squares + y.squares) / freedom as f64;
        let error = (scatter * (1.0 / x.weight + 1.0 / y.weight)).max(x.known + y.known).sqrt();
        let is_same = shift.abs() <= f64::EPSILON * x.value.abs().max(y.value.abs());
        let p = if is_same { 1.0 } else { student_two_sided(shift / error, freedom as f64) };
        Difference { shift, error, freedom, p }
    }

    /// Mean of a part without the left-out value. Outliers are clamped to the limit; of two values, neither can be
    /// called the outlier.
    fn mean(&self, part: Part, left_out: Option<usize>) -> Mean {
        let places = (part.0..part.1).filter(|i| Some(*i) != left_out);
        let values: Vec<f64> = places.clone().map(|i| self.values[i]).collect();
        let middle = median(&values).filter(|_| values.len() > 2);
        let value = |i: usize| match middle {
            Some(middle) => self.values[i].clamp(middle - self.far[i], middle + self.far[i]),
            None => self.values[i],
        };
        let weight: f64 = places.clone().map(|i| self.weights[i]).sum();
        let mean = places.clone().map(|i| self.weights[i] * value(i)).sum::<f64>() / weight;
        let squares = places.clone().map(|i| self.weights[i] * (value(i) - mean).powi(2)).sum();
        let known = places.clone().map(|i| self.weights[i].powi(2) * self.known[i]).sum::<f64>() / weight.powi(2);
        Mean { value: mean, weight, known, squares, count: places.count() }
    }

    /// Changes between adjacent parts. Drops the weakest one until all satisfy both limits.
    fn settle(&self, mut ends: Vec<usize>, level: f64, least: f64) -> Vec<ChangePoint> {
        loop {
            let changes: Vec<ChangePoint> =
                ends.windows(3).map(|at| self.change((at[0], at[1]), (at[1], at[2]))).collect();
            let rank = |change: &ChangePoint| (change.p > level, change.shift.abs() < least);
            let fails = changes.iter().enumerate().filter(|(_, change)| rank(change) != (false, false));
            let weakest = fails.max_by(|(_, a), (_, b)| {
                rank(a).cmp(&rank(b)).then(a.p.total_cmp(&b.p)).then(b.shift.abs().total_cmp(&a.shift.abs()))
            });
            match weakest {
                Some((i, _)) => ends.remove(i + 1),
                None => return changes,
            };
        }
    }

    fn change(&self, x: Part, y: Part) -> ChangePoint {
        let Difference { shift, error, freedom, .. } = self.test(x, y, None);
        let half_width = student_of_95_percent(freedom as f64) * error;
        ChangePoint { index: y.0, shift, half_width, p: self.probability(x, y, y.1 - x.0) }
    }
}

/// Number of ways to choose X and Y among `n` values, with X at the start.
fn candidates(n: usize) -> f64 {
    let free = (n + 1).saturating_sub(2 * LEAST_PART) as f64;
    (free * (free + 1.0) / 2.0).max(1.0)
}

struct Mean {
    value: f64,
    weight: f64,
    /// Variance of the mean, from the known errors only.
    known: f64,
    /// Weighted sum of squared deviations.
    squares: f64,
    count: usize,
}

struct Difference {
    shift: f64,
    error: f64,
    freedom: usize,
    p: f64,
}

/// 2D prefix sums over the matrix of weighted distances.
struct Sums {
    /// Sums of distances, in rows of n + 1 numbers.
    distances: Vec<f64>,
    weights: Vec<f64>,
    squares: Vec<f64>,
}

impl Sums {
    fn new(values: &[f64], weights: &[f64], far: &[f64]) -> Self {
        let n = values.len();
        let mut distances = vec![0.0; (n + 1) * (n + 1)];
        for i in 0..n {
            let mut row = 0.0;
            for j in 0..n {
                row += weights[i] * weights[j] * (values[i] - values[j]).abs().min(far[i].hypot(far[j]));
                distances[(i + 1) * (n + 1) + j + 1] = distances[i * (n + 1) + j + 1] + row;
            }
        }
        let sums = |of: fn(f64) -> f64| {
            let mut sum = 0.0;
            std::iter::once(0.0)
                .chain(weights.iter().map(move |weight| {
                    sum += of(*weight);
                    sum
                }))
                .collect()
        };
        Self { distances, weights: sums(|weight| weight), squares: sums(|weight| weight * weight) }
    }

    /// Q for X = 0..`change` and Y = `change`..`end`.
    fn divergence(&self, change: usize, end: usize) -> f64 {
        let corner = |i: usize, j: usize| self.distances[i * self.weights.len() + j];
        let mean_distance = |start: usize, end: usize| {
            let distances = corner(end, end) - 2.0 * corner(start, end) + corner(start, start);
            let weight = self.weights[end] - self.weights[start];
            distances / (weight * weight - (self.squares[end] - self.squares[start]))
        };
        let (x, y) = (self.weights[change], self.weights[end] - self.weights[change]);
        let between = (corner(change, end) - corner(change, change)) / (x * y);
        (2.0 * between - mean_distance(0, change) - mean_distance(change, end)) * x * y / (x + y)
    }
}

#[cfg(test)]
mod tests;

//! Finds change points of a series: E-divisive (Matteson and James, *A Nonparametric Approach for Multiple Change Point
//! Analysis of Multivariate Data*, JASA 109, 2014), with weights, and with a t-test in place of its permutations.
//!
//! **Where.** For two parts X and Y of the series that follow each other, the divergence is
//!
//! ```text
//! E = 2 Σ wᵢ wⱼ |xᵢ − yⱼ| / Σ wᵢ wⱼ  −  Σ wᵢ wₖ |xᵢ − xₖ| / Σ wᵢ wₖ  −  Σ wⱼ wₗ |yⱼ − yₗ| / Σ wⱼ wₗ
//! Q = E · W(X) W(Y) / (W(X) + W(Y))
//! ```
//!
//! with sums over pairs of different values and W the sum of a part's weights; equal weights give the published
//! formula with α = 1. The candidate is the end of X where Q is the greatest over all X that begin with the series and
//! all Y that follow. Both sides of a change point are searched again.
//!
//! **Whether.** A permutation test needs a random generator, cannot give a small probability within reasonable time,
//! and needs some fifteen values before it can find anything. So a candidate is tested by Student's t between X and Y,
//! as `MongoDB` and Apache Otava do. Three things make it strict. Its probability is multiplied by the number of
//! candidates. The standard error is never smaller than the known errors of the values say. And the change must remain
//! when any one value is left out, so that no single outlier makes one.
//!
//! **Outliers** would also hide a change, by their distance. So no distance counts as more than what tells two values apart
//! without doubt, and the test moves a value that is far from the median of its part towards it.

use super::quantile::median;
use super::student::{student_of_95_percent, student_two_sided};

/// A part has at least so many values.
const LEAST_PART: usize = 2;

/// The fewest values in which a change can be found: of fewer, without any one of them, one is on one side.
pub const FEWEST_READINGS: usize = 2 * LEAST_PART + 1;

/// The number of standard deviations from which on it does not matter how far apart values are.
const FAR: f64 = 3.5;

/// The standard deviation of normal values, divided by the median of their absolute values.
const NORMAL_OF_MEDIAN: f64 = 1.482_602_218_505_602;

/// A value of a series.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reading {
    /// The value, in any unit.
    pub value: f64,
    /// The standard error that the value is known to have, in the same unit; it may be 0.
    pub error: f64,
}

/// A change of the mean.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ChangePoint {
    /// The index of the first value after the change.
    pub index: usize,
    /// The weighted mean after the change, up to the next one, minus that before it.
    pub shift: f64,
    /// Half the width that the shift's interval of 95 % has.
    pub half_width: f64,
    /// The probability of a change as clear as this one anywhere in both parts, if there is none: an upper limit.
    pub p: f64,
}

/// Returns the changes in a series, in order: those whose probability is at most `level` and whose shift is at least
/// `least`.
///
/// No change is found in a series with a value or an error that is not a finite number. Takes time and memory of the
/// order n².
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

/// The part of a series that begins at the first index and ends before the second.
type Part = (usize, usize);

/// Values with the variances that are their weights' reciprocals.
struct Series {
    values: Vec<f64>,
    weights: Vec<f64>,
    /// The squares of the known errors.
    known: Vec<f64>,
    /// How far each value may lie from others before it does not matter how far.
    far: Vec<f64>,
}

impl Series {
    /// Weighs the values. A value's variance is that of its known error plus what the values differ by beyond their
    /// errors. That is estimated from the median of the steps between neighbours, which a few changes and outliers do
    /// not affect.
    fn new(readings: &[Reading]) -> Self {
        let steps: Vec<f64> = readings.windows(2).map(|pair| (pair[1].value - pair[0].value).abs()).collect();
        let squares: Vec<f64> = readings.iter().map(|reading| reading.error.powi(2)).collect();
        let middle = |values: &[f64]| median(values).unwrap_or(0.0);
        let between = ((middle(&steps) * NORMAL_OF_MEDIAN).powi(2) / 2.0 - middle(&squares)).max(0.0);
        let variances: Vec<f64> = squares.iter().map(|square| square + between).collect();
        // A value whose interval has no width is as precise as the best of the others.
        let least = variances.iter().copied().filter(|variance| *variance > 0.0).min_by(f64::total_cmp);
        let weight = |variance: &f64| least.map_or(1.0, |least| 1.0 / variance.max(least));
        // Where all are exact, every distance matters.
        let far = |variance: &f64| if least.is_some() { FAR * variance.sqrt() } else { f64::INFINITY };
        Self {
            far: variances.iter().map(far).collect(),
            values: readings.iter().map(|reading| reading.value).collect(),
            weights: variances.iter().map(weight).collect(),
            known: squares,
        }
    }

    /// Adds the change points between two places to `found`.
    fn split(&self, start: usize, end: usize, level: f64, found: &mut Vec<usize>) {
        let Some((_, change, window_end)) = self.candidate(start, end) else { return };
        let change = self.nearer((start, change), (change, window_end));
        if self.probability((start, change), (change, window_end), end - start) <= level {
            found.push(change);
            self.split(start, change, level, found);
            self.split(change, end, level, found);
        }
    }

    /// Returns the greatest Q, with the end of its X and of its Y. `None` where there is no room for two parts, or all
    /// values are equal.
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

    /// Returns where Y begins if the values at its beginning and at the end of X are on the side whose median is nearer. By
    /// their limited distances an outlier would be as good on one side as on the other.
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

    /// Returns the probability of the difference of two parts by chance, without the value that makes it the clearest,
    /// among all candidates in `n` values.
    fn probability(&self, x: Part, y: Part, n: usize) -> f64 {
        if self.is_torn(x) || self.is_torn(y) {
            return 1.0;
        }
        let without = (x.0..y.1).map(|left_out| self.test(x, y, Some(left_out)).p);
        let worst = without.fold(self.test(x, y, None).p, f64::max);
        (worst * candidates(n)).min(1.0)
    }

    /// Whether a part has only two values, which are far apart: two outliers, and no level.
    fn is_torn(&self, (start, end): Part) -> bool {
        let far = || self.far[start].hypot(self.far[start + 1]);
        end - start == 2 && (self.values[start] - self.values[start + 1]).abs() > far()
    }

    /// Applies Student's test to two parts with known relative weights.
    fn test(&self, x: Part, y: Part, left_out: Option<usize>) -> Difference {
        let mean = |part: Part| self.mean(part, left_out);
        let (x, y) = (mean(x), mean(y));
        let shift = y.value - x.value;
        let freedom = (x.count + y.count).saturating_sub(2);
        if x.count == 0 || y.count == 0 || freedom == 0 {
            return Difference { shift, error: f64::INFINITY, freedom, p: 1.0 };
        }
        // The Particle Data Group scales errors in this way: up where values differ by more than these say, never down.
        let scatter = (x.squares + y.squares) / freedom as f64;
        let error = (scatter * (1.0 / x.weight + 1.0 / y.weight)).max(x.known + y.known).sqrt();
        let is_same = shift.abs() <= f64::EPSILON * x.value.abs().max(y.value.abs());
        let p = if is_same { 1.0 } else { student_two_sided(shift / error, freedom as f64) };
        Difference { shift, error, freedom, p }
    }

    /// Returns the mean of a part without one of its values. Outliers of the part count as what is just none; of two values
    /// neither is known to be one.
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

    /// Returns the changes between parts that follow each other; the least clear one is dropped until all of them hold.
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

/// Returns the number of ways in which two parts can be chosen in `n` values, the first at their beginning.
fn candidates(n: usize) -> f64 {
    let free = (n + 1).saturating_sub(2 * LEAST_PART) as f64;
    (free * (free + 1.0) / 2.0).max(1.0)
}

struct Mean {
    value: f64,
    weight: f64,
    /// The variance that the mean has by the known errors alone.
    known: f64,
    /// The sum of the weighted squared deviations.
    squares: f64,
    count: usize,
}

struct Difference {
    shift: f64,
    error: f64,
    freedom: usize,
    p: f64,
}

/// Sums over rectangles of the matrix of weighted distances, from its upper left corner.
struct Sums {
    /// The sums of distances, row by row with n + 1 numbers each.
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

    /// Returns Q for X = 0..`change` and Y = `change`..`end`.
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

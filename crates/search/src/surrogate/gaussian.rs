//! A Gaussian process over points of a discrete space.
//!
//! The correlation of two points is exp(−Σ wᵢ·dᵢ) with the distances of [`Features`]. Functions drawn from this process
//! are rough, like kernel times: a step in one parameter can change everything. The weights maximise the posterior
//! density under a prior in which each parameter matters a little.

use super::features::{Features, Table};

/// Prior mean and standard deviation of the logarithm of a weight.
const PRIOR: (f64, f64) = (-1.0, 1.2);
/// Prior mean and standard deviation of the logarithm of the noise.
const PRIOR_NOISE: (f64, f64) = (-6.0, 1.5);
/// Minimum noise, relative to the variance of the process.
const LEAST_NOISE: f64 = 1e-5;
/// Number of candidates processed at once, so that their rows stay in a core's cache.
const BLOCK: usize = 512;

/// How fast the correlation between points decreases with each feature's distance.
#[derive(Debug, Clone)]
pub struct Weights {
    /// Logarithm of each feature's weight, followed by the logarithm of the noise.
    logs: Vec<f64>,
}

impl Weights {
    /// Prior weights, for use before any evaluation.
    #[must_use]
    pub fn prior(features: &Features) -> Self {
        let mut logs = vec![PRIOR.0; features.len()];
        logs.push(PRIOR_NOISE.0);
        Self { logs }
    }

    /// Fits the weights to points and their objectives, in `steps` gradient steps from the current weights.
    pub fn fit(&mut self, features: &Features, points: &[Box<[u16]>], objectives: &[f64], steps: usize) {
        let y = standardise(objectives);
        let width = features.len();
        let n = points.len();
        let mut distances = vec![0.0_f32; n * (n + 1) / 2 * width];
        let mut pairs = distances.chunks_exact_mut(width);
        for i in 0..n {
            for (j, pair) in (0..=i).zip(&mut pairs) {
                features.write_distances(&points[i], &points[j], pair);
            }
        }
        let mut logs = self.logs.clone();
        let (mut first, mut second) = (vec![0.0; logs.len()], vec![0.0; logs.len()]);
        let mut least = f64::INFINITY;
        for step in 1..=steps {
            let Some((cost, gradient)) = cost(&distances, &y, &logs) else { break };
            if cost < least {
                least = cost;
                self.logs.clone_from(&logs);
            }
            // Adam, which needs no line search.
            for (k, slope) in gradient.into_iter().enumerate() {
                first[k] = 0.8 * first[k] + 0.2 * slope;
                second[k] = 0.95 * second[k] + 0.05 * slope * slope;
                let (a, b) = (1.0 - 0.8_f64.powi(step as i32), 1.0 - 0.95_f64.powi(step as i32));
                logs[k] = (logs[k] - 0.15 * (first[k] / a) / ((second[k] / b).sqrt() + 1e-8)).clamp(-8.0, 4.0);
            }
        }
    }

    fn noise(&self) -> f64 {
        self.logs.last().map_or(0.0, |log| log.exp()) + LEAST_NOISE
    }

    fn tables(&self, features: &Features) -> Vec<Table> {
        let weights: Vec<f64> = self.logs[..features.len()].iter().map(|log| log.exp()).collect();
        features.tables(&weights)
    }
}

/// Posterior of the process at a set of candidates, given the points added so far.
#[derive(Debug, Clone)]
pub struct Field {
    candidates: Vec<Box<[u16]>>,
    tables: Vec<Table>,
    noise: f64,
    points: Vec<Box<[u16]>>,
    /// Lower triangle of the Cholesky factor of the points' correlation matrix, row by row.
    factor: Vec<f64>,
    /// Correlations of each added point with all candidates, after forward substitution with the Cholesky factor.
    rows: Vec<Vec<f32>>,
    /// Posterior variance of each candidate, as a fraction of the prior variance.
    left: Vec<f32>,
}

impl Field {
    /// Creates a field of candidates without any points.
    #[must_use]
    pub fn new(features: &Features, weights: &Weights, candidates: Vec<Box<[u16]>>) -> Self {
        let left = vec![1.0; candidates.len()];
        Self {
            candidates,
            tables: weights.tables(features),
            noise: weights.noise(),
            points: Vec::new(),
            factor: Vec::new(),
            rows: Vec::new(),
            left,
        }
    }

    /// Number of added points.
    #[must_use]
    pub fn len(&self) -> usize {
        self.points.len()
    }

    /// Whether no points have been added.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.points.is_empty()
    }

    fn correlation(&self, one: &[u16], other: &[u16]) -> f32 {
        let distances = self.tables.iter().zip(one.iter().zip(other)).map(|(table, (&a, &b))| table.distance(a, b));
        (-distances.sum::<f32>()).exp()
    }

    /// Adds evaluated or pending points, which reduces the uncertainty around them.
    pub fn add(&mut self, points: &[Box<[u16]>]) {
        let first = self.points.len();
        for point in points {
            let mut row: Vec<f64> =
                self.points.iter().map(|earlier| f64::from(self.correlation(point, earlier))).collect();
            for j in 0..row.len() {
                let other = &self.factor[j * (j + 1) / 2..=j * (j + 3) / 2];
                row[j] = (row[j] - dot(&row[..j], &other[..j])) / other[j];
            }
            let left = (1.0 + self.noise - dot(&row, &row)).max(LEAST_NOISE * 0.1);
            self.factor.extend(row);
            self.factor.push(left.sqrt());
            self.points.push(point.clone());
            self.rows.push(self.candidates.iter().map(|candidate| self.correlation(point, candidate)).collect());
        }
        for start in (0..self.candidates.len()).step_by(BLOCK) {
            let block = start..(start + BLOCK).min(self.candidates.len());
            for i in first..self.points.len() {
                let (earlier, own) = self.rows.split_at_mut(i);
                let row = &mut own[0][block.clone()];
                let factor = &self.factor[i * (i + 1) / 2..=i * (i + 3) / 2];
                for (weight, earlier) in factor.iter().zip(earlier) {
                    let weight = *weight as f32;
                    for (cell, earlier) in row.iter_mut().zip(&earlier[block.clone()]) {
                        *cell -= weight * earlier;
                    }
                }
                let scale = 1.0 / factor[i] as f32;
                for (cell, left) in row.iter_mut().zip(&mut self.left[block.clone()]) {
                    *cell *= scale;
                    *left -= *cell * *cell;
                }
            }
        }
    }

    /// Predicts the objectives of all candidates. `objectives` has one value per added point. Values that are not
    /// `done` are ignored: pending points do not change the mean.
    #[must_use]
    pub fn predict(&self, objectives: &[f64], done: &[bool]) -> Prediction {
        let n = done.iter().filter(|done| **done).count().max(1) as f64;
        let centre = objectives.iter().zip(done).filter(|(_, done)| **done).map(|(y, _)| y).sum::<f64>() / n;
        let mut solved: Vec<f64> = Vec::with_capacity(objectives.len());
        for (i, (y, done)) in objectives.iter().zip(done).enumerate() {
            let row = &self.factor[i * (i + 1) / 2..=i * (i + 3) / 2];
            // A pending point takes the value predicted from the points before it, so its component of the solution is
            // zero.
            solved.push(if *done { (y - centre - dot(&row[..i], &solved)) / row[i] } else { 0.0 });
        }
        let mut mean = vec![0.0_f32; self.candidates.len()];
        for (row, weight) in self.rows.iter().zip(&solved).filter(|(_, weight)| **weight != 0.0) {
            let weight = *weight as f32;
            for (mean, cell) in mean.iter_mut().zip(row) {
                *mean += weight * cell;
            }
        }
        Prediction {
            mean: mean.into_iter().map(|mean| f64::from(mean) + centre).collect(),
            unit: (solved.iter().map(|a| a * a).sum::<f64>() / n).sqrt().max(1e-9),
        }
    }

    /// Posterior standard deviation of a candidate, as a fraction of [`Prediction::unit`].
    #[must_use]
    pub fn deviation(&self, candidate: usize) -> f64 {
        f64::from(self.left[candidate].max(1e-6)).sqrt()
    }
}

/// Predictions for the candidates.
#[derive(Debug, Clone)]
pub struct Prediction {
    /// Expected objective of each candidate.
    pub mean: Vec<f64>,
    /// Standard deviation of a candidate that is not correlated with any point.
    pub unit: f64,
}

fn standardise(objectives: &[f64]) -> Vec<f64> {
    let n = objectives.len() as f64;
    let centre = objectives.iter().sum::<f64>() / n;
    let scale = (objectives.iter().map(|y| (y - centre).powi(2)).sum::<f64>() / n).sqrt().max(1e-9);
    objectives.iter().map(|y| (y - centre) / scale).collect()
}

/// Lower triangle of the points' correlation matrix, without noise.
fn correlation(distances: &[f32], weights: &[f64]) -> Vec<f64> {
    let weights: Vec<f32> = weights.iter().map(|&weight| weight as f32).collect();
    distances
        .chunks_exact(weights.len())
        .map(|pair| f64::from((-pair.iter().zip(&weights).map(|(d, w)| d * w).sum::<f32>()).exp()))
        .collect()
}

/// Replaces the lower triangle of a matrix with its Cholesky factor. Returns whether the matrix is positive definite.
fn cholesky(a: &mut [f64], n: usize) -> bool {
    for i in 0..n {
        let (before, rest) = a.split_at_mut(i * (i + 1) / 2);
        let row = &mut rest[..=i];
        for j in 0..i {
            let other = &before[j * (j + 1) / 2..=j * (j + 3) / 2];
            let sum = dot(&row[..j], &other[..j]);
            row[j] = (row[j] - sum) / other[j];
        }
        let left = row[i] - dot(&row[..i], &row[..i]);
        if left <= 0.0 {
            return false;
        }
        row[i] = left.sqrt();
    }
    true
}

/// Dot product with a fixed order of additions that can be vectorised.
fn dot(a: &[f64], b: &[f64]) -> f64 {
    let n = a.len().min(b.len());
    let (a, b) = (&a[..n], &b[..n]);
    let mut sums = [0.0; 8];
    for (x, y) in a.chunks_exact(8).zip(b.chunks_exact(8)) {
        for k in 0..8 {
            sums[k] += x[k] * y[k];
        }
    }
    let rest = n / 8 * 8;
    sums.iter().sum::<f64>() + a[rest..].iter().zip(&b[rest..]).map(|(x, y)| x * y).sum::<f64>()
}

fn solve_lower(factor: &[f64], x: &mut [f64]) {
    for i in 0..x.len() {
        let row = &factor[i * (i + 1) / 2..=i * (i + 3) / 2];
        x[i] = (x[i] - dot(&row[..i], &x[..i])) / row[i];
    }
}

fn solve_upper(factor: &[f64], x: &mut [f64]) {
    for i in (0..x.len()).rev() {
        let row = &factor[i * (i + 1) / 2..=i * (i + 3) / 2];
        x[i] /= row[i];
        let own = x[i];
        for (earlier, weight) in x[..i].iter_mut().zip(row) {
            *earlier -= weight * own;
        }
    }
}

/// Negative log posterior density of the weights, up to a constant, and its gradient with respect to their logarithms.
fn cost(distances: &[f32], y: &[f64], logs: &[f64]) -> Option<(f64, Vec<f64>)> {
    let n = y.len();
    let width = logs.len() - 1;
    let weights: Vec<f64> = logs[..width].iter().map(|log| log.exp()).collect();
    let noise = logs[width].exp();
    let plain = correlation(distances, &weights);
    let mut factor = plain.clone();
    for i in 0..n {
        factor[i * (i + 3) / 2] += noise + LEAST_NOISE;
    }
    if !cholesky(&mut factor, n) {
        return None;
    }
    let mut alpha = y.to_vec();
    solve_lower(&factor, &mut alpha);
    let variance = (alpha.iter().map(|a| a * a).sum::<f64>() / n as f64).max(1e-12);
    solve_upper(&factor, &mut alpha);
    let determinant: f64 = (0..n).map(|i| factor[i * (i + 3) / 2].ln()).sum();
    let mut value = 0.5 * n as f64 * variance.ln() + determinant;
    let inverse = inverse(&factor, n);
    let mut gradient = vec![0.0; width + 1];
    let mut place = 0;
    let mut slopes = vec![0.0_f32; width];
    for i in 0..n {
        for j in 0..=i {
            let m = inverse[place] - alpha[i] * alpha[j] / variance;
            if i == j {
                gradient[width] += 0.5 * m * noise;
            } else {
                // Each pair occurs twice in the matrix, which cancels the factor ½.
                let slope = (m * plain[place]) as f32;
                for (sum, distance) in slopes.iter_mut().zip(&distances[place * width..(place + 1) * width]) {
                    *sum += slope * distance;
                }
            }
            place += 1;
        }
    }
    for k in 0..width {
        gradient[k] -= f64::from(slopes[k]) * weights[k];
    }
    for (k, log) in logs.iter().enumerate() {
        let (centre, deviation) = if k < width { PRIOR } else { PRIOR_NOISE };
        let off = (log - centre) / deviation;
        value += 0.5 * off * off;
        gradient[k] += off / deviation;
    }
    Some((value, gradient))
}

/// Lower triangle of the inverse of a matrix, from its Cholesky factor.
fn inverse(factor: &[f64], n: usize) -> Vec<f64> {
    // Columns of the factor's inverse; column j starts at row j.
    let mut columns: Vec<Vec<f64>> = Vec::with_capacity(n);
    for j in 0..n {
        let mut column = vec![0.0; n];
        column[j] = 1.0 / factor[j * (j + 3) / 2];
        for i in j + 1..n {
            let row = &factor[i * (i + 1) / 2..=i * (i + 3) / 2];
            column[i] = -dot(&row[j..i], &column[j..i]) / row[i];
        }
        columns.push(column);
    }
    let mut triangle = Vec::with_capacity(n * (n + 1) / 2);
    for i in 0..n {
        for column in &columns[..=i] {
            triangle.push(dot(&columns[i][i..], &column[i..]));
        }
    }
    triangle
}

//! Median, with a distribution-free confidence interval.
//!
//! A sample is below the population's median with probability one half, so the number of such samples is binomial. The
//! interval from the k-th smallest to the k-th largest sample covers the median with probability `1 − 2 P(Bin(n, ½) <
//! k)`, for any distribution (David and Nagaraja, *Order Statistics*, §7.1). Kernel times are skewed and have outliers,
//! which this interval tolerates. Bounds are interpolated between two such k (Hettmansperger and Sheather, *Statistics
//! & Probability Letters* 4, 1986), so that the coverage is the requested one instead of the next higher.

use std::f64::consts::LN_2;

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    pub point: f64,
    pub low: f64,
    pub high: f64,
    /// Probability that the interval covers the true value: the requested one or, with too few samples, that of the
    /// widest interval (0 for one sample).
    pub coverage: f64,
}

impl Interval {
    /// Half the interval's width divided by the point estimate, for comparison with the requested precision.
    pub fn relative_half_width(&self) -> f64 {
        (self.high - self.low) / 2.0 / self.point
    }
}

/// Middle value, or mean of the middle two. `None` for no samples, or if one is not finite.
pub fn median(samples: &[f64]) -> Option<f64> {
    middle(&sorted(samples)?)
}

/// Median with its order-statistic interval of `confidence` (in 0..1).
///
/// Five samples or fewer cannot reach 0.95: the interval is then the whole range, with a lower `coverage`. Takes O(n
/// log n) time. `None` for no samples, or if one is not finite.
pub fn median_interval(samples: &[f64], confidence: f64) -> Option<Interval> {
    let sorted = sorted(samples)?;
    let point = middle(&sorted)?;
    let n = sorted.len();
    let (rank, coverage) = symmetric_rank(n, confidence);
    let (low, high) = (sorted[rank - 1], sorted[n - rank]);
    if coverage < confidence || 2 * rank >= n {
        return Some(Interval { point, low, high, coverage });
    }
    // Interpolate towards the next rank, whose interval would cover too little.
    let (next_low, next_high) = (sorted[rank], sorted[n - rank - 1]);
    let inwards = interpolation(n, rank, coverage, confidence);
    let interpolate = |outer: f64, inner: f64| outer + inwards * (inner - outer);
    Some(Interval { point, low: interpolate(low, next_low), high: interpolate(high, next_high), coverage: confidence })
}

/// Position of the bounds between the k-th order statistic and the next, 0 to 1.
fn interpolation(n: usize, k: usize, coverage: f64, confidence: f64) -> f64 {
    let next = coverage - 2.0 * (log_mass(n, k)).exp();
    let share = ((coverage - confidence) / (coverage - next)).clamp(0.0, 1.0);
    let (n, k) = (n as f64, k as f64);
    (n - k) * share / (k + (n - 2.0 * k) * share)
}

/// Logarithm of P(Bin(n, ½) = k).
fn log_mass(n: usize, k: usize) -> f64 {
    (1..=k).map(|i| ((n + 1 - i) as f64 / i as f64).ln()).sum::<f64>() - n as f64 * LN_2
}

fn sorted(samples: &[f64]) -> Option<Vec<f64>> {
    if samples.iter().any(|s| !s.is_finite()) {
        return None;
    }
    let mut sorted = samples.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    Some(sorted)
}

fn middle(sorted: &[f64]) -> Option<f64> {
    let upper = *sorted.get(sorted.len() / 2)?;
    Some(if sorted.len() % 2 == 1 { upper } else { f64::midpoint(sorted[sorted.len() / 2 - 1], upper) })
}

/// Largest k for which the interval from the k-th smallest to the k-th largest of `n` samples covers the median with at
/// least `confidence`, and its coverage. If there is none, k = 1.
fn symmetric_rank(n: usize, confidence: f64) -> (usize, f64) {
    // In logarithms, since 2⁻ⁿ underflows f64 beyond a thousand samples.
    let mut log_mass = -(n as f64) * LN_2;
    let mut tail = log_mass.exp();
    let mut best = (1, (1.0 - 2.0 * tail).max(0.0));
    for k in 2..=n.div_ceil(2) {
        log_mass += ((n - k + 2) as f64 / (k - 1) as f64).ln();
        tail += log_mass.exp();
        let coverage = 1.0 - 2.0 * tail;
        if coverage < confidence {
            break;
        }
        best = (k, coverage);
    }
    best
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test panics to fail")]

    use proptest::prelude::*;
    use rand_chacha::ChaCha8Rng;
    use rand_chacha::rand_core::{Rng, SeedableRng};

    use super::{median, median_interval, symmetric_rank};

    #[test]
    fn the_median_is_the_middle_or_the_mean_of_the_middle_two() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 3.0, 2.0]), Some(2.5));
        assert_eq!(median(&[7.0]), Some(7.0));
    }

    #[test]
    fn nothing_and_what_is_no_number_have_no_median() {
        for samples in [&[][..], &[1.0, f64::NAN], &[f64::INFINITY, 1.0]] {
            assert_eq!(median(samples), None, "{samples:?}");
            assert_eq!(median_interval(samples, 0.95), None, "{samples:?}");
        }
    }

    /// Expected values from the table of 95 % intervals for the median in Conover, *Practical Nonparametric
    /// Statistics*.
    #[test]
    fn ranks_and_coverages_are_those_of_the_published_tables() {
        let table = [
            (6, 1, 0.9688),
            (7, 1, 0.9844),
            (8, 1, 0.9922),
            (9, 2, 0.9609),
            (10, 2, 0.9785),
            (12, 3, 0.9614),
            (15, 4, 0.9648),
            (16, 4, 0.9787),
            (17, 5, 0.9510),
            (20, 6, 0.9586),
            (25, 8, 0.9567),
            (30, 10, 0.9572),
        ];
        for (n, rank, coverage) in table {
            let (k, c) = symmetric_rank(n, 0.95);
            assert_eq!(k, rank, "n = {n}");
            assert!((c - coverage).abs() < 5e-5, "n = {n}: {c}");
        }
        assert_eq!(symmetric_rank(100, 0.95).0, 40);
    }

    #[test]
    fn too_few_samples_give_their_range_and_admit_its_coverage() {
        let interval = median_interval(&[5.0, 1.0, 4.0, 2.0, 3.0], 0.95).unwrap();
        assert_eq!((interval.low, interval.point, interval.high), (1.0, 3.0, 5.0));
        assert!((interval.coverage - 0.9375).abs() < 1e-12);
        let single = median_interval(&[2.0], 0.95).unwrap();
        assert_eq!((single.low, single.high, single.coverage), (2.0, 2.0, 0.0));
    }

    #[test]
    fn thousands_of_samples_agree_with_the_normal_approximation() {
        // The rank at 95 % is k ≈ n/2 − 0.98 √n.
        for n in [1_000_usize, 10_000, 100_000] {
            let (k, coverage) = symmetric_rank(n, 0.95);
            let approximation = n as f64 / 2.0 - 0.98 * (n as f64).sqrt();
            assert!((k as f64 - approximation).abs() < 2.0, "n = {n}: {k}");
            assert!((0.95..0.955).contains(&coverage), "n = {n}: {coverage}");
        }
    }

    /// An exponential distribution: its median is ln 2, and its right tail is as long as that of kernel times.
    #[test]
    fn the_interval_covers_the_median_of_a_skewed_distribution_as_often_as_it_says() {
        let mut source = ChaCha8Rng::seed_from_u64(7);
        let mut exponential = || -(((source.next_u64() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64).ln();
        for n in [5_usize, 9, 17, 40] {
            let trials = 4_000;
            let mut covered = 0;
            let mut promised = 0.0;
            for _ in 0..trials {
                let samples: Vec<f64> = (0..n).map(|_| exponential()).collect();
                let interval = median_interval(&samples, 0.95).unwrap();
                promised = interval.coverage;
                covered += u32::from(interval.low <= std::f64::consts::LN_2 && std::f64::consts::LN_2 <= interval.high);
            }
            let seen = f64::from(covered) / f64::from(trials);
            // The tolerance is four standard errors of a proportion near 0.95 over 4000 trials.
            assert!((seen - promised).abs() < 0.014, "n = {n}: {seen} seen, {promised} promised");
        }
    }

    proptest! {
        #[test]
        fn the_interval_holds_the_median_and_does_not_depend_on_order(
            mut samples in prop::collection::vec(1.0..1e9, 1..60),
        ) {
            let interval = median_interval(&samples, 0.95).unwrap();
            prop_assert!(interval.low <= interval.point && interval.point <= interval.high);
            samples.reverse();
            prop_assert_eq!(median_interval(&samples, 0.95).unwrap(), interval);
        }
    }
}

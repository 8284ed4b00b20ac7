//! Bootstrap intervals for the ratio of two paired series.
//!
//! Both times of a round drift together, so rounds are resampled, not single times. The ratio is a 20 % trimmed mean of
//! the rounds' log ratios. It is robust against outliers and, unlike the median of ratios, does not depend on the
//! clock's resolution. With so few numbers the percentile interval is a little too narrow (Efron and Tibshirani, *An
//! Introduction to the Bootstrap*, ch. 13). It is widened by the factor with which the simulations in `tests` reach the
//! nominal coverage.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use super::mean::trimmed_mean;
use super::quantile::Interval;

/// Number of resamples. The ends of the interval then vary by a thirtieth of its width.
const RESAMPLES: usize = 1000;

/// Largest product of resamples and samples. Longer series are resampled less often, but at least [`FEWEST`] times.
const MOST_DRAWS: usize = 500_000;
const FEWEST: usize = 300;

/// How many times larger the values of `base` are than those of `this`, pair by pair, with a bootstrap interval of
/// nominal `confidence` (in 0..1).
///
/// `None` for slices of different lengths, for fewer than two values, or if a value is not positive and finite.
pub fn paired_ratio(base: &[f64], this: &[f64], confidence: f64) -> Option<Interval> {
    let positive = |x: &&f64| x.is_finite() && **x > 0.0;
    let n = this.len();
    if n < 2 || base.len() != n || base.iter().chain(this).filter(positive).count() < 2 * n {
        return None;
    }
    let logs: Vec<f64> = base.iter().zip(this).map(|(base, this)| (base / this).ln()).collect();
    let point = trimmed_mean(&logs)?;
    let (low, high) = percentiles(&logs, confidence)?;
    let widening = (n as f64 / (n - 1) as f64).sqrt() * (1.0 + 0.5 / n as f64);
    let moved = |end: f64| (point + (end - point) * widening).exp();
    Some(Interval { point: point.exp(), low: moved(low), high: moved(high), coverage: confidence })
}

/// Percentiles of the trimmed mean over resamples of `samples`.
fn percentiles(samples: &[f64], confidence: f64) -> Option<(f64, f64)> {
    let resamples = (MOST_DRAWS / samples.len()).clamp(FEWEST, RESAMPLES);
    // The seed does not depend on the caller: equal numbers must have equal intervals.
    let mut rng = ChaCha8Rng::seed_from_u64(samples.len() as u64);
    let mut drawn = vec![0.0; samples.len()];
    let mut means = Vec::with_capacity(resamples);
    for _ in 0..resamples {
        for place in &mut drawn {
            // The high half of the product has a bias of the length divided by 2³².
            let index = (u64::from(rng.next_u32()) * samples.len() as u64) >> 32;
            *place = samples[index as usize];
        }
        means.push(trimmed_mean(&drawn)?);
    }
    means.sort_unstable_by(f64::total_cmp);
    let percentile = |part: f64| {
        let place = part * (means.len() - 1) as f64;
        let (below, share) = (place as usize, place.fract());
        means[below] * (1.0 - share) + means[(below + 1).min(means.len() - 1)] * share
    };
    let tail = (1.0 - confidence) / 2.0;
    Some((percentile(tail), percentile(1.0 - tail)))
}

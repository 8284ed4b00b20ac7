//! Bootstrap intervals for the ratio of two paired series.
//!
//! Both times of a round drift together, so whole rounds are resampled, not single times. The ratio is a 20 % trimmed
//! mean of the rounds' log ratios. It is robust against outliers and, unlike the median of ratios, not limited by the
//! clock's resolution. With so few values the percentile interval is slightly too narrow (Efron and Tibshirani, *An
//! Introduction to the Bootstrap*, ch. 13). It is widened by the factor that reaches nominal coverage in the
//! simulations in `tests`.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use super::mean::trimmed_mean;
use super::quantile::Interval;

/// Number of resamples. Interval bounds then vary by about a thirtieth of the interval's width.
const RESAMPLES: usize = 1000;

/// Maximum product of resamples and samples. Longer series get fewer resamples, but at least [`FEWEST`].
const MOST_DRAWS: usize = 500_000;
const FEWEST: usize = 300;

/// Ratio of `base` to `this`, pair by pair, with a bootstrap interval of nominal `confidence` (in 0..1).
///
/// `None` if the lengths differ, for fewer than two values, or if a value is not positive and finite.
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

/// Percentile interval of the trimmed mean over resamples of `samples`.
fn percentiles(samples: &[f64], confidence: f64) -> Option<(f64, f64)> {
    let resamples = (MOST_DRAWS / samples.len()).clamp(FEWEST, RESAMPLES);
    // The seed depends only on the data, so equal data has equal intervals.
    let mut rng = ChaCha8Rng::seed_from_u64(samples.len() as u64);
    let mut drawn = vec![0.0; samples.len()];
    let mut means = Vec::with_capacity(resamples);
    for _ in 0..resamples {
        for place in &mut drawn {
            // Scales by the high half of the product; the bias is at most length / 2³².
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

//! Irregularities in the order of samples: a trend, autocorrelation, two modes.
//!
//! Intervals elsewhere assume independent, identically distributed samples. A report warns about samples that violate
//! this assumption.

use super::quantile::median;

/// In one of a thousand series of independent values, the autocorrelation exceeds this number divided by √n.
pub const AUTOCORRELATION_OF_NOISE: f64 = 3.09;

/// Maximum length of a series to test, since the test takes O(n²) time. Longer series are first averaged in sections.
const MOST_POINTS: usize = 256;

/// Fraction of the variance that two groups must explain. The halves of a normal distribution explain 0.64, of a
/// uniform one 0.75.
const SHARE_OF_VARIANCE: f64 = 0.85;

/// Minimum fraction of values in the smaller group.
const SMALLER_GROUP: f64 = 0.1;

/// Correlation of each value with the next, −1 to 1. `None` for fewer than three values, if all are equal, or if one is
/// not finite.
pub fn autocorrelation(series: &[f64]) -> Option<f64> {
    let n = series.len();
    if n < 3 || series.iter().any(|x| !x.is_finite()) {
        return None;
    }
    let mean = series.iter().sum::<f64>() / n as f64;
    let variance: f64 = series.iter().map(|x| (x - mean).powi(2)).sum();
    let neighbours: f64 = series.windows(2).map(|pair| (pair[0] - mean) * (pair[1] - mean)).sum();
    (variance > 0.0).then(|| neighbours / variance)
}

/// Monotone change over a series.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Trend {
    /// Theil–Sen estimate of the change from the first value to the last, from the median slope between all pairs.
    pub drift: f64,
    /// Kendall's statistic divided by its standard deviation with ties (Mann 1945).
    pub z: f64,
}

impl Trend {
    /// Whether a series without a trend has a statistic this large less than once in a thousand times.
    pub fn is_significant(&self) -> bool {
        self.z.abs() > 3.29
    }
}

/// Trend of a series. `None` for fewer than eight values, or if one is not finite.
pub fn trend(series: &[f64]) -> Option<Trend> {
    if series.len() < 8 || series.iter().any(|x| !x.is_finite()) {
        return None;
    }
    let stretch = series.len().div_ceil(MOST_POINTS);
    let points: Vec<f64> = series.chunks_exact(stretch).map(|part| part.iter().sum::<f64>() / stretch as f64).collect();
    let n = points.len();
    let (mut slopes, mut score) = (Vec::with_capacity(n * (n - 1) / 2), 0.0);
    for (i, early) in points.iter().enumerate() {
        for (later, late) in points.iter().enumerate().skip(i + 1) {
            slopes.push((late - early) / (later - i) as f64);
            score += f64::from(i8::from(late > early) - i8::from(late < early));
        }
    }
    let spread = |n: f64| n * (n - 1.0) * (2.0 * n + 5.0) / 18.0;
    let mut sorted = points.clone();
    sorted.sort_unstable_by(f64::total_cmp);
    #[expect(clippy::float_cmp, reason = "equal values are tied")]
    let ties: f64 = sorted.chunk_by(|a, b| a == b).map(|tied| spread(tied.len() as f64)).sum();
    let variance = spread(n as f64) - ties;
    let z = if variance > 0.0 { (score - score.signum().min(score.abs())) / variance.sqrt() } else { 0.0 };
    Some(Trend { drift: median(&slopes)? * (n - 1) as f64, z })
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Modes {
    pub low: f64,
    pub high: f64,
    /// Fraction of the values in the higher group.
    pub share_high: f64,
}

/// The two modes of a bimodal sample, from the split that explains most of the variance (Otsu 1979).
pub fn two_modes(samples: &[f64]) -> Option<Modes> {
    let n = samples.len();
    if n < 10 || samples.iter().any(|x| !x.is_finite()) {
        return None;
    }
    let mut sorted = samples.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let all: f64 = sorted.iter().sum();
    let variance: f64 = sorted.iter().map(|x| (x - all / n as f64).powi(2)).sum();
    let fewest = ((n as f64 * SMALLER_GROUP).ceil() as usize).max(1);
    let mut below: f64 = sorted[..fewest].iter().sum();
    let mut best: Option<(f64, Modes)> = None;
    for split in fewest..=n - fewest {
        let (low, high) = (below / split as f64, (all - below) / (n - split) as f64);
        let between = split as f64 * (n - split) as f64 / n as f64 * (high - low).powi(2);
        if best.is_none_or(|(most, _)| between > most) {
            best = Some((between, Modes { low, high, share_high: (n - split) as f64 / n as f64 }));
        }
        below += sorted[split.min(n - 1)];
    }
    best.filter(|(between, _)| variance > 0.0 && *between >= SHARE_OF_VARIANCE * variance).map(|(_, modes)| modes)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test panics to fail")]

    use rand_chacha::ChaCha8Rng;
    use rand_chacha::rand_core::{Rng, SeedableRng};

    use super::{AUTOCORRELATION_OF_NOISE, autocorrelation, trend, two_modes};

    fn noise(seed: u64) -> impl FnMut() -> f64 {
        let mut source = ChaCha8Rng::seed_from_u64(seed);
        move || (0..12).map(|_| f64::from(source.next_u32()) / 4_294_967_296.0).sum::<f64>() - 6.0
    }

    #[test]
    fn a_series_that_turns_at_each_step_is_correlated_negatively() {
        // The mean is 0, the squares add up to 6, and the products of neighbours to −5.
        let r = autocorrelation(&[1.0, -1.0, 1.0, -1.0, 1.0, -1.0]).unwrap();
        assert!((r + 5.0 / 6.0).abs() < 1e-12, "{r}");
        assert_eq!(autocorrelation(&[1.0; 9]), None);
    }

    #[test]
    fn independent_numbers_rarely_look_correlated_or_drifting_or_double() {
        let mut draw = noise(3);
        let (mut correlated, mut drifting, mut double) = (0, 0, 0);
        for _ in 0..2000 {
            let series: Vec<f64> = (0..60).map(|_| draw()).collect();
            correlated += u32::from(autocorrelation(&series).unwrap() > AUTOCORRELATION_OF_NOISE / 60_f64.sqrt());
            drifting += u32::from(trend(&series).unwrap().is_significant());
            double += u32::from(two_modes(&series).is_some());
        }
        // At one in a thousand, 2 of 2000 are expected.
        assert!(correlated <= 8 && drifting <= 8 && double == 0, "{correlated} {drifting} {double}");
    }

    /// Gilbert, *Statistical Methods for Environmental Pollution Monitoring*, gives Kendall's S for 1 to 5 as 10 of 10
    /// pairs. Here 1 to 8 have 28 of 28, and the variance is 8 · 7 · 21 / 18.
    #[test]
    fn a_steady_climb_has_the_slope_of_its_steps() {
        let climb: Vec<f64> = (1..=8).map(|i| 10.0 + 0.5 * f64::from(i)).collect();
        let found = trend(&climb).unwrap();
        assert!((found.drift - 3.5).abs() < 1e-12, "{found:?}");
        assert!((found.z - 27.0 / (8.0_f64 * 7.0 * 21.0 / 18.0).sqrt()).abs() < 1e-12, "{found:?}");
    }

    #[test]
    fn a_long_drift_is_found_beneath_noise() {
        let mut draw = noise(5);
        let series: Vec<f64> = (0..2000).map(|i| 100.0 + 2.0 * f64::from(i) / 1999.0 + 0.5 * draw()).collect();
        let found = trend(&series).unwrap();
        assert!(found.is_significant() && (found.drift - 2.0).abs() < 0.2, "{found:?}");
    }

    #[test]
    fn two_groups_are_found_with_their_shares() {
        let mut draw = noise(7);
        let samples: Vec<f64> = (0..100).map(|i| if i % 4 == 0 { 120.0 } else { 100.0 } + draw()).collect();
        let modes = two_modes(&samples).unwrap();
        assert!((modes.low - 100.0).abs() < 0.5 && (modes.high - 120.0).abs() < 0.5, "{modes:?}");
        assert!((modes.share_high - 0.25).abs() < 1e-12, "{modes:?}");
        // One outlier in a hundred is not a group.
        let lonely: Vec<f64> = (0..100).map(|i| if i == 50 { 500.0 } else { 100.0 + draw() }).collect();
        assert_eq!(two_modes(&lonely), None);
    }
}

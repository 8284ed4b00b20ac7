//! Speedups with their intervals.
//!
//! Within a round the variants take turns on a device in one state, so the ratio of two samples of one round is free of
//! whatever drifts between rounds (clocks, heat). The speedup is the median of those ratios, its interval that of the
//! median. Where two cases share too few rounds, or are timed by different clocks, it is the ratio of the medians, with
//! an interval that no dependence between the two can break: the extremes of both, at the sum of both errors.

use std::collections::BTreeMap;

use crate::model::{Estimate, Measurement};
use crate::stats;

/// Below this many shared rounds the medians are compared: no interval of fewer reaches 95 %.
const MIN_PAIRS: usize = 6;

/// One side of a comparison.
#[derive(Debug, Clone, Copy)]
pub(super) struct Side<'a> {
    pub measurement: &'a Measurement,
    /// Median and its interval.
    pub time: Estimate,
    /// Samples of different sessions were not taken in turns.
    pub session: usize,
}

/// How many times faster `this` is than `base`.
///
/// `None` where a time is zero, which has no ratio.
pub(super) fn speedup(base: Side<'_>, this: Side<'_>, confidence: f64) -> Option<Estimate> {
    let paired = base.session == this.session && base.measurement.unit == this.measurement.unit;
    let ratios = if paired { within_rounds(base.measurement, this.measurement) } else { Vec::new() };
    if ratios.len() >= MIN_PAIRS {
        return estimate(&ratios, confidence);
    }
    let (b, t) = (base.time, this.time);
    let positive = [b.low, b.point, t.low, t.point].iter().all(|x| *x > 0.0);
    positive.then(|| Estimate {
        point: b.point / t.point,
        low: b.low / t.high,
        high: b.high / t.low,
        confidence: (b.confidence + t.confidence - 1.0).max(0.0),
    })
}

/// The median of `samples` with its interval.
pub(super) fn estimate(samples: &[f64], confidence: f64) -> Option<Estimate> {
    let interval = stats::median_interval(samples, confidence)?;
    Some(Estimate {
        point: interval.point,
        low: interval.low,
        high: interval.high,
        confidence: confidence.min(interval.coverage),
    })
}

/// The ratio of each round that both have; several samples of a round count as their median.
fn within_rounds(base: &Measurement, this: &Measurement) -> Vec<f64> {
    let by_round = |m: &Measurement| {
        let mut rounds: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
        for round in &m.rounds {
            rounds.entry(round.round).or_default().push(round.whole);
        }
        rounds
    };
    let base = by_round(base);
    by_round(this)
        .iter()
        .filter_map(|(round, samples)| Some(stats::median(base.get(round)?)? / stats::median(samples)?))
        .filter(|ratio| ratio.is_finite() && *ratio > 0.0)
        .collect()
}

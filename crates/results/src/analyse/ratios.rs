//! Speedups with their confidence intervals, the noise floor, and when a difference is reported.
//!
//! Within a round, the variants are interleaved on a device in one state, so the ratio of two samples of a round is
//! free of drift between rounds (clocks, heat). The speedup is a trimmed mean of these ratios; its interval is a
//! bootstrap over rounds. If two cases share too few rounds, or use different clocks, the speedup is the ratio of the
//! medians. Its interval then holds for any dependence between the two: it combines the extremes of both intervals, and
//! its error probability is the sum of both. A second, wider interval includes the spread between processes, to cover
//! what another run would find.

use std::collections::{BTreeMap, BTreeSet};

use super::bootstraps::Bootstraps;
use super::times::{deviation_between_processes, variance_of_mean};
use runner_types::{Estimate, Measurement, Processes, Round, Spread, Unit};

/// Minimum number of shared rounds for paired ratios. With fewer, medians are compared, since the coverage of a
/// bootstrap would be below its nominal level.
const MIN_PAIRS: usize = 6;

/// Fraction of the groups with an A/A control whose noise is within the noise floor.
const SHARE_OF_NOISE: f64 = 0.95;

/// One of the two results that a ratio compares.
#[derive(Debug, Clone, Copy)]
pub(super) struct Side<'a> {
    pub measurement: &'a Measurement,
    /// Median time with its interval.
    pub time: Estimate,
    /// Variation between the processes that took the samples, if there are several.
    pub processes: Option<Processes>,
    /// Session of the samples. Samples of different sessions were not interleaved.
    pub session: usize,
}

impl Side<'_> {
    /// Whether the samples of both sides were interleaved.
    const fn took_turns_with(&self, other: &Self) -> bool {
        self.session == other.session && !self.measurement.alone && !other.measurement.alone
    }
}

/// Speedup of `this` over `base`; `None` if a time is zero.
pub(super) fn speedup(
    bootstraps: &Bootstraps<'_>,
    base: Side<'_>,
    this: Side<'_>,
    confidence: f64,
) -> Option<Estimate> {
    let paired = base.took_turns_with(&this) && base.measurement.unit == this.measurement.unit;
    if paired {
        let formed = paired_speedup(bootstraps, &base.measurement.rounds, &this.measurement.rounds, confidence);
        if formed.is_some() {
            return formed;
        }
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

/// The speedup with an interval that also covers other processes on other devices of the same model.
///
/// Samples of one process do not show the spread between processes, so it is added for both sides, as independent
/// errors of the log times. `None` if a time comes from the host's clock, for which the spread is unknown.
pub(super) fn reproducible(speedup: Estimate, sides: [Side<'_>; 2], spread: &Spread) -> Option<Estimate> {
    if sides.iter().any(|side| side.measurement.unit != Unit::DeviceNanoseconds) {
        return None;
    }
    let deviation = |Side { measurement, time, processes, .. }: Side<'_>| {
        let stated = deviation_between_processes(spread, (measurement.regime, time.point, measurement.launches));
        variance_of_mean(stated, processes).0.sqrt()
    };
    let [base, this] = sides.map(deviation);
    let wider = |end: f64| (end / speedup.point).ln().hypot(runner_stats::NORMAL_TWO_SIDED * base.hypot(this)).exp();
    Some(Estimate { low: speedup.point / wider(speedup.low), high: speedup.point * wider(speedup.high), ..speedup })
}

/// The speedup over shared rounds. If a round has several samples, their median is used.
fn paired_speedup(bootstraps: &Bootstraps<'_>, base: &[Round], this: &[Round], confidence: f64) -> Option<Estimate> {
    let by_round = |samples: &[Round]| {
        let mut rounds: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
        for round in samples {
            rounds.entry(round.round).or_default().push(round.whole);
        }
        rounds
    };
    let base = by_round(base);
    let pairs = by_round(this).into_iter().filter_map(|(round, samples)| {
        let pair = (runner_stats::median(base.get(&round)?)?, runner_stats::median(&samples)?);
        (pair.0 > 0.0 && pair.1 > 0.0).then_some(pair)
    });
    let (base, this): (Vec<f64>, Vec<f64>) = pairs.unzip();
    if base.len() < MIN_PAIRS {
        return None;
    }
    let interval = bootstraps.paired_ratio(&base, &this, confidence)?;
    Some(Estimate { point: interval.point, low: interval.low, high: interval.high, confidence })
}

/// Maximum deviation from 1 of the baseline's ratio to its A/A control, as a fraction; `None` without a control.
pub(super) fn control_noise(bootstraps: &Bootstraps<'_>, measurement: &Measurement, confidence: f64) -> Option<f64> {
    deviation(bootstraps, &measurement.rounds, &measurement.control, confidence)
}

/// The noise in the rounds of `this` only. If the baseline's samples are off in these rounds, so are its ratio to the
/// A/A control and every comparison with it.
pub(super) fn noise_beside(
    bootstraps: &Bootstraps<'_>,
    base: Side<'_>,
    this: Side<'_>,
    confidence: f64,
) -> Option<f64> {
    if !base.took_turns_with(&this) {
        return None;
    }
    let shared: BTreeSet<u32> = this.measurement.rounds.iter().map(|round| round.round).collect();
    let shared_rounds =
        |rounds: &[Round]| rounds.iter().filter(|r| shared.contains(&r.round)).cloned().collect::<Vec<_>>();
    deviation(
        bootstraps,
        &shared_rounds(&base.measurement.rounds),
        &shared_rounds(&base.measurement.control),
        confidence,
    )
}

/// Distance from 1 of the farther end of the ratio's interval, as a fraction.
fn deviation(bootstraps: &Bootstraps<'_>, rounds: &[Round], control: &[Round], confidence: f64) -> Option<f64> {
    let ratio = paired_speedup(bootstraps, rounds, control, confidence)?;
    Some(ratio.high.max(1.0 / ratio.low) - 1.0)
}

/// Noise floor over many groups, which covers 95 % of them. With fewer than twenty groups it is the maximum.
pub(super) fn pooled(mut noises: Vec<f64>) -> Option<f64> {
    noises.sort_unstable_by(f64::total_cmp);
    let last = (noises.len() as f64 * SHARE_OF_NOISE).ceil() as usize;
    noises.get(last.checked_sub(1)?).copied()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    /// The whole interval is above the noise.
    Faster,
    /// The whole interval is below the noise.
    Slower,
    /// The whole interval is within the noise.
    Same,
    /// The interval is partly within the noise.
    Ambiguous,
}

/// Judges a speedup by its interval and the noise, a fraction around 1.
pub fn call(speedup: &Estimate, noise: f64) -> Call {
    let (low, high) = (1.0 / (1.0 + noise), 1.0 + noise);
    if speedup.low > high {
        Call::Faster
    } else if speedup.high < low {
        Call::Slower
    } else if speedup.low >= low && speedup.high <= high {
        Call::Same
    } else {
        Call::Ambiguous
    }
}

#[cfg(test)]
mod tests {
    use super::{Bootstraps, Call, Measurement, Round, Side, call, control_noise, noise_beside, pooled, reproducible};
    use runner_types::{Estimate, FormedRatios, Regime, Spread, Unit};

    #[test]
    fn a_speedup_is_called_where_its_whole_interval_leaves_the_noise() {
        let call_between =
            |low, high| call(&Estimate { point: f64::midpoint(low, high), low, high, confidence: 0.95 }, 0.01);
        assert_eq!(call_between(1.02, 1.03), Call::Faster);
        assert_eq!(call_between(0.97, 0.98), Call::Slower);
        assert_eq!(call_between(0.995, 1.005), Call::Same);
        assert_eq!(call_between(1.005, 1.02), Call::Ambiguous);
        assert_eq!(call_between(0.9, 1.1), Call::Ambiguous);
    }

    #[test]
    fn the_floor_holds_nineteen_of_twenty_and_all_of_fewer() {
        let noises: Vec<f64> = (1..=20).map(|i| f64::from(i) / 1000.0).collect();
        assert_eq!(pooled(noises.clone()), Some(0.019));
        assert_eq!(pooled(noises[..19].to_vec()), Some(0.019));
        assert_eq!(pooled(vec![0.5]), Some(0.5));
        assert_eq!(pooled(vec![]), None);
    }

    #[test]
    fn a_control_that_is_always_a_hundredth_slower_makes_a_floor_of_a_hundredth() {
        let rounds =
            |factor: f64| (0..20).map(|i| Round { round: i, whole: 1e4 * factor, ..Round::default() }).collect();
        let mut measurement = Measurement::from_rounds(Regime::Cold, Unit::DeviceNanoseconds, rounds(1.0));
        let nothing = FormedRatios::new();
        let noise = |measurement: &Measurement| control_noise(&Bootstraps::new(&nothing), measurement, 0.95);
        assert_eq!(noise(&measurement), None);
        measurement.control = rounds(1.01);
        let noise = noise(&measurement);
        assert!(noise.is_some_and(|noise| (noise - 0.01).abs() < 1e-9), "{noise:?}");
    }

    /// Deviations of 3e-3 and 4e-3 combine to 5e-3, and 1.96 times that is 0.98 %. If the samples contribute 0.98 % ·
    /// 3/4 on one side, that side has 0.98 % · 5/4.
    #[test]
    #[expect(clippy::unwrap_used, reason = "a test panics to fail")]
    fn what_processes_differ_by_widens_a_speedup_on_both_sides() {
        let measurement = Measurement::from_rounds(Regime::Cold, Unit::DeviceNanoseconds, Vec::new());
        let exact = |point| Estimate { point, low: point, high: point, confidence: 0.95 };
        let side = |measurement, time| Side { measurement, time: exact(time), processes: None, session: 1 };
        let spread = Spread { nanoseconds: 12.0, relative: 0.0, processes: 5 };
        let one = 1.959_963_985 * 5e-3_f64;
        let speedup = Estimate { low: 2.0, high: 2.0 * (0.75 * one).exp(), ..exact(2.0) };
        let sides = [side(&measurement, 4000.0), side(&measurement, 3000.0)];
        let found = reproducible(speedup, sides, &spread).unwrap();
        assert!((found.low - 2.0 * (-one).exp()).abs() < 1e-9, "{found:?}");
        assert!((found.high - 2.0 * (1.25 * one).exp()).abs() < 1e-9, "{found:?}");
        assert!((found.point - 2.0).abs() < 1e-12);
        let host = Measurement::from_rounds(Regime::Cold, Unit::HostNanoseconds, Vec::new());
        assert_eq!(reproducible(speedup, [sides[0], side(&host, 1.0)], &spread), None);
    }

    #[test]
    fn a_comparison_of_ten_rounds_has_the_noise_of_these_ten() {
        let rounds = |count: u32, slow: f64| {
            (0..count).map(|i| Round { round: i, whole: if i < 10 { slow } else { 1e4 }, ..Round::default() }).collect()
        };
        let time = Estimate { point: 1e4, low: 1e4, high: 1e4, confidence: 0.95 };
        let mut base = Measurement::from_rounds(Regime::Cold, Unit::DeviceNanoseconds, rounds(50, 1.02e4));
        base.control = rounds(50, 1e4);
        let noise = |rounds: Vec<Round>, session| {
            let this = Measurement::from_rounds(Regime::Cold, Unit::DeviceNanoseconds, rounds);
            let side = |measurement, session| Side { measurement, time, processes: None, session };
            noise_beside(&Bootstraps::new(&FormedRatios::new()), side(&base, 1), side(&this, session), 0.95)
        };
        let early = noise(rounds(10, 1e4), 1);
        assert!(early.is_some_and(|noise| (noise - 0.02).abs() < 1e-9), "{early:?}");
        let all = noise(rounds(50, 1e4), 1);
        assert!(all.is_some_and(|noise| noise < 0.02), "{all:?}");
        assert_eq!(noise(rounds(10, 1e4), 2), None);
    }
}

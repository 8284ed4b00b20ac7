//! Decides whether a time changed, by the whole interval of the ratio of both times.
//!
//! The interval of a median says where the median of more samples of that process would lie, not where that of another
//! process would. So the process-to-process spread of both sides is added, as independent errors add.

use super::{Call, Options, Pair};
use crate::analyse::ratios::{between_processes, call};
use crate::analyse::{CONFIDENCE, PairedRatio};
use crate::model::{CaseRecord, Estimate, Records, RegimeResult, Spread, Unit};
use crate::stats;

/// The probability that any time of all that are compared is called changed although none did.
pub const LEVEL: f64 = 0.05;

/// No change below this fraction matters, unless the caller says so.
pub const LEAST_THRESHOLD: f64 = 0.01;

/// The standard deviation, in nanoseconds, by which the time between one launch of a body and the next differs from
/// process to process.
///
/// Every shipped experiment was run on an H100 in two processes: of 385 rows of two or three launches, half differed by
/// more than 0.33 µs and 5 of 100 by more than 1.05 µs, where rows of one launch differed by 0.06 µs. The calibration
/// of a device measures bodies of one launch only.
const BETWEEN_LAUNCHES: f64 = 500.0;

/// No change below this fraction matters between two GPUs of one model, or if it is not known which GPU each report is
/// of.
///
/// Every shipped experiment was run on two H100: of 693 rows of one launch and more than 50 µs, half differ by less
/// than 0.07 % and 90 of 100 by less than 0.4 %. Kernels that wait for memory on few SMs differ by up to 3 % (by 4.7 %
/// between another pair of H100), as the way from an SM to memory differs from GPU to GPU.
pub const BETWEEN_GPUS: f64 = 0.03;

/// The time of a case, base and new.
#[derive(Debug, Clone, PartialEq)]
pub struct TimeChange {
    /// The base report's time, with the interval that holds within its process; nanoseconds.
    pub base: Estimate,
    /// The new report's, like `base`.
    pub new: Estimate,
    /// The clock that took both.
    pub unit: Unit,
    /// New over base: above 1 is slower.
    pub ratio: f64,
    /// Where it was tested.
    pub interval: Option<Interval>,
    /// The smallest change that matters, as a fraction. `None` where it is not known how much processes differ and the
    /// caller does not say: the time is then not judged.
    pub threshold: Option<f64>,
}

/// The interval of a ratio of times, at the confidence that as many comparisons need.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// The value at which the interval begins.
    pub low: f64,
    /// The value at which the interval ends.
    pub high: f64,
    /// The confidence that the interval has, for example 0.999.
    pub confidence: f64,
}

/// What decides on a time.
#[derive(Debug, Clone, Copy)]
pub(super) struct Evidence {
    /// The logarithm of the new time over the base time, and the standard errors that it has downwards and upwards.
    point: f64,
    below: f64,
    above: f64,
    threshold: f64,
    /// The probability of a ratio as far beyond the threshold if the time changed by just that.
    pub p: f64,
}

/// Returns the times of a case, and what decides on them; `None` where they were not timed, or a time is zero: less
/// than the clock itself takes.
pub(super) fn compare_times(
    pair: Pair<'_>,
    sides: [&CaseRecord; 2],
    options: &Options,
) -> Option<(TimeChange, Option<Evidence>)> {
    let [base, new] = [sides[0].result.as_ref()?, sides[1].result.as_ref()?];
    if [base, new].iter().any(|result| result.time.point <= 0.0) {
        return None;
    }
    let spreads = spreads(pair).filter(|_| [base, new].iter().all(|side| side.unit == Unit::DeviceNanoseconds));
    let processes = spreads.map(|spreads| {
        let deviation = |spread: &Spread, record: &CaseRecord, side: &RegimeResult| {
            let gaps = BETWEEN_LAUNCHES * further_launches(record).sqrt() / side.time.point;
            between_processes(spread, side.regime, side.time.point, side.launches).hypot(gaps)
        };
        deviation(spreads[0], sides[0], base).hypot(deviation(spreads[1], sides[1], new))
    });
    let noise = [(pair.base, base), (pair.new, new)].map(|(records, result)| noise(records, result));
    let least = if may_be_two_gpus(pair) { BETWEEN_GPUS } else { LEAST_THRESHOLD };
    let own = processes
        .map(|processes| noise.into_iter().flatten().fold(least, f64::max).max(stats::NORMAL_TWO_SIDED * processes));
    let threshold = options.threshold.or(own);
    let change = TimeChange {
        base: base.time,
        new: new.time,
        unit: new.unit,
        ratio: new.time.point / base.time.point,
        interval: None,
        threshold,
    };
    let evidence =
        threshold.and_then(|threshold| Evidence::weigh(base.time, new.time, processes.unwrap_or(0.0), threshold));
    Some((change, evidence))
}

/// Compares times that were measured in the same rounds: their ratio is formed within rounds, and there is no other
/// process that could differ.
pub(super) fn paired(
    sides: [&CaseRecord; 2],
    ratio: &PairedRatio,
    options: &Options,
) -> Option<(TimeChange, Option<Evidence>)> {
    let [base, new] = [sides[0].result.as_ref()?, sides[1].result.as_ref()?];
    let threshold = options.threshold.unwrap_or_else(|| LEAST_THRESHOLD.max(ratio.noise.unwrap_or(0.0)));
    let change = TimeChange {
        base: base.time,
        new: new.time,
        unit: new.unit,
        ratio: 1.0 / ratio.speedup.point,
        interval: None,
        threshold: Some(threshold),
    };
    Some((change, Evidence::of_speedup(ratio.speedup, threshold)))
}

/// Returns the launches of a body after its first. A library's are not known: it counts as one more.
fn further_launches(record: &CaseRecord) -> f64 {
    match record.launches.len() {
        0 => 1.0,
        launches => (launches - 1) as f64,
    }
}

/// Whether the times are of two GPUs of one model, as far as the reports say.
pub(super) fn may_be_two_gpus(pair: Pair<'_>) -> bool {
    let [base, new] = [pair.base, pair.new].map(|records| &records.environment);
    let timed = [base, new].iter().all(|side| side.timing_method.is_some());
    timed && (base.machine.gpu.is_none() || base.machine.gpu != new.machine.gpu)
}

/// Returns the spread of both sides; `None` unless both were measured.
fn spreads(pair: Pair<'_>) -> Option<[&Spread; 2]> {
    Some([pair.base.environment.machine.spread.as_ref()?, pair.new.environment.machine.spread.as_ref()?])
}

/// Returns what the A/A control of the run shows for a row, as a fraction.
fn noise(records: &Records, result: &RegimeResult) -> Option<f64> {
    let of_regime = || records.header.noise.iter().find(|floor| floor.regime == result.regime).map(|floor| floor.width);
    result.against_baseline.as_ref().and_then(|ratio| ratio.noise).or_else(of_regime)
}

/// Whether an estimate has finite ends in their order, and a confidence that is one.
fn is_sound(of: Estimate) -> bool {
    [of.point, of.low, of.high].iter().all(|value| value.is_finite())
        && of.low <= of.high
        && (0.0..1.0).contains(&of.confidence)
}

impl Evidence {
    /// What estimates that are not sound show: it has no probability, so that nothing is decided by it.
    const UNSOUND: Self = Self { point: f64::NAN, below: f64::NAN, above: f64::NAN, threshold: f64::NAN, p: f64::NAN };

    /// `None` where a side has no interval, because it is of a single sample, or one that reaches zero.
    fn weigh(base: Estimate, new: Estimate, processes: f64, threshold: f64) -> Option<Self> {
        if ![base, new].into_iter().all(is_sound) {
            return Some(Self::UNSOUND);
        }
        let errors = |time: Estimate| {
            let is_nominal = time.confidence.to_bits() == CONFIDENCE.to_bits();
            let widening =
                if is_nominal { stats::NORMAL_TWO_SIDED } else { stats::normal_two_sided(1.0 - time.confidence) };
            let scale = 1.0 / widening;
            let errors = ((time.point / time.low).ln() * scale, (time.high / time.point).ln() * scale);
            (time.confidence > 0.0 && time.low > 0.0).then_some(errors)
        };
        let ((base_below, base_above), (new_below, new_above)) = (errors(base)?, errors(new)?);
        let point = (new.point / base.point).ln();
        let below = new_below.hypot(base_above).hypot(processes);
        let above = new_above.hypot(base_below).hypot(processes);
        Some(Self::new(point, [below, above], threshold))
    }

    /// `None` if the speedup has no interval.
    fn of_speedup(speedup: Estimate, threshold: f64) -> Option<Self> {
        if !is_sound(speedup) {
            return Some(Self::UNSOUND);
        }
        if speedup.confidence <= 0.0 || speedup.low <= 0.0 {
            return None;
        }
        let scale = 1.0 / stats::normal_two_sided(1.0 - speedup.confidence);
        // The speedup is the ratio's reciprocal.
        let errors = [(speedup.high / speedup.point).ln(), (speedup.point / speedup.low).ln()].map(|end| end * scale);
        Some(Self::new(-speedup.point.ln(), errors, threshold))
    }

    fn new(point: f64, [below, above]: [f64; 2], threshold: f64) -> Self {
        // The side of the interval that faces no change.
        let facing = if point > 0.0 { below } else { above };
        let beyond = point.abs() - threshold.ln_1p();
        let p = if beyond > 0.0 { 2.0 * stats::normal_tail(beyond / facing) } else { 1.0 };
        Self { point, below, above, threshold, p }
    }

    /// Returns what the interval of confidence 1 − `level` says, which reaches `widening` standard errors to either
    /// side.
    pub fn judge(&self, level: f64, widening: f64) -> (Call, Option<Interval>) {
        let (low, high) = (self.point - widening * self.below, self.point + widening * self.above);
        let (low, high) = (low.exp(), high.exp());
        let confidence = 1.0 - level;
        // The speedup is the ratio's reciprocal.
        let speedup = Estimate { point: (-self.point).exp(), low: 1.0 / high, high: 1.0 / low, confidence };
        (call(&speedup, self.threshold), Some(Interval { low, high, confidence }))
    }
}

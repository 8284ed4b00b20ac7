//! Decides whether a time changed, by the whole interval of the ratio of both times.
//!
//! The interval of a median says where the median of more samples of that process would lie, not where that of another
//! process would. So the process-to-process spread of both sides is added, as independent errors add.

use super::{Call, DifferenceKind, Options, Pair};
use crate::analyse::ratios::between_processes;
use crate::analyse::{CONFIDENCE, PairedRatio};
use crate::model::{CaseRecord, Estimate, Records, RegimeResult, Spread, Unit};
use crate::stats;

/// The probability that any time of all that are compared is called changed although none did.
pub const LEVEL: f64 = 0.05;

/// No change below this fraction matters, unless the caller says so.
pub const LEAST_THRESHOLD: f64 = 0.01;

/// The standard deviation, in nanoseconds, by which the time between one launch of a body and the next differs from
/// process to process: in one stream, in several, and for all that a library launches in a call.
///
/// Every shipped experiment was run on H100s in three processes. Of 261 pairs of times of two launches in one stream, below
/// 200 µs, 90 of 100 differed by less than 90 ns; of 117 of 32 launches in up to 16 streams by less than 450 ns for each
/// root of a gap; of 117 of library calls by less than 650 ns. The calibration of a device measures bodies of one launch
/// only.
const BETWEEN_LAUNCHES: f64 = 80.0;
const BETWEEN_STREAMS: f64 = 200.0;
const WITHIN_LIBRARIES: f64 = 300.0;

/// No change below this fraction matters between two GPUs of one model, or if it is not known which GPU each report is
/// of.
///
/// Every shipped experiment was run on two H100: of 693 rows of one launch and more than 50 µs, half differ by less
/// than 0.07 % and 90 of 100 by less than 0.4 %. Kernels that wait for memory on few SMs differ by up to 3 % (by 4.7 %
/// between another pair of H100), as the way from an SM to memory differs from GPU to GPU.
pub const BETWEEN_GPUS: f64 = 0.03;

/// How much processes differ on a device that was not calibrated: twice the most that calibrations of H100s found.
const ASSUMED: Spread = Spread { nanoseconds: 200.0, relative: 0.003, processes: 0 };

/// The standard deviation, as a fraction, by which a time on the host's clock differs between processes and hosts.
///
/// Every shipped experiment was run on three hosts: of 177 pairs of times of one loop, half differ by more than 8 % and 5
/// of 100 by more than 46 %.
const BETWEEN_HOSTS: f64 = 0.14;

/// Fewer rows of unchanged code say too little of how much processes differ.
const LEAST_CONTROLS: usize = 40;

/// However little rows of unchanged code differ, so much of the stated difference remains.
const LEAST_SCALE: f64 = 0.25;

/// The deviations that half and nine tenths of a normal distribution are within, in standard deviations.
const HALF_OF_NORMAL: f64 = 0.674_489_750_196_082;
const NINE_TENTHS_OF_NORMAL: f64 = 1.644_853_626_951_473;

/// Where smaller changes than this fraction do not count, nothing is called the same.
const COARSEST: f64 = 0.1;

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
    /// The smallest change that matters, as a fraction. `None` where the time is not judged, as that of a single sample.
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
    /// The logarithm of the new time over the base time.
    point: f64,
    /// The standard errors that it has downwards and upwards by the samples of both sides.
    within: [f64; 2],
    /// The standard deviation by which processes of both sides differ, and what it is of.
    processes: f64,
    part: Part,
    /// The smallest change that matters, before that of the processes.
    least: f64,
    /// Whether what processes differ by raises the threshold.
    is_raised: bool,
    /// Whether both sides ran the same code, so that any difference is that of the processes.
    is_control: bool,
}

/// What most of the difference between processes comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    /// The constant in nanoseconds, which short kernels show.
    Constant,
    /// The fraction of the time.
    Relative,
    /// The gaps between launches.
    Gaps,
    /// The host's clock.
    Host,
}

impl Part {
    const ALL: [Self; 4] = [Self::Constant, Self::Relative, Self::Gaps, Self::Host];
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
    let parts = [(pair.base, sides[0], base), (pair.new, sides[1], new)].map(|(of, case, time)| parts(of, case, time));
    let both = |part: usize| parts[0][part].hypot(parts[1][part]);
    let (part, _) = Part::ALL
        .iter()
        .enumerate()
        .map(|(i, part)| (*part, both(i)))
        .fold((Part::Constant, 0.0), |most, found| if found.1 > most.1 { found } else { most });
    let noise = [(pair.base, base), (pair.new, new)].map(|(records, result)| noise(records, result));
    let floor = if may_be_two_gpus(pair) && !options.allow.contains(&DifferenceKind::Gpu) { BETWEEN_GPUS } else { 0.0 };
    let own = || noise.into_iter().flatten().fold(LEAST_THRESHOLD, f64::max);
    let change = TimeChange {
        base: base.time,
        new: new.time,
        unit: new.unit,
        ratio: new.time.point / base.time.point,
        interval: None,
        threshold: None,
    };
    let evidence = Evidence {
        point: 0.0,
        within: [0.0; 2],
        processes: (0..Part::ALL.len()).map(both).fold(0.0, f64::hypot),
        part,
        least: options.threshold.unwrap_or_else(own).max(floor),
        is_raised: options.threshold.is_none(),
        is_control: false,
    };
    Some((change, evidence.weigh(base.time, new.time)))
}

/// Compares times that were measured in the same rounds: their ratio is formed within rounds, and there is no other
/// process that could differ.
pub(super) fn paired(
    sides: [&CaseRecord; 2],
    ratio: &PairedRatio,
    options: &Options,
) -> Option<(TimeChange, Option<Evidence>)> {
    let [base, new] = [sides[0].result.as_ref()?, sides[1].result.as_ref()?];
    let change = TimeChange {
        base: base.time,
        new: new.time,
        unit: new.unit,
        ratio: 1.0 / ratio.speedup.point,
        interval: None,
        threshold: None,
    };
    let least = options.threshold.unwrap_or_else(|| LEAST_THRESHOLD.max(ratio.noise.unwrap_or(0.0)));
    Some((change, Evidence::of_speedup(ratio.speedup, least)))
}

/// Returns the standard deviations by which the time of a case differs from process to process, in the order of
/// [`Part::ALL`], as fractions of the time.
fn parts(records: &Records, case: &CaseRecord, side: &RegimeResult) -> [f64; 4] {
    if side.unit == Unit::HostNanoseconds {
        return [0.0, 0.0, 0.0, BETWEEN_HOSTS];
    }
    let Spread { nanoseconds, relative, .. } = records.environment.machine.spread.as_ref().unwrap_or(&ASSUMED);
    let constant = Spread { nanoseconds: *nanoseconds, relative: 0.0, processes: 0 };
    let constant = between_processes(&constant, side.regime, side.time.point, side.launches);
    [constant, *relative, gaps(case) / side.time.point, 0.0]
}

/// Fits the difference between processes to what rows of unchanged code show. What a calibration states is an upper
/// limit, from few processes; rows that cannot have changed show how much these two processes differ. It is never
/// raised: all of them may be slower for a reason.
pub(super) fn fit(all: &mut [&mut Evidence]) {
    for part in Part::ALL {
        let is_of_part = |evidence: &Evidence| evidence.part == part && evidence.processes > 0.0;
        let controls = all.iter().filter(|evidence| evidence.is_control && is_of_part(evidence));
        let by_processes =
            controls.filter(|evidence| evidence.within.iter().all(|within| *within < evidence.processes));
        let mut deviations: Vec<f64> = by_processes.map(|evidence| evidence.deviation()).collect();
        let Some(scale) = scale(&mut deviations) else { continue };
        for evidence in all.iter_mut().filter(|evidence| is_of_part(evidence)) {
            evidence.processes *= scale;
        }
    }
}

/// Returns the factor by which deviations, in standard errors that may be too large, scatter less than they should: by
/// their median and by what nine of ten are below, the larger of both, and with the uncertainty that it has itself.
fn scale(deviations: &mut [f64]) -> Option<f64> {
    if deviations.len() < LEAST_CONTROLS || !deviations.iter().all(|deviation| deviation.is_finite()) {
        return None;
    }
    deviations.sort_by(f64::total_cmp);
    let at = |share: f64| deviations[(share * (deviations.len() - 1) as f64).ceil() as usize];
    let found = (at(0.5) / HALF_OF_NORMAL).max(at(0.9) / NINE_TENTHS_OF_NORMAL);
    let uncertainty = NINE_TENTHS_OF_NORMAL / (2.0 * deviations.len() as f64).sqrt();
    Some((found * (1.0 + uncertainty)).clamp(LEAST_SCALE, 1.0))
}

/// Returns the standard deviation, in nanoseconds, by which the gaps between the launches of a body differ.
fn gaps(case: &CaseRecord) -> f64 {
    if case.launches.is_empty() {
        return WITHIN_LIBRARIES;
    }
    let is_of_one_stream = case.launches.iter().all(|launch| launch.stream == case.launches[0].stream);
    let gap = if is_of_one_stream { BETWEEN_LAUNCHES } else { BETWEEN_STREAMS };
    gap * ((case.launches.len() - 1) as f64).sqrt()
}

/// Whether the times are of two GPUs of one model, as far as the reports say.
pub(super) fn may_be_two_gpus(pair: Pair<'_>) -> bool {
    let [base, new] = [pair.base, pair.new].map(|records| &records.environment);
    let timed = [base, new].iter().all(|side| side.timing_method.is_some());
    timed && (base.machine.gpu.is_none() || base.machine.gpu != new.machine.gpu)
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
    /// Takes the samples of both sides in. `None` where a side has no interval, because it is of a single sample, or one
    /// that reaches zero.
    fn weigh(self, base: Estimate, new: Estimate) -> Option<Self> {
        if ![base, new].into_iter().all(is_sound) {
            return Some(self.unsound());
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
        let within = [new_below.hypot(base_above), new_above.hypot(base_below)];
        Some(Self { point: (new.point / base.point).ln(), within, ..self })
    }

    /// Returns what an estimate shows that is not sound: it has no probability, so that nothing is decided by it.
    const fn unsound(self) -> Self {
        Self { point: f64::NAN, within: [f64::NAN; 2], is_control: false, ..self }
    }

    /// Decides about a speedup; `None` if it has no interval.
    fn of_speedup(speedup: Estimate, least: f64) -> Option<Self> {
        let (point, within) = (-speedup.point.ln(), [0.0; 2]);
        let evidence =
            Self { point, within, processes: 0.0, part: Part::Constant, least, is_raised: true, is_control: false };
        if !is_sound(speedup) {
            return Some(evidence.unsound());
        }
        if speedup.confidence <= 0.0 || speedup.low <= 0.0 {
            return None;
        }
        let scale = 1.0 / stats::normal_two_sided(1.0 - speedup.confidence);
        // The speedup is the ratio's reciprocal.
        let within = [(speedup.high / speedup.point).ln(), (speedup.point / speedup.low).ln()].map(|end| end * scale);
        Some(Self { within, ..evidence })
    }

    /// Takes in whether both sides ran the same code.
    pub const fn of_control(self, is_control: bool) -> Self {
        Self { is_control, ..self }
    }

    /// Returns the standard errors downwards and upwards.
    fn errors(&self) -> [f64; 2] {
        self.within.map(|within| within.hypot(self.processes))
    }

    /// Returns the standard error on the side of the interval that faces no change.
    fn facing(&self) -> f64 {
        let [below, above] = self.errors();
        if self.point > 0.0 { below } else { above }
    }

    /// Returns how many standard errors the ratio is from one.
    fn deviation(&self) -> f64 {
        self.point.abs() / self.facing()
    }

    /// Returns the smallest change that matters, as a fraction.
    pub fn threshold(&self) -> f64 {
        if self.is_raised { self.least.max(stats::NORMAL_TWO_SIDED * self.processes) } else { self.least }
    }

    /// Returns the probability of a ratio as far beyond the threshold if the time changed by just that.
    pub fn p(&self) -> f64 {
        let beyond = self.point.abs() - self.threshold().ln_1p();
        if self.point.is_nan() {
            f64::NAN
        } else if beyond > 0.0 {
            2.0 * stats::normal_tail(beyond / self.facing())
        } else {
            1.0
        }
    }

    /// Returns what the interval of confidence 1 − `level` says, which reaches `widening` standard errors to either
    /// side. What is not a change by it is the same if the ratio is within the threshold, the interval of a single
    /// comparison is within twice the threshold, and the threshold is no coarse one.
    pub fn judge(&self, level: f64, widening: f64) -> (Call, Option<Interval>) {
        let [below, above] = self.errors();
        let ends = |widening: f64| (self.point - widening * below, self.point + widening * above);
        let interval =
            |(low, high): (f64, f64), confidence| Some(Interval { low: low.exp(), high: high.exp(), confidence });
        let threshold = self.threshold().ln_1p();
        let (low, high) = ends(widening);
        let all = interval((low, high), 1.0 - level);
        if low > threshold {
            return (Call::Slower, all);
        } else if high < -threshold {
            return (Call::Faster, all);
        }
        let (low, high) = ends(stats::NORMAL_TWO_SIDED);
        let is_fine = self.threshold() <= COARSEST || !self.is_raised;
        let is_same = is_fine && self.point.abs() <= threshold && low >= -2.0 * threshold && high <= 2.0 * threshold;
        if is_same { (Call::Same, interval((low, high), CONFIDENCE)) } else { (Call::Ambiguous, all) }
    }
}

//! The evidence about a time: the ratio of both sides, and how far another pair of runs may deviate from it.
//!
//! A change is reported if the ratio exceeds the smallest change that matters, and its confidence interval excludes no
//! change. The confidence level takes the number of comparisons into account. A row is the same if its ratio is within
//! its threshold, and an interval for this row alone rules out twice the threshold. These are two one-sided tests,
//! which need no multiple-testing correction, since wrongly calling a row the same raises no alarm.

use super::Call;
use crate::analyse::CONFIDENCE;
use crate::analyse::times::variance_of_mean;
use runner_types::{Estimate, Processes};

/// If the threshold (a fraction) exceeds this, no row counts as the same.
const COARSEST: f64 = 0.1;

/// Probability, on either side, of wrongly calling a row the same if its ratio is twice the threshold.
const LEVEL_OF_SAME: f64 = 0.05;

/// Confidence interval of a ratio of times, corrected for the number of comparisons.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    pub low: f64,
    pub high: f64,
    /// Confidence level, e.g. 0.999.
    pub confidence: f64,
}

/// Source of variation between processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::VariantArray)]
pub(super) enum Part {
    /// A constant in nanoseconds, which matters for short kernels.
    Constant,
    /// A fraction of the time.
    Relative,
    /// Gaps between launches.
    Gaps,
    /// The host's clock.
    Host,
}

/// Possible deviation of one side's time in another run, as fractions of the time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct SideErrors {
    /// Standard errors from the samples, downwards and upwards.
    pub within: [f64; 2],
    /// Known standard deviation between processes for each [`Part`].
    pub stated: [f64; 4],
    /// Variation between the processes that took the samples, if there are several.
    pub processes: Option<Processes>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Evidence {
    /// Logarithm of the new time divided by the base's.
    pub point: f64,
    /// Errors of base and new.
    pub sides: [SideErrors; 2],
    /// Smallest change that matters, before the variation between processes is considered.
    pub least: f64,
    /// Maximum change that has another explanation: a different GPU, a different clock rate.
    pub explained: f64,
    /// Whether the variation between processes raises the threshold.
    pub is_raised: bool,
    /// Change of `point` per nanosecond of offset between the clocks; zero if both sides use the same clock or the
    /// host's.
    pub per_nanosecond: f64,
    /// Whether both sides ran the same code, so that any difference comes from the processes.
    pub is_control: bool,
}

/// Whether an estimate has finite, ordered ends and a valid confidence level.
pub(super) fn is_sound(time: Estimate) -> bool {
    [time.point, time.low, time.high].iter().all(|value| value.is_finite())
        && time.low <= time.high
        && (0.0..1.0).contains(&time.confidence)
}

/// Standard errors of an estimate's logarithm, downwards and upwards. `None` if there is no interval (a single sample)
/// or it reaches zero.
pub(super) fn errors(time: Estimate) -> Option<[f64; 2]> {
    let is_nominal = time.confidence.to_bits() == CONFIDENCE.to_bits();
    let widening =
        if is_nominal { runner_stats::NORMAL_TWO_SIDED } else { runner_stats::normal_two_sided(1.0 - time.confidence) };
    let errors = [(time.point / time.low).ln() / widening, (time.high / time.point).ln() / widening];
    (time.confidence > 0.0 && time.low > 0.0).then_some(errors)
}

impl SideErrors {
    /// Variances of this side. If there are several processes, the variation between them already includes the sampling
    /// variance and the known one.
    fn variances(&self, direction: usize) -> Variances {
        let stated = self.stated.iter().fold(0.0, |sum, part| sum + part.powi(2));
        let within = self.within[direction].powi(2);
        match self.processes {
            None => Variances { samples: within, runs: stated, freedom: variance_of_mean(0.0, None).1 },
            Some(processes) => {
                // The sampling error of each process is √N times the mean's.
                let of_one = (stated + within * f64::from(processes.count)).sqrt();
                let (runs, freedom) = variance_of_mean(of_one, Some(processes));
                Variances { samples: 0.0, runs, freedom }
            }
        }
    }
}

/// Variance of one side's logarithm: from sampling, and between runs with its degrees of freedom.
struct Variances {
    samples: f64,
    runs: f64,
    freedom: f64,
}

impl Evidence {
    /// Marks the evidence as unsound, so that it has no probability and decides nothing.
    pub const fn unsound(self) -> Self {
        Self { point: f64::NAN, is_control: false, ..self }
    }

    /// Records whether both sides ran the same code.
    pub const fn of_control(self, is_control: bool) -> Self {
        Self { is_control, ..self }
    }

    /// Subtracts a clock offset in nanoseconds. Adds its standard error to the variation between processes.
    pub fn take_out(&mut self, nanoseconds: f64, error: f64) {
        self.point -= nanoseconds * self.per_nanosecond;
        let constant = &mut self.sides[1].stated[Part::Constant as usize];
        *constant = constant.hypot(error * self.per_nanosecond);
    }

    /// Removes a common factor of all times, given as a logarithm with its standard error.
    pub fn take_out_pace(&mut self, shift: f64, error: f64) {
        self.point -= shift;
        let relative = &mut self.sides[1].stated[Part::Relative as usize];
        *relative = relative.hypot(error);
    }

    /// Whether the times come from different runs and from the device's clock.
    pub fn is_between_runs(&self) -> bool {
        self.per_nanosecond > 0.0
    }

    /// Variances of base and new, for upward or downward deviations.
    fn variances(&self, is_upwards: bool) -> [Variances; 2] {
        let [base, new] = &self.sides;
        [base.variances(usize::from(!is_upwards)), new.variances(usize::from(is_upwards))]
    }

    fn error(&self, is_upwards: bool) -> f64 {
        self.variances(is_upwards).iter().map(|side| side.samples + side.runs).sum::<f64>().sqrt()
    }

    /// Degrees of freedom of the standard error (Welch–Satterthwaite); infinite if runs do not vary.
    fn freedom(&self, is_upwards: bool) -> f64 {
        let sides = self.variances(is_upwards);
        let whole: f64 = sides.iter().map(|side| side.samples + side.runs).sum();
        let known: f64 = sides.iter().map(|side| side.runs.powi(2) / side.freedom).sum();
        if known > 0.0 { whole.powi(2) / known } else { f64::INFINITY }
    }

    /// Number of standard errors by which the ratio differs from 1.
    pub fn deviation(&self) -> f64 {
        self.point.abs() / self.error(self.point < 0.0)
    }

    /// Standard deviation of the ratio between runs.
    pub fn deviation_between_runs(&self) -> f64 {
        self.variances(false).iter().map(|side| side.runs).sum::<f64>().sqrt()
    }

    /// The part that contributes most to the known deviation, and the total deviation; `None` if nothing is known.
    pub fn main_part(&self) -> Option<(usize, f64)> {
        let both = |part: usize| self.sides[0].stated[part].hypot(self.sides[1].stated[part]);
        let parts = (0..self.sides[0].stated.len()).map(|part| (part, both(part)));
        let whole = parts.clone().map(|(_, part)| part).fold(0.0, f64::hypot);
        let largest = parts.max_by(|a, b| a.1.total_cmp(&b.1))?;
        (whole > 0.0).then_some((largest.0, whole))
    }

    /// Multiplies the known variation between processes.
    pub fn scale(&mut self, factor: f64) {
        self.sides.iter_mut().flat_map(|side| &mut side.stated).for_each(|part| *part *= factor);
    }

    /// Smallest change that matters, as a fraction.
    pub fn threshold(&self) -> f64 {
        let least = self.least.max(self.explained);
        if self.is_raised { least.max(runner_stats::NORMAL_TWO_SIDED * self.deviation_between_runs()) } else { least }
    }

    /// p-value of the ratio's distance from the explained range, under no change; 1 if the ratio does not matter.
    pub fn p(&self) -> f64 {
        let size = self.point.abs();
        let beyond = size - self.explained.ln_1p();
        if self.point.is_nan() {
            f64::NAN
        } else if beyond > 0.0 && size > self.least.ln_1p() {
            let is_upwards = self.point < 0.0;
            runner_stats::student_two_sided(beyond / self.error(is_upwards), self.freedom(is_upwards))
        } else {
            1.0
        }
    }

    /// Ends, as logarithms, of the interval with confidence 1 − `level`.
    fn interval(&self, level: f64) -> [f64; 2] {
        let reach =
            |is_upwards| runner_stats::student_quantile(level, self.freedom(is_upwards)) * self.error(is_upwards);
        [self.point - reach(false), self.point + reach(true)]
    }

    /// Judges by the interval with confidence 1 − `level`. An unchanged row is the same if the ratio is within the
    /// threshold, twice the threshold is ruled out on both sides, and the threshold is not too coarse.
    pub fn judge(&self, level: f64) -> (Call, Option<Interval>) {
        let stated =
            |[low, high]: [f64; 2], level: f64| Interval { low: low.exp(), high: high.exp(), confidence: 1.0 - level };
        let [low, high] = self.interval(level);
        let all = Some(stated([low, high], level));
        let (least, explained) = (self.least.ln_1p(), self.explained.ln_1p());
        if self.point > least && low > explained {
            return (Call::Slower, all);
        } else if self.point < -least && high < -explained {
            return (Call::Faster, all);
        }
        let threshold = self.threshold().ln_1p();
        let own = self.interval(2.0 * LEVEL_OF_SAME);
        let is_fine = self.threshold() <= COARSEST || !self.is_raised;
        let is_ruled_out = own[0] >= -2.0 * threshold && own[1] <= 2.0 * threshold;
        if is_fine && self.point.abs() <= threshold && is_ruled_out {
            (Call::Same, Some(stated(own, 2.0 * LEVEL_OF_SAME)))
        } else {
            (Call::Ambiguous, all)
        }
    }
}

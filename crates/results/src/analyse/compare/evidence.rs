//! What decides on a time: the ratio of both sides, and how far that of another pair of runs may lie from it.
//!
//! A change is called if two things hold: the ratio is beyond the smallest change that matters, and its interval leaves
//! out no change, at the confidence that as many comparisons need. A row is the same if its ratio is within its
//! threshold, and an interval for this row alone rules out twice as much. These are two one-sided tests, which need no
//! correction, since a row that is wrongly the same raises no alarm.

use super::Call;
use crate::analyse::CONFIDENCE;
use crate::analyse::times::variance_of_mean;
use runner_types::{Estimate, Processes};

/// Where smaller changes than this fraction do not count, nothing is called the same.
const COARSEST: f64 = 0.1;

/// The probability that a ratio of twice the threshold is called the same, on either side.
const LEVEL_OF_SAME: f64 = 0.05;

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

/// What the difference between processes comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::VariantArray)]
pub(super) enum Part {
    /// The constant in nanoseconds, which short kernels show.
    Constant,
    /// The fraction of the time.
    Relative,
    /// The gaps between launches.
    Gaps,
    /// The host's clock.
    Host,
}

/// How far the time of one side may lie from that of another run, as fractions of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct SideErrors {
    /// The standard errors downwards and upwards by the samples.
    pub within: [f64; 2],
    /// The standard deviations that are known beforehand of each [`Part`] between processes.
    pub stated: [f64; 4],
    /// How the processes differ that took the samples, if there are several.
    pub processes: Option<Processes>,
}

/// What decides on a time.
#[derive(Debug, Clone, Copy)]
pub(super) struct Evidence {
    /// The logarithm of the new time over the base time.
    pub point: f64,
    /// The errors of base and new.
    pub sides: [SideErrors; 2],
    /// The smallest change that matters, before that of the processes.
    pub least: f64,
    /// The largest change that other differences than those of the processes explain: another GPU, another clock.
    pub explained: f64,
    /// Whether what processes differ by raises the threshold.
    pub is_raised: bool,
    /// The change of `point` for each nanosecond by which the clock of one run reads more; zero where the clocks are one,
    /// or the host's.
    pub per_nanosecond: f64,
    /// Whether both sides ran the same code, so that any difference is that of the processes.
    pub is_control: bool,
}

/// Whether an estimate has finite ends in their order, and a confidence that is one.
pub(super) fn is_sound(time: Estimate) -> bool {
    [time.point, time.low, time.high].iter().all(|value| value.is_finite())
        && time.low <= time.high
        && (0.0..1.0).contains(&time.confidence)
}

/// Returns the standard errors of an estimate's logarithm, downwards and upwards. `None` if it has no interval, because
/// it is of a single sample, or one that reaches zero.
pub(super) fn errors(time: Estimate) -> Option<[f64; 2]> {
    let is_nominal = time.confidence.to_bits() == CONFIDENCE.to_bits();
    let widening =
        if is_nominal { runner_stats::NORMAL_TWO_SIDED } else { runner_stats::normal_two_sided(1.0 - time.confidence) };
    let errors = [(time.point / time.low).ln() / widening, (time.high / time.point).ln() / widening];
    (time.confidence > 0.0 && time.low > 0.0).then_some(errors)
}

impl SideErrors {
    /// Returns the variances. What the samples of several processes leave is in how these differ, as is what is stated
    /// beforehand.
    fn variances(&self, direction: usize) -> Variances {
        let stated = self.stated.iter().fold(0.0, |sum, part| sum + part.powi(2));
        let within = self.within[direction].powi(2);
        match self.processes {
            None => Variances { samples: within, runs: stated, freedom: variance_of_mean(0.0, None).1 },
            Some(processes) => {
                // The samples of each process leave √N times the error of the mean.
                let of_one = (stated + within * f64::from(processes.count)).sqrt();
                let (runs, freedom) = variance_of_mean(of_one, Some(processes));
                Variances { samples: 0.0, runs, freedom }
            }
        }
    }
}

/// The variance of one side's logarithm: by its samples alone, and from run to run with its degrees of freedom.
struct Variances {
    samples: f64,
    runs: f64,
    freedom: f64,
}

impl Evidence {
    /// Returns what an estimate shows that is not sound: it has no probability, so that nothing is decided by it.
    pub const fn unsound(self) -> Self {
        Self { point: f64::NAN, is_control: false, ..self }
    }

    /// Takes in whether both sides ran the same code.
    pub const fn of_control(self, is_control: bool) -> Self {
        Self { is_control, ..self }
    }

    /// Takes out what the clocks of both runs differ by, in nanoseconds. The standard error of that is added to what
    /// processes differ by.
    pub fn take_out(&mut self, nanoseconds: f64, error: f64) {
        self.point -= nanoseconds * self.per_nanosecond;
        let constant = &mut self.sides[1].stated[Part::Constant as usize];
        *constant = constant.hypot(error * self.per_nanosecond);
    }

    /// Takes out a common factor of all times, as a logarithm with its standard error.
    pub fn take_out_pace(&mut self, shift: f64, error: f64) {
        self.point -= shift;
        let relative = &mut self.sides[1].stated[Part::Relative as usize];
        *relative = relative.hypot(error);
    }

    /// Whether both times were taken in different runs on a device's clock.
    pub fn is_between_runs(&self) -> bool {
        self.per_nanosecond > 0.0
    }

    /// Returns the variances of base and new, downwards or upwards of the ratio.
    fn variances(&self, is_upwards: bool) -> [Variances; 2] {
        let [base, new] = &self.sides;
        [base.variances(usize::from(!is_upwards)), new.variances(usize::from(is_upwards))]
    }

    /// Returns the standard error downwards or upwards.
    fn error(&self, is_upwards: bool) -> f64 {
        self.variances(is_upwards).iter().map(|side| side.samples + side.runs).sum::<f64>().sqrt()
    }

    /// Returns the degrees of freedom that the standard error has (Welch and Satterthwaite): infinite where runs do not
    /// differ.
    fn freedom(&self, is_upwards: bool) -> f64 {
        let sides = self.variances(is_upwards);
        let whole: f64 = sides.iter().map(|side| side.samples + side.runs).sum();
        let known: f64 = sides.iter().map(|side| side.runs.powi(2) / side.freedom).sum();
        if known > 0.0 { whole.powi(2) / known } else { f64::INFINITY }
    }

    /// Returns how many standard errors the ratio is from one.
    pub fn deviation(&self) -> f64 {
        self.point.abs() / self.error(self.point < 0.0)
    }

    /// Returns the standard deviation from run to run of the ratio.
    pub fn deviation_between_runs(&self) -> f64 {
        self.variances(false).iter().map(|side| side.runs).sum::<f64>().sqrt()
    }

    /// Returns the part that most of what is stated comes from, and the whole of it; `None` if nothing is.
    pub fn main_part(&self) -> Option<(usize, f64)> {
        let both = |part: usize| self.sides[0].stated[part].hypot(self.sides[1].stated[part]);
        let parts = (0..self.sides[0].stated.len()).map(|part| (part, both(part)));
        let whole = parts.clone().map(|(_, part)| part).fold(0.0, f64::hypot);
        let largest = parts.max_by(|a, b| a.1.total_cmp(&b.1))?;
        (whole > 0.0).then_some((largest.0, whole))
    }

    /// Multiplies the differences between processes that both sides state.
    pub fn scale(&mut self, factor: f64) {
        self.sides.iter_mut().flat_map(|side| &mut side.stated).for_each(|part| *part *= factor);
    }

    /// Returns the smallest change that matters, as a fraction.
    pub fn threshold(&self) -> f64 {
        let least = self.least.max(self.explained);
        if self.is_raised { least.max(runner_stats::NORMAL_TWO_SIDED * self.deviation_between_runs()) } else { least }
    }

    /// Returns the probability of a ratio as far from what is explained if the time did not change; one where the ratio
    /// does not matter.
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

    /// Returns the ends of the interval that misses with the probability `level`, in logarithms.
    fn interval(&self, level: f64) -> [f64; 2] {
        let reach =
            |is_upwards| runner_stats::student_quantile(level, self.freedom(is_upwards)) * self.error(is_upwards);
        [self.point - reach(false), self.point + reach(true)]
    }

    /// Returns what the interval of confidence 1 − `level` says. What is not a change by it is the same if the ratio is
    /// within the threshold, twice the threshold is ruled out on both sides, and the threshold is no coarse one.
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

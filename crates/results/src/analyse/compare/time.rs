//! Collects the evidence for whether a time changed.
//!
//! The interval of a median tells where the median of more samples from that process would be, not where another
//! process's would be. So the spread between processes is added for both sides, as for independent errors.

use super::evidence::{Evidence, Interval, Part, SideErrors, errors, is_sound};
use super::{DifferenceKind, Options, Pair};
use crate::analyse::PairedRatio;
use crate::analyse::times::deviation_between_processes;
use runner_types::{CaseRecord, Estimate, Records, RegimeResult, Spread, Unit};

/// False discovery rate among the times called changed. If no time changed, this is the probability of calling any.
pub const LEVEL: f64 = 0.05;

/// Default for the smallest change that matters, as a fraction.
pub const LEAST_THRESHOLD: f64 = 0.005;

/// Standard deviation between processes, in nanoseconds, of the gap between successive launches of a body in one
/// stream.
///
/// A device's calibration measures only bodies with a single launch. All shipped experiments were run on H100s in three
/// processes. Of 261 pairs of times below 200 µs with two launches in one stream, 90 % differed by less than 90 ns.
const BETWEEN_LAUNCHES: f64 = 80.0;
/// The same for launches in several streams. Of 117 pairs of times with 32 launches in up to 16 streams, 90 % differed
/// by less than 450 ns per square root of the number of gaps.
const BETWEEN_STREAMS: f64 = 200.0;
/// The same for everything that a library launches in a call. Of 117 pairs of times of library calls, 90 % differed by
/// less than 650 ns.
const WITHIN_LIBRARIES: f64 = 300.0;

/// Smallest change that matters between two GPUs of one model, or if a report does not identify its GPU.
///
/// All shipped experiments were run on two H100s. Of 693 rows with one launch of more than 50 µs, half differ by less
/// than 0.07 % and 90 % by less than 0.4 %. Kernels that wait for memory on few SMs differ by up to 3 % (4.7 % between
/// another pair of H100s), since the path from an SM to memory differs between GPUs.
pub const BETWEEN_GPUS: f64 = 0.03;

/// Spread assumed for an uncalibrated device: twice the maximum found by calibrations of H100s.
const ASSUMED: Spread = Spread { nanoseconds: 200.0, relative: 0.003, processes: 0 };

/// Standard deviation of a host-clock time between processes and hosts, as a fraction.
///
/// All shipped experiments were run on three hosts. Of 177 pairs of times of the same loop, half differ by more than 8
/// % and 5 % by more than 46 %.
const BETWEEN_HOSTS: f64 = 0.14;

/// Times of a case in base and new.
#[derive(Debug, Clone, PartialEq)]
pub struct TimeChange {
    /// Time in the base, in nanoseconds, with its interval within the process.
    pub base: Estimate,
    /// Time in the new report, like `base`.
    pub new: Estimate,
    /// Clock that measured both times.
    pub unit: Unit,
    /// New divided by base: above 1 is slower.
    pub ratio: f64,
    /// Confidence interval of the ratio, if tested.
    pub interval: Option<Interval>,
    /// Smallest change that matters, as a fraction. `None` if the time is not judged, e.g. for a single sample.
    pub threshold: Option<f64>,
}

/// The times of a case, and the evidence about them. `None` if they were not timed, or if a time is zero, i.e. too
/// short for the clock.
pub(super) fn compare_times(
    pair: Pair<'_>,
    sides: [&CaseRecord; 2],
    options: &Options,
) -> Option<(TimeChange, Option<Evidence>)> {
    let [base, new] = [sides[0].result.as_ref()?, sides[1].result.as_ref()?];
    if [base, new].iter().any(|result| result.time.point <= 0.0) {
        return None;
    }
    let change = TimeChange {
        base: base.time,
        new: new.time,
        unit: new.unit,
        ratio: new.time.point / base.time.point,
        interval: None,
        threshold: None,
    };
    let noise = [(pair.base, base), (pair.new, new)].map(|(records, result)| noise(records, result));
    let own = || noise.into_iter().flatten().fold(LEAST_THRESHOLD, f64::max);
    let of_side = |records, case, result: &RegimeResult| {
        let (stated, processes) = (stated(records, case, result), result.processes);
        SideErrors { within: errors(result.time).unwrap_or_default(), stated, processes }
    };
    let is_between_gpus = may_be_two_gpus(pair) && !options.allow.contains(&DifferenceKind::Gpu);
    let evidence = Evidence {
        point: change.ratio.ln(),
        sides: [of_side(pair.base, sides[0], base), of_side(pair.new, sides[1], new)],
        least: options.threshold.unwrap_or_else(own),
        explained: if is_between_gpus { BETWEEN_GPUS } else { 0.0 },
        is_raised: options.threshold.is_none(),
        per_nanosecond: per_nanosecond([base, new]),
        is_control: false,
    };
    let evidence = match [base.time, new.time] {
        times if !times.into_iter().all(is_sound) => Some(evidence.unsound()),
        times => times.into_iter().all(|time| errors(time).is_some()).then_some(evidence),
    };
    Some((change, evidence))
}

/// Compares times measured in the same rounds. Their ratio is formed within rounds, so processes do not vary between
/// the sides.
pub(super) fn paired(
    sides: [&CaseRecord; 2],
    ratio: &PairedRatio,
    options: &Options,
) -> Option<(TimeChange, Option<Evidence>)> {
    let [base, new] = [sides[0].result.as_ref()?, sides[1].result.as_ref()?];
    let speedup = ratio.speedup;
    let change = TimeChange {
        base: base.time,
        new: new.time,
        unit: new.unit,
        ratio: 1.0 / speedup.point,
        interval: None,
        threshold: None,
    };
    let exact = SideErrors { within: [0.0; 2], stated: [0.0; 4], processes: None };
    // The speedup is the reciprocal of the ratio.
    let within = errors(speedup).map(|[below, above]| [above, below]);
    let evidence = Evidence {
        point: -speedup.point.ln(),
        sides: [exact, SideErrors { within: within.unwrap_or_default(), ..exact }],
        least: options.threshold.unwrap_or_else(|| LEAST_THRESHOLD.max(ratio.noise.unwrap_or(0.0))),
        explained: 0.0,
        is_raised: true,
        per_nanosecond: 0.0,
        is_control: false,
    };
    let evidence = if is_sound(speedup) { within.map(|_| evidence) } else { Some(evidence.unsound()) };
    Some((change, evidence))
}

/// Known standard deviations of a case's time between processes, as fractions of the time.
fn stated(records: &Records, case: &CaseRecord, side: &RegimeResult) -> [f64; 4] {
    let mut parts = [0.0; 4];
    if side.unit == Unit::HostNanoseconds {
        parts[Part::Host as usize] = BETWEEN_HOSTS;
        return parts;
    }
    let Spread { nanoseconds, relative, .. } = records.environment.machine.spread.as_ref().unwrap_or(&ASSUMED);
    let constant = Spread { nanoseconds: *nanoseconds, relative: 0.0, processes: 0 };
    parts[Part::Constant as usize] =
        deviation_between_processes(&constant, (side.regime, side.time.point, side.launches));
    parts[Part::Relative as usize] = *relative;
    parts[Part::Gaps as usize] = gaps(case) / side.time.point;
    parts
}

/// Change of the log ratio per nanosecond of offset between the two sides' device clocks.
fn per_nanosecond(sides: [&RegimeResult; 2]) -> f64 {
    let nanosecond = Spread { nanoseconds: 1.0, relative: 0.0, processes: 0 };
    let of_side =
        |side: &RegimeResult| deviation_between_processes(&nanosecond, (side.regime, side.time.point, side.launches));
    let is_of_device = sides.iter().all(|side| side.unit == Unit::DeviceNanoseconds);
    if is_of_device { sides.map(of_side).iter().sum::<f64>() / 2.0 } else { 0.0 }
}

/// Standard deviation of the gaps between the launches of a body, in nanoseconds.
fn gaps(case: &CaseRecord) -> f64 {
    if case.launches.is_empty() {
        return WITHIN_LIBRARIES;
    }
    let is_of_one_stream = case.launches.iter().all(|launch| launch.stream == case.launches[0].stream);
    let gap = if is_of_one_stream { BETWEEN_LAUNCHES } else { BETWEEN_STREAMS };
    gap * ((case.launches.len() - 1) as f64).sqrt()
}

/// Whether the times may come from two GPUs of one model, as far as the reports show.
pub(super) fn may_be_two_gpus(pair: Pair<'_>) -> bool {
    let [base, new] = [pair.base, pair.new].map(|records| &records.environment);
    let timed = [base, new].iter().all(|side| side.timing_method.is_some());
    timed && (base.machine.gpu.is_none() || base.machine.gpu != new.machine.gpu)
}

/// Noise of the A/A control for a row, as a fraction.
fn noise(records: &Records, result: &RegimeResult) -> Option<f64> {
    let of_regime = || records.header.noise.iter().find(|floor| floor.regime == result.regime).map(|floor| floor.width);
    result.against_baseline.as_ref().and_then(|ratio| ratio.noise).or_else(of_regime)
}

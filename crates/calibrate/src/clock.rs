//! Calibrates the device's clock by timing the same short kernels with events and with a reference clock.
//!
//! A pair of events measures more than the kernel between them takes, by a constant that depends on device, driver and
//! process. The constant is the median difference from the reference clock over several kernels; its uncertainty is the
//! largest remaining difference in any process. The kernels are short, since tracing slows long ones, and have several
//! shapes, since the constant must apply to all of them. The reference clock records these kernels once, in separate
//! processes. Every measuring process then times them to find its own constant, since processes differ by up to 0.2 µs.

use super::bench::{Bench, Readings, Shape, count};
use runner_backend::{DeviceError, LaunchArg, Step};
use runner_types::{Calibration, CalibrationPoint, Clock, ReferenceTimes, Survey};

/// Samples per kernel.
const SAMPLES: u32 = 101;

/// Largest plausible deviation of a kernel from the constant, in nanoseconds. Beyond it, the clocks timed different
/// things.
const WIDEST: f64 = 1000.0;

/// Largest plausible constant, in nanoseconds. Beyond it, launches were not gated, or other processes used the device.
const GREATEST: f64 = 20_000.0;

/// Number of blocks of a calibration kernel.
#[derive(Debug, Clone, Copy)]
enum Blocks {
    Fixed(u32),
    /// Blocks per SM.
    Each(u32),
}

/// A calibration kernel: every thread waits for `cycles`, or does nothing if that is 0.
#[derive(Debug, Clone, Copy)]
struct Wait {
    blocks: Blocks,
    threads: u32,
    cycles: u64,
}

const fn wait(blocks: Blocks, threads: u32, cycles: u64) -> Wait {
    Wait { blocks, threads, cycles }
}

/// Kernels to time: from one block to as many as a device holds, and from nothing to twenty microseconds.
///
/// Waiting kernels leave half of each SM free: under CUPTI fewer blocks fit on an SM, and a kernel that fills the
/// device then needs a second wave (on an H100, 43.6 µs instead of 23.9).
const KERNELS: [Wait; 9] = [
    wait(Blocks::Fixed(1), 32, 0),
    wait(Blocks::Each(1), 1024, 0),
    wait(Blocks::Each(8), 256, 0),
    wait(Blocks::Each(120), 256, 0),
    wait(Blocks::Fixed(1), 32, 2_000),
    wait(Blocks::Each(1), 128, 4_000),
    wait(Blocks::Fixed(1), 32, 10_000),
    wait(Blocks::Each(1), 1024, 10_000),
    wait(Blocks::Each(4), 256, 40_000),
];

const NOTHING: &str = "nothing";
const WAIT: &str = "wait_for";

/// Name expressions of the kernels.
pub(super) fn kernels() -> impl Iterator<Item = &'static str> {
    [NOTHING, WAIT].into_iter()
}

/// Measures an empty interval, in nanoseconds.
pub(super) fn empty_interval(bench: &mut Bench<'_>) -> Result<f64, DeviceError> {
    let buffer = bench.zeros(0)?;
    let times = bench.time(vec![Step::Copy { from: buffer, to: buffer }], SAMPLES)?.times;
    let samples: Vec<f64> = times.iter().map(|sample| sample.whole).collect();
    runner_stats::median(&samples).ok_or_else(|| DeviceError::Driver {
        call: "survey",
        message: "the device's clock returns no time for an empty interval".to_owned(),
    })
}

pub(super) fn points(bench: &mut Bench<'_>) -> Result<Vec<CalibrationPoint>, DeviceError> {
    let sms = bench.device.info().sm_count;
    let sink = bench.zeros(4)?;
    let shape = |Wait { blocks, threads, cycles }| {
        let blocks = match blocks {
            Blocks::Fixed(blocks) => u64::from(blocks),
            Blocks::Each(each) => u64::from(each) * u64::from(sms),
        };
        let (kernel, args) = match cycles {
            0 => (NOTHING, Vec::new()),
            cycles => (WAIT, vec![count(cycles), LaunchArg::Buffer(sink)]),
        };
        Shape { kernel, blocks, threads, args }
    };
    let shapes = KERNELS.map(shape);
    let samples = bench.in_rounds(&shapes, SAMPLES)?;
    let point = |((wait, shape), samples): ((&Wait, &Shape<'_>), &Readings)| CalibrationPoint {
        label: format!("{}×{}, {} cycles", shape.blocks, shape.threads, wait.cycles),
        // Every round has a device time.
        read: runner_stats::trimmed_mean(&samples.read).unwrap_or_default(),
        error: samples.error(),
        reference: runner_stats::trimmed_mean(&samples.reference),
    };
    Ok(KERNELS.iter().zip(&shapes).zip(&samples).map(point).collect())
}

/// Clock calibration from this device's surveys and the reference times, or the reason for having none.
pub fn calibrate(own: &[Survey], reference: Result<&ReferenceTimes, String>) -> Clock {
    let empties: Vec<f64> = own.iter().map(|survey| survey.empty).collect();
    let empty = runner_stats::median(&empties).unwrap_or_default();
    let fitted = reference.and_then(|reference| fit(own, reference, empty));
    fitted.map_or_else(|why| Clock::Uncalibrated { why, empty }, Clock::Calibrated)
}

/// Median time of each kernel over several traced processes.
pub fn reference_times(traced: &[Survey]) -> Result<ReferenceTimes, String> {
    let name =
        traced.first().and_then(|survey| survey.reference_clock.clone()).ok_or("the survey had no reference clock")?;
    let median = |label: &String| {
        let same = traced.iter().flat_map(|survey| &survey.points).filter(|other| other.label == *label);
        let times: Vec<f64> = same.filter_map(|other| other.reference).collect();
        let time = runner_stats::median(&times).ok_or_else(|| format!("{name} has no time for the kernel {label}"))?;
        Ok((label.clone(), time))
    };
    let times: Result<_, String> = traced[0].points.iter().map(|point| median(&point.label)).collect();
    Ok(ReferenceTimes { reference_clock: name, times: times? })
}

/// Constant of the surveyed process, in nanoseconds. `None` if no kernel has a reference time.
pub fn constant(survey: &Survey, reference: &ReferenceTimes) -> Option<f64> {
    let differences: Vec<f64> = differences(survey, reference).map(|(difference, _)| difference).collect();
    runner_stats::median(&differences)
}

/// Differences from the reference clock, by kernel.
fn differences<'a>(survey: &'a Survey, reference: &'a ReferenceTimes) -> impl Iterator<Item = (f64, &'a str)> {
    let difference =
        |point: &'a CalibrationPoint| Some((point.read - reference.times.get(&point.label)?, point.label.as_str()));
    survey.points.iter().filter_map(difference)
}

fn fit(own: &[Survey], reference: &ReferenceTimes, empty: f64) -> Result<Calibration, String> {
    let constants: Vec<f64> = own.iter().filter_map(|survey| constant(survey, reference)).collect();
    let constant = runner_stats::median(&constants).ok_or("no kernel was timed")?;
    let name = &reference.reference_clock;
    if !(0.0..=GREATEST).contains(&constant) {
        return Err(format!("intervals read {constant:.0} ns more than {name}, which is not plausible for a clock"));
    }
    // Each process subtracts its own constant; the remaining differences are errors.
    let left = own.iter().zip(&constants).flat_map(|(survey, constant)| {
        differences(survey, reference)
            .map(move |(difference, label)| ((difference - constant).abs(), difference, label))
    });
    let (off, worst, label) = left.fold((0.0, constant, ""), |a, b| if b.0 > a.0 { b } else { a });
    if off > WIDEST {
        return Err(format!(
            "intervals read {constant:.0} ns more than {name}, but {worst:.0} ns for the kernel {label}"
        ));
    }
    let (kernels, reference_clock) = (reference.times.len() as u32, name.clone());
    Ok(Calibration { constant, uncertainty: off, kernels, reference_clock, empty })
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test panics to fail")]
mod tests {
    use super::super::fixture::{device, request};
    use super::*;
    use crate::survey;

    fn surveyed(reference_clock: Option<&str>, points: &[(&str, f64, Option<f64>)]) -> Survey {
        let point = |&(label, read, reference): &(&str, f64, Option<f64>)| CalibrationPoint {
            label: label.to_owned(),
            read,
            error: 0.0,
            reference,
        };
        Survey {
            ceilings: None,
            short: Vec::new(),
            long: Vec::new(),
            points: points.iter().map(point).collect(),
            empty: 1300.0,
            reference_clock: reference_clock.map(str::to_owned),
        }
    }

    /// On an H100, events measured 2240, 2330 and 2150 ns more than the reference clock for three kernels.
    #[test]
    fn the_constant_is_the_median_difference_and_its_uncertainty_the_widest_left() {
        let own = surveyed(None, &[("a", 3170.0, None), ("b", 5790.0, None), ("c", 18_050.0, None)]);
        let traced =
            surveyed(Some("W"), &[("a", 3300.0, Some(930.0)), ("b", 6000.0, Some(3460.0)), ("c", 1.0, Some(15_900.0))]);
        let found = fitted(&[own], &[traced]);
        assert_eq!((found.constant, found.uncertainty, found.kernels), (2240.0, 90.0, 3));
        assert_eq!((found.reference_clock.as_str(), found.empty), ("W", 1300.0));
    }

    fn fitted(own: &[Survey], traced: &[Survey]) -> Calibration {
        match calibrate(own, Ok(&reference_times(traced).unwrap())) {
            Clock::Calibrated(found) => found,
            other @ Clock::Uncalibrated { .. } => panic!("{other:?}"),
        }
    }

    /// For one kernel, three processes read 2200, 2240 and 2400 ns more than its reference time of 1000 ns; for another
    /// kernel, 10, 10 and 40 ns less than that. After subtracting each process's median, 5, 5 and 20 ns remain.
    #[test]
    fn each_process_subtracts_its_own_constant() {
        let own = [(3200.0, 5190.0), (3240.0, 5230.0), (3400.0, 5360.0)]
            .map(|(a, b)| surveyed(None, &[("a", a, None), ("b", b, None)]));
        let traced = [1000.0, 1010.0, 900.0]
            .map(|time| surveyed(Some("W"), &[("a", 3300.0, Some(time)), ("b", 1.0, Some(3000.0))]));
        let found = fitted(&own, &traced);
        assert_eq!((found.constant, found.uncertainty, found.kernels), (2235.0, 20.0, 2));
        let reference = reference_times(&traced).unwrap();
        assert_eq!(
            own.each_ref().map(|survey| constant(survey, &reference)),
            [Some(2195.0), Some(2235.0), Some(2380.0)]
        );
    }

    #[test]
    fn without_a_reference_clock_the_clock_is_uncalibrated_with_the_reading_of_an_empty_interval() {
        let own = surveyed(None, &[("a", 3170.0, None)]);
        let clock = calibrate(&[own], Err("CUPTI is not found".to_owned()));
        assert_eq!(clock, Clock::Uncalibrated { why: "CUPTI is not found".to_owned(), empty: 1300.0 });
    }

    #[test]
    fn a_reference_clock_that_timed_something_else_is_rejected() {
        let why = |points: &[(&str, f64, Option<f64>)]| {
            let own = surveyed(None, &[("a", 3000.0, None), ("b", 6000.0, None), ("c", 9000.0, None)]);
            match reference_times(&[surveyed(Some("W"), points)]).map(|reference| calibrate(&[own], Ok(&reference))) {
                Err(why) | Ok(Clock::Uncalibrated { why, .. }) => why,
                Ok(Clock::Calibrated(found)) => panic!("{found:?}"),
            }
        };
        assert_eq!(
            why(&[("a", 0.0, Some(1000.0)), ("b", 0.0, Some(4000.0)), ("c", 0.0, Some(5900.0))]),
            "intervals read 2000 ns more than W, but 3100 ns for the kernel c"
        );
        assert_eq!(
            why(&[("a", 0.0, Some(4000.0)), ("b", 0.0, Some(7000.0)), ("c", 0.0, Some(10_000.0))]),
            "intervals read -1000 ns more than W, which is not plausible for a clock"
        );
        assert_eq!(why(&[("a", 0.0, Some(1000.0)), ("b", 0.0, None)]), "W has no time for the kernel b");
        assert_eq!(reference_times(&[]), Err("the survey had no reference clock".to_owned()));
    }

    #[test]
    fn calibration_corrects_a_clock_with_overhead() {
        let mut clock = device(|_| 5000.0).with_overhead(2200.0);
        let mut traced = device(|_| 5100.0).with_overhead(2500.0).with_reference_clock("W");
        let request = request(false);
        let own = survey(&mut clock, &request).unwrap();
        let traced = survey(&mut traced, &request).unwrap();
        assert_eq!((own.empty, own.reference_clock.as_deref(), own.points.len()), (2200.0, None, KERNELS.len()));
        let found = fitted(&[own], std::slice::from_ref(&traced));
        // Tracing slowed the kernels by 100 ns, so the constant is 100 ns too small. This is the error of this
        // reference clock.
        assert_eq!((found.constant, found.uncertainty), (2100.0, 0.0));
        // A later survey finds the same constant, whatever is subtracted when it begins.
        runner_backend::Clock::calibrate(&mut clock, found.constant);
        let again = survey(&mut clock, &request).unwrap();
        assert_eq!(constant(&again, &reference_times(&[traced]).unwrap()), Some(2100.0));
    }
}

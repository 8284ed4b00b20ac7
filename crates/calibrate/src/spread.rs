//! How much the time of a kernel differs from process to process.
//!
//! The location of a process's memory, code and queue affects every time slightly, and clocks drift. Samples within one
//! process cannot show this, so several processes time the same kernels. Short ones of a few microseconds show the
//! difference in nanoseconds. Longer ones, limited by memory, by the multiply-add pipes, or by block launches, show the
//! relative difference.

use std::collections::BTreeMap;

use super::bench::{Bench, Readings, Shape, count, word};
use super::ceilings::working_set;
use super::clock;
use runner_backend::{DeviceError, LaunchArg};
use runner_types::{CalibrationPoint, ElementType, ReferenceTimes, ScalarValue, Spread, Survey};

/// Samples per short kernel. Their times scatter more.
const SHORT_SAMPLES: u32 = 101;
/// Samples per long kernel.
const LONG_SAMPLES: u32 = 31;

/// Bytes that the short kernels read, or read and write: three to ten microseconds on an H100.
const FEW_BYTES: [u64; 3] = [1 << 20, 4 << 20, 16 << 20];

/// Maximum bytes to read, and also to write.
const MOST_BYTES: u64 = 256 << 20;

/// Bytes per access.
const VECTOR: u64 = 16;

/// Rounds of 64 multiply-adds per thread.
const FMA_ROUNDS: u32 = 1000;

/// Number of empty blocks; they take about half a millisecond on an H100.
const EMPTY_BLOCKS: u64 = 1 << 20;

/// Minimum number of processes for an estimate.
const LEAST_PROCESSES: usize = 3;

const READ: &str = "read_all<4>";
const COPY: &str = "copy_all<4>";
const MULTIPLY: &str = "multiply_add<float>";
const NOTHING: &str = "nothing";

/// Name expressions of the kernels.
pub(super) fn kernels() -> impl Iterator<Item = &'static str> {
    [READ, COPY, MULTIPLY, NOTHING].into_iter()
}

pub(super) fn run(bench: &mut Bench<'_>) -> Result<(Vec<CalibrationPoint>, Vec<CalibrationPoint>), DeviceError> {
    let info = bench.device.info().clone();
    let most = working_set(bench.device.memory_free(), info.memory_bytes.0).min(MOST_BYTES);
    let (from, to, sink) = (bench.zeros(most)?, bench.zeros(most)?, bench.zeros(VECTOR)?);
    let read = |bytes: u64| {
        let vectors = bytes.min(most) / VECTOR;
        Shape {
            kernel: READ,
            blocks: vectors.div_ceil(1024),
            threads: 256,
            args: vec![LaunchArg::Buffer(from), count(vectors), LaunchArg::Buffer(sink)],
        }
    };
    let copy = |bytes: u64| {
        let vectors = bytes.min(most) / VECTOR;
        Shape {
            kernel: COPY,
            blocks: vectors.div_ceil(1024),
            threads: 256,
            args: vec![LaunchArg::Buffer(from), LaunchArg::Buffer(to), count(vectors)],
        }
    };
    let single =
        |value: f32| LaunchArg::Scalar(ScalarValue { element: ElementType::F32, bits: u64::from(value.to_bits()) });
    let multiply = vec![single(0.5), single(0.25), word(FMA_ROUNDS), LaunchArg::Buffer(sink)];
    let short: Vec<Shape<'_>> = FEW_BYTES.map(read).into_iter().chain(FEW_BYTES.map(copy)).collect();
    let long = [
        read(most),
        copy(most),
        Shape { kernel: MULTIPLY, blocks: 4 * u64::from(info.sm_count), threads: 256, args: multiply },
        Shape { kernel: NOTHING, blocks: EMPTY_BLOCKS, threads: 32, args: Vec::new() },
    ];
    Ok((time(bench, &short, SHORT_SAMPLES)?, time(bench, &long, LONG_SAMPLES)?))
}

fn time(bench: &mut Bench<'_>, shapes: &[Shape<'_>], rounds: u32) -> Result<Vec<CalibrationPoint>, DeviceError> {
    let samples = bench.in_rounds(shapes, rounds)?;
    let point = |(shape, samples): (&Shape<'_>, &Readings)| CalibrationPoint {
        label: format!("{}, {}×{}", shape.kernel, shape.blocks, shape.threads),
        // Every round has a device time.
        read: runner_stats::trimmed_mean(&samples.read).unwrap_or_default(),
        error: samples.error(),
        reference: None,
    };
    Ok(shapes.iter().zip(&samples).map(point).collect())
}

/// Deviation between the processes of these surveys; `None` if there are too few.
///
/// Each process subtracts its own constant, if there are reference times. Scatter within a process is not included,
/// since intervals already cover it.
pub fn spread(own: &[Survey], reference: Option<&ReferenceTimes>) -> Option<Spread> {
    if own.len() < LEAST_PROCESSES {
        return None;
    }
    let constant =
        |survey: &Survey| reference.and_then(|reference| clock::constant(survey, reference)).unwrap_or_default();
    let nanoseconds = deviation_between(own, |survey| {
        let constant = constant(survey);
        survey.short.iter().map(|point| (point.label.as_str(), point.read - constant, point.error)).collect()
    })?;
    // A deviation of logarithms is a relative deviation.
    let relative = deviation_between(own, |survey| {
        survey.long.iter().map(|point| (point.label.as_str(), point.read.ln(), point.error / point.read)).collect()
    })?;
    Some(Spread { nanoseconds, relative, processes: own.len() as u32 })
}

/// Upper limit of the deviation between processes, excluding the scatter of their samples. `values` returns the kernels
/// of a process, each with its value and standard error.
fn deviation_between<'a>(own: &'a [Survey], values: impl Fn(&'a Survey) -> Vec<(&'a str, f64, f64)>) -> Option<f64> {
    let mut kernels: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    let mut squares = Vec::new();
    for (label, value, error) in own.iter().flat_map(values) {
        kernels.entry(label).or_default().push(value);
        squares.push(error * error);
    }
    let kernels: Vec<Vec<f64>> = kernels.into_values().collect();
    let of_samples = squares.iter().sum::<f64>() / squares.len().max(1) as f64;
    let all = runner_stats::pooled_deviation(&kernels)?.at_most();
    Some((all.powi(2) - of_samples).max(0.0).sqrt())
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test panics to fail")]
mod tests {
    use super::*;

    /// A process with these times of a calibration point and of the short and long kernels.
    fn survey(point: f64, short: &[f64], long: &[f64], error: f64) -> Survey {
        let points = |reads: &[f64], error| {
            let point = |(i, read): (usize, &f64)| CalibrationPoint {
                label: i.to_string(),
                read: *read,
                error,
                reference: None,
            };
            reads.iter().enumerate().map(point).collect()
        };
        let (points, short, long) = (points(&[point], 0.0), points(short, error), points(long, 0.0));
        Survey { ceilings: None, points, short, long, empty: 1300.0, reference_clock: None }
    }

    /// After subtracting their constants, processes are 20 ns to either side of the middle one in both short kernels: a
    /// deviation of 20 ns with four degrees of freedom, whose upper limit is 2.372 times the estimate (χ² 0.7107). Both
    /// long kernels are 0.1 % to either side, a deviation of 0.1 %.
    #[test]
    fn short_kernels_give_nanoseconds_and_long_ones_a_fraction() {
        let own = |error| {
            [(-1.0, 2300.0), (0.0, 2600.0), (1.0, 2150.0)].map(|(side, constant): (f64, f64)| {
                let short = [3e3 + 20.0 * side, 9e3 - 20.0 * side].map(|time| time + constant);
                survey(900.0 + constant, &short, &[1e5, 1e6].map(|t| t * (1e-3 * side).exp()), error)
            })
        };
        let reference = ReferenceTimes { reference_clock: "W".to_owned(), times: [("0".to_owned(), 900.0)].into() };
        let found = spread(&own(0.0), Some(&reference)).unwrap();
        assert!((found.nanoseconds / (20.0 * 2.372) - 1.0).abs() < 0.02, "{found:?}");
        assert!((found.relative / (1e-3 * 2.372) - 1.0).abs() < 0.02, "{found:?}");
        assert_eq!(found.processes, 3);
        assert_eq!(spread(&own(0.0)[..2], Some(&reference)), None);
        // The scatter of samples is subtracted; if it exceeds the total, nothing is left for the processes.
        let less = spread(&own(30.0), Some(&reference)).unwrap();
        assert!((less.nanoseconds.powi(2) - (found.nanoseconds.powi(2) - 900.0)).abs() < 1e-6, "{less:?}");
        assert!(spread(&own(100.0), Some(&reference)).unwrap().nanoseconds.abs() < 1e-12);
        // Without reference times, the constants themselves differ.
        assert!(spread(&own(0.0), None).unwrap().nanoseconds > 400.0);
    }

    #[test]
    fn a_time_of_many_launches_has_the_overhead_of_one() {
        let spread = Spread { nanoseconds: 30.0, relative: 4e-4, processes: 5 };
        // 30 ns of 100 µs are 3e-4; combined with 4e-4 that is 5e-4.
        assert!((spread.deviation_at(1e5, 1) - 5e-4).abs() < 1e-12);
        assert!((spread.deviation_at(1e3, 100) - 5e-4).abs() < 1e-12);
    }
}

//! How far the device's clock can be trusted: the same short kernels by events, and by the driver's tracer.
//!
//! A pair of events reads more than the kernel between them takes, by a constant of device and driver. The constant is
//! the median difference to the witness over a ladder of kernels; its uncertainty is the widest difference that is left.
//! The kernels are short, since tracing slows long ones, and of several shapes, since the constant must hold for all of
//! them. Surveys come from several processes, since each reads a little more or less than another; the witness's are of
//! the same ladder in other processes, whoever took them.

use super::survey::{Bench, Shape, count};
use crate::backend::{Batch, DeviceError, LaunchArg, Series, Step};
use crate::model::{Calibration, Clock, Regime, Rung, Survey};
use crate::stats;

/// Samples of each kernel.
const SAMPLES: u32 = 41;

/// Where a kernel lies further off the constant, nanoseconds, the two clocks did not see the same.
const WIDEST: f64 = 1000.0;

/// A constant above this is none of the clock's, nanoseconds: launches were not gated, or the device was not alone.
const GREATEST: f64 = 20_000.0;

/// Blocks of a kernel of the ladder.
#[derive(Debug, Clone, Copy)]
enum Blocks {
    Fixed(u32),
    /// So many an SM.
    Each(u32),
}

/// A kernel of the ladder: it waits for `cycles` in every thread, or does nothing.
#[derive(Debug, Clone, Copy)]
struct Wait {
    blocks: Blocks,
    threads: u32,
    cycles: u64,
}

const fn wait(blocks: Blocks, threads: u32, cycles: u64) -> Wait {
    Wait { blocks, threads, cycles }
}

/// From a block to many a device holds at once, from nothing to twenty microseconds.
///
/// Kernels that wait leave half of each SM free: under CUPTI fewer blocks reside on one, and a kernel that fills the
/// device then needs a second wave (on an H100, 23.9 µs become 43.6).
const LADDER: [Wait; 9] = [
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

/// What the clock reads where there is nothing to time, nanoseconds.
pub(super) fn empty_interval(bench: &mut Bench<'_>) -> Result<f64, DeviceError> {
    let buffer = bench.zeros(0)?;
    let steps = vec![Step::Copy { from: buffer, to: buffer }];
    let (prepare, regime, series) = (Vec::new(), Regime::Cold, Series::default());
    let batch = Batch { prepare, steps, regime, series, repeat: SAMPLES, timed: true };
    let samples: Vec<f64> = bench.device.run(&batch)?.samples.iter().map(|sample| sample.whole).collect();
    stats::median(&samples).ok_or_else(|| DeviceError::Driver {
        call: "survey",
        message: "the device's clock gives no time for an empty interval".to_owned(),
    })
}

/// Times every kernel of the ladder.
pub(super) fn climb(bench: &mut Bench<'_>) -> Result<Vec<Rung>, DeviceError> {
    let sms = bench.device.info().sm_count;
    let sink = bench.zeros(4)?;
    let mut rungs = Vec::with_capacity(LADDER.len());
    for Wait { blocks, threads, cycles } in LADDER {
        let blocks = match blocks {
            Blocks::Fixed(blocks) => blocks,
            Blocks::Each(each) => each.saturating_mul(sms),
        };
        let (kernel, args) = match cycles {
            0 => (NOTHING, Vec::new()),
            cycles => (WAIT, vec![count(cycles), LaunchArg::Buffer(sink)]),
        };
        let shape = Shape { kernel, blocks: u64::from(blocks), threads, args };
        let (read, witnessed) = bench.both_times(&shape, SAMPLES)?;
        // `both_times` never comes back without times of the clock.
        let read = stats::median(&read).unwrap_or_default();
        let label = format!("{blocks}×{threads}, {cycles} cycles");
        rungs.push(Rung { label, read, witnessed: stats::median(&witnessed) });
    }
    Ok(rungs)
}

/// What the clock is worth, by its own surveys and a witness's, each of another process. `Err` says why there is no
/// witness.
pub fn calibrate(own: &[Survey], witness: Result<&[Survey], String>) -> Clock {
    let empties: Vec<f64> = own.iter().map(|survey| survey.empty).collect();
    let empty = stats::median(&empties).unwrap_or_default();
    let fitted = witness.and_then(|witness| fit(own, witness, empty));
    fitted.map_or_else(|why| Clock::Uncalibrated { why, empty }, Clock::Calibrated)
}

fn fit(own: &[Survey], witness: &[Survey], empty: f64) -> Result<Calibration, String> {
    let name = witness.first().and_then(|survey| survey.witness.clone()).ok_or("nobody witnessed the survey")?;
    let witnessed = |label: &str| {
        let same = witness.iter().flat_map(|survey| &survey.rungs).filter(|other| other.label == label);
        let times: Vec<f64> = same.filter_map(|other| other.witnessed).collect();
        stats::median(&times).ok_or_else(|| format!("{name} has no time of the kernel {label}"))
    };
    // Every process with every kernel: a process as a whole reads a little more or less than another.
    let mut differences: Vec<(f64, &str)> = Vec::new();
    for rung in own.iter().flat_map(|survey| &survey.rungs) {
        differences.push((rung.read - witnessed(&rung.label)?, &rung.label));
    }
    let all: Vec<f64> = differences.iter().map(|(difference, _)| *difference).collect();
    let constant = stats::median(&all).ok_or("no kernel was timed")?;
    if !(0.0..=GREATEST).contains(&constant) {
        return Err(format!("intervals read {constant:.0} ns more than {name} does, which no clock does of itself"));
    }
    let off = |difference: f64| (difference - constant).abs();
    let (worst, label) =
        differences.iter().copied().fold((constant, ""), |a, b| if off(b.0) > off(a.0) { b } else { a });
    if off(worst) > WIDEST {
        return Err(format!(
            "intervals read {constant:.0} ns more than {name} does, but {worst:.0} ns for the kernel {label}"
        ));
    }
    Ok(Calibration {
        constant,
        uncertainty: off(worst),
        kernels: (differences.len() / own.len().max(1)) as u32,
        witness: name,
        empty,
    })
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test panics to fail")]
mod tests {
    use super::super::fixture::{device, request};
    use super::*;
    use crate::backend::Device;
    use crate::machine::survey;

    fn by(witness: Option<&str>, rungs: &[(&str, f64, Option<f64>)]) -> Survey {
        let rung =
            |&(label, read, witnessed): &(&str, f64, Option<f64>)| Rung { label: label.to_owned(), read, witnessed };
        Survey {
            ceilings: None,
            rungs: rungs.iter().map(rung).collect(),
            empty: 1300.0,
            witness: witness.map(str::to_owned),
        }
    }

    /// Three kernels of the H100 as the field's measurements have them: 2240, 2330 and 2150 ns apart.
    #[test]
    fn the_constant_is_the_median_difference_and_its_uncertainty_the_widest_left() {
        let own = by(None, &[("a", 3170.0, None), ("b", 5790.0, None), ("c", 18_050.0, None)]);
        let witness =
            by(Some("W"), &[("a", 3300.0, Some(930.0)), ("b", 6000.0, Some(3460.0)), ("c", 1.0, Some(15_900.0))]);
        let found = fitted(&[own], &[witness]);
        assert_eq!((found.constant, found.uncertainty, found.kernels), (2240.0, 90.0, 3));
        assert_eq!((found.witness.as_str(), found.empty), ("W", 1300.0));
    }

    fn fitted(own: &[Survey], witness: &[Survey]) -> Calibration {
        match calibrate(own, Ok(witness)) {
            Clock::Calibrated(found) => found,
            other @ Clock::Uncalibrated { .. } => panic!("{other:?}"),
        }
    }

    /// Three processes read 2200, 2240 and 2400 ns more than the median of what their witnesses do, 1000 ns.
    #[test]
    fn how_much_processes_differ_is_part_of_the_uncertainty() {
        let own = [3240.0, 3400.0, 3200.0].map(|read| by(None, &[("a", read, None)]));
        let witness = [1000.0, 1010.0, 900.0].map(|time| by(Some("W"), &[("a", 3300.0, Some(time))]));
        let found = fitted(&own, &witness);
        assert_eq!((found.constant, found.uncertainty, found.kernels), (2240.0, 160.0, 1));
    }

    #[test]
    fn without_a_witness_the_clock_is_uncalibrated_and_says_what_an_empty_interval_reads() {
        let own = by(None, &[("a", 3170.0, None)]);
        let clock = calibrate(&[own], Err("CUPTI is not found".to_owned()));
        assert_eq!(clock, Clock::Uncalibrated { why: "CUPTI is not found".to_owned(), empty: 1300.0 });
    }

    #[test]
    fn witnesses_that_saw_something_else_are_not_believed() {
        let why = |rungs: &[(&str, f64, Option<f64>)]| {
            let own = by(None, &[("a", 3000.0, None), ("b", 6000.0, None), ("c", 9000.0, None)]);
            match calibrate(&[own], Ok(&[by(Some("W"), rungs)])) {
                Clock::Uncalibrated { why, .. } => why,
                Clock::Calibrated(found) => panic!("{found:?}"),
            }
        };
        assert_eq!(
            why(&[("a", 0.0, Some(1000.0)), ("b", 0.0, Some(4000.0)), ("c", 0.0, Some(5900.0))]),
            "intervals read 2000 ns more than W does, but 3100 ns for the kernel c"
        );
        assert_eq!(
            why(&[("a", 0.0, Some(4000.0)), ("b", 0.0, Some(7000.0)), ("c", 0.0, Some(10_000.0))]),
            "intervals read -1000 ns more than W does, which no clock does of itself"
        );
        assert_eq!(why(&[("a", 0.0, Some(1000.0)), ("b", 0.0, None)]), "W has no time of the kernel b");
    }

    #[test]
    fn a_device_that_reads_too_much_is_set_right_by_one_that_does_not() {
        let mut clock = device(|_| 5000.0).with_overhead(2200.0);
        let mut traced = device(|_| 5100.0).with_overhead(2500.0).with_witness("W");
        let request = request(false);
        let own = survey(&mut clock, &request).unwrap();
        let witness = survey(&mut traced, &request).unwrap();
        assert_eq!((own.empty, own.witness.as_deref(), own.rungs.len()), (2200.0, None, LADDER.len()));
        let found = fitted(&[own], &[witness]);
        // Tracing slowed the kernels by 100 ns, which the constant then lacks: the price of this witness.
        assert_eq!((found.constant, found.uncertainty), (2100.0, 0.0));
        clock.calibrate(found.constant);
        let read = survey(&mut clock, &request).unwrap().rungs[0].read;
        assert!((read - 5100.0).abs() < 1e-9, "{read}");
    }
}

//! Computes a case's time from the samples of one process, or of several that ran one after another.
//!
//! A kernel's time varies slightly between processes. This depends on where its memory, its code and its queue are, not
//! on the number of samples. The median of all samples together would belong to one of the processes or lie between
//! two. The mean of N medians varies between runs by the deviation between processes divided by √N.

use runner_types::{Estimate, Measurement, Processes, Regime, RegimeResult, Spread};

/// Degrees of freedom of a calibration when it is combined with the variation between a run's processes.
///
/// Each row has its own variation between processes, and a calibration only knows the mean over all kernels. Fewer
/// degrees of freedom allow rows to differ more from that mean.
pub const CALIBRATED_FREEDOM: f64 = 4.0;

/// Median of `samples` with its confidence interval.
pub fn estimate(samples: &[f64], confidence: f64) -> Option<Estimate> {
    let interval = runner_stats::median_interval(samples, confidence)?;
    Some(Estimate {
        point: interval.point,
        low: interval.low,
        high: interval.high,
        confidence: confidence.min(interval.coverage),
    })
}

/// Time of a measurement with its interval, and the variation between its processes if there are several. `None`
/// without samples.
pub fn time_of(measurement: &Measurement, confidence: f64) -> Option<(Estimate, Option<Processes>)> {
    let of_process = |process: Option<u32>| {
        let own = measurement.rounds.iter().filter(|round| process.is_none_or(|process| round.process == process));
        let samples: Vec<f64> = own.map(|round| round.whole).collect();
        estimate(&samples, confidence)
    };
    let medians: Vec<Estimate> = (0..measurement.processes()).filter_map(|process| of_process(Some(process))).collect();
    // Times of zero have no logarithm.
    if medians.len() < 2 || medians.iter().any(|time| time.low <= 0.0) {
        return Some((of_process(None)?, None));
    }
    let count = medians.len() as f64;
    let logs: Vec<f64> = medians.iter().map(|time| time.point.ln()).collect();
    let point = (logs.iter().sum::<f64>() / count).exp();
    let error = |end: fn(&Estimate) -> f64| {
        medians.iter().map(|time| (end(time) / time.point).ln()).fold(0.0, f64::hypot) / count
    };
    let confidence = medians.iter().map(|time| time.confidence).fold(1.0, f64::min);
    let (low, high) = (point * (-error(|time| time.low)).exp(), point * error(|time| time.high).exp());
    let deviation = runner_stats::pooled_deviation(&[logs])?.estimate;
    let processes = Processes { count: medians.len() as u32, deviation };
    Some((Estimate { point, low, high, confidence }, Some(processes)))
}

/// Run-to-run variance of the mean over a run's processes, and its degrees of freedom. `stated` is the known standard
/// deviation between processes.
pub fn variance_of_mean(stated: f64, processes: Option<Processes>) -> (f64, f64) {
    let Some(Processes { count, deviation }) = processes else { return (stated.powi(2), CALIBRATED_FREEDOM) };
    let own = f64::from(count.saturating_sub(1));
    let freedom = CALIBRATED_FREEDOM + own;
    let squares = CALIBRATED_FREEDOM * stated.powi(2) + own * deviation.powi(2);
    (squares / freedom / f64::from(count.max(1)), freedom)
}

/// Standard deviation between single processes, as a fraction of the time.
pub fn deviation_between_processes(spread: &Spread, result: (Regime, f64, u32)) -> f64 {
    let (regime, nanoseconds, launches) = result;
    // In the cold regime, each run has two events around it; in the other regimes, all runs of a sample share two.
    spread.deviation_at(nanoseconds, if regime == Regime::Cold { 1 } else { launches })
}

/// Standard deviation of a result's time between runs, as a fraction of it.
pub fn deviation_between_runs(spread: &Spread, result: &RegimeResult) -> f64 {
    let stated = deviation_between_processes(spread, (result.regime, result.time.point, result.launches));
    variance_of_mean(stated, result.processes).0.sqrt()
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test panics to fail")]
mod tests {
    use super::{time_of, variance_of_mean};
    use runner_types::{Measurement, Processes, Regime, Round, Unit};

    fn measurement(processes: &[&[f64]]) -> Measurement {
        let of_process = |(process, samples): (u32, &&[f64])| {
            samples.iter().map(move |whole| Round { process, whole: *whole, ..Round::default() }).collect::<Vec<_>>()
        };
        let rounds = (0..).zip(processes).flat_map(of_process).collect();
        Measurement::from_rounds(Regime::Cold, Unit::DeviceNanoseconds, rounds)
    }

    /// The medians 4 and 9 have the geometric mean 6. Their logarithms deviate from it by ln 1.5, so their standard
    /// deviation is √2 times that.
    #[test]
    fn the_time_of_several_processes_is_the_mean_of_their_medians() {
        let (time, processes) = time_of(&measurement(&[&[4.0; 8], &[9.0, 9.0, 9.0]]), 0.95).unwrap();
        let processes = processes.unwrap();
        assert!((time.point - 6.0).abs() < 1e-12, "{time:?}");
        assert_eq!(processes.count, 2);
        assert!((processes.deviation - 1.5_f64.ln() * 2.0_f64.sqrt()).abs() < 1e-12, "{processes:?}");
    }

    /// The interval of five samples is their range. The errors of both medians, ln 1.1 each, combine to √2 times that,
    /// and the mean halves it.
    #[test]
    fn errors_within_processes_add_as_independent_ones_do() {
        let samples = |median: f64| [median / 1.1, median, median, median, median * 1.1];
        let (time, _) = time_of(&measurement(&[&samples(4.0), &samples(9.0)]), 0.95).unwrap();
        let half = 1.1_f64.ln() / 2.0_f64.sqrt();
        let close = |got: f64, expected: f64| assert!((got / expected - 1.0).abs() < 1e-9, "{got} for {expected}");
        close((time.point / time.low).ln(), half);
        close((time.high / time.point).ln(), half);
    }

    #[test]
    fn samples_of_one_process_have_their_median() {
        let (time, processes) = time_of(&measurement(&[&[1.0, 2.0, 9.0]]), 0.95).unwrap();
        assert!((time.point - 2.0).abs() < 1e-12);
        assert_eq!(processes, None);
        assert_eq!(time_of(&measurement(&[]), 0.95), None);
    }

    /// The stated deviation counts as four degrees of freedom. With 3 % stated and 1 % between five processes, the
    /// variance is (4 · 9 + 4 · 1) / 8 = 5, so the mean's variance is a fifth of that.
    #[test]
    fn what_processes_show_is_weighed_with_what_is_stated() {
        let (variance, freedom) = variance_of_mean(0.03, Some(Processes { count: 5, deviation: 0.01 }));
        assert!((variance - 1e-4).abs() < 1e-12, "{variance}");
        assert!((freedom - 8.0).abs() < 1e-12);
        let (variance, freedom) = variance_of_mean(0.03, None);
        assert!((variance - 9e-4).abs() < 1e-12 && (freedom - 4.0).abs() < 1e-12);
    }
}

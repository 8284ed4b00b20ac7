//! How many processes measure a group, and each one's share of the samples.
//!
//! The first process decides from the time of one run before it samples, so that it takes only its share. The
//! dispatcher decides again after the measurement: the medians of all processes are merged.

use runner_types::{CaseJob, MeasurePlan, Measurement, Regime, Spread, Unit};

/// Maximum number of processes per group, unless the manifest asks for more. Each takes as long as a whole measurement,
/// and the fifth reduces the remaining difference by only a tenth.
pub const MOST_UNASKED: u32 = 5;

/// Half-width of a 95 % interval in standard deviations.
const HALF_WIDTH: f64 = 1.959_963_984_540_054;

/// Number of processes that should measure: the manifest's, or enough to reduce the half-width from differences between
/// processes to the required precision. 1 if the differences are unknown.
///
/// The known differences are for kernels without the device runtime. Kernels that launch kernels differ by 1 to 4 %
/// between processes (H200, driver 580), so they get the default maximum.
pub fn wanted_processes(measured: &Measurement, job: &CaseJob, spread: Option<&Spread>) -> u32 {
    let is_timed = measured.unit == Unit::DeviceNanoseconds;
    let mean = measured.rounds.iter().map(|round| round.whole).sum::<f64>() / measured.rounds.len() as f64;
    expected_processes(mean, measured.regime, measured.launches, job, spread.filter(|_| is_timed))
}

/// Number of processes for a case whose run on the device takes `nanoseconds`.
pub fn expected_processes(
    nanoseconds: f64,
    regime: Regime,
    launches: u32,
    job: &CaseJob,
    spread: Option<&Spread>,
) -> u32 {
    if let Some(stated) = job.measure.processes {
        return stated;
    }
    // Each cold run has its own two events; in the other regimes all runs of a sample share them.
    let launches = if regime == Regime::Cold { 1 } else { launches };
    spread.map_or(1, |spread| processes_for(nanoseconds, launches, job, spread))
}

/// Whether several processes are likely to measure a case whose launch takes about `nanoseconds`.
pub fn is_likely_spread(nanoseconds: f64, job: &CaseJob, spread: Option<&Spread>) -> bool {
    let stated = job.measure.processes;
    stated.or_else(|| Some(processes_for(nanoseconds, 1, job, spread?))).is_some_and(|processes| processes > 1)
}

fn processes_for(nanoseconds: f64, launches: u32, job: &CaseJob, spread: &Spread) -> u32 {
    if job.has_device_runtime() {
        return MOST_UNASKED;
    }
    let half_width = HALF_WIDTH * spread.deviation_at(nanoseconds, launches);
    let wanted = (half_width / job.measure.precision).powi(2).ceil();
    if wanted.is_finite() { (wanted as u32).clamp(1, MOST_UNASKED) } else { 1 }
}

/// Minimum number of samples for a 95 % interval.
const FEWEST_SAMPLES: u32 = 6;

/// Plan for one of `processes`. The mean of N medians is as precise as one median if each half-width is √N times as
/// wide, which takes an Nth of the samples.
pub fn share(plan: &MeasurePlan, processes: u32) -> MeasurePlan {
    if processes < 2 {
        return plan.clone();
    }
    let count = f64::from(processes);
    MeasurePlan {
        precision: plan.precision * count.sqrt(),
        min_samples: plan.min_samples.div_ceil(processes).max(FEWEST_SAMPLES.min(plan.min_samples)),
        budget: plan.budget / count,
        ..plan.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::{is_likely_spread, share, wanted_processes};
    use runner_types::{BodyPlan, Case, CaseJob, CaseKey, GroupKey, Measurement, Regime, Round, Spread, Unit};

    fn measurement(regime: Regime, samples: &[f64]) -> Measurement {
        let rounds = (0..).zip(samples).map(|(round, whole)| Round { round, whole: *whole, ..Round::default() });
        Measurement::from_rounds(regime, Unit::DeviceNanoseconds, rounds.collect())
    }

    fn case() -> Case {
        let key = CaseKey { experiment: "e".into(), variant: "v".into(), axes: Vec::new() };
        Case { ordinal: 0, key, group: GroupKey(Vec::new()) }
    }

    /// A case whose kernel is compiled with or without the device runtime.
    fn job(regime: Regime, has_device_runtime: bool) -> CaseJob {
        let mut launch = fake_backend::ready_launch("__global__ void k() {}", "k");
        launch.unit.settings.relocatable = has_device_runtime;
        let mut job =
            fake_backend::case_job(case(), BodyPlan::Launches(vec![launch]), fake_backend::one_sample(regime, 1.0));
        job.measure.precision = 0.005;
        job
    }

    /// A standard deviation of 50 ns is a half-width of 98 ns: 0.98 % of 10 µs, which four processes reduce to 0.49 %,
    /// and three to 0.57 %.
    #[test]
    fn so_many_processes_measure_as_make_their_difference_as_small_as_the_precision() {
        let mut job = job(Regime::Cold, false);
        let spread = Spread { nanoseconds: 50.0, relative: 0.0, processes: 5 };
        let wanted = |nanoseconds, job: &_| {
            wanted_processes(&measurement(Regime::Cold, &[nanoseconds, nanoseconds]), job, Some(&spread))
        };
        assert_eq!([1e4, 5e3, 2e4, 1e6].map(|time| wanted(time, &job)), [4, 5, 1, 1]);
        job.measure.processes = Some(9);
        assert_eq!(wanted(1e6, &job), 9);
    }

    #[test]
    fn five_processes_measure_kernels_that_launch_kernels_however_long_they_take() {
        let spread = Spread { nanoseconds: 50.0, relative: 0.0, processes: 5 };
        let mut job = job(Regime::Cold, true);
        let long = measurement(Regime::Cold, &[1e6]);
        assert_eq!((wanted_processes(&long, &job, Some(&spread)), wanted_processes(&long, &job, None)), (5, 1));
        assert!(is_likely_spread(1e6, &job, Some(&spread)));
        job.measure.processes = Some(1);
        assert_eq!(wanted_processes(&long, &job, Some(&spread)), 1);
    }

    #[test]
    fn many_runs_between_two_events_share_their_error() {
        let job = job(Regime::Warm, false);
        let spread = Spread { nanoseconds: 500.0, relative: 0.0, processes: 5 };
        let mut warm = measurement(Regime::Warm, &[1e4]);
        warm.launches = 100;
        assert_eq!(wanted_processes(&warm, &job, Some(&spread)), 1);
        let cold = Measurement { regime: Regime::Cold, ..warm.clone() };
        assert_eq!(wanted_processes(&cold, &job, Some(&spread)), 5);
        let host = Measurement { unit: Unit::HostNanoseconds, ..cold };
        assert_eq!(wanted_processes(&host, &job, Some(&spread)), 1);
        assert_eq!(wanted_processes(&warm, &job, None), 1);
    }

    #[test]
    fn an_estimated_time_says_whether_several_processes_are_likely() {
        let mut job = job(Regime::Warm, false);
        let spread = Spread { nanoseconds: 50.0, relative: 0.0, processes: 5 };
        let likely = |nanoseconds, job: &_| is_likely_spread(nanoseconds, job, Some(&spread));
        assert_eq!([1e4, 2e4, 1e6].map(|time| likely(time, &job)), [true, false, false]);
        assert!(!is_likely_spread(1e4, &job, None));
        job.measure.processes = Some(2);
        assert!(likely(1e6, &job));
    }

    #[test]
    fn four_processes_take_a_quarter_of_the_samples_each_at_half_the_precision() {
        let mut plan = fake_backend::one_sample(Regime::Cold, 1.0);
        (plan.precision, plan.min_samples, plan.max_samples, plan.budget) = (0.005, 40, 2000, 0.5);
        let four = share(&plan, 4);
        assert!((four.precision - 0.01).abs() < 1e-12 && (four.budget - 0.125).abs() < 1e-12);
        assert_eq!((four.min_samples, four.max_samples), (10, 2000));
        // Fewer than six samples have no 95 % interval, unless the manifest asks for fewer.
        plan.min_samples = 15;
        assert_eq!(share(&plan, 5).min_samples, 6);
        plan.min_samples = 1;
        assert_eq!(share(&plan, 5).min_samples, 1);
        assert_eq!(share(&plan, 1), plan);
    }
}

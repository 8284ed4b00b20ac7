//! How often a comparison is wrong, by simulation: no change called one, and a slowdown missed.
//!
//! A time is that of its kernel, changed by the process (a constant of its own and a fraction), and sampled with noise.
//! What a report says of the spread is the upper limit that five processes with ten kernels give, as in a calibration.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use super::fixture::{compared, in_regime, records};
use crate::analyse::compare::{Kind, Options};
use crate::model::{CaseRecord, Estimate, Records, Regime, Spread};
use crate::stats;

/// How processes really differ: nanoseconds, and a fraction. Both values are those of an H100, by its own calibration.
const CONSTANT: f64 = 35.0;
const RELATIVE: f64 = 5e-4;

struct Source(ChaCha8Rng);

impl Source {
    /// Returns a number between 0 and 1.
    fn uniform(&mut self) -> f64 {
        ((self.0.next_u64() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    }

    /// Returns a standard normal number.
    fn normal(&mut self) -> f64 {
        let (u, v) = (self.uniform(), self.uniform());
        (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
    }

    /// Returns the time of a kernel in some process.
    fn in_a_process(&mut self, nanoseconds: f64) -> f64 {
        nanoseconds * (1.0 + RELATIVE * self.normal()) + CONSTANT * self.normal()
    }

    /// Returns what a calibration finds.
    fn spread(&mut self) -> Spread {
        let kernels = |source: &mut Self, deviation: f64| -> f64 {
            let groups: Vec<Vec<f64>> =
                (0..10).map(|_| (0..5).map(|_| deviation * source.normal()).collect()).collect();
            stats::pooled_deviation(&groups).unwrap().at_most()
        };
        Spread { nanoseconds: kernels(self, CONSTANT), relative: kernels(self, RELATIVE), processes: 5 }
    }

    /// Twenty samples with 0.5 % of noise and some outliers, as a measurement that is precise enough stops.
    fn estimate(&mut self, nanoseconds: f64) -> Estimate {
        let samples: Vec<f64> = (0..20)
            .map(|_| {
                let outlier = if self.uniform() < 0.05 { 0.02 * self.uniform() } else { 0.0 };
                nanoseconds * (1.0 + 0.005 * self.normal() + outlier)
            })
            .collect();
        let interval = stats::median_interval(&samples, 0.95).unwrap();
        Estimate { point: interval.point, low: interval.low, high: interval.high, confidence: interval.coverage }
    }

    /// Returns a kernel that takes so long, measured in a process of its own.
    fn case(&mut self, n: i64, nanoseconds: f64) -> CaseRecord {
        let time = self.in_a_process(nanoseconds);
        in_regime(super::fixture::case(n), Regime::Cold, self.estimate(time))
    }

    /// Returns a report of kernels that take so long.
    fn report(&mut self, kernels: &[f64]) -> Records {
        let cases = kernels.iter().enumerate().map(|(n, nanoseconds)| self.case(n as i64, *nanoseconds)).collect();
        let mut report = records(cases);
        report.environment.machine.spread = Some(self.spread());
        report
    }
}

fn source(seed: u64) -> Source {
    Source(ChaCha8Rng::seed_from_u64(seed))
}

/// 2 µs to 2 ms, as many as all shipped experiments have.
fn kernels(count: usize) -> Vec<f64> {
    (0..count).map(|i| 2e3 * 1000_f64.powf(i as f64 / count as f64)).collect()
}

#[test]
fn of_unchanged_kernels_at_most_one_in_a_hundred_is_called() {
    let mut source = source(1);
    let kernels = kernels(1500);
    let mut called = 0;
    for _ in 0..10 {
        let (base, new) = (source.report(&kernels), source.report(&kernels));
        let comparison = compared(&base, &new, &Options::default());
        called += comparison.changes().filter(|c| matches!(c.kind, Kind::Faster | Kind::Slower)).count();
    }
    // The correction promises one of twenty comparisons with any call, not one row of a hundred: 150 of these 15,000.
    assert!(called <= 1, "{called} of 15000 rows are called changed");
}

#[test]
fn a_kernel_that_is_3_percent_slower_is_found_in_95_of_100_trials() {
    let mut source = source(2);
    let kernels = kernels(100);
    let (mut base, mut new) = (source.report(&kernels), source.report(&kernels));
    for nanoseconds in [50e3, 200e3, 2e6] {
        let mut found = 0;
        for _ in 0..100 {
            for (report, slower) in [(&mut base, 1.0), (&mut new, 1.03)] {
                report.cases[7] = source.case(7, nanoseconds * slower);
                report.environment.machine.spread = Some(source.spread());
            }
            let comparison = compared(&base, &new, &Options::default());
            found += u32::from(comparison.changes().nth(7).unwrap().kind == Kind::Slower);
        }
        assert!(found >= 95, "{found} of 100 at {nanoseconds} ns");
    }
}

//! Simulates coverage: how often a 95 % interval covers the quantity it estimates.
#![expect(clippy::unwrap_used, reason = "a test panics to fail")]

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use super::{median_interval, paired_ratio};

/// Trials per simulation in an ordinary test run. The coverage then has a standard error of 1.1 %, and deviations of up
/// to four standard errors are allowed. `cargo test --release stats -- --ignored` runs longer simulations, with a
/// standard error of 0.15 %.
const TRIALS: usize = 400;
const MANY_TRIALS: usize = 20_000;

struct Source(ChaCha8Rng);

impl Source {
    fn new(seed: u64) -> Self {
        Self(ChaCha8Rng::seed_from_u64(seed))
    }

    fn uniform(&mut self) -> f64 {
        ((self.0.next_u64() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    }

    fn normal(&mut self) -> f64 {
        (-2.0 * self.uniform().ln()).sqrt() * (std::f64::consts::TAU * self.uniform()).cos()
    }
}

struct Distribution {
    name: &'static str,
    draw: fn(&mut Source) -> f64,
    median: f64,
}

/// The bimodal distribution has seven tenths around 100 and the rest around 106. Its median is where the cumulative
/// distribution of the lower mode reaches 5/7: 100 + Φ⁻¹(5/7).
const DISTRIBUTIONS: [Distribution; 3] = [
    Distribution { name: "normal", draw: |s| 100.0 + s.normal(), median: 100.0 },
    Distribution { name: "log-normal", draw: |s| 100.0 * (0.5 * s.normal()).exp(), median: 100.0 },
    Distribution {
        name: "bimodal",
        draw: |s| if s.uniform() < 0.7 { 100.0 + s.normal() } else { 106.0 + s.normal() },
        median: 100.565_948_8,
    },
];

/// How often the interval covers the median, per distribution and number of samples.
fn median_coverage(trials: usize) -> Vec<(String, f64)> {
    let mut seen = Vec::new();
    for Distribution { name, draw, median } in DISTRIBUTIONS {
        for n in [15, 16, 20, 31, 60, 200] {
            let mut source = Source::new(n as u64);
            let covers = |_: &usize| {
                let samples: Vec<f64> = (0..n).map(|_| draw(&mut source)).collect();
                let interval = median_interval(&samples, 0.95).unwrap();
                interval.low <= median && median <= interval.high
            };
            seen.push((format!("{name}, n = {n}"), (0..trials).filter(covers).count() as f64 / trials as f64));
        }
    }
    seen
}

/// How often the interval covers the paired ratio, per distribution and number of samples. Both times of a round share
/// its drift, and one is 1.25 times the other. The noise of both follows the distribution, so the log ratio is
/// symmetric around ln 1.25.
fn ratio_coverage(trials: usize) -> Vec<(String, f64)> {
    let mut seen = Vec::new();
    for Distribution { name, draw, .. } in DISTRIBUTIONS {
        for n in [15_u32, 30, 60] {
            let mut source = Source::new(100 + u64::from(n));
            let covers = |_: &usize| {
                let (mut base, mut this) = (Vec::new(), Vec::new());
                for round in 0..n {
                    let drift = 1.0 + 0.3 * f64::from(round) / f64::from(n);
                    base.push(1.25 * drift * draw(&mut source));
                    this.push(drift * draw(&mut source));
                }
                let interval = paired_ratio(&base, &this, 0.95).unwrap();
                interval.low <= 1.25 && 1.25 <= interval.high
            };
            seen.push((format!("{name}, n = {n}"), (0..trials).filter(covers).count() as f64 / trials as f64));
        }
    }
    seen
}

fn hold(seen: Vec<(String, f64)>, least: f64, most: f64) {
    for (what, share) in seen {
        assert!((least..=most).contains(&share), "{what}: {share}");
    }
}

#[test]
fn the_interval_of_the_median_covers_it_about_as_often_as_it_says() {
    hold(median_coverage(TRIALS), 0.906, 0.994);
}

#[test]
fn the_interval_of_a_paired_ratio_covers_it_about_as_often_as_it_says() {
    hold(ratio_coverage(TRIALS / 4), 0.86, 1.0);
}

#[test]
#[ignore = "takes minutes in a debug build"]
fn intervals_of_95_percent_cover_94_to_96() {
    hold(median_coverage(MANY_TRIALS), 0.94, 0.96);
    hold(ratio_coverage(MANY_TRIALS), 0.94, 0.96);
}

#[test]
fn the_same_numbers_have_the_same_interval_and_the_reciprocal_ratio_its_reciprocal() {
    let mut source = Source::new(1);
    let base: Vec<f64> = (0..40).map(|_| 10.0 + source.normal()).collect();
    let this: Vec<f64> = (0..40).map(|_| 5.0 + 0.1 * source.normal()).collect();
    let there = paired_ratio(&base, &this, 0.95).unwrap();
    assert_eq!(paired_ratio(&base, &this, 0.95), Some(there));
    assert!(there.low < there.point && there.point < there.high);
    let back = paired_ratio(&this, &base, 0.95).unwrap();
    assert!((there.point * back.point - 1.0).abs() < 1e-12);
    assert!((there.low * back.high - 1.0).abs() < 1e-9 && (there.high * back.low - 1.0).abs() < 1e-9);
}

#[test]
fn what_has_no_ratio_has_no_interval() {
    for (base, this) in
        [(&[1.0][..], &[1.0][..]), (&[1.0, 2.0], &[1.0]), (&[1.0, 0.0], &[1.0, 1.0]), (&[1.0, f64::NAN], &[1.0, 1.0])]
    {
        assert_eq!(paired_ratio(base, this, 0.95), None, "{base:?} {this:?}");
    }
    let still = paired_ratio(&[2.0; 20], &[1.0; 20], 0.95).unwrap();
    assert!((still.low - 2.0).abs() < 1e-12 && (still.high - 2.0).abs() < 1e-12);
}

//! Selects which timed launches are checked: at random, within a time budget.
//!
//! Checks the first and the last sample, and one drawn from the first few. Further ones are checked as long as all
//! checks together take at most [`SHARE`] of the sample time, or [`FLOOR`] if that is more. So with a small output,
//! every sample is checked. Otherwise the time to the next check is random, because a kernel could foresee a fixed
//! interval.

use rand_chacha::ChaCha8Rng;

use super::fill::below;

/// Maximum fraction of the sample time to spend on checks.
const SHARE: f64 = 0.05;

/// Seconds of checking that a case may always take in one regime.
const FLOOR: f64 = 0.002;

/// State of the checks of one case in one regime.
#[derive(Debug, Clone, Default)]
pub struct Audit {
    /// Number of checks so far, and the seconds they took.
    checks: u32,
    spent: f64,
    /// Sample to check regardless of the budget.
    forced: Option<usize>,
    /// Total sample time, in seconds, at which the next check is due.
    due: f64,
}

impl Audit {
    /// Whether to check sample `sample` (1-based). `sampled` is the sample time so far, in seconds; `few` is the
    /// minimum number of samples.
    pub fn is_due(&mut self, sample: usize, sampled: f64, few: usize, random: &mut ChaCha8Rng) -> bool {
        let forced =
            *self.forced.get_or_insert_with(|| 2 + below(random, few.saturating_sub(2).max(1) as u64) as usize);
        sample == 1 || sample == forced || self.spent < FLOOR || sampled >= self.due
    }

    /// Whether to check this sample run by run.
    pub fn is_thorough(&self, sample: usize) -> bool {
        self.forced == Some(sample)
    }

    /// Records a check that took `seconds`, and draws when the next one is due.
    pub fn record(&mut self, seconds: f64, sampled: f64, random: &mut ChaCha8Rng) {
        self.checks += 1;
        self.spent += seconds;
        // Uniform between 0 and twice the mean distance at which checks take exactly their share.
        let draw = 2.0 * below(random, 1 << 32) as f64 / (1u64 << 32) as f64;
        let mean = seconds / SHARE;
        self.due = (sampled + draw * mean).max(self.spent / SHARE - mean);
    }
}

#[cfg(test)]
mod tests {
    use rand_chacha::rand_core::SeedableRng;

    use super::*;

    /// Which of `samples` samples of `each` seconds are checked if a check takes `check` seconds.
    fn checked(samples: usize, each: f64, check: f64, seed: u64) -> Vec<usize> {
        let (mut audit, mut random) = (Audit::default(), ChaCha8Rng::seed_from_u64(seed));
        let mut found = Vec::new();
        for sample in 1..=samples {
            let sampled = sample as f64 * each;
            if audit.is_due(sample, sampled, 20, &mut random) {
                found.push(sample);
                audit.record(check, sampled, &mut random);
            }
        }
        found
    }

    #[test]
    fn every_sample_is_checked_if_that_costs_little() {
        assert_eq!(checked(30, 100e-6, 50e-6, 1).len(), 30);
        assert_eq!(checked(2000, 1e-3, 20e-6, 1).len(), 2000);
    }

    #[test]
    fn expensive_checks_take_a_twentieth_of_the_time_at_places_that_differ_each_time() {
        let places: Vec<Vec<usize>> = (0..20).map(|seed| checked(10_000, 1e-3, 10e-3, seed)).collect();
        for checks in &places {
            // 10 s of samples allow 50 checks of 10 ms.
            assert!((35..=60).contains(&checks.len()), "{} checks", checks.len());
        }
        assert!(places.windows(2).all(|pair| pair[0] != pair[1]));
    }

    #[test]
    fn however_expensive_the_first_and_one_of_the_first_few_are_checked() {
        for seed in 0..50 {
            let places = checked(20, 1e-3, 1.0, seed);
            assert_eq!((places.len(), places[0]), (2, 1), "{places:?}");
            assert!((2..20).contains(&places[1]), "{places:?}");
        }
    }
}

//! Breakdown of a run's wall time.

use std::collections::BTreeMap;

use runner_types::Phase;

/// Wall time of a run, in seconds.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Spent {
    /// Time in each phase, summed over parallel workers.
    pub phases: BTreeMap<Phase, f64>,
    /// Time from the start to the end of compilation.
    pub compiling: f64,
    /// Time from the start to the end of the run; `None` if it did not end.
    pub wall: Option<f64>,
}

impl Spent {
    /// Compile time that overlapped with running groups. Not included in any phase: the compile phase counts only the
    /// time that the run waited.
    pub fn seconds_beside(&self) -> f64 {
        (self.compiling - self.phases.get(&Phase::Compile).copied().unwrap_or_default()).max(0.0)
    }

    /// Time outside all phases: starting workers, waiting, writing.
    pub fn idle(&self) -> Option<f64> {
        Some((self.wall? - self.phases.values().sum::<f64>()).max(0.0))
    }
}

#[cfg(test)]
mod tests {
    use super::Spent;
    use runner_types::Phase;

    #[test]
    fn what_is_in_no_phase_is_idle() {
        let phases = [(Phase::Compile, 1.0), (Phase::Measure, 2.5)].into();
        let spent = Spent { phases, compiling: 0.0, wall: None };
        assert_eq!(spent.idle(), None);
        assert_eq!(Spent { wall: Some(4.0), ..spent }.idle(), Some(0.5));
    }

    #[test]
    fn compiling_counts_as_far_as_a_run_waited_for_it() {
        let phases = [(Phase::Compile, 1.5), (Phase::Measure, 6.0)].into();
        let spent = Spent { phases, compiling: 5.0, wall: Some(8.0) };
        assert_eq!((spent.seconds_beside(), spent.idle()), (3.5, Some(0.5)));
        let waited = Spent { phases: [(Phase::Compile, 1.1)].into(), compiling: 1.0, wall: None };
        assert!(waited.seconds_beside().abs() < 1e-12, "{}", waited.seconds_beside());
    }
}

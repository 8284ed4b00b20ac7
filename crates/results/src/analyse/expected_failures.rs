//! Outcomes of experiments whose cases are expected to fail.
//!
//! If most cases of a manifest are expected to fail and it has no baseline, its times are not comparable. Its result is
//! whether each case ended as the manifest says, which is decided by the case's outcome, not by this module.

use std::collections::BTreeMap;

use runner_types::{Outcome, Records};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpectedFailures {
    /// Number of cases that failed as expected, by kind of failure.
    pub failed: BTreeMap<&'static str, usize>,
    /// Number of cases that should be correct and are.
    pub right: usize,
    /// Number of cases that were not excluded.
    pub of: usize,
}

impl ExpectedFailures {
    /// Counts the expected failures among the outcomes of all cases. `None` if there is a baseline or fewer than half
    /// of the cases are expected to fail.
    pub(super) fn count<'o>(records: &Records, outcomes: impl Iterator<Item = &'o Outcome>) -> Option<Self> {
        if records.header.baseline.is_some() {
            return None;
        }
        let mut expected_failures = Self { failed: BTreeMap::new(), right: 0, of: 0 };
        // A case that failed in a different way counts too, since its outcome does not tell whether it was expected to
        // fail.
        let (mut others, mut is_told) = (0, false);
        for outcome in outcomes {
            expected_failures.of += usize::from(!matches!(outcome, Outcome::Excluded { .. }));
            match outcome {
                Outcome::FailedAsExpected { end } => *expected_failures.failed.entry(end.name()).or_default() += 1,
                Outcome::Measured | Outcome::Unstable { .. } => expected_failures.right += 1,
                other => others += usize::from(other.is_failure()),
            }
            is_told |= matches!(outcome, Outcome::FailedAsExpected { .. } | Outcome::DidNotFail { .. });
        }
        let to_fail = expected_failures.failed.values().sum::<usize>() + others;
        (is_told && 2 * to_fail >= expected_failures.of).then_some(expected_failures)
    }

    /// Number of cases that ended as the manifest says.
    pub fn as_expected(&self) -> usize {
        self.failed.values().sum::<usize>() + self.right
    }
}

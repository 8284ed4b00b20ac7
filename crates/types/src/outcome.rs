//! Outcomes of cases and verdicts of checks.
//!
//! The verdict says what a check found. The outcome says how the whole case ended, and every planned case has exactly
//! one.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, strum::IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Verdict {
    /// Every element is within its tolerance, and no protected memory was changed.
    #[default]
    Pass,
    /// At least one element is wrong.
    Mismatch(Mismatch),
    Unchecked(Unchecked),
}

impl Verdict {
    /// Name in machine-readable reports.
    pub fn name(&self) -> &'static str {
        self.into()
    }
}

/// The first wrong element, and how many are wrong.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Mismatch {
    /// The check as written in the manifest, or the violated rule (`guard zone behind partial`, `input changed`).
    pub what: String,
    pub index: u64,
    pub expected: String,
    pub got: String,
    /// `|got − expected|` if both are finite.
    #[serde(default, with = "super::real")]
    pub error: Option<f64>,
    pub wrong: u64,
    /// Number of all elements.
    pub of: u64,
    /// The difference that is allowed at the element; `None` unless it is a float.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed: Option<Box<Allowed>>,
}

/// How far an element may be from what is expected: any of these suffices.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Allowed {
    /// The largest difference as a fraction of the expected value.
    #[serde(with = "super::real")]
    pub rel: f64,
    /// The largest absolute difference.
    #[serde(with = "super::real")]
    pub abs: f64,
    /// Units in the last place.
    pub ulp: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unchecked {
    /// The manifest has no `[check]`.
    NoCheck,
    NotRun,
    /// The other variants are compared with this one, so it has no reference itself.
    IsReference,
    /// Every output holds what it held before the launch, and what is expected. The device does not record whether a
    /// launch stored that.
    NothingChanged,
}

/// What bounds a time from below.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Roof {
    Memory,
    /// Rate of the L2 cache, through which every byte goes.
    L2,
}

/// How a planned case ends. Every case has exactly one outcome.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Outcome {
    /// Right and measured (on a device without a clock: right and counted).
    #[default]
    Measured,
    /// Right, but measured with less precision than requested.
    Unstable {
        /// Half the width of the median's interval, as a fraction of the median.
        #[serde(with = "super::real")]
        reached: f64,
    },
    /// Right, but measured to be faster than the device can do the least work of the job. Either the timed launch did
    /// something else, or the manifest overstates the work. It has no measurement.
    Suspect {
        /// Median of the times.
        #[serde(with = "super::real")]
        nanoseconds: f64,
        /// Least time that the device needs.
        #[serde(with = "super::real")]
        least: f64,
        /// What sets that least time.
        roof: Roof,
    },
    /// Wrong: it has no measurement.
    Wrong { mismatch: Mismatch },
    Excluded {
        /// The rule's reason, or `requires` with the condition that does not hold.
        why: String,
    },
    /// The device does not allow the launch: `2048 threads per block, the device allows 1024`.
    Invalid {
        /// The limit, with the value that exceeds it.
        limit: String,
    },
    /// The compiler refused the source, crashed or reached its time limit.
    CompileError {
        /// One line: the first error, or how the compiler failed.
        summary: String,
        log: String,
    },
    /// The driver refused or aborted the launch.
    LaunchError {
        /// The driver's message, with the call.
        message: String,
    },
    /// An expression of the manifest has no value at this point: `division by zero in ceil_div(n, block) where …`.
    Unresolved {
        /// The expression, the error and the values that caused it.
        message: String,
    },
    /// The worker died while the case ran.
    Crashed {
        /// How the process ended, with the end of its output.
        message: String,
    },
    TimedOut {
        #[serde(with = "super::real")]
        limit_seconds: f64,
        /// Where the kernel was, as the device reports it; `None` if its process was killed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<String>,
    },
    /// The case needs more memory than the device has, by arithmetic or by the device's own refusal.
    OutOfMemory { needed: u64, available: u64 },
    /// A fault that the simulator or compute-sanitizer detected.
    Trap {
        /// The fault with kernel, source line, block and thread.
        message: String,
    },
    /// The run ended before the case was run.
    NotRun { why: String },
    /// The case failed as the manifest expects, which is not a failure of the run.
    FailedAsExpected { end: Box<Outcome> },
    /// The manifest expects a failure, but there was none.
    DidNotFail { fails: Vec<Failure> },
}

/// A way to fail that a manifest can expect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum Failure {
    /// A check finds a wrong result.
    Wrong,
    /// The device does not allow the launch.
    Invalid,
    /// The source does not compile.
    CompileError,
    /// The driver refuses or aborts the launch.
    LaunchError,
    /// The worker process dies.
    Crashed,
    /// A step of the case does not end in time.
    TimedOut,
    /// The simulator or compute-sanitizer detects a fault.
    Trap,
}

impl Failure {
    pub fn name(self) -> &'static str {
        self.into()
    }
}

impl Outcome {
    /// Outcome of a case that the manifest expects to fail in one of these ways.
    ///
    /// A case that is excluded or not run stays so. A failure of another kind stays a failure.
    #[must_use]
    pub fn expecting(self, fails: &[Failure]) -> Self {
        if fails.iter().any(|failure| failure.name() == self.name()) {
            return Self::FailedAsExpected { end: Box::new(self) };
        }
        match self {
            Self::Measured | Self::Unstable { .. } | Self::Suspect { .. } if !fails.is_empty() => {
                Self::DidNotFail { fails: fails.to_vec() }
            }
            other => other,
        }
    }

    /// Message of the outcome; `None` if it has numbers instead, or nothing.
    pub fn words(&self) -> Option<&str> {
        match self {
            Self::CompileError { summary: words, .. }
            | Self::LaunchError { message: words }
            | Self::Unresolved { message: words }
            | Self::Crashed { message: words }
            | Self::Trap { message: words }
            | Self::TimedOut { message: Some(words), .. }
            | Self::Invalid { limit: words }
            | Self::Excluded { why: words }
            | Self::NotRun { why: words } => Some(words),
            _ => None,
        }
    }

    pub const fn is_failure(&self) -> bool {
        !matches!(
            self,
            Self::Measured
                | Self::Unstable { .. }
                | Self::Excluded { .. }
                | Self::Invalid { .. }
                | Self::FailedAsExpected { .. }
        )
    }

    /// One word for tables and CSV.
    pub fn name(&self) -> &'static str {
        self.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trap() -> Outcome {
        Outcome::Trap { message: "read past the end".to_owned() }
    }

    #[test]
    fn a_case_passes_only_if_it_fails_as_the_manifest_says() {
        let expected = trap().expecting(&[Failure::Wrong, Failure::Trap]);
        assert_eq!(expected, Outcome::FailedAsExpected { end: Box::new(trap()) });
        assert!(!expected.is_failure());
        let right = Outcome::Measured.expecting(&[Failure::Wrong]);
        assert_eq!(right, Outcome::DidNotFail { fails: vec![Failure::Wrong] });
        assert!(right.is_failure());
        assert!(Outcome::Unstable { reached: 0.1 }.expecting(&[Failure::Trap]).is_failure());
    }

    #[test]
    fn another_failure_stays_one_and_what_never_ran_stays_that() {
        assert_eq!(trap().expecting(&[Failure::Wrong]), trap());
        let left_out = Outcome::Excluded { why: "n is too small".to_owned() };
        assert_eq!(left_out.clone().expecting(&[Failure::Wrong]), left_out);
        assert_eq!(Outcome::Measured.expecting(&[]), Outcome::Measured);
    }
}

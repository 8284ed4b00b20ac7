//! Outcomes of cases and verdicts of checks.
//!
//! A verdict is the result of a check. An outcome is how the whole case ended; every planned case has exactly one.

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
    /// Total number of elements.
    pub of: u64,
    /// Tolerance for this element; `None` if it is not a float.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed: Option<Box<Allowed>>,
}

/// Permitted difference from the expected value. An element passes if it satisfies any of these.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Allowed {
    /// Relative to the expected value.
    #[serde(with = "super::real")]
    pub rel: f64,
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
    /// This variant is itself the reference of the others.
    IsReference,
    /// Every output already held the expected values before the launch. The device does not record whether the launch
    /// stored them again.
    NothingChanged,
}

/// Resource that limits how fast a case can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Roof {
    Memory,
    /// Bandwidth of the L2 cache, which every byte passes through.
    L2,
}

/// How a planned case ends. Every case has exactly one outcome.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Outcome {
    /// Correct and measured (on a device without a clock: correct and counted).
    #[default]
    Measured,
    /// Correct, but measured with less precision than requested.
    Unstable {
        /// Achieved half-width of the median's confidence interval, as a fraction of the median.
        #[serde(with = "super::real")]
        reached: f64,
    },
    /// Correct, but faster than the device can perform the minimum work. Either the timed launch did something else, or
    /// the manifest overstates the work. The measurement is dropped.
    Suspect {
        /// Median time.
        #[serde(with = "super::real")]
        nanoseconds: f64,
        /// Minimum time that the device needs.
        #[serde(with = "super::real")]
        least: f64,
        /// Resource that determines the minimum time.
        roof: Roof,
    },
    /// A check failed, so there is no measurement.
    Wrong { mismatch: Mismatch },
    Excluded {
        /// The rule's reason, or `requires` with the condition that is false.
        why: String,
    },
    /// The device does not allow the launch: `2048 threads per block, the device allows 1024`.
    Invalid {
        /// The limit and the value that exceeds it.
        limit: String,
    },
    /// The compiler rejected the source, crashed or timed out.
    CompileError {
        /// One line: the first error, or how the compiler failed.
        summary: String,
        log: String,
    },
    /// The driver rejected or aborted the launch.
    LaunchError {
        /// The driver's message and the failed call.
        message: String,
    },
    /// An expression in the manifest cannot be evaluated at this point: `division by zero in ceil_div(n, block) where
    /// …`.
    Unresolved {
        /// The expression, the error and the values that caused it.
        message: String,
    },
    /// The worker died while running the case.
    Crashed {
        /// How the process ended, and the end of its output.
        message: String,
    },
    TimedOut {
        #[serde(with = "super::real")]
        limit_seconds: f64,
        /// Where the kernel was when it timed out, as the device reports it; `None` if the process was killed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<String>,
    },
    /// The case needs more memory than the device has, either by calculation or because an allocation failed.
    OutOfMemory { needed: u64, available: u64 },
    /// The simulator or compute-sanitizer detected a fault.
    Trap {
        /// The fault with its kernel, source line, block and thread.
        message: String,
    },
    /// The run ended before this case started, or what it needs is missing.
    NotRun {
        why: String,
        /// Whether the machine is at fault, so that the run ends: a full disk, a missing folder.
        #[serde(default, skip_serializing_if = "super::is_default")]
        environment: bool,
    },
    /// The case failed as the manifest expects, so the run does not fail.
    FailedAsExpected { end: Box<Outcome> },
    /// The manifest expects a failure that did not occur.
    DidNotFail { fails: Vec<Failure> },
}

/// A failure that a manifest can expect.
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
    /// The driver rejects or aborts the launch.
    LaunchError,
    /// The worker process dies.
    Crashed,
    /// A step of the case times out.
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
    pub fn not_run(why: impl Into<String>) -> Self {
        Self::NotRun { why: why.into(), environment: false }
    }

    /// The outcome of a case that the manifest expects to fail in one of these ways.
    ///
    /// An excluded case or one that was not run keeps its outcome. A failure of another kind remains a failure.
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

    /// The outcome's message, if it has one.
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
            | Self::NotRun { why: words, .. } => Some(words),
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

    /// Identifier for tables and CSV.
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

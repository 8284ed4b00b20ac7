//! How a case ends, and what its check says.

use serde::{Deserialize, Serialize};

/// What a check found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    Pass,
    Mismatch(Mismatch),
    Unchecked(Unchecked),
}

/// The first element that is wrong, and how many are.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Mismatch {
    /// Which check, as the manifest writes it, or which rule (`guard zone behind partial`, `input changed`).
    pub what: String,
    pub index: u64,
    pub expected: String,
    pub got: String,
    /// `|got − expected|` where both are finite numbers.
    pub error: Option<f64>,
    /// How many elements are wrong, of how many.
    pub wrong: u64,
    pub of: u64,
}

/// Why nothing was checked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unchecked {
    /// The manifest has no `[check]`.
    NoCheck,
    /// The case was never run.
    NotRun,
    /// The other variants are compared with this one, and this one with nothing.
    IsReference,
}

/// What bounds a time from below.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Roof {
    /// Device memory.
    Memory,
    /// The L2 cache, through which every byte goes.
    L2,
}

/// How a planned cell ends: each in exactly one way.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Outcome {
    /// Right and measured (or, on a device with no clock, right and counted).
    Measured,
    /// Right, and measured with less precision than was asked; `reached` is the half-width as a fraction.
    Unstable {
        reached: f64,
    },
    /// Right, and measured to be faster than the device can do the least work that the job asks for: what was timed is
    /// not the job, or the manifest overstates it. It has no measurement.
    Suspect {
        /// The median.
        nanoseconds: f64,
        /// The least time that the device needs.
        least: f64,
        roof: Roof,
    },
    /// Wrong: it has no measurement.
    Wrong {
        mismatch: Mismatch,
    },
    /// Left out by a rule of the manifest, whose text this is.
    Excluded {
        why: String,
    },
    /// The device does not allow the launch: `2048 threads a block, the device allows 1024`.
    Invalid {
        limit: String,
    },
    CompileError {
        summary: String,
        log: String,
    },
    /// The driver refused or aborted the launch.
    LaunchError {
        message: String,
    },
    /// An expression of the manifest has no value at this point: `division by zero in ceil_div(n, block) where …`.
    Unresolved {
        message: String,
    },
    /// The worker died while the case ran.
    Crashed {
        message: String,
    },
    TimedOut {
        limit_seconds: f64,
    },
    /// More memory than the device has: refused by arithmetic, or by the device.
    OutOfMemory {
        needed: u64,
        available: u64,
    },
    /// A simulator's fault.
    Trap {
        message: String,
    },
    /// The run ended before the case's turn.
    NotRun {
        why: String,
    },
}

impl Outcome {
    /// Facts, not failures: what the exit code forgives.
    pub const fn is_failure(&self) -> bool {
        !matches!(self, Self::Measured | Self::Unstable { .. } | Self::Excluded { .. } | Self::Invalid { .. })
    }

    /// One word for tables and CSV.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Measured => "measured",
            Self::Unstable { .. } => "unstable",
            Self::Suspect { .. } => "suspect",
            Self::Wrong { .. } => "wrong",
            Self::Excluded { .. } => "excluded",
            Self::Invalid { .. } => "invalid",
            Self::CompileError { .. } => "compile_error",
            Self::LaunchError { .. } => "launch_error",
            Self::Unresolved { .. } => "unresolved",
            Self::Crashed { .. } => "crashed",
            Self::TimedOut { .. } => "timed_out",
            Self::OutOfMemory { .. } => "out_of_memory",
            Self::Trap { .. } => "trap",
            Self::NotRun { .. } => "not_run",
        }
    }
}

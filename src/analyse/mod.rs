//! From events to records to a summary.
//!
//! [`records`] folds a journal's events into one record per case and regime, with estimates and ratios; [`summary`]
//! ranks the variants. Both are pure: the same events give the same records, the same records the same summary. This
//! module does not judge whether a difference matters, and formats no number. The roofline compares times with the
//! limits of the device. [`compare`] compares the records of two runs,
//! [`history`] those of many revisions.

mod attempts;
mod claims;
pub mod compare;
mod expected_failures;
mod fidelity;
pub mod history;
mod latency;
mod ratios;
mod records;
mod roofline;
mod spent;
mod summary;

pub use claims::{ClaimGroup, ClaimState, JudgedClaim, Range, claims};
pub(crate) use expected_failures::ExpectedFailures;
pub use fidelity::{Agreement, CLOSE, Cause, Compared, Fidelity, Pair, fidelity, idle_causes};
pub(crate) use latency::{ArithmeticInFlight, MEMORY_LATENCY, MemoryInFlight, warps_for};
pub use ratios::{Call, call};
pub use records::{AnalyseError, CONFIDENCE, PairedRatio, paired_ratios, records};
pub use roofline::{Bound, bound, intensity, share_of_roof};
pub(crate) use spent::Spent;
pub use summary::{BaselineState, Best, GroupSummary, SpeedupRange, Standing, Summary, summary};
pub(crate) use summary::{contender, is_baseline};

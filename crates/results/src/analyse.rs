//! Turns events into records, and records into a summary.
//!
//! [`records`] creates one record per case and regime from a journal's history, with estimates and ratios; [`summary`]
//! ranks the variants. Both are pure: the same events yield the same records, and the same records the same summary.
//! Neither decides whether a difference matters, or formats a number. The roofline compares times with the device's
//! limits. [`compare`] compares the records of two runs, [`history`] those of many revisions, and [`stale`] compares
//! records with the sources and the manifest in a tree of files.

mod attempts;
mod bootstraps;
mod claims;
pub mod compare;
mod contender;
mod costs;
mod exactness;
mod expected_failures;
mod fidelity;
pub mod history;
mod latency;
mod ranking;
mod ratios;
mod records;
mod roofline;
pub mod stale;
mod summary;
mod times;

pub use claims::{ClaimGroup, ClaimState, JudgedClaim, Range, claims};
pub use contender::{contender, is_baseline};
pub use costs::{Cost, Difference, differences};
pub use exactness::Exactness;
pub use expected_failures::ExpectedFailures;
pub use fidelity::{Agreement, CLOSE, Cause, Compared, Fidelity, Pair, fidelity, idle_causes};
pub use latency::{ArithmeticInFlight, MEMORY_LATENCY, MemoryInFlight, warps_for};
pub use ranking::{Basis, Best};
pub use ranking::{is_local, is_noise};
pub use ratios::{Call, call};
pub use records::{
    AnalyseError, CONFIDENCE, PairedRatio, paired_ratios, records, records_and_ratios, records_of, records_of_groups,
};
pub use roofline::{Bound, bound, intensity, over_roof, share_of_roof};
pub use summary::gain;
pub use summary::{BaselineState, GroupSummary, SpeedupRange, Standing, Summary, summary};

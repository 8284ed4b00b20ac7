//! Comparisons of synthetic reports, with verdicts worked out by hand.

#![expect(clippy::unwrap_used, reason = "a test panics to fail")]

mod claims;
mod decisions;
pub(in crate::analyse) mod fixture;
mod outcomes;
mod properties;
mod simulation;

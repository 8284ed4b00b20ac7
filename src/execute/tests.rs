//! Whole groups on the fake device: what is right is measured, what is wrong is caught and named.

#![expect(clippy::unwrap_used, reason = "a test panics to fail")]

mod controls;
mod measuring;
mod rig;
mod sharing;

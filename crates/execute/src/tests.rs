//! Whole groups on the fake device: correct results are measured, wrong ones are caught and reported.

#![expect(clippy::unwrap_used, clippy::float_cmp, reason = "a test panics to fail; the fake device's times are exact")]

mod accuracy;
mod carrying;
mod cheating;
mod controls;
mod counting;
mod deferred;
mod idle;
mod independence;
mod limits;
mod masking;
mod measuring;
mod metering;
mod plugins;
mod printing;
mod reading_outputs;
mod regimes;
mod repeating;
mod rig;
mod sharing;
mod stopping;
mod watching;
mod weak_checks;

//! Which samples of a track were taken while the device was throttled, and why it was.

use std::fmt::Write;

use crate::model::{Regime, Round, ThrottleReason};

/// Throttling during the samples of a track.
#[derive(Debug, Default)]
pub struct Throttling {
    /// Samples that count although they were affected.
    kept: usize,
    reasons: Vec<ThrottleReason>,
}

impl Throttling {
    /// Keeps the samples from a round on.
    pub fn keep(&mut self, from: u32, rounds: &[Round], reasons: &[ThrottleReason]) {
        self.kept += rounds.iter().filter(|round| round.round >= from).count();
        self.add(reasons);
    }

    pub fn add(&mut self, reasons: &[ThrottleReason]) {
        self.reasons.extend_from_slice(reasons);
        self.reasons.sort_unstable();
        self.reasons.dedup();
    }

    /// A note for the case; `None` if the device was not throttled.
    pub fn note(&self, regime: Regime, discarded: usize) -> Option<String> {
        let reasons: Vec<String> = self.reasons.iter().map(ToString::to_string).collect();
        let mut counts = String::new();
        if discarded > 0 {
            let _ = write!(counts, "{discarded} discarded and taken again");
        }
        if self.kept > 0 {
            let joint = if discarded > 0 { ", " } else { "" };
            let _ = write!(counts, "{joint}{} that count, since it lasted", self.kept);
        }
        (!reasons.is_empty()).then(|| {
            format!(
                "{regime}: samples were taken while the device was throttled by {}: {counts}",
                reasons.join(" and ")
            )
        })
    }
}

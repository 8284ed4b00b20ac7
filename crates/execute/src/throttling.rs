//! Which samples of a case were taken while the device was throttled, and why.

use runner_types::{Note, Regime, Round, ThrottleReason};

#[derive(Debug, Default)]
pub struct Throttling {
    /// Number of throttled samples that count nevertheless.
    kept: usize,
    reasons: Vec<ThrottleReason>,
}

impl Throttling {
    /// Records that the samples from a round on count although the device was throttled.
    pub fn keep(&mut self, from: u32, rounds: &[Round], reasons: &[ThrottleReason]) {
        self.kept += rounds.iter().filter(|round| round.round >= from).count();
        self.add(reasons);
    }

    pub fn add(&mut self, reasons: &[ThrottleReason]) {
        self.reasons.extend_from_slice(reasons);
        self.reasons.sort_unstable();
        self.reasons.dedup();
    }

    /// Note for the case; `None` if the device was not throttled.
    pub fn note(&self, regime: Regime, discarded: usize) -> Option<Note> {
        let (reasons, discarded, kept) = (self.reasons.clone(), discarded as u64, self.kept as u64);
        (!reasons.is_empty()).then_some(Note::Throttled { regime, reasons, discarded, kept })
    }
}

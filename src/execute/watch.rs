//! What the device does while it is measured: the SM clock of the samples, and samples that do not count.
//!
//! Asks between two rounds, when nothing runs, and so rarely that asking takes a twentieth of the time at most. What is
//! seen holds for the samples since the look before. Samples next to a look that finds the device throttled are discarded
//! and taken anew, but not for ever: where the kernels themselves bring that state about (the power limit under a matrix
//! product), it lasts, and is noted. Sets nothing, and does not judge what a clock ought to be.

use std::fmt::Write;
use std::time::{Duration, Instant};

use super::track::Track;
use crate::backend::Device;
use crate::model::{Look, Regime, ThrottleReason};

/// Asking takes one part in so many of the time.
const RARITY: u32 = 20;

/// A device that is throttled for so long without a break stays so.
const PATIENCE: Duration = Duration::from_millis(100);

/// The looks of one regime.
pub struct Watch {
    /// When it is time for the next one.
    next: Instant,
    /// The first round that none has covered.
    from: u32,
    /// What held the device back at the last one, and since when.
    held: Vec<ThrottleReason>,
    since: Option<Instant>,
}

impl Watch {
    pub fn new() -> Self {
        Self { next: Instant::now(), from: 0, held: Vec::new(), since: None }
    }

    /// Looks after `round`, if it is time or nothing is left to be measured. Tracks that lose samples are open again
    /// where `may_reopen` says so of their member.
    pub fn look(
        &mut self,
        device: &mut dyn Device,
        tracks: &mut [Track],
        round: u32,
        may_reopen: impl Fn(usize) -> bool,
    ) {
        let start = Instant::now();
        if start < self.next && tracks.iter().any(|track| !track.done) {
            return;
        }
        let Ok(monitor) = device.monitor() else { return };
        let state = monitor.state();
        let now = Instant::now();
        self.next = now + RARITY * (now - start);
        let before = std::mem::replace(&mut self.held, state.throttled_by.clone());
        let mut reasons = [before, self.held.clone()].concat();
        reasons.sort_unstable();
        reasons.dedup();
        if self.held.is_empty() {
            self.since = None;
        }
        let lasts = !self.held.is_empty() && now - *self.since.get_or_insert(now) >= PATIENCE;
        let from = std::mem::replace(&mut self.from, round + 1);
        for track in tracks.iter_mut().filter(|track| track.rounds.last().is_some_and(|last| last.round >= from)) {
            track.looks.push(Look { after: round, state: state.clone() });
            if reasons.is_empty() {
                continue;
            }
            if lasts || !may_reopen(track.member) {
                track.held.keep(from, &track.rounds, &reasons);
            } else {
                track.discard(from, &reasons);
            }
        }
    }
}

/// What held the device back during the samples of a track.
#[derive(Debug, Default)]
pub struct Held {
    /// Samples that count all the same.
    kept: usize,
    reasons: Vec<ThrottleReason>,
}

impl Held {
    fn keep(&mut self, from: u32, rounds: &[crate::model::Round], reasons: &[ThrottleReason]) {
        self.kept += rounds.iter().filter(|round| round.round >= from).count();
        self.name(reasons);
    }

    pub fn name(&mut self, reasons: &[ThrottleReason]) {
        self.reasons.extend_from_slice(reasons);
        self.reasons.sort_unstable();
        self.reasons.dedup();
    }

    /// In words; `None` where nothing held it back.
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

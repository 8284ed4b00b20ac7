//! Observes the device during measurement: the SM clock of the samples, and throttling, for which samples are
//! discarded.
//!
//! Reads the state between two rounds, when nothing runs, and takes at most a twentieth of the time for that. A state
//! applies to the samples since the previous one. Samples next to a throttled state are discarded and taken again,
//! unless throttling lasts: kernels may themselves cause it (a matrix product at the power limit), and then the samples
//! count, with a note. Changes no setting, and does not decide which clock is right.

use std::time::{Duration, Instant};

use super::case_samples::CaseSamples;
use runner_backend::Device;
use runner_types::{Look, ThrottleReason};

/// Time for reading the state is limited to the elapsed time divided by this.
const RARITY: u32 = 20;

/// Throttling that lasts this long without a break counts as permanent.
const PATIENCE: Duration = Duration::from_millis(100);

/// Observes the device during one regime.
pub struct Watch {
    /// Earliest time of the next state.
    next: Instant,
    /// First round without a state.
    from: u32,
    /// Why the device was throttled in the last state, and since when.
    reasons: Vec<ThrottleReason>,
    since: Option<Instant>,
}

impl Watch {
    pub fn new() -> Self {
        Self { next: Instant::now(), from: 0, reasons: Vec::new(), since: None }
    }

    /// Reads the device state after `round`, if due or if the measurement has ended. A track that loses samples
    /// continues if `may_reopen` allows it for its case.
    pub fn look(
        &mut self,
        device: &mut dyn Device,
        tracks: &mut [CaseSamples],
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
        let before = std::mem::replace(&mut self.reasons, state.throttled_by.clone());
        let mut reasons = [before, self.reasons.clone()].concat();
        reasons.sort_unstable();
        reasons.dedup();
        if self.reasons.is_empty() {
            self.since = None;
        }
        let lasts = !self.reasons.is_empty() && now - *self.since.get_or_insert(now) >= PATIENCE;
        let from = std::mem::replace(&mut self.from, round + 1);
        for track in tracks.iter_mut().filter(|track| track.rounds.last().is_some_and(|last| last.round >= from)) {
            track.looks.push(Look { after: round, state: state.clone() });
            if reasons.is_empty() {
                continue;
            }
            if lasts || !may_reopen(track.place) {
                track.throttling.keep(from, &track.rounds, &reasons);
            } else {
                track.discard(from, &reasons);
            }
        }
    }
}

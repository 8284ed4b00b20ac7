//! What happens between the samples of the rounds, outside of every timed span: inputs change, and results are checked.

use std::time::{Duration, Instant};

use super::fill::below;
use super::group::{Group, host_allowance};
use super::inputs::{FIRST, OTHER};
use super::stop::Lost;
use super::track::Track;
use crate::backend::Series;
use crate::model::{Activity, Outcome, Phase, Regime, Verdict};

/// Changes of the inputs take at most one part in so many of the time of the rounds, after the first few.
const RARITY: u32 = 30;

/// Changes of the inputs that the rounds of a regime may have, however long they take.
const LEAST: u32 = 3;

/// Whether the rounds may go on.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Rounds {
    Sound,
    /// A case corrupted the data of another and is settled: the measurements are void.
    Spoiled,
}

/// The changes of the inputs in the rounds of a regime.
#[derive(Debug)]
pub struct Changes {
    began: Instant,
    made: u32,
    took: Duration,
}

impl Changes {
    pub fn new() -> Self {
        Self { began: Instant::now(), made: 0, took: Duration::ZERO }
    }

    fn are_affordable(&self) -> bool {
        self.made < LEAST || self.took * RARITY < self.began.elapsed()
    }
}

impl Group<'_> {
    /// Changes the inputs before every second round on average, at random.
    pub fn change_between_rounds(&mut self, changes: &mut Changes) -> Result<Rounds, Lost> {
        if !self.store.has_two_sets() || !changes.are_affordable() || below(&mut self.secret, 2) == 0 {
            return Ok(Rounds::Sound);
        }
        let start = Instant::now();
        let rounds = self.change_to(FIRST + OTHER - self.store.sets.current);
        changes.made += 1;
        changes.took += start.elapsed();
        rounds
    }

    /// Chooses a set of inputs, after a look at the present one.
    pub fn change_to(&mut self, set: usize) -> Result<Rounds, Lost> {
        let Some(any) = self.running_cases().first().copied() else { return Ok(Rounds::Sound) };
        if self.store.sets.current == set {
            return Ok(Rounds::Sound);
        }
        let phase = self.spend(Phase::Check);
        let rounds = self.look_at_inputs()?;
        if rounds == Rounds::Sound {
            let chosen = self.store.choose(self.device, set);
            self.attempt(any, chosen)?;
        }
        self.spend(phase);
        Ok(rounds)
    }

    /// Checks the result of the last timed run of a track. Where a sample is several runs, every second check is made
    /// after a part of a sample that is not counted, so that any run may be the one that is checked.
    pub fn check_sample(&mut self, tracks: &mut [Track], own: usize) -> Result<Rounds, Lost> {
        let start = Instant::now();
        let phase = self.spend(Phase::Check);
        let checked = self.judge_sample(tracks, own);
        self.spend(phase);
        let track = &mut tracks[own];
        track.audit.record(start.elapsed().as_secs_f64(), track.seconds(), &mut self.secret);
        checked
    }

    fn judge_sample(&mut self, tracks: &mut [Track], own: usize) -> Result<Rounds, Lost> {
        let Track { member, regime, .. } = tracks[own];
        let mut place = format!("in timed sample {} ({regime})", tracks[own].rounds.len());
        let series = &tracks[own].series;
        if series.launches > 1 && series.others.is_empty() && below(&mut self.secret, 2) == 0 {
            let runs = 1 + below(&mut self.secret, u64::from(series.launches)) as u32;
            // A graph of its own for every number of runs would cost more than the check.
            let regime = if regime == Regime::Graph { Regime::Warm } else { regime };
            let batch = self.timed_batch(member, regime, &Series { launches: runs, ..series.clone() });
            let sample = self.sample(member, &batch);
            if self.attempt(member, sample)?.is_none() {
                return Ok(end(tracks, member));
            }
            place = format!("in timed run {runs} of a sample ({regime})");
        }
        self.active(member, Activity::Rechecking, host_allowance(self.members[member].job));
        let verdict = self.compare_results(member);
        match self.attempt(member, verdict)? {
            Some(Verdict::Mismatch(mut mismatch)) => {
                // A changed input makes wrong results of right kernels.
                if self.look_at_inputs()? == Rounds::Spoiled {
                    return Ok(Rounds::Spoiled);
                }
                mismatch.what = format!("{}, {place}", mismatch.what);
                self.settle(member, Outcome::Wrong { mismatch });
                Ok(end(tracks, member))
            }
            Some(_) => Ok(Rounds::Sound),
            None => Ok(end(tracks, member)),
        }
    }
}

/// The tracks of a member that is settled take no more samples.
fn end(tracks: &mut [Track], member: usize) -> Rounds {
    tracks.iter_mut().filter(|track| track.member == member).for_each(|track| track.done = true);
    Rounds::Sound
}

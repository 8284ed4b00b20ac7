//! What happens between the samples of the rounds, outside of every timed span: inputs change, and results are checked.

use std::time::{Duration, Instant};

use super::buffers::Poison;
use super::fill::below;
use super::group::{DeviceBody, Group, host_allowance};
use super::stop::{Lost, Stop};
use super::track::{Role, Track};
use crate::backend::Series;
use crate::model::{Access, Activity, Outcome, Phase, Regime, Verdict};

/// Changes of the inputs take at most one part in so many of the time of the rounds, after the first few.
const RARITY: u32 = 30;

/// Most runs of a sample that are checked one by one.
const MOST_RUNS: u32 = 32;

/// Places of an output that are poisoned between two runs, and the bytes of each.
const PLACES: usize = 4;
const PIECE: usize = 64;

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
    /// Changes the inputs before every second round on average, at random, to any other set.
    pub fn change_between_rounds(&mut self, changes: &mut Changes) -> Result<Rounds, Lost> {
        if !self.store.has_other_sets() || !changes.are_affordable() || below(&mut self.secret, 2) == 0 {
            return Ok(Rounds::Sound);
        }
        let start = Instant::now();
        let (current, count) = (self.store.sets.current, self.store.sets.count);
        let steps = 1 + below(&mut self.secret, count as u64 - 1) as usize;
        let rounds = self.change_to((current + steps) % count);
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

    /// Runs each case once more on each set of inputs but that of its last sample, and checks it: what it has stored
    /// meanwhile is wrong for one of them. Leaves the first set.
    pub fn check_on_other_inputs(&mut self, tracks: &mut [Track]) -> Result<Rounds, Lost> {
        let count = self.store.sets.count;
        for set in (1..=count).map(|next| next % count) {
            if self.change_to(set)? == Rounds::Spoiled {
                return Ok(Rounds::Spoiled);
            }
            for own in 0..tracks.len() {
                let Track { member, role, .. } = tracks[own];
                if role != Role::Variant || tracks[own].set == set || self.members[member].settled {
                    continue;
                }
                let phase = self.spend(Phase::Check);
                let rounds = self.judge_another_run(tracks, own);
                self.spend(phase);
                if rounds? == Rounds::Spoiled {
                    return Ok(Rounds::Spoiled);
                }
            }
        }
        Ok(Rounds::Sound)
    }

    /// Checks a run that is timed as one of a sample, and does not count.
    fn judge_another_run(&mut self, tracks: &mut [Track], own: usize) -> Result<Rounds, Lost> {
        let Track { member, regime, .. } = tracks[own];
        // Other sets of buffers and a graph would cost more than the check.
        let timed = if matches!(regime, Regime::Graph | Regime::Rotate) { Regime::Warm } else { regime };
        let timeout = self.members[member].job.measure.timeout;
        self.active(member, Activity::Measuring, timeout);
        let batch = self.timed_batch(member, timed, &Series::default());
        let sample = self.sample(member, &batch);
        if self.attempt(member, sample)?.is_none() {
            return Ok(end(tracks, member));
        }
        let place = format!("in timed run 1 after the last sample ({regime})");
        self.judge_result(tracks, member, &place).map(|(rounds, _)| rounds)
    }

    /// Checks the result of the last timed run of a track. Where a sample is several runs, some checks repeat it, run by
    /// run or up to any run, so that its last one is not the only one that is checked.
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
        let is_several = series.launches > 1 && series.others.is_empty();
        let choice = below(&mut self.secret, 3);
        if is_several && (choice == 0 || tracks[own].audit.is_thorough(tracks[own].rounds.len())) {
            return self.judge_runs(tracks, own);
        }
        if is_several && choice == 1 {
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
        self.judge_result(tracks, member, &place).map(|(rounds, _)| rounds)
    }

    /// Repeats the runs of a sample, untimed, and checks each. Cold ones are prepared one by one; those of the other
    /// regimes follow each other as in their span, but for a few places of the outputs, which are poisoned again: a kernel
    /// that returns because a part of its output is right leaves them as they are.
    fn judge_runs(&mut self, tracks: &mut [Track], own: usize) -> Result<Rounds, Lost> {
        let Track { member, regime, .. } = tracks[own];
        for run in 1..=tracks[own].series.launches.min(MOST_RUNS) {
            let mut batch = self.batch(member, 1);
            let follows = regime != Regime::Cold && run > 1;
            if follows {
                batch.prepare.clear();
            }
            let timeout = self.members[member].job.measure.timeout;
            self.active(member, Activity::Measuring, timeout);
            let poisoned = if follows { self.poison_places(member) } else { Ok(()) };
            let done = poisoned.and_then(|()| self.device.run(&batch).map_err(Stop::from));
            if self.attempt(member, done)?.is_none() {
                return Ok(end(tracks, member));
            }
            let place = format!("in timed run {run} of a sample ({regime})");
            let (rounds, is_right) = self.judge_result(tracks, member, &place)?;
            if !is_right {
                return Ok(rounds);
            }
        }
        Ok(Rounds::Sound)
    }

    /// Poisons a few places of each output, at random.
    fn poison_places(&mut self, member: usize) -> Result<(), Stop> {
        let slots = self.members[member].device_body().map(DeviceBody::all_slots).unwrap_or_default();
        for buffer in slots.iter().filter_map(|slot| self.store.get(*slot)) {
            let size = self.device.size(buffer.id);
            if buffer.plan.access != Access::Out || size == 0 {
                continue;
            }
            let poison = [Poison::Timed.byte(buffer.plan.element); PIECE];
            for _ in 0..PLACES {
                let offset = PIECE * below(&mut self.secret, size.div_ceil(PIECE) as u64) as usize;
                self.device.upload(buffer.id, offset, &poison[..PIECE.min(size - offset)])?;
            }
        }
        Ok(())
    }

    /// Checks what the last run left, and whether it is right.
    fn judge_result(&mut self, tracks: &mut [Track], member: usize, place: &str) -> Result<(Rounds, bool), Lost> {
        self.active(member, Activity::Rechecking, host_allowance(self.members[member].job));
        let verdict = self.compare_results(member);
        match self.attempt(member, verdict)? {
            Some(Verdict::Mismatch(mut mismatch)) => {
                // A changed input makes wrong results of right kernels.
                if self.look_at_inputs()? == Rounds::Spoiled {
                    return Ok((Rounds::Spoiled, false));
                }
                mismatch.what = format!("{}, {place}", mismatch.what);
                self.settle(member, Outcome::Wrong { mismatch });
                Ok((end(tracks, member), false))
            }
            Some(_) => Ok((Rounds::Sound, true)),
            None => Ok((end(tracks, member), false)),
        }
    }
}

/// The tracks of a member that is settled take no more samples.
fn end(tracks: &mut [Track], member: usize) -> Rounds {
    tracks.iter_mut().filter(|track| track.member == member).for_each(|track| track.done = true);
    Rounds::Sound
}

//! Times the cases that are right: in turns, in a random order that a seed fixes, round after round.
//!
//! Whatever drifts (clocks, temperature) falls on all variants alike, and samples of one round may be divided by each
//! other. A variant stops when the interval of its median is narrow enough, or at its limits; the baseline goes on to
//! the end, so that every round has it. What the very last timed launch of a variant left is judged before anything
//! else runs; a variant found wrong there leaves no measurement.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use super::buffers::Poison;
use super::fill::below;
use super::group::{Body, Group, host_allowance};
use super::stop::{Lost, Stop};
use crate::backend::{Batch, Timing};
use crate::model::{Activity, Event, MeasurePlan, Measurement, Outcome, Phase, Regime, Round, Unit, Verdict};
use crate::stats::median_interval;

/// Coverage of the interval that decides when to stop.
const CONFIDENCE: f64 = 0.95;

/// The samples of one case in one regime.
struct Track {
    member: usize,
    regime: Regime,
    unit: Unit,
    rounds: Vec<Round>,
    /// Sum of the samples, nanoseconds.
    spent: f64,
    /// Samples at which the interval is looked at next: looking at each would take time n² log n.
    look_at: usize,
    /// Half-width of the interval as a fraction of the median, when last looked at.
    half_width: Option<f64>,
    done: bool,
}

impl Track {
    fn new(member: usize, regime: Regime, unit: Unit) -> Self {
        Self { member, regime, unit, rounds: Vec::new(), spent: 0.0, look_at: 0, half_width: None, done: false }
    }

    fn record(&mut self, round: u32, timing: Timing) {
        self.spent += timing.whole;
        self.rounds.push(Round { round, whole: timing.whole, each: timing.each });
    }

    fn is_enough(&mut self, plan: &MeasurePlan) -> bool {
        let n = self.rounds.len();
        if n >= plan.min_samples as usize && n >= self.look_at {
            self.look();
        }
        let at_limit = n >= plan.max_samples.max(1) as usize || self.spent >= plan.budget * 1e9;
        at_limit || (n >= plan.min_samples as usize && self.half_width.is_some_and(|half| half <= plan.precision))
    }

    /// Takes no more samples.
    fn close(&mut self) {
        self.look();
        self.done = true;
    }

    fn look(&mut self) {
        let samples: Vec<f64> = self.rounds.iter().map(|round| round.whole).collect();
        self.look_at = samples.len() + samples.len() / 20 + 1;
        let interval = median_interval(&samples, CONFIDENCE);
        // An interval of too few samples says nothing, however narrow it is.
        let sound = interval.filter(|interval| interval.coverage >= CONFIDENCE);
        self.half_width = sound.map(|i| if i.high > i.low { i.relative_half_width() } else { 0.0 });
    }

    /// The half-width that was reached: of too few samples, that of their whole range; a single one has none.
    fn reached(&self) -> f64 {
        let samples: Vec<f64> = self.rounds.iter().map(|round| round.whole).collect();
        let range = || median_interval(&samples, CONFIDENCE).filter(|_| samples.len() > 1);
        let whole = || range().map(|interval| interval.relative_half_width());
        self.half_width.or_else(whole).filter(|half| half.is_finite()).unwrap_or(1.0)
    }
}

/// Whether the rounds may go on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rounds {
    Sound,
    /// A case did to another what it may not, and is settled: what was measured is void.
    Spoiled,
}

impl Group<'_> {
    /// Times every case that is right, and settles all that are left.
    ///
    /// Where one spoils the others' work it is settled as wrong, and the others start again without it.
    pub fn measure_all(&mut self) -> Result<(), Lost> {
        let mut tracks = Vec::new();
        while self.device.capabilities().has_clock {
            tracks.clear();
            if self.measure_once(&mut tracks)? == Rounds::Sound {
                break;
            }
        }
        for member in 0..self.members.len() {
            if !self.members[member].settled {
                self.finish(member, &mut tracks);
            }
        }
        Ok(())
    }

    fn measure_once(&mut self, tracks: &mut Vec<Track>) -> Result<Rounds, Lost> {
        for regime in self.regimes() {
            let mut turns = Vec::new();
            let rounds = self.measure_in(regime, &mut turns)?;
            tracks.append(&mut turns);
            if rounds == Rounds::Spoiled {
                return Ok(rounds);
            }
        }
        if self.look_at_inputs()? == Rounds::Spoiled {
            return Ok(Rounds::Spoiled);
        }
        self.measure_host(tracks)
    }

    /// Every regime that a case asks for, in their order.
    fn regimes(&self) -> Vec<Regime> {
        let mut regimes: Vec<Regime> = self.members.iter().flat_map(|m| m.job.measure.regimes.clone()).collect();
        regimes.sort_unstable();
        regimes.dedup();
        regimes
    }

    fn measure_in(&mut self, regime: Regime, tracks: &mut Vec<Track>) -> Result<Rounds, Lost> {
        for member in 0..self.members.len() {
            let state = &self.members[member];
            let asked = state.job.measure.regimes.contains(&regime);
            if asked && state.is_right() && state.device_body().is_some() && self.warm_up(member, regime)? {
                tracks.push(Track::new(member, regime, Unit::DeviceNanoseconds));
            }
        }
        let mut rng = ChaCha8Rng::seed_from_u64(self.job.seed);
        rng.set_stream(regime as u64);
        for round in 0.. {
            let mut order: Vec<usize> = (0..tracks.len()).filter(|i| !tracks[*i].done).collect();
            if order.is_empty() {
                break;
            }
            shuffle(&mut order, &mut rng);
            for place in order {
                if self.take_turn(tracks, place, round)? == Rounds::Spoiled {
                    return Ok(Rounds::Spoiled);
                }
            }
        }
        Ok(Rounds::Sound)
    }

    fn warm_up(&mut self, member: usize, regime: Regime) -> Result<bool, Lost> {
        let plan = &self.members[member].job.measure;
        if plan.warmup == 0 {
            return Ok(true);
        }
        self.active(member, Activity::Measuring, plan.timeout);
        let batch = self.batch(member, regime, plan.warmup, false);
        let done = self.device.run(&batch).map_err(Stop::from);
        Ok(self.attempt(member, done)?.is_some())
    }

    /// The work of a case, to be run `repeat` times.
    pub fn batch(&self, member: usize, regime: Regime, repeat: u32, timed: bool) -> Batch {
        let body = self.members[member].device_body();
        let (slots, steps) = body.map(|b| (b.all_slots(), b.steps.clone())).unwrap_or_default();
        Batch { prepare: self.store.prepare(&slots, Poison::Timed), steps, regime, repeat, timed }
    }

    /// One sample of one case; then, if it was its last, the check of what it left.
    fn take_turn(&mut self, tracks: &mut [Track], place: usize, round: u32) -> Result<Rounds, Lost> {
        let Track { member, regime, .. } = tracks[place];
        let plan = &self.members[member].job.measure;
        self.active(member, Activity::Measuring, plan.timeout);
        let batch = self.batch(member, regime, 1, true);
        let sample = self.device.run(&batch).map_err(Stop::from).and_then(|report| sound(report.samples));
        let Some(timing) = self.attempt(member, sample)? else {
            tracks[place].done = true;
            return Ok(Rounds::Sound);
        };
        tracks[place].record(round, timing);
        let alone = tracks.iter().enumerate().all(|(i, track)| i == place || track.done);
        // The baseline accompanies the others to the end.
        let may_stop = alone || self.job.baseline != Some(member);
        if tracks[place].is_enough(plan) && may_stop {
            tracks[place].close();
            return self.check_again(member);
        }
        Ok(Rounds::Sound)
    }

    /// Judges what the last timed launch left.
    fn check_again(&mut self, member: usize) -> Result<Rounds, Lost> {
        self.active(member, Activity::Rechecking, host_allowance(self.members[member].job));
        let phase = self.spend(Phase::Check);
        let rounds = self.judge_again(member);
        self.spend(phase);
        rounds
    }

    fn judge_again(&mut self, member: usize) -> Result<Rounds, Lost> {
        let trespass = self.trespass(member);
        match self.attempt(member, trespass)? {
            Some(Some(found)) => return self.blame(&found, Some(member)).map(|()| Rounds::Spoiled),
            Some(None) => {}
            None => return Ok(Rounds::Sound),
        }
        let verdict = self.compare_results(member);
        if let Some(Verdict::Mismatch(mismatch)) = self.attempt(member, verdict)? {
            // A changed input makes wrong results of right kernels.
            if self.look_at_inputs()? == Rounds::Spoiled {
                return Ok(Rounds::Spoiled);
            }
            self.settle(member, Outcome::Wrong { mismatch });
        }
        Ok(Rounds::Sound)
    }

    /// Looks at the shared inputs; where one was changed, finds who did it.
    fn look_at_inputs(&mut self) -> Result<Rounds, Lost> {
        let Some(anyone) = self.takers_of_turns().first().copied() else { return Ok(Rounds::Sound) };
        let changed = self.changed_inputs();
        match self.attempt(anyone, changed)? {
            Some(Verdict::Mismatch(found)) => self.blame(&found, None).map(|()| Rounds::Spoiled),
            _ => Ok(Rounds::Sound),
        }
    }

    /// The host's functions, one after the other: the device waits meanwhile.
    fn measure_host(&mut self, tracks: &mut Vec<Track>) -> Result<Rounds, Lost> {
        for member in 0..self.members.len() {
            let is_host = matches!(self.members[member].body, Some(Body::Host(_)));
            if !is_host || !self.members[member].is_right() {
                continue;
            }
            let plan = &self.members[member].job.measure;
            let regime = plan.regimes.first().copied().unwrap_or(Regime::Cold);
            let mut track = Track::new(member, regime, Unit::HostNanoseconds);
            while !track.done {
                self.active(member, Activity::Measuring, plan.timeout);
                let Some(Body::Host(body)) = &mut self.members[member].body else { break };
                let whole = body.run().as_secs_f64() * 1e9;
                track.record(track.rounds.len() as u32, Timing { whole, each: Vec::new() });
                if track.is_enough(plan) {
                    track.close();
                }
            }
            if self.check_again(member)? == Rounds::Spoiled {
                return Ok(Rounds::Spoiled);
            }
            tracks.push(track);
        }
        Ok(Rounds::Sound)
    }

    fn finish(&mut self, member: usize, tracks: &mut Vec<Track>) {
        let job = self.members[member].job;
        let mut reached: Option<f64> = None;
        for track in tracks.extract_if(.., |track| track.member == member) {
            let half = track.reached();
            if track.half_width.is_none() || half > job.measure.precision {
                reached = Some(reached.map_or(half, |worst| worst.max(half)));
            }
            let measurement = Measurement { regime: track.regime, unit: track.unit, rounds: track.rounds };
            self.say(Event::CaseMeasured { case: job.case.clone(), measurement });
        }
        self.settle(member, reached.map_or(Outcome::Measured, |reached| Outcome::Unstable { reached }));
    }
}

/// The one sample of a timed batch. A time that is no number of nanoseconds is none.
fn sound(samples: Vec<Timing>) -> Result<Timing, Stop> {
    let sample = samples.into_iter().next();
    let sample = sample.ok_or_else(|| Stop::launch_error("the device timed nothing"))?;
    if sample.whole.is_finite() && sample.whole >= 0.0 {
        Ok(sample)
    } else {
        Err(Stop::launch_error(format!("the device's clock says {} ns", sample.whole)))
    }
}

/// Fisher and Yates.
fn shuffle(order: &mut [usize], rng: &mut ChaCha8Rng) {
    for last in (1..order.len()).rev() {
        order.swap(last, below(rng, last as u64 + 1) as usize);
    }
}

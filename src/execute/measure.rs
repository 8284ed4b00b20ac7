//! Times the right cases in interleaved rounds, each in a random order from a seed.
//!
//! Drift (clocks, temperature) affects all variants alike, and samples of one round may be divided by each other. A
//! variant stops when the interval of its median is narrow enough, or at its limits; the baseline and its A/A control go
//! on to the end, so that every round has them. The control is the baseline under another name: its difference from the
//! baseline is noise. Between rounds the inputs change at random; results of timed launches are checked as
//! [`super::audit`] draws them, and the last one always. A variant that is wrong there has no measurement.

use std::time::Instant;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use super::buffers::Poison;
use super::fill::below;
use super::group::{Group, Placement, host_allowance};
use super::launch::Variable;
use super::rounds::{Changes, Rounds};
use super::stop::{Lost, Stop};
use super::track::{Role, Track};
use super::watch::Watch;
use crate::backend::{Batch, ModuleId, Prepare, Samples, Series, TimedBatch, Timing};
use crate::model::{Activity, Event, MeasurePlan, Measurement, Outcome, Phase, Regime, Verdict};

impl Group<'_> {
    /// Times every case that is right, and settles all that are left.
    ///
    /// A case that corrupts the data of others is settled as wrong, and the others start again without it.
    pub fn measure_all(&mut self) -> Result<(), Lost> {
        let mut tracks = Vec::new();
        while self.device.clock().is_some() {
            tracks.clear();
            if self.measure_once(&mut tracks)? == Rounds::Sound {
                break;
            }
        }
        self.meter_all()?;
        for member in 0..self.members.len() {
            if !self.members[member].settled && self.members[member].placement != Placement::Deferred {
                self.finish(member, &mut tracks);
            }
        }
        Ok(())
    }

    /// Measures the device, and the host's functions at the same time unless they would disturb it.
    fn measure_once(&mut self, tracks: &mut Vec<Track>) -> Result<Rounds, Lost> {
        let early = (!self.job.needs_host()).then(|| self.begin_host());
        let rounds = self.measure_device(tracks)?;
        let timing = early.unwrap_or_else(|| self.begin_host());
        let host = self.end_host(timing);
        if rounds == Rounds::Spoiled {
            return Ok(rounds);
        }
        for track in host {
            let member = track.member;
            tracks.push(track);
            if self.check_again(member)? == Rounds::Spoiled {
                return Ok(Rounds::Spoiled);
            }
        }
        Ok(Rounds::Sound)
    }

    fn measure_device(&mut self, tracks: &mut Vec<Track>) -> Result<Rounds, Lost> {
        for regime in self.regimes() {
            let mut of_regime = Vec::new();
            let rounds = self.measure_in(regime, &mut of_regime)?;
            tracks.append(&mut of_regime);
            if rounds == Rounds::Spoiled {
                return Ok(rounds);
            }
        }
        self.look_at_inputs()
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
            if asked
                && state.is_right()
                && state.device_body().is_some()
                && let Some(series) = self.warm_up(member, regime)?
            {
                tracks.push(Track::new(member, regime, regime.unit(), series));
            }
        }
        if regime == Regime::Cold {
            Track::take_as_many_runs(tracks);
        }
        self.add_control(tracks);
        let mut rng = ChaCha8Rng::seed_from_u64(self.job.seed);
        rng.set_stream(regime as u64);
        let mut watch = Watch::new();
        let mut changes = Changes::new();
        for round in 0.. {
            let mut order: Vec<usize> = (0..tracks.len()).filter(|i| !tracks[*i].done).collect();
            if order.is_empty() {
                break;
            }
            if round > 0 && self.change_between_rounds(&mut changes)? == Rounds::Spoiled {
                return Ok(Rounds::Spoiled);
            }
            shuffle(&mut order, &mut rng);
            for (place, track) in order.into_iter().enumerate() {
                // The control may have ended with the baseline in this round.
                if !tracks[track].done && self.take_sample(tracks, track, (round, place as u32))? == Rounds::Spoiled {
                    return Ok(Rounds::Spoiled);
                }
            }
            let Self { device, members, .. } = self;
            watch.look(*device, tracks, round, |member| !members[member].settled);
        }
        if self.check_on_other_inputs(tracks)? == Rounds::Spoiled {
            return Ok(Rounds::Spoiled);
        }
        self.store.free_copies(self.device);
        Ok(Rounds::Sound)
    }

    /// Adds the A/A control if anything is compared with the baseline.
    fn add_control(&self, tracks: &mut Vec<Track>) {
        let baseline = tracks.iter().find(|track| self.job.baseline == Some(track.member));
        if let Some(control) = baseline.filter(|_| tracks.len() > 1).map(Track::control) {
            tracks.push(control);
        }
    }

    /// Runs untimed, and finds how long a sample has to be; `None` if the case ended.
    fn warm_up(&mut self, member: usize, regime: Regime) -> Result<Option<Series>, Lost> {
        let plan = &self.members[member].job.measure;
        self.active(member, Activity::Measuring, plan.timeout);
        let made = self.sets(member, regime);
        let Some(mut series) = self.attempt(member, made)? else { return Ok(None) };
        if plan.warmup > 0 {
            let batch = self.batch(member, plan.warmup);
            let done = self.device.run(&batch).map_err(Stop::from);
            if self.attempt(member, done)?.is_none() {
                return Ok(None);
            }
        }
        let is_lengthened = match regime {
            Regime::Cold => self.device.clock().is_some_and(|clock| clock.tick().is_some()),
            Regime::Warm | Regime::Graph | Regime::Rotate => true,
            Regime::Host => false,
        };
        if is_lengthened {
            let batch = self.timed_batch(member, regime, &series);
            let probe = self.sample(member, &batch);
            let Some(timing) = self.attempt(member, probe)? else { return Ok(None) };
            self.lengthen(member, regime, &mut series, timing.whole);
        }
        Ok(Some(series))
    }

    /// One sample; reports the device's notes.
    pub fn sample(&mut self, member: usize, batch: &TimedBatch) -> Result<Timing, Stop> {
        let Some(clock) = self.device.clock() else { return Err(Stop::launch_error("the device has no clock")) };
        let Samples { times, notes, .. } = clock.time(batch)?;
        for note in notes {
            let case = self.members[member].job.case.clone();
            self.say(Event::CaseNote { case, note });
        }
        sound(times)
    }

    /// The work of a case, to be run `repeat` times.
    pub fn batch(&self, member: usize, repeat: u32) -> Batch {
        let steps = self.members[member].device_body().map(|body| body.steps.clone()).unwrap_or_default();
        Batch { repeat, ..Batch::once(self.preparation(member, Poison::Timed), steps) }
    }

    /// Operations that bring the memory of a case into its state before a launch: its buffers, and the variables of its
    /// modules that the manifest does not name and launches write.
    pub fn preparation(&self, member: usize, poison: Poison) -> Vec<Prepare> {
        let Some(body) = self.members[member].device_body() else { return Vec::new() };
        let mut prepare = self.store.prepare(&body.all_slots(), poison);
        let restored = |variable: &Variable| Some(Prepare::Copy { from: variable.pristine?, to: variable.id });
        let variables = self.undeclared_variables(member).into_iter().filter(|variable| variable.is_restored());
        prepare.extend(variables.filter_map(restored));
        prepare
    }

    /// The variables of a case's modules that the manifest does not name.
    pub fn undeclared_variables(&self, member: usize) -> Vec<&Variable> {
        let Some(body) = self.members[member].device_body() else { return Vec::new() };
        let slots = body.all_slots();
        let of = |module: &ModuleId| {
            let (module, slots) = (*module, &slots);
            let is_undeclared = move |v: &&Variable| !self.store.has_variable(slots, module, &v.name);
            self.modules.variables(module).iter().filter(is_undeclared)
        };
        body.modules.iter().flat_map(of).collect()
    }

    /// One sample of one case; then, if it was its last, the check of what it left. `at` is the round, and the place in
    /// its order.
    fn take_sample(&mut self, tracks: &mut [Track], own: usize, at: (u32, u32)) -> Result<Rounds, Lost> {
        let Track { member, regime, role, .. } = tracks[own];
        let plan = &self.members[member].job.measure;
        self.active(member, Activity::Measuring, plan.timeout);
        let batch = self.timed_batch(member, regime, &tracks[own].series);
        let start = Instant::now();
        let sample = self.sample(member, &batch);
        let Some(timing) = self.attempt(member, sample)? else {
            tracks.iter_mut().filter(|track| track.member == member).for_each(|track| track.done = true);
            return Ok(Rounds::Sound);
        };
        tracks[own].record(at, timing, start.elapsed().as_secs_f64());
        tracks[own].set = self.store.sets.current;
        // The baseline and its A/A control accompany the others to the end, and end together.
        let accompanies = |track: &Track| self.job.baseline == Some(track.member);
        let alone = tracks.iter().all(|track| track.done || accompanies(track));
        let may_stop = role == Role::Variant && (alone || !accompanies(&tracks[own]));
        if may_stop && is_enough(tracks, own, self.job.baseline, plan) {
            tracks[own].close();
            tracks.iter_mut().filter(|track| track.member == member).for_each(|track| track.done = true);
            return self.check_again(member);
        }
        let track = &mut tracks[own];
        let sampled = track.seconds();
        if track.audit.is_due(track.rounds.len(), sampled, plan.min_samples as usize, &mut self.secret) {
            return self.check_sample(tracks, own);
        }
        Ok(Rounds::Sound)
    }

    /// Checks the results of the last timed launch.
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
            Some(Some(found)) => return self.attribute(&found, Some(member)).map(|()| Rounds::Spoiled),
            Some(None) => {}
            None => return Ok(Rounds::Sound),
        }
        let late = self.look_at_variables(member);
        match self.attempt(member, late)? {
            // It is restored from now on; the times so far may be those of launches that found a result in it.
            Some(true) => return Ok(Rounds::Spoiled),
            Some(false) => {}
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

    /// Checks the shared inputs; if one was changed, finds the case that did it.
    pub fn look_at_inputs(&mut self) -> Result<Rounds, Lost> {
        let Some(anyone) = self.running_cases().first().copied() else { return Ok(Rounds::Sound) };
        let changed = self.changed_inputs();
        match self.attempt(anyone, changed)? {
            Some(Verdict::Mismatch(found)) => self.attribute(&found, None).map(|()| Rounds::Spoiled),
            _ => Ok(Rounds::Sound),
        }
    }

    fn finish(&mut self, member: usize, tracks: &mut Vec<Track>) {
        let job = self.members[member].job;
        let mut reached: Option<f64> = None;
        let mut own: Vec<Track> = tracks.extract_if(.., |track| track.member == member).collect();
        let mut controls: Vec<Track> = own.extract_if(.., |track| track.role == Role::Control).collect();
        let working_set = self.working_set(member);
        for track in own {
            let half = track.reached();
            if track.half_width.is_none() || half > job.measure.precision {
                reached = Some(reached.map_or(half, |worst| worst.max(half)));
            }
            for note in track.oddities(job.measure.precision) {
                self.say(Event::CaseNote { case: job.case.clone(), note });
            }
            let control =
                controls.extract_if(.., |control| control.regime == track.regime).flat_map(|control| control.rounds);
            let measurement = Measurement {
                regime: track.regime,
                unit: track.unit,
                launches: track.series.launches,
                sets: 1 + track.series.others.len() as u32,
                working_set,
                control: control.collect(),
                alone: self.members[member].placement == Placement::Alone,
                rounds: track.rounds,
                discarded: track.discarded,
                looks: track.looks,
            };
            self.say(Event::CaseMeasured { case: job.case.clone(), measurement });
        }
        self.settle(member, reached.map_or(Outcome::Measured, |reached| Outcome::Unstable { reached }));
    }
}

/// Whether a track needs no more samples, for its own sake and for its ratio to the baseline's.
fn is_enough(tracks: &mut [Track], own: usize, baseline: Option<usize>, plan: &MeasurePlan) -> bool {
    let base = tracks.iter().position(|track| baseline == Some(track.member) && track.role == Role::Variant);
    match base.and_then(|base| tracks.get_disjoint_mut([base, own]).ok()) {
        Some([base, own]) => own.is_enough(plan, Some(&base.rounds)),
        None => tracks[own].is_enough(plan, None),
    }
}

/// The one sample of a timed batch. A time that is not a number of nanoseconds is none.
fn sound(samples: Vec<Timing>) -> Result<Timing, Stop> {
    let sample = samples.into_iter().next();
    let sample = sample.ok_or_else(|| Stop::launch_error("the device timed nothing"))?;
    if sample.whole.is_finite() && sample.whole >= 0.0 {
        Ok(sample)
    } else {
        Err(Stop::launch_error(format!("the device's clock reads {} ns", sample.whole)))
    }
}

/// Fisher and Yates.
fn shuffle(order: &mut [usize], rng: &mut ChaCha8Rng) {
    for last in (1..order.len()).rev() {
        order.swap(last, below(rng, last as u64 + 1) as usize);
    }
}

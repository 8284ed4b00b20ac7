//! Energy per run, measured in a separate pass after the timings: runs back to back while the device's energy counter is
//! read.
//!
//! The counter of a GPU advances about ten times a second, so a case runs for more than a second; the pass is optional.
//! It is the energy of the board, idle power and memory included: nothing is subtracted. Inputs are restored once, before
//! the pass; runs alternate between as many copies of the buffers as the regime `warm` has. Nothing is timed here.

use super::group::Group;
use super::stop::{Lost, Stop};
use crate::backend::{DeviceError, EnergyReading, Step};
use crate::model::{Activity, Energy, Event, Joules, Note, Phase, Regime, Watts};
use crate::stats::{Look, Meter, Patience};

/// Power has settled after the first part; then so many steps of the counter are waited for.
const PATIENCE: Patience = Patience { settle: 0.3, span: 1.2, moves: 10 };

/// Longest wait for the steps of the counter, seconds.
const LONGEST: f64 = 20.0;

impl Group<'_> {
    /// Measures the energy of every case that is right and whose plan requests it.
    pub fn meter_all(&mut self) -> Result<(), Lost> {
        let asked = |member: &usize| {
            let member = &self.members[*member];
            member.job.measure.energy && member.is_right() && member.device_body().is_some()
        };
        let members: Vec<usize> = (0..self.members.len()).filter(asked).collect();
        if members.is_empty() || self.is_profiled() {
            return Ok(());
        }
        if let Some(why) = self.device.energy_meter().err() {
            self.say(Event::EnergyMissing { why });
            return Ok(());
        }
        let phase = self.spend(Phase::Measure);
        for member in members {
            self.meter(member)?;
        }
        self.spend(phase);
        Ok(())
    }

    fn meter(&mut self, member: usize) -> Result<(), Lost> {
        // Two runs precede the readings, and two may be queued when these end.
        let limit = 4.0 * self.members[member].job.measure.timeout + LONGEST;
        self.active(member, Activity::Measuring, limit);
        let made = self.sets(member, Regime::Warm);
        let Some(series) = self.attempt(member, made)? else { return Ok(()) };
        let batch = self.timed_batch(member, Regime::Warm, &series);
        let bodies: Vec<&[Step]> = batch.sets().map(Vec::as_slice).collect();
        let mut meter = Meter::new(PATIENCE);
        let mut take = |EnergyReading { at, energy, runs }| {
            meter.take(Look { at, level: energy.0, done: runs });
            !meter.is_enough() && at < LONGEST
        };
        let ran = match self.device.energy_meter() {
            Ok(device) => device.run_metered(&batch.prepare, &bodies, &mut take),
            Err(why) => Err(DeviceError::Unavailable(why)),
        };
        self.store.free_copies(self.device);
        if self.attempt(member, ran.map_err(Stop::from))?.is_none() {
            return Ok(());
        }
        let case = self.members[member].job.case.clone();
        self.say(match meter.gain() {
            Some(gain) => Event::CaseMetered {
                case,
                energy: Energy {
                    per_run: Joules(gain.per_piece),
                    power: Watts(gain.per_second),
                    uncertainty: gain.uncertainty,
                    runs: gain.pieces,
                    seconds: gain.span,
                },
            },
            None => Event::CaseNote {
                case,
                note: Note::NoEnergy {
                    moved: u64::from(meter.moves()),
                    seconds: LONGEST,
                    needed: u64::from(PATIENCE.moves),
                },
            },
        });
        Ok(())
    }
}

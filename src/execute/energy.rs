//! Energy of a run, in a pass of its own after the timings: runs back to back while the device's counter of energy is
//! read.
//!
//! The counter of a GPU moves some ten times a second, so that a case runs for a second and more; the pass is for who
//! asks for it. It is the board's energy, idle power and memory included: nothing is subtracted. Inputs are restored once,
//! before the pass; what a run changes, the next ones work on, in turns on as many copies as the regime `warm` has.
//! No time is taken here, and none that was taken before is touched.

use super::group::Group;
use super::stop::{Lost, Stop};
use crate::backend::EnergyLook;
use crate::model::{Activity, Energy, Event, Joules, Phase, Regime, Watts};
use crate::stats::{Look, Meter, Patience};

/// Power has settled after the first part; then so many moves of the counter are waited for.
const PATIENCE: Patience = Patience { settle: 0.3, span: 1.2, moves: 10 };

/// A counter that has not moved enough by then will not, seconds.
const LONGEST: f64 = 20.0;

impl Group<'_> {
    /// Takes the energy of every case that is right and whose plan asks for it.
    pub fn meter_all(&mut self) -> Result<(), Lost> {
        let asked = |member: &usize| {
            let member = &self.members[*member];
            member.job.measure.energy && member.is_right() && member.device_body().is_some()
        };
        let members: Vec<usize> = (0..self.members.len()).filter(asked).collect();
        if members.is_empty() || self.device.marks_launches() {
            return Ok(());
        }
        if let Err(why) = self.device.counts_energy() {
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
        // Two runs stand before the looks, and two may be queued when they end.
        let limit = 4.0 * self.members[member].job.measure.timeout + LONGEST;
        self.active(member, Activity::Measuring, limit);
        let made = self.sets(member, Regime::Warm);
        let Some(series) = self.attempt(member, made)? else { return Ok(()) };
        let batch = self.batch_of(member, Regime::Warm, &series, 1, false);
        let mut meter = Meter::new(PATIENCE);
        let ran = self.device.run_metered(&batch, &mut |EnergyLook { at, energy, runs }| {
            meter.take(Look { at, level: energy.0, done: runs });
            !meter.is_enough() && at < LONGEST
        });
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
                text: format!(
                    "no energy: the device's counter moved {} times in {LONGEST} s beside it, {} are needed",
                    meter.moves(),
                    PATIENCE.moves
                ),
            },
        });
        Ok(())
    }
}

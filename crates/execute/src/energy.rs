//! Energy per run, measured after timing in a separate pass of back-to-back runs while reading the device's energy
//! counter.
//!
//! A GPU's counter advances about ten times a second, so a case runs for more than a second; the pass is optional. The
//! energy is that of the whole board, including idle power and memory; nothing is subtracted. Inputs are restored once,
//! before the pass. Runs rotate through as many copies of the buffers as in the `warm` regime. Nothing is timed here.

use super::bench::Bench;
use super::cases::{Cases, ReadyCase};
use super::series::{make_sets, timed_batch};
use super::stop::{Lost, Stop};
use runner_backend::{DeviceError, EnergyReading, Step};
use runner_stats::{Look, Meter, MeterLimits};
use runner_types::{Activity, Energy, Event, Joules, Note, Phase, Regime, Watts};

/// Settling time of the power, then the minimum span and number of counter updates.
const LIMITS: MeterLimits = MeterLimits { settle: 0.3, span: 1.2, moves: 10 };

/// Maximum wait for the counter updates, in seconds.
const LONGEST: f64 = 20.0;

/// Measures the energy of every device case whose plan requests it.
pub fn meter_all(cases: &mut Cases<'_, '_>) -> Result<(), Lost> {
    let is_asked = |place: &usize| cases.bench.job.cases[*place].measure.energy;
    let places: Vec<usize> = cases.on_device().into_iter().filter(is_asked).collect();
    if places.is_empty() || cases.bench.is_profiled() {
        return Ok(());
    }
    if let Some(why) = cases.bench.device.energy_meter().err() {
        cases.bench.say(Event::EnergyMissing { why });
        return Ok(());
    }
    let phase = cases.bench.spend(Phase::Measure);
    for place in places {
        cases.step(place, |bench, case| meter(bench, case))?;
    }
    cases.bench.spend(phase);
    Ok(())
}

fn meter<'a>(bench: &mut Bench<'a>, case: &ReadyCase<'a>) -> Result<(), Stop> {
    // Two runs precede the readings, and two may be queued when the readings end.
    bench.announce(case.job, Activity::Measuring, 4.0 * case.job.measure.timeout + LONGEST);
    let series = make_sets(bench, case, Regime::Warm)?;
    let batch = timed_batch(bench, case, Regime::Warm, &series);
    let bodies: Vec<&[Step]> = batch.sets().map(Vec::as_slice).collect();
    let mut meter = Meter::new(LIMITS);
    let mut take = |EnergyReading { at, energy, runs }| {
        meter.take(Look { at, level: energy.0, done: runs });
        !meter.is_enough() && at < LONGEST
    };
    let ran = match bench.device.energy_meter() {
        Ok(device) => device.run_metered(&batch.prepare, &bodies, &mut take),
        Err(why) => Err(DeviceError::Unavailable(why)),
    };
    bench.store.free_copies(bench.device);
    ran?;
    let Some(gain) = meter.gain() else {
        let (moved, needed) = (u64::from(meter.moves()), u64::from(LIMITS.moves));
        bench.note(case.job, Note::NoEnergy { moved, seconds: LONGEST, needed });
        return Ok(());
    };
    let energy = Energy {
        per_run: Joules(gain.per_piece),
        power: Watts(gain.per_second),
        uncertainty: gain.uncertainty,
        runs: gain.pieces,
        seconds: gain.span,
    };
    bench.say(Event::CaseMetered { case: case.job.case.clone(), energy });
    Ok(())
}

//! Measures the correct cases in every regime they request, and reports the results.
//!
//! Between rounds the inputs change at random. Results of timed launches are checked when [`super::audit`] selects
//! them; the last one is always checked. A variant that fails such a check has no measurement.

use super::attribution::{Halt, look_at_inputs};
use super::bench::Bench;
use super::case_samples::{CaseSamples, Role};
use super::cases::Cases;
use super::check::Checked;
use super::energy::meter_all;
use super::host_timing::HostTiming;
use super::recheck::check_last;
use super::rounds::measure_regime;
use super::series::working_set;
use super::stop::Lost;
use runner_types::{Bytes, Event, Measurement, Note, Outcome, Phase, Regime};

/// Cases whose last timed launch was also correct, with their samples. On a device without a clock there are no
/// samples.
pub struct Measured<'b, 'a> {
    cases: Cases<'b, 'a>,
    tracks: Vec<CaseSamples>,
}

impl<'b, 'a> Measured<'b, 'a> {
    /// Times every case.
    ///
    /// A case that corrupts another's data is settled as wrong, and the others start again without it.
    pub fn measure(Checked { mut cases }: Checked<'b, 'a>) -> Result<Self, Lost> {
        cases.bench.spend(Phase::Measure);
        let mut tracks = Vec::new();
        while cases.bench.device.clock().is_some() {
            match measure_all(&mut cases) {
                Ok(measured) => {
                    tracks = measured;
                    break;
                }
                Err(Halt::Spoiled) => {}
                Err(Halt::Lost(lost)) => return Err(lost),
            }
        }
        meter_all(&mut cases)?;
        Ok(Self { cases, tracks })
    }

    /// Reports the samples of every case, and settles it.
    pub fn report(mut self) {
        let processes = self.cases.bench.processes;
        if processes > 1 {
            self.cases.bench.say(Event::SamplesShared { processes });
        }
        for place in self.cases.places() {
            self.report_case(place);
        }
    }

    fn report_case(&mut self, place: usize) {
        let working_set = self.cases.get(place).map_or(0, |case| working_set(self.cases.bench, case));
        let bench = &mut *self.cases.bench;
        let job = &bench.job.cases[place];
        let precision = bench.measure_plan(job).precision;
        let mut reached: Option<f64> = None;
        let mut own: Vec<CaseSamples> = self.tracks.extract_if(.., |track| track.place == place).collect();
        let mut controls: Vec<CaseSamples> = own.extract_if(.., |track| track.role == Role::Control).collect();
        for track in own {
            let half = track.reached();
            if track.half_width.is_none() || half > precision {
                reached = Some(reached.map_or(half, |worst| worst.max(half)));
            }
            let (tick, launch_interval) = clock_facts(bench, track.regime);
            let bound = launch_interval.and_then(|interval| track.launch_bound(interval));
            for note in track.oddities(precision, tick).into_iter().chain(bound) {
                bench.note(job, note);
            }
            if track.regime == Regime::Rotate {
                let (sets, l2) = (1 + track.series.others.len() as u32, bench.device.info().l2_bytes);
                let bytes = working_set * u64::from(sets);
                if bytes < l2 {
                    bench.note(job, Note::RotatesInCache { sets, bytes: Bytes(bytes), l2: Bytes(l2) });
                }
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
                alone: bench.is_alone,
                rounds: track.rounds,
                discarded: track.discarded,
                looks: track.looks,
            };
            bench.say(Event::CaseMeasured { case: job.case.clone(), measurement });
        }
        self.cases.settle(place, reached.map_or(Outcome::Measured, |reached| Outcome::Unstable { reached }));
    }
}

/// Clock resolution and, if runs are timed back to back, the interval between empty launches, both in nanoseconds.
fn clock_facts(bench: &mut Bench<'_>, regime: Regime) -> (f64, Option<f64>) {
    let Some(clock) = bench.device.clock() else { return (0.0, None) };
    let is_back_to_back = matches!(regime, Regime::Warm | Regime::Rotate);
    // Without the interval, only a note is missing.
    let interval = if is_back_to_back { clock.launch_interval().ok().flatten() } else { None };
    (clock.tick().unwrap_or(0.0), interval)
}

/// Measures the device, and at the same time host functions unless they would disturb it.
fn measure_all(cases: &mut Cases<'_, '_>) -> Result<Vec<CaseSamples>, Halt> {
    let early = (!cases.bench.job.needs_host()).then(|| HostTiming::begin(cases));
    let measured = match measure_device(cases) {
        lost @ Err(Halt::Lost(_)) => return lost,
        measured => measured,
    };
    let timing = early.unwrap_or_else(|| HostTiming::begin(cases));
    let host = timing.end(cases);
    let mut tracks = measured?;
    for track in host {
        check_last(cases, &track)?;
        tracks.push(track);
    }
    Ok(tracks)
}

fn measure_device(cases: &mut Cases<'_, '_>) -> Result<Vec<CaseSamples>, Halt> {
    let mut tracks = Vec::new();
    for regime in regimes(cases) {
        tracks.extend(measure_regime(cases, regime)?);
    }
    look_at_inputs(cases)?;
    Ok(tracks)
}

/// All regimes that the group's cases request, in order.
fn regimes(cases: &Cases<'_, '_>) -> Vec<Regime> {
    let jobs = &cases.bench.job.cases;
    let mut regimes: Vec<Regime> = jobs.iter().flat_map(|job| job.measure.regimes.clone()).collect();
    regimes.sort_unstable();
    regimes.dedup();
    regimes
}

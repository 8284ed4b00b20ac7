//! Times host functions on a separate thread, while the device is measured.
//!
//! Other work of this process leaves a core to this thread: see [`leave_a_core`](super::leave_a_core). The workers of
//! other devices have their own cores.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::case_samples::CaseSamples;
use super::cases::{Body, Cases};
use super::host::HostBody;
use runner_backend::{Series, Timing};
use runner_types::{Activity, MeasurePlan, Regime, Unit};

/// How often the group checks whether all functions have been timed.
const POLL: Duration = Duration::from_millis(10);

struct Timed {
    plan: MeasurePlan,
    body: Box<dyn HostBody>,
    track: CaseSamples,
}

/// Thread that times the functions of a group.
pub struct HostTiming {
    thread: JoinHandle<Vec<Timed>>,
    /// Indices of the cases that it times.
    places: Vec<usize>,
    /// Number of samples taken so far.
    beats: Arc<AtomicUsize>,
}

impl HostTiming {
    /// Starts timing every host function.
    pub fn begin(cases: &mut Cases<'_, '_>) -> Self {
        let mut timed = Vec::new();
        for case in cases.iter_mut() {
            match std::mem::replace(&mut case.body, Body::Timed) {
                Body::Host(body) => {
                    let plan = case.job.measure.clone();
                    let regime = plan.regimes.first().copied().unwrap_or(Regime::Cold);
                    let track = CaseSamples::new(case.place, regime, Unit::HostNanoseconds, Series::default());
                    timed.push(Timed { plan, body, track });
                }
                other => case.body = other,
            }
        }
        let places = timed.iter().map(|timed| timed.track.place).collect();
        let beats = Arc::new(AtomicUsize::new(0));
        let own = Arc::clone(&beats);
        let thread = thread::spawn(move || {
            for timed in &mut timed {
                timed.run(&own);
            }
            timed
        });
        Self { thread, places, beats }
    }

    /// Waits for the samples, and puts the functions back with the result of their last run.
    pub fn end(self, cases: &mut Cases<'_, '_>) -> Vec<CaseSamples> {
        let Self { thread, places, beats } = self;
        let mut seen = None;
        while !thread.is_finished() {
            let beat = beats.load(Ordering::Relaxed);
            if seen != Some(beat)
                && let Some(job) = places.first().map(|place| &cases.bench.job.cases[*place])
            {
                // The limit applies to one sample.
                cases.bench.announce(job, Activity::Measuring, job.measure.timeout);
            }
            seen = Some(beat);
            thread::sleep(POLL);
        }
        let timed = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let mut tracks = Vec::new();
        for Timed { body, track, .. } in timed {
            if let Some(case) = cases.iter_mut().find(|case| case.place == track.place) {
                case.body = Body::Host(body);
            }
            tracks.push(track);
        }
        tracks
    }
}

impl Timed {
    fn run(&mut self, beats: &AtomicUsize) {
        while !self.track.done {
            beats.fetch_add(1, Ordering::Relaxed);
            let whole = self.body.run().as_secs_f64() * 1e9;
            let round = self.track.rounds.len() as u32;
            self.track.record((round, 0), Timing { whole, each: Vec::new() }, 0.0);
            if self.track.is_enough(&self.plan, None) {
                self.track.close();
            }
        }
    }
}

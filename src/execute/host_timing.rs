//! Times functions of the host on a thread of their own, so that the device is measured meanwhile.
//!
//! Each function is timed while no worker of the host works on many cores. It gives the host back after a stretch, so
//! that the workers do not wait long for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::group::{Body, Group};
use super::host::HostBody;
use super::track::Track;
use crate::backend::{Series, Timing};
use crate::host_lock::{HostLock, POLL, Share};
use crate::model::{Activity, MeasurePlan, Regime, Unit};

/// How long samples of the host are taken before other workers may use it.
const STRETCH: Duration = Duration::from_millis(500);

/// A function that is timed.
struct Timed {
    plan: MeasurePlan,
    body: Box<dyn HostBody>,
    track: Track,
}

/// The thread that times the functions of a group.
pub struct HostTiming {
    thread: JoinHandle<Vec<Timed>>,
    /// The members that it times.
    members: Vec<usize>,
    /// Counts the samples, and each look at a host that is not free.
    beats: Arc<AtomicUsize>,
}

impl Group<'_> {
    /// Starts to time every function of the host that is right.
    pub fn begin_host(&mut self) -> HostTiming {
        let mut timed = Vec::new();
        for member in 0..self.members.len() {
            let state = &mut self.members[member];
            if let Some(Body::Host(body)) = state.body.take_if(|body| matches!(body, Body::Host(_))) {
                let plan = state.job.measure.clone();
                let regime = plan.regimes.first().copied().unwrap_or(Regime::Cold);
                let mut track = Track::new(member, regime, Unit::HostNanoseconds, Series::default());
                track.done = !state.is_right();
                timed.push(Timed { plan, body, track });
            }
        }
        let members = timed.iter().map(|timed| timed.track.member).collect();
        let beats = Arc::new(AtomicUsize::new(0));
        let (host, own) = (self.host.clone(), Arc::clone(&beats));
        let thread = thread::spawn(move || {
            for timed in &mut timed {
                timed.run(&host, &own);
            }
            timed
        });
        HostTiming { thread, members, beats }
    }

    /// Waits for the samples, and puts the functions back with the result of their last run.
    pub fn end_host(&mut self, timing: HostTiming) -> Vec<Track> {
        let HostTiming { thread, members, beats } = timing;
        let mut seen = None;
        while !thread.is_finished() {
            let beat = beats.load(Ordering::Relaxed);
            if seen != Some(beat)
                && let Some(member) = members.first()
            {
                // The limit is that of one sample.
                self.active(*member, Activity::Measuring, self.members[*member].job.measure.timeout);
            }
            seen = Some(beat);
            thread::sleep(POLL);
        }
        let timed = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let put_back = |Timed { body, track, .. }: Timed| {
            self.members[track.member].body = Some(Body::Host(body));
            track
        };
        timed.into_iter().map(put_back).filter(|track| !track.rounds.is_empty()).collect()
    }
}

impl Timed {
    fn run(&mut self, host: &HostLock, beats: &AtomicUsize) {
        while !self.track.done {
            let _alone = alone(host, beats);
            let since = Instant::now();
            while !self.track.done && since.elapsed() < STRETCH {
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
}

/// Waits until no worker works on many cores.
fn alone(host: &HostLock, beats: &AtomicUsize) -> Share {
    let mut waiting = None;
    loop {
        if let Some(share) = host.try_alone() {
            return share;
        }
        waiting.get_or_insert_with(|| tracing::info_span!("wait for the lock of the host, alone").entered());
        beats.fetch_add(1, Ordering::Relaxed);
        thread::sleep(POLL);
    }
}

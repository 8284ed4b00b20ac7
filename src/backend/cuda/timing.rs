//! Takes samples: CUDA events around runs that wait behind a gate.
//!
//! A cold run is: preparation; flush; gate closed; event, step, event, step, …, event. A sample of several runs queues
//! them all, as far as the queue's bounded depth allows, before the gate opens. A sample of the other regimes is:
//! preparation; gate closed; leading runs; event, run, run, …, event, or a graph of these runs in their place. Nothing
//! here chooses how many runs there are.

use super::flush::Flush;
use super::gate::{self, Closed, Gate, MOST_QUEUED};
use super::graph::Graphs;
use super::handles::{Context, Event, Stream};
use super::operation::{Operation, queue_all, settle};
use super::plugin::HostFunction;
use crate::backend::{Batch, DeviceError, Timing, operations};
use crate::model::{DeviceInfo, Regime};

use cudarc::driver::sys;

/// Readings that tell the step of the clock.
const TICK_READINGS: usize = 24;

/// What measuring needs, made once a device.
#[derive(Debug)]
pub(super) struct Timer {
    flush: Flush,
    /// The gate, or why there is none.
    gate: Result<Gate, String>,
    /// As many as the longest sample took so far.
    events: Vec<Event>,
    /// What an interval between two events reads besides the kernel in it, nanoseconds.
    of_itself: f64,
    /// Step of the events' clock, nanoseconds.
    tick: f64,
    pub graphs: Graphs,
}

/// A batch with everything resolved.
#[derive(Debug)]
pub(super) struct Work<'a> {
    pub prepare: Vec<Operation<'a>>,
    /// The body on each set of buffers.
    pub bodies: Vec<Vec<Operation<'a>>>,
}

impl Work<'_> {
    fn is_warm(&self) -> bool {
        self.bodies.iter().flatten().all(Operation::is_warm)
    }

    pub fn note_ran(&self) {
        self.bodies.iter().flatten().for_each(Operation::note_ran);
    }

    fn functions(&self) -> impl Iterator<Item = &HostFunction> {
        self.bodies.iter().flatten().filter_map(Operation::function)
    }

    /// What was found out about its host functions since it was last asked.
    pub fn news(&self) -> Vec<String> {
        self.functions().filter_map(HostFunction::news).collect()
    }

    /// Queues behind a gate. A host function may wait for what the gate holds back: it then opens by itself, and the
    /// function is noted as one that waits.
    fn queue_behind(
        &self,
        gate: Option<&Closed<'_>>,
        queue: impl FnOnce() -> Result<(), DeviceError>,
    ) -> Result<(), DeviceError> {
        let Some(closed) = gate.filter(|_| self.functions().next().is_some()) else { return queue() };
        let (queued, held) = closed.watched(queue);
        if !held {
            self.functions().for_each(HostFunction::note_waits);
        }
        queued
    }
}

impl Timer {
    pub fn new(
        context: &Context,
        stream: &Stream,
        device: sys::CUdevice,
        info: &DeviceInfo,
    ) -> Result<Self, DeviceError> {
        let flush = Flush::new(context, stream, device, info)?;
        let events = vec![Event::new()?, Event::new()?];
        let trial = || {
            events[0].record(stream)?;
            flush.queue(stream)?;
            events[1].record(stream)
        };
        let gate = gate::open_or_explain(stream, trial)?;
        let mut readings = Vec::with_capacity(TICK_READINGS);
        for _ in 0..TICK_READINGS {
            trial()?;
            stream.synchronize()?;
            readings.push(events[0].nanoseconds_to(&events[1])?.round() as u64);
        }
        let (tick, graphs) = (common_step(&readings), Graphs::default());
        Ok(Self { flush, gate, events, of_itself: 0.0, tick, graphs })
    }

    /// How times are taken, in one sentence for the environment.
    pub fn method(&self) -> String {
        sentence(self.gate.as_ref().err().map(String::as_str), self.flush.bytes())
    }

    /// Takes `nanoseconds` off every interval from now on.
    pub fn calibrate(&mut self, nanoseconds: f64) {
        self.of_itself = nanoseconds;
    }

    pub fn tick(&self) -> f64 {
        self.tick
    }

    /// Takes `batch.repeat` samples of a timed batch; `work` is what it resolves to.
    pub fn samples(&mut self, stream: &Stream, batch: &Batch, work: &Work<'_>) -> Result<Vec<Timing>, DeviceError> {
        (0..batch.repeat)
            .map(|_| {
                let may_be_gated = work.is_warm();
                let timing = self.sample(stream, batch, work)?;
                // A gate that opened by itself let half of the sample go before the rest was queued.
                if may_be_gated && !work.is_warm() { self.sample(stream, batch, work) } else { Ok(timing) }
            })
            .collect()
    }

    fn sample(&mut self, stream: &Stream, batch: &Batch, work: &Work<'_>) -> Result<Timing, DeviceError> {
        match batch.regime {
            Regime::Cold => self.cold(stream, batch, work),
            _ => self.back_to_back(stream, batch, work),
        }
    }

    /// The mean of cold runs.
    fn cold(&mut self, stream: &Stream, batch: &Batch, work: &Work<'_>) -> Result<Timing, DeviceError> {
        let (steps, launches) = (work.bodies.first().map_or(0, Vec::len), batch.series.launches.max(1));
        self.flush.reset_persisting()?;
        // Each step has an event behind it.
        let body = operations(&batch.steps) + steps;
        let gated = self.gate.is_ok() && work.is_warm() && body < MOST_QUEUED;
        let together = if gated { (MOST_QUEUED / (work.prepare.len() + body + 3)).max(1) } else { 1 };
        let (mut whole, mut each) = (0.0, vec![0.0; if steps > 1 { steps } else { 0 }]);
        let mut left = launches as usize;
        while left > 0 {
            let runs = left.min(together);
            self.provide_events(runs * (steps + 1))?;
            let queued = self.queue_cold(stream, work, runs, gated);
            settle(queued, stream)?;
            work.note_ran();
            for events in self.events.chunks_exact(steps + 1).take(runs) {
                whole += self.interval(&events[0], &events[steps])?;
                for (sum, pair) in each.iter_mut().zip(events.windows(2)) {
                    *sum += self.interval(&pair[0], &pair[1])?;
                }
            }
            left -= runs;
        }
        Ok(mean(whole, each, launches))
    }

    /// Queues some runs. The gate is open when this returns, whatever it returns.
    fn queue_cold(&mut self, stream: &Stream, work: &Work<'_>, runs: usize, gated: bool) -> Result<(), DeviceError> {
        let Self { flush, gate, events, .. } = self;
        let steps = work.bodies.first().map_or(&[][..], Vec::as_slice);
        let closed = gate.as_mut().ok().filter(|_| gated).map(Gate::close);
        work.queue_behind(closed.as_ref(), || {
            for events in events.chunks_exact(steps.len() + 1).take(runs) {
                queue_all(&work.prepare, stream)?;
                flush.queue(stream)?;
                // Each run waits, so that each stands behind the same operations.
                if let Some(closed) = &closed {
                    closed.wait(stream)?;
                }
                events[0].record(stream)?;
                for (step, event) in steps.iter().zip(&events[1..]) {
                    step.queue(stream)?;
                    event.record(stream)?;
                }
            }
            Ok(())
        })
    }

    /// From one event to another, less what the pair reads of itself.
    fn interval(&self, from: &Event, to: &Event) -> Result<f64, DeviceError> {
        Ok((from.nanoseconds_to(to)? - self.of_itself).max(0.0))
    }

    /// The mean of runs that follow each other, or of the runs of a graph.
    fn back_to_back(&mut self, stream: &Stream, batch: &Batch, work: &Work<'_>) -> Result<Timing, DeviceError> {
        let launches = batch.series.launches.max(1);
        self.provide_events(2)?;
        if batch.regime == Regime::Graph {
            // Capturing waits for nothing and runs nothing; it stands outside of the gate.
            let steps = std::iter::once(&batch.steps).chain(&batch.series.others).cloned().collect();
            self.graphs.of(stream, steps, &work.bodies, launches)?;
        }
        let queued = self.queue_span(stream, batch, work, launches);
        settle(queued, stream)?;
        work.note_ran();
        let span = self.interval(&self.events[0], &self.events[1])?;
        Ok(Timing { whole: span / f64::from(launches), each: Vec::new() })
    }

    fn queue_span(
        &mut self,
        stream: &Stream,
        batch: &Batch,
        work: &Work<'_>,
        launches: u32,
    ) -> Result<(), DeviceError> {
        let Self { gate, events, graphs, .. } = self;
        let is_graph = batch.regime == Regime::Graph;
        let lead = batch.series.lead as usize;
        let operations = 3 + operations(&batch.steps) * (lead + if is_graph { 0 } else { launches as usize });
        queue_all(&work.prepare, stream)?;
        let fits = operations < MOST_QUEUED && work.is_warm();
        let closed = gate.as_mut().ok().filter(|_| fits).map(Gate::close);
        if let Some(closed) = &closed {
            closed.wait(stream)?;
        }
        // The last set leads where there is one run: the first is then the first to follow.
        let sets = work.bodies.len().max(1);
        let first = (sets - lead % sets) % sets;
        work.queue_behind(closed.as_ref(), || {
            for body in work.bodies.iter().cycle().skip(first).take(lead) {
                queue_all(body, stream)?;
            }
            events[0].record(stream)?;
            if is_graph {
                let steps = std::iter::once(&batch.steps).chain(&batch.series.others).cloned().collect();
                graphs.of(stream, steps, &work.bodies, launches)?.launch(stream)?;
            } else {
                for body in work.bodies.iter().cycle().take(launches as usize) {
                    queue_all(body, stream)?;
                }
            }
            events[1].record(stream)
        })
    }

    fn provide_events(&mut self, count: usize) -> Result<(), DeviceError> {
        while self.events.len() < count {
            self.events.push(Event::new()?);
        }
        Ok(())
    }
}

/// From sums over runs to means.
fn mean(whole: f64, each: Vec<f64>, launches: u32) -> Timing {
    let over = |sum: f64| sum / f64::from(launches);
    Timing { whole: over(whole), each: each.into_iter().map(over).collect() }
}

/// The largest step that all readings are multiples of, nanoseconds.
fn common_step(readings: &[u64]) -> f64 {
    let step = readings.iter().fold(0, |step, reading| divisor(step, *reading));
    step.max(1) as f64
}

const fn divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { divisor(b, a % b) }
}

fn sentence(no_gate: Option<&str>, flush: u64) -> String {
    let gate = match no_gate {
        None => "launches queued behind a gate and let go together".to_owned(),
        Some(reason) => format!("launches not gated ({reason}), so that launch latency is in the figures"),
    };
    format!("CUDA events around each body, {gate}, L2 flushed before each by reading {} MiB", flush >> 20)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sentence_says_whether_launches_were_gated() {
        assert_eq!(
            sentence(None, 125 << 20),
            "CUDA events around each body, launches queued behind a gate and let go together, L2 flushed before each \
             by reading 125 MiB"
        );
        assert_eq!(
            sentence(Some("CUDA_LAUNCH_BLOCKING is set"), 16 << 20),
            "CUDA events around each body, launches not gated (CUDA_LAUNCH_BLOCKING is set), so that launch latency \
             is in the figures, L2 flushed before each by reading 16 MiB"
        );
    }

    #[test]
    fn the_clock_steps_by_what_all_readings_share() {
        assert!((common_step(&[5792, 5760, 6016, 5824]) - 32.0).abs() < 1e-12);
        assert!((common_step(&[1001, 1500, 1703]) - 1.0).abs() < 1e-12);
        assert!((common_step(&[]) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn a_sample_of_several_runs_is_their_mean_step_by_step() {
        let timing = mean(93.0, vec![30.0, 60.0], 3);
        assert_eq!((timing.whole, timing.each.as_slice()), (31.0, &[10.0, 20.0][..]));
        let single = mean(30.0, Vec::new(), 3);
        assert_eq!((single.whole, single.each.len()), (10.0, 0));
    }
}

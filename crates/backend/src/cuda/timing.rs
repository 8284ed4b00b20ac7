//! Takes samples: CUDA events around runs that wait behind a gate.
//!
//! A cold run is: empty launches ([`super::cycle`]); preparation; flush; gate closed; event, steps, event. The launches
//! of a sequence are timed in separate runs, with an event between consecutive launches. Each cold run is queued alone:
//! operations behind the second event, even the next run's flush, shift that event's time by up to 1.5 µs on an H100,
//! irregularly.
//!
//! A sample in the other regimes is: preparation; gate closed; leading runs; event, run, run, …, event, or a graph of
//! these runs. The caller chooses the number of runs.

use super::cycle::{self, Cycle};
use super::flush::Flush;
use super::gate::{self, Gate, MOST_QUEUED};
use super::graph::Graphs;
use super::handles::{Context, Event, Stream};
use super::operation::{Operation, queue_all};
use super::probe::{Filled, Probe};
use super::work::Work;
use crate::{DeviceError, TimedBatch, Timing, operations};
use runner_lang::format::bytes;
use runner_stats::trimmed_mean;
use runner_types::{DeviceInfo, Regime};

use std::hash::BuildHasher as _;

use cudarc::driver::sys;

/// On average, one in this many batches with host functions is probed.
const PROBE_EVERY: u64 = 4;

/// Number of launches that are timed together to find the launch interval; they fit the queue behind a gate.
const EMPTY_LAUNCHES: u32 = 256;

/// Number of readings that determine the clock's resolution.
const TICK_READINGS: usize = 24;

/// Resources for measuring, created once per device.
#[derive(Debug)]
pub(super) struct Timer {
    flush: Flush,
    cycle: Cycle,
    /// The gate, or the reason for having none.
    gate: Result<Gate, String>,
    /// Events; as many as the longest sample has needed.
    events: Vec<Event>,
    /// Nanoseconds between two events besides the kernel between them.
    overhead: f64,
    /// Resolution of the events' clock in nanoseconds.
    tick: f64,
    launch_interval: Option<f64>,
    pub graphs: Graphs,
    /// Created for the first host function.
    probe: Option<Probe>,
}

/// Where the events of a run are recorded.
#[derive(Debug, Clone, Copy)]
enum Events {
    /// Before and after the body.
    Around,
    /// Also between the steps of the body.
    Between,
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
        Ok(Self {
            flush,
            cycle: Cycle::new(),
            gate,
            events,
            overhead: 0.0,
            tick,
            launch_interval: None,
            graphs,
            probe: None,
        })
    }

    /// How times are measured, as a sentence for the report's environment.
    pub fn method(&self) -> String {
        sentence(self.gate.as_ref().err().map(String::as_str), self.flush.bytes())
    }

    pub fn is_gated(&self) -> bool {
        self.gate.is_ok()
    }

    /// Subtracts `nanoseconds` from every later interval.
    pub fn calibrate(&mut self, nanoseconds: f64) {
        self.overhead = nanoseconds;
    }

    pub fn tick(&self) -> f64 {
        self.tick
    }

    /// Nanoseconds from one empty launch to the next, measured on first use.
    pub fn launch_interval(&mut self, stream: &Stream) -> Result<f64, DeviceError> {
        if let Some(known) = self.launch_interval {
            return Ok(known);
        }
        let Self { flush, gate, events, .. } = self;
        let closed = gate.as_mut().ok().map(Gate::close);
        let queue = || {
            if let Some(closed) = &closed {
                closed.wait(stream)?;
            }
            flush.queue_empty(stream)?;
            events[0].record(stream)?;
            for _ in 0..EMPTY_LAUNCHES {
                flush.queue_empty(stream)?;
            }
            events[1].record(stream)
        };
        let queued = queue();
        drop(closed);
        stream.settle(queued)?;
        let interval = self.interval(&self.events[0], &self.events[1])? / f64::from(EMPTY_LAUNCHES);
        Ok(*self.launch_interval.insert(interval))
    }

    /// Takes `batch.samples` samples; `work` is the resolved batch.
    pub fn samples(
        &mut self,
        at: (&Context, &Stream),
        batch: &TimedBatch,
        work: &Work<'_>,
    ) -> Result<Vec<Timing>, DeviceError> {
        (0..batch.samples)
            .map(|_| {
                let may_be_gated = work.is_warm();
                let timing = self.sample(at, batch, work)?;
                // The gate opened by itself, so part of the sample ran before the rest was queued.
                if may_be_gated && !work.is_warm() { self.sample(at, batch, work) } else { Ok(timing) }
            })
            .collect()
    }

    /// Probes about one in four batches with host functions, at random, so that a function cannot know which.
    pub fn probe(
        &mut self,
        (context, stream): (&Context, &Stream),
        work: &Work<'_>,
        filled: &[Filled],
    ) -> Result<(), DeviceError> {
        let Some(function) = work.functions().next().filter(|_| work.is_warm()) else { return Ok(()) };
        let Ok(gate) = &mut self.gate else { return Ok(()) };
        if !std::hash::RandomState::new().hash_one(0).is_multiple_of(PROBE_EVERY) {
            return Ok(());
        }
        let probe = match self.probe.take() {
            Some(probe) => probe,
            None => Probe::new()?,
        };
        let is_elsewhere = self.probe.insert(probe).finds_work_elsewhere((context, stream), gate, (work, filled))?;
        if is_elsewhere { Err(function.works_elsewhere()) } else { Ok(()) }
    }

    fn sample(&mut self, at: (&Context, &Stream), batch: &TimedBatch, work: &Work<'_>) -> Result<Timing, DeviceError> {
        match batch.regime {
            Regime::Cold => self.cold(at.1, batch, work),
            _ => self.back_to_back(at, batch, work),
        }
    }

    /// Takes a sample of cold runs. The launches of a sequence are timed in separate runs, since an event between two
    /// of them delays the second one, by a microsecond on an H100.
    fn cold(&mut self, stream: &Stream, batch: &TimedBatch, work: &Work<'_>) -> Result<Timing, DeviceError> {
        let whole = self.cold_runs(stream, batch, work, Events::Around)?;
        let several = !batch.series.whole_only && work.bodies.first().is_some_and(|steps| steps.len() > 1);
        let each = if several { self.cold_runs(stream, batch, work, Events::Between)? } else { Vec::new() };
        Ok(Timing { whole: whole.iter().sum(), each })
    }

    /// Intervals of a run, each a trimmed mean over the sample's runs, because occasionally the driver inserts an
    /// operation of its own, which takes most of a microsecond.
    fn cold_runs(
        &mut self,
        stream: &Stream,
        batch: &TimedBatch,
        work: &Work<'_>,
        place: Events,
    ) -> Result<Vec<f64>, DeviceError> {
        let runs = batch.series.launches.max(1);
        let steps = work.bodies.first().map_or(0, Vec::len);
        let (runs, intervals) = match place {
            Events::Around => (runs, 1),
            Events::Between => (cycle::runs_of_parts(runs), steps),
        };
        self.flush.reset_persisting()?;
        // An event follows each interval, and the gate is one more operation.
        let gated = self.gate.is_ok() && work.is_warm() && operations(&batch.steps) + intervals + 1 < MOST_QUEUED;
        self.provide_events(intervals + 1)?;
        let mut readings = vec![Vec::with_capacity(runs as usize); intervals];
        let own = cycle::launches(&work.prepare, work.bodies.first().map_or(&[][..], Vec::as_slice));
        for run in 0..runs {
            for _ in 0..self.cycle.empty_launches(run, own) {
                self.flush.queue_empty(stream)?;
            }
            let queued = self.queue_cold(stream, work, (place, gated));
            stream.settle(queued)?;
            work.note_ran();
            work.finish(stream)?;
            for (readings, pair) in readings.iter_mut().zip(self.events.windows(2)) {
                readings.push(self.interval(&pair[0], &pair[1])?);
            }
        }
        Ok(readings.iter().map(|readings| trimmed_mean(readings).unwrap_or(f64::NAN)).collect())
    }

    /// Queues a run. The gate is open when this returns, even with an error.
    fn queue_cold(
        &mut self,
        stream: &Stream,
        work: &Work<'_>,
        (place, gated): (Events, bool),
    ) -> Result<(), DeviceError> {
        let Self { flush, gate, events, .. } = self;
        let steps = work.bodies.first().map_or(&[][..], Vec::as_slice);
        let closed = gate.as_mut().ok().filter(|_| gated).map(Gate::close);
        let pieces: Vec<&[Operation<'_>]> = match place {
            Events::Around => vec![steps],
            Events::Between => steps.chunks(1).collect(),
        };
        work.queue_behind(closed.as_ref(), || {
            queue_all(&work.prepare, stream)?;
            flush.queue(stream)?;
            if let Some(closed) = &closed {
                closed.wait(stream)?;
            }
            let mut events = events.iter();
            let mut record = || events.next().map_or(Ok(()), |event| event.record(stream));
            record()?;
            for piece in &pieces {
                queue_all(piece, stream)?;
                record()?;
            }
            Ok(())
        })
    }

    /// Time between two events, minus the overhead of the pair.
    fn interval(&self, from: &Event, to: &Event) -> Result<f64, DeviceError> {
        Ok((from.nanoseconds_to(to)? - self.overhead).max(0.0))
    }

    /// Mean of consecutive runs, or of the runs of a graph.
    fn back_to_back(
        &mut self,
        at: (&Context, &Stream),
        batch: &TimedBatch,
        work: &Work<'_>,
    ) -> Result<Timing, DeviceError> {
        let launches = batch.series.launches.max(1);
        self.provide_events(2)?;
        if batch.regime == Regime::Graph {
            // Capturing runs nothing and is not gated.
            let steps = batch.sets().cloned().collect();
            self.graphs.prepare(at, steps, &work.bodies, launches)?;
        }
        let queued = self.queue_span(at, batch, work, launches);
        at.1.settle(queued)?;
        if batch.regime == Regime::Graph {
            let steps = batch.sets().cloned().collect();
            let iterations = self.graphs.prepare(at, steps, &work.bodies, launches)?.iterations(at.1)?;
            work.note_iterations(iterations);
        }
        work.note_ran();
        work.finish(at.1)?;
        let span = self.interval(&self.events[0], &self.events[1])?;
        Ok(Timing { whole: span / f64::from(launches), each: Vec::new() })
    }

    fn queue_span(
        &mut self,
        at: (&Context, &Stream),
        batch: &TimedBatch,
        work: &Work<'_>,
        launches: u32,
    ) -> Result<(), DeviceError> {
        let stream = at.1;
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
        // Leading runs use the last sets, so that the timed runs begin with the first.
        let sets = work.bodies.len().max(1);
        let first = (sets - lead % sets) % sets;
        work.queue_behind(closed.as_ref(), || {
            for body in work.bodies.iter().cycle().skip(first).take(lead) {
                queue_all(body, stream)?;
            }
            events[0].record(stream)?;
            if is_graph {
                let steps = batch.sets().cloned().collect();
                graphs.prepare(at, steps, &work.bodies, launches)?.launch(stream)?;
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

/// Largest step in nanoseconds of which all readings are multiples.
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
        Some(reason) => format!("launches not gated ({reason}), so times include launch latency"),
    };
    format!("CUDA events around each body, {gate}, L2 flushed before each by reading {}", bytes(flush))
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
            "CUDA events around each body, launches not gated (CUDA_LAUNCH_BLOCKING is set), so times include \
             launch latency, L2 flushed before each by reading 16 MiB"
        );
    }

    #[test]
    fn the_clock_steps_by_what_all_readings_share() {
        assert!((common_step(&[5792, 5760, 6016, 5824]) - 32.0).abs() < 1e-12);
        assert!((common_step(&[1001, 1500, 1703]) - 1.0).abs() < 1e-12);
        assert!((common_step(&[]) - 1.0).abs() < 1e-12);
    }
}

//! Runs work back to back while the energy counter is read.
//!
//! Two portions of runs are always queued. While one runs, the host reads the counter, which takes a few milliseconds,
//! and queues the next. Runs are captured into a CUDA graph if possible, since short ones would wait for the host to
//! launch them. The rate of the runs is measured with the host's clock.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::graph::Graph;
use super::handles::{Event, Stream};
use super::operation::{Operation, queue_all};
use super::work::Work;
use crate::{DeviceError, EnergyReading};
use runner_types::Joules;

/// Duration of a portion, longer than reading the counter and queueing another portion.
const PORTION: Duration = Duration::from_millis(12);

/// Maximum number of operations in a graph.
const MOST_IN_GRAPH: usize = 384;

/// Maximum number of graph launches in a portion, or of runs if there is no graph.
const MOST_REPEATS: u32 = 1 << 14;

/// Work that is queued repeatedly.
struct Portion<'a, 'b> {
    bodies: &'a [Vec<Operation<'b>>],
    /// Graph of runs that rotate through the bodies, and the number of these runs.
    graph: Option<(Graph, u32)>,
    /// Graph launches, or runs, per portion.
    repeats: u32,
    /// Index of the next body, if there is no graph.
    next: usize,
}

impl<'a, 'b> Portion<'a, 'b> {
    /// A portion of about `wanted` runs, as a graph if the body can be captured.
    fn new(stream: &Stream, bodies: &'a [Vec<Operation<'b>>], wanted: u32) -> Self {
        let of_run = bodies.first().map_or(1, Vec::len);
        let in_graph = runs_in_graph(wanted, of_run, bodies.len());
        let may_be_captured = in_graph > 1 && bodies.iter().flatten().all(|step| step.function().is_none());
        let runs = bodies.iter().cycle().take(in_graph as usize);
        let capture = || Graph::capture(stream, || runs.flatten().try_for_each(|step| step.queue(stream)));
        // A body that cannot be captured is launched run by run. A lost context shows up at the next call.
        let graph = may_be_captured.then(capture).and_then(Result::ok);
        let repeats = if graph.is_some() { wanted.div_ceil(in_graph) } else { wanted };
        Self { bodies, graph: graph.map(|graph| (graph, in_graph)), repeats: repeats.min(MOST_REPEATS), next: 0 }
    }

    /// Queues a portion; returns its number of runs.
    fn queue(&mut self, stream: &Stream) -> Result<u64, DeviceError> {
        for _ in 0..self.repeats {
            match &self.graph {
                Some((graph, _)) => graph.launch(stream)?,
                None => queue_all(&self.bodies[self.next % self.bodies.len()], stream)?,
            }
            self.next += 1;
        }
        Ok(u64::from(self.repeats) * self.graph.as_ref().map_or(1, |(_, runs)| u64::from(*runs)))
    }
}

/// Queued portions that may still be running.
struct Line {
    ahead: VecDeque<(Event, u64)>,
    idle: Vec<Event>,
}

impl Line {
    fn join(&mut self, runs: u64, stream: &Stream) -> Result<(), DeviceError> {
        let event = self.idle.pop().map_or_else(Event::untimed, Ok)?;
        event.record(stream)?;
        self.ahead.push_back((event, runs));
        Ok(())
    }

    /// Removes finished portions; returns their number of runs.
    fn done(&mut self) -> Result<u64, DeviceError> {
        let mut runs = 0;
        while let Some((event, _)) = self.ahead.front()
            && event.is_done()?
        {
            if let Some((event, of_portion)) = self.ahead.pop_front() {
                self.idle.push(event);
                runs += of_portion;
            }
        }
        Ok(runs)
    }
}

/// Runs `work` until `continues` returns false; `counter` reads the energy.
pub(super) fn run_metered(
    stream: &Stream,
    work: &Work<'_>,
    counter: impl Fn() -> Result<Joules, String>,
    continues: &mut dyn FnMut(EnergyReading) -> bool,
) -> Result<(), DeviceError> {
    if work.bodies.iter().all(Vec::is_empty) {
        return Err(DeviceError::InvalidLaunch("there is nothing to run, so no energy can be measured".to_owned()));
    }
    stream.settle(queue_all(&work.prepare, stream))?;
    // One run to warm up, and one to measure its duration.
    stream.settle(queue_all(&work.bodies[0], stream))?;
    let since = Instant::now();
    stream.settle(queue_all(&work.bodies[0], stream))?;
    let mut portion = Portion::new(stream, &work.bodies, runs_in_portion(since.elapsed()));
    let met = go_on(stream, &mut portion, counter, continues);
    stream.settle(met)?;
    work.note_ran();
    Ok(())
}

fn go_on(
    stream: &Stream,
    portion: &mut Portion<'_, '_>,
    counter: impl Fn() -> Result<Joules, String>,
    continues: &mut dyn FnMut(EnergyReading) -> bool,
) -> Result<(), DeviceError> {
    let (start, mut runs) = (Instant::now(), 0);
    let mut line = Line { ahead: VecDeque::new(), idle: Vec::new() };
    loop {
        while line.ahead.len() < 2 {
            let queued = portion.queue(stream)?;
            line.join(queued, stream)?;
        }
        let energy = counter()
            .map_err(|message| DeviceError::Driver { call: "nvmlDeviceGetTotalEnergyConsumption", message })?;
        runs += line.done()?;
        if line.ahead.is_empty() {
            // The device waited for the host, so the portions are too short.
            portion.repeats = (portion.repeats * 2).min(MOST_REPEATS);
        }
        if !continues(EnergyReading { at: start.elapsed().as_secs_f64(), energy, runs }) {
            return Ok(());
        }
    }
}

/// Number of runs in a portion if one run takes `took`.
fn runs_in_portion(took: Duration) -> u32 {
    let wanted = PORTION.as_secs_f64() / took.as_secs_f64().max(1e-7);
    (wanted.ceil() as u32).clamp(1, MOST_REPEATS)
}

/// Number of runs in a graph, up to `wanted`: a multiple of the sets, so that all sets run equally often.
fn runs_in_graph(wanted: u32, operations: usize, sets: usize) -> u32 {
    let most = wanted.min((MOST_IN_GRAPH / operations.max(1)) as u32);
    most - most % sets.max(1) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_portion_outlasts_the_reading_of_the_counter_and_is_bounded() {
        assert_eq!(runs_in_portion(Duration::from_millis(1)), 12);
        assert_eq!(runs_in_portion(Duration::from_millis(700)), 1);
        assert_eq!(runs_in_portion(Duration::ZERO), MOST_REPEATS);
    }

    #[test]
    fn a_graph_uses_every_set_equally_often_and_no_more_operations_than_it_may() {
        assert_eq!(runs_in_graph(1000, 1, 1), 384);
        assert_eq!(runs_in_graph(1000, 3, 32), 128);
        assert_eq!(runs_in_graph(1000, 2, 32), 192);
        assert_eq!(runs_in_graph(7, 1, 1), 7);
        assert_eq!(runs_in_graph(7, 1, 32), 0);
        assert_eq!(runs_in_graph(7, 1000, 1), 0);
    }
}

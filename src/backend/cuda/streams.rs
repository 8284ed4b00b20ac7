//! Bodies whose launches are in several streams: all begin together, and together they end.
//!
//! To whoever queues it such a body is one operation of the device's own stream: the others wait for a mark in it before
//! their first launch, and it waits for theirs after the last. So a body stands between two events, behind a gate and in
//! a graph as any other does. Nothing here decides what may run beside what.

use super::handles::{Event, Stream};
use super::operation::{Operation, worse};
use crate::backend::{DeviceError, Step, streams};

/// The streams beside the device's own, made when first needed.
#[derive(Debug, Default)]
pub(super) struct Lanes {
    begin: Option<Event>,
    others: Vec<(Stream, Event)>,
}

/// Operations with the stream of each.
#[derive(Debug)]
pub(super) struct Concurrent<'a> {
    begin: &'a Event,
    others: &'a [(Stream, Event)],
    steps: Vec<(usize, Operation<'a>)>,
}

impl Lanes {
    /// Sees to it that these steps have their streams.
    pub fn provide(&mut self, steps: &[Step]) -> Result<(), DeviceError> {
        let others = streams(steps) - 1;
        if others > 0 && self.begin.is_none() {
            self.begin = Some(Event::untimed()?);
        }
        while self.others.len() < others {
            self.others.push((Stream::new()?, Event::untimed()?));
        }
        Ok(())
    }

    /// What steps resolve to, as one operation where they are in several streams, which are provided.
    pub fn arrange<'a>(&'a self, steps: &[Step], resolved: Vec<Operation<'a>>) -> Vec<Operation<'a>> {
        let others = self.others.get(..streams(steps) - 1).unwrap_or_default();
        let Some(begin) = self.begin.as_ref().filter(|_| !others.is_empty()) else { return resolved };
        let stream = |step: &Step| if let Step::Launch(launch) = step { launch.stream as usize } else { 0 };
        let steps = steps.iter().map(stream).zip(resolved).collect();
        vec![Operation::Concurrent(Concurrent { begin, others, steps })]
    }
}

impl<'a> Concurrent<'a> {
    /// The streams come together again whatever became of queueing, so that who waits for `stream` waits for all.
    pub fn queue(&self, stream: &Stream) -> Result<(), DeviceError> {
        self.begin.record(stream)?;
        let queued =
            self.others.iter().try_for_each(|(other, _)| other.wait(self.begin)).and_then(|()| {
                self.steps.iter().try_for_each(|(number, step)| step.queue(self.stream(stream, *number)))
            });
        let joined = self.others.iter().try_for_each(|(other, done)| {
            done.record(other)?;
            stream.wait(done)
        });
        worse(queued, joined)
    }

    fn stream<'s>(&'s self, own: &'s Stream, number: usize) -> &'s Stream {
        number.checked_sub(1).and_then(|other| self.others.get(other)).map_or(own, |(stream, _)| stream)
    }

    /// The step of this number.
    pub fn step_mut(&mut self, step: usize) -> Option<&mut Operation<'a>> {
        self.steps.get_mut(step).map(|(_, step)| step)
    }

    /// What the body is made of.
    pub fn steps(&self) -> impl Iterator<Item = &Operation<'_>> {
        self.steps.iter().map(|(_, step)| step)
    }
}

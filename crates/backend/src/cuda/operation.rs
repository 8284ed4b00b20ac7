//! Steps of a batch with all ids resolved and all limits checked, ready to be queued repeatedly.
//!
//! Queueing allocates nothing and decides nothing, so that it can be part of a timed span.

use cudarc::driver::sys;

use super::array::ArrayCopy;
use super::handles::{Event, Stream, worse};
use super::kernel::{Arguments, Kernel};
use super::launch::Shape;
use super::memory;
use super::plugin::HostFunction;
use super::repeated::Repeated;
use crate::{DeviceError, Step, streams};

/// An operation that is queued in a stream.
#[derive(Debug)]
pub(super) enum Operation<'a> {
    Copy {
        to: sys::CUdeviceptr,
        from: sys::CUdeviceptr,
        bytes: usize,
    },
    Launch {
        kernel: &'a Kernel,
        shape: Shape,
        arguments: Arguments,
        /// Copies into arrays before the launch, and from arrays after it.
        copies: Box<[ArrayCopy]>,
    },
    Array(ArrayCopy),
    Call {
        function: &'a HostFunction,
        arguments: Arguments,
    },
    /// Sets every element to a number of 1, 2 or 4 bytes.
    Set {
        address: sys::CUdeviceptr,
        value: (u32, usize),
        bytes: usize,
    },
    Loop(Repeated<'a, Operation<'a>>),
    Concurrent(Concurrent<'a>),
}

/// A body in several streams: operations, each with its stream.
#[derive(Debug)]
pub(super) struct Concurrent<'a> {
    pub begin: &'a Event,
    pub others: &'a [(Stream, Event)],
    pub steps: Vec<(usize, Operation<'a>)>,
}

impl Operation<'_> {
    pub fn queue(&self, stream: &Stream) -> Result<(), DeviceError> {
        match self {
            Self::Copy { to, from, bytes } => memory::copy(stream, *to, *from, *bytes),
            Self::Launch { kernel, shape, arguments, copies } => {
                copies.iter().filter(|copy| !copy.is_store).try_for_each(|copy| copy.queue(stream))?;
                kernel.launch(stream, shape, arguments)?;
                copies.iter().filter(|copy| copy.is_store).try_for_each(|copy| copy.queue(stream))
            }
            Self::Array(copy) => copy.queue(stream),
            Self::Call { function, arguments } => function.call(stream, arguments),
            Self::Concurrent(body) => body.queue(stream),
            Self::Set { address, value, bytes } => memory::set(stream, *address, *value, *bytes),
            Self::Loop(repeated) => repeated.run(stream, queue_all),
        }
    }

    /// Whether queueing never blocks. A kernel's first launch may wait for memory to be set up.
    pub fn is_warm(&self) -> bool {
        match self {
            Self::Copy { .. } | Self::Array(_) | Self::Set { .. } => true,
            // The host waits for every iteration.
            Self::Loop(_) => false,
            Self::Launch { kernel, .. } => kernel.ran.get(),
            Self::Call { function, .. } => function.is_warm(),
            Self::Concurrent(body) => body.steps().all(Operation::is_warm),
        }
    }

    /// Records that it ran to completion.
    pub fn note_ran(&self) {
        match self {
            Self::Launch { kernel, .. } => kernel.ran.set(true),
            Self::Call { function, .. } => function.note_ran(),
            Self::Concurrent(body) => body.steps().for_each(Operation::note_ran),
            Self::Loop(repeated) => repeated.steps().for_each(Operation::note_ran),
            Self::Copy { .. } | Self::Array(_) | Self::Set { .. } => {}
        }
    }

    /// Arguments of a launch or a call.
    pub fn arguments_mut(&mut self) -> Option<&mut Arguments> {
        match self {
            Self::Launch { arguments, .. } | Self::Call { arguments, .. } => Some(arguments),
            Self::Copy { .. } | Self::Array(_) | Self::Concurrent(_) | Self::Set { .. } | Self::Loop(_) => None,
        }
    }

    /// Number of kernel launches. A host function may make any number; most make one.
    pub fn launches(&self) -> usize {
        match self {
            Self::Copy { .. } | Self::Array(_) | Self::Set { .. } => 0,
            Self::Launch { .. } | Self::Call { .. } | Self::Loop(_) => 1,
            Self::Concurrent(body) => body.steps().map(Operation::launches).sum(),
        }
    }

    /// Number of activity records that a tracer gets. `None` if unknown: for host functions, loops and array copies.
    pub fn records(&self) -> Option<usize> {
        match self {
            Self::Copy { bytes, .. } => Some(usize::from(*bytes > 0)),
            Self::Launch { .. } if self.copies_arrays() => None,
            Self::Launch { .. } | Self::Set { .. } => Some(1),
            Self::Array(_) | Self::Call { .. } | Self::Loop(_) => None,
            Self::Concurrent(body) => body.steps().map(Operation::records).sum(),
        }
    }

    pub fn copies_arrays(&self) -> bool {
        match self {
            Self::Launch { copies, .. } => !copies.is_empty(),
            Self::Loop(repeated) => repeated.steps().any(Operation::copies_arrays),
            _ => false,
        }
    }

    pub fn repeated(&self) -> Option<&Repeated<'_, Operation<'_>>> {
        match self {
            Self::Loop(repeated) => Some(repeated),
            _ => None,
        }
    }

    pub fn function(&self) -> Option<&HostFunction> {
        match self {
            Self::Call { function, .. } => Some(function),
            _ => None,
        }
    }
}

impl<'a> Concurrent<'a> {
    /// Queues the operations of all streams. The streams join even if queueing failed, so that waiting for `stream`
    /// waits for all.
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

    pub fn step_mut(&mut self, step: usize) -> Option<&mut Operation<'a>> {
        self.steps.get_mut(step).map(|(_, step)| step)
    }

    pub fn steps(&self) -> impl Iterator<Item = &Operation<'_>> {
        self.steps.iter().map(|(_, step)| step)
    }
}

pub(super) fn queue_all(operations: &[Operation<'_>], stream: &Stream) -> Result<(), DeviceError> {
    operations.iter().try_for_each(|operation| operation.queue(stream))
}

/// Streams besides the device's own, each created on first use, for bodies with launches in several streams.
///
/// Such a body is queued as one operation of the device's own stream. The other streams wait for an event in it before
/// their first launch, and it waits for their events after the last. So such a body is timed, gated and captured like
/// any other.
#[derive(Debug, Default)]
pub(super) struct Lanes {
    begin: Option<Event>,
    others: Vec<(Stream, Event)>,
}

impl Lanes {
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

    /// Combines the steps into one operation if they use several streams, which must exist.
    pub fn arrange<'a>(&'a self, steps: &[Step], resolved: Vec<Operation<'a>>) -> Vec<Operation<'a>> {
        let others = self.others.get(..streams(steps) - 1).unwrap_or_default();
        let Some(begin) = self.begin.as_ref().filter(|_| !others.is_empty()) else { return resolved };
        let steps = steps.iter().map(Step::stream).zip(resolved).collect();
        vec![Operation::Concurrent(Concurrent { begin, others, steps })]
    }
}

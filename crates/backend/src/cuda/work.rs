//! Resolved batches, ready to run. Untimed, timed and metered runs share them.

use cudarc::driver::sys;

use super::driver::check;
use super::gate::Closed;
use super::handles::{Stream, worse};
use super::operation::{Operation, queue_all};
use super::plugin::HostFunction;
use crate::DeviceError;
use runner_types::Note;

/// A batch with everything resolved.
#[derive(Debug, Default)]
pub(super) struct Work<'a> {
    pub prepare: Vec<Operation<'a>>,
    /// The body on each set of buffers.
    pub bodies: Vec<Vec<Operation<'a>>>,
    /// Copies the arrays back to their buffers, after the last run.
    pub finish: Vec<Operation<'a>>,
}

/// Runs work once, untimed, and waits: [`run_once`] or [`run_marked`].
pub(super) type Run = fn(&Work<'_>, &Stream) -> Result<(), DeviceError>;

/// Prepares, runs the first body, and finishes.
pub(super) fn run_once(work: &Work<'_>, stream: &Stream) -> Result<(), DeviceError> {
    let mut all = [&work.prepare, work.body(), &work.finish].into_iter();
    stream.settle(all.try_for_each(|operations| queue_all(operations, stream)))?;
    work.note_ran();
    Ok(())
}

/// Like [`run_once`], with the body marked as the range to profile.
pub(super) fn run_marked(work: &Work<'_>, stream: &Stream) -> Result<(), DeviceError> {
    stream.settle(queue_all(&work.prepare, stream))?;
    // SAFETY: the call needs only a current context, and there is one.
    check("cuProfilerStart", unsafe { sys::cuProfilerStart() })?;
    let done = stream.settle(queue_all(work.body(), stream));
    // SAFETY: the call needs only a current context, and there is one.
    let stopped = check("cuProfilerStop", unsafe { sys::cuProfilerStop() });
    worse(done, stopped)?;
    work.note_ran();
    work.finish(stream)
}

impl Work<'_> {
    fn body(&self) -> &[Operation<'_>] {
        self.bodies.first().map_or(&[], Vec::as_slice)
    }

    /// Copies the arrays back to their buffers, and waits.
    pub fn finish(&self, stream: &Stream) -> Result<(), DeviceError> {
        if self.finish.is_empty() { Ok(()) } else { stream.settle(queue_all(&self.finish, stream)) }
    }

    pub fn is_warm(&self) -> bool {
        self.bodies.iter().flatten().all(Operation::is_warm)
    }

    pub fn note_ran(&self) {
        self.bodies.iter().flatten().for_each(Operation::note_ran);
    }

    /// Records the iterations of a graph's loops.
    pub fn note_iterations(&self, iterations: Option<u32>) {
        let loops = self.bodies.iter().flatten().filter_map(Operation::repeated);
        loops.zip(iterations).for_each(|(repeated, iterations)| repeated.shared.note_iterations(iterations));
    }

    pub fn functions(&self) -> impl Iterator<Item = &HostFunction> {
        self.bodies.iter().flatten().filter_map(Operation::function)
    }

    /// New findings about the host functions.
    pub fn news(&self) -> Vec<Note> {
        self.functions().filter_map(HostFunction::news).collect()
    }

    /// Queues behind a gate. If a host function waits for gated work, the gate opens by itself, and the function is
    /// marked as one that waits.
    pub fn queue_behind(
        &self,
        gate: Option<&Closed<'_>>,
        queue: impl FnOnce() -> Result<(), DeviceError>,
    ) -> Result<(), DeviceError> {
        let Some(closed) = gate.filter(|_| self.functions().next().is_some()) else { return queue() };
        let (queued, stayed_closed) = closed.watched(queue);
        if !stayed_closed {
            self.functions().for_each(HostFunction::note_waits);
        }
        queued
    }
}

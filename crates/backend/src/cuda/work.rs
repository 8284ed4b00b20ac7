//! What is timed, resolved.

use super::gate::Closed;
use super::operation::Operation;
use super::plugin::HostFunction;
use crate::DeviceError;
use crate::model::Note;

/// A batch with everything resolved.
#[derive(Debug)]
pub(super) struct Work<'a> {
    pub prepare: Vec<Operation<'a>>,
    /// The body on each set of buffers.
    pub bodies: Vec<Vec<Operation<'a>>>,
}

impl Work<'_> {
    pub fn is_warm(&self) -> bool {
        self.bodies.iter().flatten().all(Operation::is_warm)
    }

    pub fn note_ran(&self) {
        self.bodies.iter().flatten().for_each(Operation::note_ran);
    }

    /// Notes after how many iterations the loops of a graph ended.
    pub fn note_iterations(&self, iterations: Option<u32>) {
        let loops = self.bodies.iter().flatten().filter_map(Operation::repeated);
        loops.zip(iterations).for_each(|(repeated, iterations)| repeated.shared.note_iterations(iterations));
    }

    pub fn functions(&self) -> impl Iterator<Item = &HostFunction> {
        self.bodies.iter().flatten().filter_map(Operation::function)
    }

    /// Returns the new findings about the host functions of the work.
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

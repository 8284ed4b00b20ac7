//! The steps of a batch with every id resolved and every limit judged: ready to be queued again and again.
//!
//! Queueing allocates nothing and decides nothing, so that it can stand inside a timed span.

use cudarc::driver::sys;

use super::driver::check;
use super::handles::Stream;
use super::kernel::{Arguments, Kernel};
use super::memory;
use super::plugin::HostFunction;
use super::shape::Shape;
use super::streams::Concurrent;
use crate::backend::DeviceError;

/// One operation of the stream.
#[derive(Debug)]
pub(super) enum Operation<'a> {
    Fill { address: sys::CUdeviceptr, byte: u8, bytes: usize },
    Copy { to: sys::CUdeviceptr, from: sys::CUdeviceptr, bytes: usize },
    Launch { kernel: &'a Kernel, shape: Shape, arguments: Arguments },
    Call { function: &'a HostFunction, arguments: Arguments },
    Concurrent(Concurrent<'a>),
}

impl Operation<'_> {
    pub fn queue(&self, stream: &Stream) -> Result<(), DeviceError> {
        match self {
            Self::Fill { address, byte, bytes } => memory::fill(stream, *address, *byte, *bytes),
            Self::Copy { to, from, bytes } => memory::copy(stream, *to, *from, *bytes),
            Self::Launch { kernel, shape, arguments } => kernel.launch(stream, shape, arguments),
            Self::Call { function, arguments } => function.call(stream, arguments),
            Self::Concurrent(body) => body.queue(stream),
        }
    }

    /// Whether queueing it waits for nothing: a kernel's first launch may wait for memory to be set up.
    pub fn is_warm(&self) -> bool {
        match self {
            Self::Fill { .. } | Self::Copy { .. } => true,
            Self::Launch { kernel, .. } => kernel.ran.get(),
            Self::Call { function, .. } => function.is_warm(),
            Self::Concurrent(body) => body.steps().all(Operation::is_warm),
        }
    }

    /// Notes that it ran to its end.
    pub fn note_ran(&self) {
        match self {
            Self::Launch { kernel, .. } => kernel.ran.set(true),
            Self::Call { function, .. } => function.note_ran(),
            Self::Concurrent(body) => body.steps().for_each(Operation::note_ran),
            Self::Fill { .. } | Self::Copy { .. } => {}
        }
    }

    /// The arguments of a launch or a call.
    pub fn arguments_mut(&mut self) -> Option<&mut Arguments> {
        match self {
            Self::Launch { arguments, .. } | Self::Call { arguments, .. } => Some(arguments),
            Self::Fill { .. } | Self::Copy { .. } | Self::Concurrent(_) => None,
        }
    }

    /// Records that it leaves with who traces activities; `None` of a host function, which queues what it likes.
    pub fn records(&self) -> Option<usize> {
        match self {
            Self::Fill { bytes, .. } | Self::Copy { bytes, .. } => Some(usize::from(*bytes > 0)),
            Self::Launch { .. } => Some(1),
            Self::Call { .. } => None,
            Self::Concurrent(body) => body.steps().map(Operation::records).sum(),
        }
    }

    /// The host function that it calls, if any.
    pub fn function(&self) -> Option<&HostFunction> {
        match self {
            Self::Call { function, .. } => Some(function),
            _ => None,
        }
    }
}

pub(super) fn queue_all(operations: &[Operation<'_>], stream: &Stream) -> Result<(), DeviceError> {
    operations.iter().try_for_each(|operation| operation.queue(stream))
}

/// Runs preparation and steps once, untimed, and waits.
pub(super) fn run_once(prepare: &[Operation<'_>], steps: &[Operation<'_>], stream: &Stream) -> Result<(), DeviceError> {
    let queued = queue_all(prepare, stream).and_then(|()| queue_all(steps, stream));
    settle(queued, stream)?;
    steps.iter().for_each(Operation::note_ran);
    Ok(())
}

/// Runs preparation, then the steps between the marks that a profiler heeds; waits.
pub(super) fn run_marked(
    prepare: &[Operation<'_>],
    steps: &[Operation<'_>],
    stream: &Stream,
) -> Result<(), DeviceError> {
    settle(queue_all(prepare, stream), stream)?;
    // SAFETY: a context is current, which is all that the call needs.
    check("cuProfilerStart", unsafe { sys::cuProfilerStart() })?;
    let done = settle(queue_all(steps, stream), stream);
    // SAFETY: as above.
    let stopped = check("cuProfilerStop", unsafe { sys::cuProfilerStop() });
    worse(done, stopped)?;
    steps.iter().for_each(Operation::note_ran);
    Ok(())
}

/// Waits for the stream whatever became of queueing; a lost context outranks a refused call.
pub(super) fn settle<T>(queued: Result<T, DeviceError>, stream: &Stream) -> Result<T, DeviceError> {
    worse(queued, stream.synchronize())
}

pub(super) fn worse<T>(queued: Result<T, DeviceError>, finished: Result<(), DeviceError>) -> Result<T, DeviceError> {
    match (queued, finished) {
        (Ok(value), Ok(())) => Ok(value),
        (_, Err(lost @ DeviceError::ContextLost(_))) => Err(lost),
        (Err(first), _) | (Ok(_), Err(first)) => Err(first),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lost_context_outranks_the_call_that_was_refused_first() {
        let refused = || DeviceError::Driver { call: "cuLaunchKernel", message: "refused".to_owned() };
        let lost = || DeviceError::ContextLost("lost".to_owned());
        assert_eq!(worse(Ok(1), Ok(())), Ok(1));
        assert_eq!(worse::<u8>(Err(refused()), Ok(())), Err(refused()));
        assert_eq!(worse::<u8>(Err(refused()), Err(lost())), Err(lost()));
        assert_eq!(worse(Ok(1), Err(lost())), Err(lost()));
    }
}

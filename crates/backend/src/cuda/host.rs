//! Samples on the host's clock: what a run costs its caller, including allocations.
//!
//! A sample is: preparation; wait; clock reading; allocations; steps; frees; wait; clock reading. Nothing is flushed or
//! gated, since freeing memory would wait for the gate. The resolution of the host's clock is negligible.

use std::time::Instant;

use cudarc::driver::sys;

use super::driver::check;
use super::handles::{Context, Stream};
use super::memory::DeviceMemory;
use super::operation::{Operation, queue_all};
use super::table::Table;
use super::work::Work;
use crate::{DeviceError, LaunchArg, Step, TimedBatch, Timing};
use runner_types::Allocation;

/// Memory that one run allocates.
enum Fresh<'a> {
    Plain(DeviceMemory),
    Pooled(PooledMemory<'a>),
}

impl<'a> Fresh<'a> {
    fn alloc(how: Allocation, bytes: usize, context: &Context, stream: &'a Stream) -> Result<Self, DeviceError> {
        match how {
            Allocation::Once | Allocation::EachRun => DeviceMemory::alloc(context, bytes).map(Self::Plain),
            Allocation::EachRunAsync => PooledMemory::alloc(bytes, context, stream).map(Self::Pooled),
        }
    }

    fn address(&self) -> sys::CUdeviceptr {
        match self {
            Self::Plain(memory) => memory.address(),
            Self::Pooled(memory) => memory.address,
        }
    }
}

/// Memory from the device's default pool, allocated and freed in stream order.
struct PooledMemory<'a> {
    address: sys::CUdeviceptr,
    stream: &'a Stream,
}

impl<'a> PooledMemory<'a> {
    fn alloc(bytes: usize, context: &Context, stream: &'a Stream) -> Result<Self, DeviceError> {
        let mut address: sys::CUdeviceptr = 0;
        // SAFETY: `address` outlives the call, and the stream is alive.
        let code = unsafe { sys::cuMemAllocAsync(&raw mut address, bytes.max(1), stream.raw()) };
        if code == sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY {
            let (available, _) = context.memory()?;
            return Err(DeviceError::OutOfMemory { needed: bytes as u64, available });
        }
        check("cuMemAllocAsync", code)?;
        Ok(Self { address, stream })
    }
}

impl Drop for PooledMemory<'_> {
    fn drop(&mut self) {
        // SAFETY: allocated in `alloc`, freed once, behind the work of the stream that uses it.
        let _ = unsafe { sys::cuMemFreeAsync(self.address, self.stream.raw()) };
    }
}

struct FreshArgument {
    step: usize,
    argument: usize,
    /// Index among the buffers that the batch's runs allocate.
    fresh: usize,
}

/// Takes `batch.samples` samples; `work` is the resolved batch.
pub(super) fn samples(
    context: &Context,
    stream: &Stream,
    table: &Table,
    batch: &TimedBatch,
    work: &mut Work<'_>,
) -> Result<Vec<Timing>, DeviceError> {
    let bytes = |(buffer, how): &(_, Allocation)| Ok((table.buffer(*buffer)?.bytes, *how));
    let wanted = batch.series.fresh.iter().map(bytes).collect::<Result<Vec<_>, DeviceError>>()?;
    let places = places(batch);
    let mut memory = Vec::with_capacity(wanted.len());
    let mut one = || {
        stream.settle(queue_all(&work.prepare, stream))?;
        let Some(body) = work.bodies.first_mut() else { return Ok(0.0) };
        let start = Instant::now();
        let queued = run(context, stream, &wanted, &places, body, &mut memory);
        stream.settle(queued)?;
        let elapsed = start.elapsed();
        work.finish(stream)?;
        Ok(elapsed.as_secs_f64() * 1e9)
    };
    let times = (0..batch.samples).map(|_| one()).collect::<Result<Vec<f64>, DeviceError>>()?;
    work.note_ran();
    Ok(times.into_iter().map(|whole| Timing { whole, each: Vec::new() }).collect())
}

/// Allocates, queues the steps, frees.
fn run<'a>(
    context: &Context,
    stream: &'a Stream,
    wanted: &[(usize, Allocation)],
    places: &[FreshArgument],
    body: &mut [Operation<'_>],
    memory: &mut Vec<Fresh<'a>>,
) -> Result<(), DeviceError> {
    for (bytes, how) in wanted {
        memory.push(Fresh::alloc(*how, *bytes, context, stream)?);
    }
    for FreshArgument { step, argument, fresh } in places {
        if let Some(arguments) = step_of(body, *step).and_then(Operation::arguments_mut) {
            arguments.set(*argument, memory[*fresh].address());
        }
    }
    let queued = queue_all(body, stream);
    memory.clear();
    queued
}

/// Operation of a step; a body in several streams is a single operation.
fn step_of<'b, 'a>(body: &'b mut [Operation<'a>], step: usize) -> Option<&'b mut Operation<'a>> {
    match body {
        [Operation::Concurrent(body)] => body.step_mut(step),
        body => body.get_mut(step),
    }
}

fn places(batch: &TimedBatch) -> Vec<FreshArgument> {
    let mut places = Vec::new();
    for (step, made) in batch.steps.iter().enumerate() {
        let args = match made {
            Step::Launch(launch) => &launch.args,
            Step::Call(call) => &call.args,
            Step::Copy { .. } | Step::Memset { .. } | Step::Loop(_) => continue,
        };
        for (argument, given) in args.iter().enumerate() {
            let fresh = batch.series.fresh.iter().position(|(id, _)| *given == LaunchArg::Buffer(*id));
            places.extend(fresh.map(|fresh| FreshArgument { step, argument, fresh }));
        }
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BufferId, KernelId, Launch, Series};
    use runner_types::{Dim3, ElementType, Regime, ScalarValue};

    fn launch(args: Vec<LaunchArg>) -> Step {
        let one = Dim3::new(1, 1, 1);
        Step::Launch(Launch::new(KernelId(1), one, one, args))
    }

    #[test]
    fn every_argument_that_is_fresh_memory_is_found_in_its_step() {
        let buffer = |id| LaunchArg::Buffer(BufferId(id));
        let number = LaunchArg::Scalar(ScalarValue { element: ElementType::U64, bits: 7 });
        let steps = vec![
            launch(vec![buffer(1), buffer(7), number]),
            Step::Copy { from: BufferId(7), to: BufferId(1) },
            launch(vec![buffer(9), buffer(2), buffer(7)]),
        ];
        let fresh = vec![(BufferId(7), Allocation::EachRun), (BufferId(9), Allocation::EachRunAsync)];
        let series = Series { fresh, ..Series::default() };
        let batch = TimedBatch { prepare: Vec::new(), steps, regime: Regime::Host, series, samples: 1 };
        let found: Vec<_> = places(&batch).iter().map(|place| (place.step, place.argument, place.fresh)).collect();
        assert_eq!(found, [(0, 1, 0), (2, 0, 1), (2, 2, 0)]);
    }
}

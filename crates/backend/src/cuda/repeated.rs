//! Loops whose condition the host reads from device memory after every iteration.
//!
//! An iteration is queued, the first elements of the condition's buffers are copied to pinned memory, and the host
//! waits. The wait is part of the measured time, because it is part of the cost of such a loop. A body with a loop is
//! not gated. In a graph the device decides: [`super::device_loop`].

use std::cell::{Cell, RefCell};
use std::time::Instant;

use cudarc::driver::sys;

use super::condition::MOST_READ;
use super::driver::check;
use super::handles::Stream;
use super::memory::PinnedMemory;
use crate::{Condition, DeviceError};
use runner_types::Note;

/// Number of round trips to measure; the fastest counts.
const TRIALS: usize = 16;

/// State that all loops of a device share.
#[derive(Debug, Default)]
pub(super) struct Loops {
    memory: RefCell<Option<PinnedMemory>>,
    /// Iterations of the most recent loop.
    iterations: Cell<u32>,
    /// Seconds to copy to the host and wait for it on an idle device.
    round_trip: Cell<Option<f64>>,
}

/// A loop of resolved steps `S`.
#[derive(Debug)]
pub(super) struct Repeated<'a, S> {
    pub iterations: Vec<Iteration<S>>,
    pub at_most: u32,
    /// Number of iterations after which the first one repeats; `None` if too large.
    pub period: Option<usize>,
    pub shared: &'a Loops,
}

#[derive(Debug)]
pub(super) struct Iteration<S> {
    pub steps: Vec<S>,
    pub until: Condition,
    /// Address and size in bytes of each element that the condition reads.
    pub reads: Vec<(sys::CUdeviceptr, usize)>,
}

impl Loops {
    pub fn iterations(&self) -> u32 {
        self.iterations.get()
    }

    pub fn note_iterations(&self, iterations: u32) {
        self.iterations.set(iterations);
    }

    /// Note on the last loop.
    pub fn note(&self) -> Note {
        Note::Loop { iterations: self.iterations.get(), round_trip: self.round_trip.get() }
    }

    /// Reads elements once the stream is idle, as little-endian bits.
    fn read(&self, stream: &Stream, reads: &[(sys::CUdeviceptr, usize)]) -> Result<Vec<u64>, DeviceError> {
        let mut memory = self.memory.borrow_mut();
        let pinned = match memory.as_mut() {
            Some(pinned) => pinned,
            None => memory.insert(PinnedMemory::alloc(MOST_READ * size_of::<u64>(), false)?),
        };
        if reads.len() > MOST_READ {
            let message = format!("a condition reads {} buffers, but at most {MOST_READ} are allowed", reads.len());
            return Err(DeviceError::Driver { call: "loop", message });
        }
        pinned.bytes_mut().fill(0);
        let host = pinned.host().as_ptr();
        let queued = reads.iter().enumerate().try_for_each(|(place, (address, bytes))| {
            // SAFETY: the pinned memory has eight bytes for each element, an element has at most eight, and the stream
            // is waited for before the memory is read or written again.
            check("cuMemcpyDtoHAsync", unsafe {
                sys::cuMemcpyDtoHAsync_v2(host.add(place * size_of::<u64>()).cast(), *address, *bytes, stream.raw())
            })
        });
        stream.settle(queued)?;
        let word = |bytes: &[u8]| bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
        Ok(pinned.bytes_mut().chunks(size_of::<u64>()).take(reads.len()).map(word).collect())
    }

    /// Measures the duration of a read, once.
    fn measure(&self, stream: &Stream, reads: &[(sys::CUdeviceptr, usize)]) -> Result<(), DeviceError> {
        if self.round_trip.get().is_some() {
            return Ok(());
        }
        let mut fastest = f64::INFINITY;
        for _ in 0..TRIALS {
            let start = Instant::now();
            self.read(stream, reads)?;
            fastest = fastest.min(start.elapsed().as_secs_f64());
        }
        self.round_trip.set(Some(fastest));
        Ok(())
    }
}

impl<S> Repeated<'_, S> {
    /// Runs the loop and waits for its last iteration. `queue` queues the steps of an iteration.
    pub fn run(
        &self,
        stream: &Stream,
        queue: impl Fn(&[S], &Stream) -> Result<(), DeviceError>,
    ) -> Result<(), DeviceError> {
        if self.shared.round_trip.get().is_none()
            && let Some(first) = self.iterations.first()
        {
            stream.synchronize()?;
            self.shared.measure(stream, &first.reads)?;
        }
        let mut values = Vec::new();
        for (nth, iteration) in (1..=self.at_most).zip(self.iterations.iter().cycle()) {
            queue(&iteration.steps, stream)?;
            values = self.shared.read(stream, &iteration.reads)?;
            self.shared.iterations.set(nth);
            if iteration.until.holds(&values)? {
                return Ok(());
            }
        }
        let last = self.iterations.iter().cycle().nth(self.at_most.saturating_sub(1) as usize);
        last.map_or(Ok(()), |last| Err(last.until.never_held(self.at_most, &values)))
    }

    pub fn steps(&self) -> impl Iterator<Item = &S> {
        self.iterations.iter().flat_map(|iteration| &iteration.steps)
    }
}

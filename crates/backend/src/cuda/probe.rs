//! Detects host functions that do work in a stream other than the one they are given.
//!
//! Events in the given stream do not time work elsewhere. A function that waits for such work, or whose work is short,
//! leaves a correct result and seems to take no time. So some runs are probed. While the gate holds the stream, the
//! outputs must keep the poison of their preparation. After the function's own work in the stream, they must already
//! have their final content. A function cannot distinguish a probed run from a timed one.

use std::thread;
use std::time::Duration;

use cudarc::driver::sys;

use super::driver::check;
use super::gate::Gate;
use super::handles::{Context, Event, Stream};
use super::memory::PinnedMemory;
use super::operation::queue_all;
use super::work::Work;
use crate::DeviceError;

/// Bytes per inspected spot in an output.
const PIECE: usize = 64;

/// Number of inspected spots, spread evenly over all outputs.
const PLACES: usize = 32;

/// How long to wait for work outside the stream while the gate is closed.
const PATIENCE: Duration = Duration::from_micros(300);

/// Probe resources, created when the first host function runs.
#[derive(Debug)]
pub(super) struct Probe {
    /// Stream for reading while the device's own stream waits.
    aside: Stream,
    /// Contents read at the closed gate, after the function, and at the end.
    memory: [PinnedMemory; 3],
    arrived: Event,
}

/// Address of an output, the byte with which preparation fills it, and its size in bytes.
pub(super) type Filled = (sys::CUdeviceptr, u8, usize);

/// Address and size of a piece of an output, and the byte that filled it.
type FilledPiece = (sys::CUdeviceptr, usize, u8);

impl Probe {
    pub fn new() -> Result<Self, DeviceError> {
        let memory = || PinnedMemory::alloc(PIECE * PLACES, false);
        Ok(Self { aside: Stream::new()?, memory: [memory()?, memory()?, memory()?], arrived: Event::untimed()? })
    }

    /// Runs once, untimed. Returns whether work was done outside the stream.
    pub fn finds_work_elsewhere(
        &mut self,
        (context, stream): (&Context, &Stream),
        gate: &mut Gate,
        (work, filled): (&Work<'_>, &[Filled]),
    ) -> Result<bool, DeviceError> {
        let places = places(filled);
        if places.is_empty() {
            return Ok(false);
        }
        let steps = work.bodies.first().map_or(&[][..], Vec::as_slice);
        let closed = gate.close();
        let (queued, stayed_closed) = closed.watched(|| {
            queue_all(&work.prepare, stream)?;
            self.arrived.record(stream)?;
            closed.wait(stream)?;
            queue_all(steps, stream)
        });
        let mut is_early = false;
        let looked = queued.and_then(|()| {
            // A function that waits for its work has opened the gate.
            if stayed_closed {
                self.arrived.synchronize()?;
                thread::sleep(PATIENCE);
                read(&places, &self.memory[0], &self.aside)?;
                self.aside.synchronize()?;
                is_early = places
                    .iter()
                    .zip(self.memory[0].bytes_mut().chunks(PIECE))
                    .any(|((_, len, byte), piece)| piece[..*len].iter().any(|found| found != byte));
            }
            read(&places, &self.memory[1], stream)
        });
        drop(closed);
        stream.settle(looked)?;
        context.synchronize()?;
        read(&places, &self.memory[2], stream)?;
        stream.synchronize()?;
        let [_, behind, end] = &mut self.memory;
        let bytes = PIECE * places.len();
        Ok(is_early || behind.bytes_mut()[..bytes] != end.bytes_mut()[..bytes])
    }
}

/// Spots in the outputs to inspect.
fn places(filled: &[Filled]) -> Vec<FilledPiece> {
    let filled: Vec<Filled> = filled.iter().copied().filter(|(.., bytes)| *bytes > 0).take(PLACES).collect();
    let each = PLACES / filled.len().max(1);
    let places_in = |(address, byte, bytes): Filled| {
        let len = bytes.min(PIECE);
        let offset = move |place: usize| (bytes - len) / each.saturating_sub(1).max(1) * place;
        (0..each).map(move |place| (address + offset(place).min(bytes - len) as sys::CUdeviceptr, len, byte))
    };
    filled.into_iter().flat_map(places_in).collect()
}

/// Queues copies of the spots to pinned memory.
fn read(places: &[FilledPiece], to: &PinnedMemory, stream: &Stream) -> Result<(), DeviceError> {
    places.iter().enumerate().try_for_each(|(nth, (address, len, _))| {
        // SAFETY: the pinned memory has space for PLACES pieces, and this one starts within it.
        let to = unsafe { to.host().as_ptr().add(nth * PIECE) };
        // SAFETY: the output has `len` bytes at `address`, `to` has space for a piece, and the caller waits for the
        // stream before it uses or frees either.
        check("cuMemcpyDtoHAsync", unsafe { sys::cuMemcpyDtoHAsync_v2(to.cast(), *address, *len, stream.raw()) })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_lie_in_the_outputs_and_reach_their_ends() {
        let fill = |address, bytes| (address, 0xCB, bytes);
        let found = places(&[fill(0x1000, 4096), fill(0x8000, 10), fill(0x9000, 0)]);
        assert_eq!(found.len(), PLACES);
        assert_eq!((found[0], found[15]), ((0x1000, 64, 0xCB), (0x1000 + 4020, 64, 0xCB)));
        assert!(found[16..].iter().all(|place| *place == (0x8000, 10, 0xCB)));
        assert!(found.iter().all(|(address, len, _)| *address + *len as u64 <= 0x800a));
        assert!(places(&[]).is_empty());
    }
}

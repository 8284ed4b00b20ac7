//! Copies between host and device through two pinned slots: while one is on the bus, the other is filled or emptied.
//!
//! The driver copies pageable memory through its own buffers on one thread. Here all cores do the host side of the
//! copy, which keeps the bus busy. After an error, the caller's data is undefined.

use std::ops::Range;

use cudarc::driver::sys;
use rayon::prelude::*;

use super::driver::check;
use super::handles::{Event, Stream};
use super::memory::PinnedMemory;
use crate::DeviceError;

/// Bytes per slot.
const SLOT: usize = 32 << 20;
/// Bytes that a core copies at a time.
const PIECE: usize = 1 << 20;

/// The two slots, each with an event at the end of its copy.
#[derive(Debug)]
pub(super) struct Staging {
    slots: [Slot; 2],
}

#[derive(Debug)]
struct Slot {
    memory: PinnedMemory,
    done: Event,
}

impl Slot {
    fn new() -> Result<Self, DeviceError> {
        Ok(Self { memory: PinnedMemory::alloc(SLOT, false)?, done: Event::new()? })
    }
}

impl Staging {
    pub fn new() -> Result<Self, DeviceError> {
        Ok(Self { slots: [Slot::new()?, Slot::new()?] })
    }

    /// Copies `data` to the device and waits. There must be as many bytes at `address`.
    pub fn upload(&mut self, stream: &Stream, address: sys::CUdeviceptr, data: &[u8]) -> Result<(), DeviceError> {
        let queued = self.queue_upload(stream, address, data);
        // Wait even after an error: the slots must be idle before the next use.
        let finished = stream.synchronize();
        queued.and(finished)
    }

    fn queue_upload(&mut self, stream: &Stream, address: sys::CUdeviceptr, data: &[u8]) -> Result<(), DeviceError> {
        for (index, chunk) in data.chunks(SLOT).enumerate() {
            let slot = &mut self.slots[index % 2];
            if index >= 2 {
                slot.done.synchronize()?;
            }
            copy_bytes(&mut slot.memory.bytes_mut()[..chunk.len()], chunk);
            let to = address + (index * SLOT) as sys::CUdeviceptr;
            let from = slot.memory.host().as_ptr();
            // SAFETY: the slot holds the chunk and is not written before its event, the device holds the chunk at `to`,
            // and the stream is waited for before either is freed.
            check("cuMemcpyHtoDAsync", unsafe {
                sys::cuMemcpyHtoDAsync_v2(to, from.cast(), chunk.len(), stream.raw())
            })?;
            slot.done.record(stream)?;
        }
        Ok(())
    }

    /// Copies from the device and waits. There must be as many bytes at `address` as `data` has.
    pub fn download(&mut self, stream: &Stream, address: sys::CUdeviceptr, data: &mut [u8]) -> Result<(), DeviceError> {
        let drained = self.drain(stream, address, data);
        let finished = stream.synchronize();
        drained.and(finished)
    }

    /// Copies ranges from the device, and waits once for all that fit into a slot together. Waiting for each copy takes
    /// tens of microseconds, and a library's module has a thousand variables.
    pub fn download_each(
        &mut self,
        stream: &Stream,
        ranges: &[(sys::CUdeviceptr, usize)],
    ) -> Result<Vec<Vec<u8>>, DeviceError> {
        let mut all = Vec::with_capacity(ranges.len());
        while let Some((address, bytes)) = ranges.get(all.len()).copied() {
            let together = packed(&ranges[all.len()..]);
            if together.is_empty() {
                let mut data = vec![0; bytes];
                self.download(stream, address, &mut data)?;
                all.push(data);
                continue;
            }
            let queued = together.iter().zip(&ranges[all.len()..]).try_for_each(|(place, (address, _))| {
                if place.is_empty() {
                    return Ok(());
                }
                let to = self.slots[0].memory.bytes_mut()[place.clone()].as_mut_ptr();
                // SAFETY: the slot is that long and is not read before the stream was waited for; the device holds the
                // range.
                check("cuMemcpyDtoHAsync", unsafe {
                    sys::cuMemcpyDtoHAsync_v2(to.cast(), *address, place.len(), stream.raw())
                })
            });
            let finished = stream.synchronize();
            queued.and(finished)?;
            let slot = self.slots[0].memory.bytes_mut();
            all.extend(together.into_iter().map(|place| slot[place].to_vec()));
        }
        Ok(all)
    }

    fn drain(&mut self, stream: &Stream, address: sys::CUdeviceptr, data: &mut [u8]) -> Result<(), DeviceError> {
        let mut chunks = data.chunks_mut(SLOT).enumerate();
        let mut pending: Option<(usize, &mut [u8])> = None;
        loop {
            let next = chunks.next();
            if let Some((index, chunk)) = &next {
                self.queue_download(stream, address, *index, chunk.len())?;
            }
            if let Some((index, chunk)) = pending.take() {
                let slot = &mut self.slots[index % 2];
                slot.done.synchronize()?;
                let length = chunk.len();
                copy_bytes(chunk, &slot.memory.bytes_mut()[..length]);
            }
            if next.is_none() {
                return Ok(());
            }
            pending = next;
        }
    }

    /// Queues the copy of a chunk into its slot, which was emptied two chunks ago.
    fn queue_download(
        &mut self,
        stream: &Stream,
        address: sys::CUdeviceptr,
        index: usize,
        bytes: usize,
    ) -> Result<(), DeviceError> {
        let slot = &self.slots[index % 2];
        let from = address + (index * SLOT) as sys::CUdeviceptr;
        let to = slot.memory.host().as_ptr();
        // SAFETY: the slot is at least `bytes` long and is not read before its event; the device holds the chunk.
        check("cuMemcpyDtoHAsync", unsafe { sys::cuMemcpyDtoHAsync_v2(to.cast(), from, bytes, stream.raw()) })?;
        slot.done.record(stream)
    }
}

/// Positions within one slot for as many of the first ranges as fit, each 16-byte aligned.
fn packed(ranges: &[(sys::CUdeviceptr, usize)]) -> Vec<Range<usize>> {
    let places = ranges.iter().scan(0_usize, |end, (_, bytes)| {
        let start = end.next_multiple_of(16);
        *end = start + bytes;
        (*end <= SLOT).then_some(start..*end)
    });
    places.collect()
}

/// Copies slices of equal length on all cores.
fn copy_bytes(to: &mut [u8], from: &[u8]) {
    if from.len() <= PIECE {
        to.copy_from_slice(from);
        return;
    }
    to.par_chunks_mut(PIECE).zip(from.par_chunks(PIECE)).for_each(|(to, from)| to.copy_from_slice(from));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_share_a_slot_until_it_is_full() {
        assert_eq!(packed(&[(0, 4), (0, 16), (0, 1)]), [0..4, 16..32, 32..33]);
        assert_eq!(packed(&[(0, SLOT), (0, 1)]), std::slice::from_ref(&(0..SLOT)));
        assert_eq!(packed(&[(0, SLOT - 8), (0, 1)]), std::slice::from_ref(&(0..SLOT - 8)));
        assert_eq!(packed(&[(0, SLOT + 1), (0, 1)]), []);
    }

    #[test]
    fn a_copy_over_all_cores_leaves_no_byte_behind() {
        for length in [0, 1, PIECE - 1, PIECE, 3 * PIECE + 7] {
            let from: Vec<u8> = (0..length).map(|i| (i % 251) as u8).collect();
            let mut to = vec![0xAA; length];
            copy_bytes(&mut to, &from);
            assert!(to == from, "{length} bytes");
        }
    }
}

//! Memory of the fake device: every buffer lies between two guard zones.

use runner_backend::{BufferId, DeviceError};

#[derive(Debug, Clone)]
struct Block {
    /// Guard zone, data, second guard zone.
    bytes: Vec<u8>,
    guard: usize,
}

#[derive(Debug, Clone)]
pub struct Memory {
    blocks: Vec<Option<Block>>,
    free: u64,
}

impl Memory {
    pub(super) const fn new(bytes: u64) -> Self {
        Self { blocks: Vec::new(), free: bytes }
    }

    pub(super) const fn free_bytes(&self) -> u64 {
        self.free
    }

    pub(super) fn alloc(&mut self, bytes: usize, guard: usize) -> Result<BufferId, DeviceError> {
        let needed = (bytes as u64).saturating_add(2 * guard as u64);
        if needed > self.free {
            return Err(DeviceError::OutOfMemory { needed, available: self.free });
        }
        self.free -= needed;
        // Stands for undefined content, and is never the right result by chance.
        self.blocks.push(Some(Block { bytes: vec![0x5C; bytes + 2 * guard], guard }));
        Ok(BufferId(self.blocks.len() as u32 - 1))
    }

    pub(super) fn release(&mut self, id: BufferId) -> Result<(), DeviceError> {
        let block = self.blocks.get_mut(id.0 as usize).and_then(Option::take).ok_or_else(|| unknown(id))?;
        self.free += block.bytes.len() as u64;
        Ok(())
    }

    pub fn data(&self, id: BufferId) -> Result<&[u8], DeviceError> {
        let block = self.block(id)?;
        Ok(&block.bytes[block.guard..block.bytes.len() - block.guard])
    }

    pub(super) fn data_mut(&mut self, id: BufferId) -> Result<&mut [u8], DeviceError> {
        let block = self.blocks.get_mut(id.0 as usize).and_then(Option::as_mut).ok_or_else(|| unknown(id))?;
        let end = block.bytes.len() - block.guard;
        Ok(&mut block.bytes[block.guard..end])
    }

    pub(super) fn guards(&self, id: BufferId) -> Result<(&[u8], &[u8]), DeviceError> {
        let block = self.block(id)?;
        let end = block.bytes.len() - block.guard;
        Ok((&block.bytes[..block.guard], &block.bytes[end..]))
    }

    pub(super) fn write_guards(&mut self, id: BufferId, byte: u8) -> Result<(), DeviceError> {
        let block = self.blocks.get_mut(id.0 as usize).and_then(Option::as_mut).ok_or_else(|| unknown(id))?;
        let end = block.bytes.len() - block.guard;
        block.bytes[..block.guard].fill(byte);
        block.bytes[end..].fill(byte);
        Ok(())
    }

    /// Writes like a kernel: guard zones are memory too, but nothing beyond them is.
    pub(super) fn write_anywhere(&mut self, id: BufferId, at: i64, bytes: &[u8]) -> Result<(), DeviceError> {
        let block = self.blocks.get_mut(id.0 as usize).and_then(Option::as_mut).ok_or_else(|| unknown(id))?;
        let start = usize::try_from(block.guard as i64 + at).ok();
        let place = start.and_then(|start| block.bytes.get_mut(start..start.checked_add(bytes.len())?));
        match place {
            Some(place) => {
                place.copy_from_slice(bytes);
                Ok(())
            }
            None => Err(DeviceError::ContextLost(format!("an illegal memory access at byte {at} of a buffer"))),
        }
    }

    fn block(&self, id: BufferId) -> Result<&Block, DeviceError> {
        self.blocks.get(id.0 as usize).and_then(Option::as_ref).ok_or_else(|| unknown(id))
    }
}

fn unknown(id: BufferId) -> DeviceError {
    DeviceError::Driver { call: "memory", message: format!("there is no buffer {}", id.0) }
}

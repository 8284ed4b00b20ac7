//! Copies and fills of device memory that kernels queue.

use crate::error::SimError;
use crate::memory::Memory;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Side {
    pub start: u64,
    /// Distances in bytes between rows, and between slices.
    pub pitch: u64,
    pub slice: u64,
}

/// What a transfer writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    Copy(Side),
    Byte(u8),
}

/// A transfer that has been accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transfer {
    pub from: Source,
    pub to: Side,
    /// Bytes per row, number of rows, and number of slices.
    pub extent: [u64; 3],
}

impl Transfer {
    /// Performs the transfer row by row.
    pub fn run(&self, memory: &Memory) -> Result<(), SimError> {
        let [bytes, rows, slices] = self.extent;
        let row = |side: &Side, z: u64, y: u64| {
            side.start.wrapping_add(z.wrapping_mul(side.slice)).wrapping_add(y.wrapping_mul(side.pitch))
        };
        for (z, y) in (0..slices).flat_map(|z| (0..rows).map(move |y| (z, y))) {
            let to = row(&self.to, z, y);
            match self.from {
                Source::Copy(from) => memory.copy(row(&from, z, y), to, bytes)?,
                Source::Byte(byte) => memory.fill(to, bytes, byte)?,
            }
        }
        Ok(())
    }
}

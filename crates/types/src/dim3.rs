//! Extents in three dimensions.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Extent of a grid or a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Dim3 {
    /// Fastest-varying axis.
    pub x: u32,
    pub y: u32,
    pub z: u32,
}

impl Dim3 {
    pub const fn new(x: u32, y: u32, z: u32) -> Self {
        Self { x, y, z }
    }

    /// x, y and z as 64-bit numbers, as plans store them.
    pub fn extents(self) -> [u64; 3] {
        [self.x, self.y, self.z].map(u64::from)
    }

    /// x · y · z, which fits in 64 bits for every grid that a device allows.
    pub const fn count(self) -> u64 {
        self.x as u64 * self.y as u64 * self.z as u64
    }
}

impl fmt::Display for Dim3 {
    /// Formats the extent like `256`, `16×16` or `8×8×8`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match (self.y, self.z) {
            (1, 1) => self.x.to_string(),
            (y, 1) => format!("{}×{y}", self.x),
            (y, z) => format!("{}×{y}×{z}", self.x),
        };
        f.pad(&text)
    }
}

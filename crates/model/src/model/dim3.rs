//! Extents in three dimensions.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The extent that a grid or a block has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Dim3 {
    /// The extent along x, the fastest axis.
    pub x: u32,
    /// The extent along y.
    pub y: u32,
    /// The extent along z.
    pub z: u32,
}

impl Dim3 {
    /// Returns an extent along x, y and z.
    pub const fn new(x: u32, y: u32, z: u32) -> Self {
        Self { x, y, z }
    }

    /// Returns x, y and z, in the width of plans.
    pub fn extents(self) -> [u64; 3] {
        [self.x, self.y, self.z].map(u64::from)
    }

    /// Returns the product of the three, which fits 64 bits for every grid that a device allows.
    pub const fn count(self) -> u64 {
        self.x as u64 * self.y as u64 * self.z as u64
    }
}

impl fmt::Display for Dim3 {
    /// Writes the extent like `256`, `16×16` or `8×8×8`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match (self.y, self.z) {
            (1, 1) => self.x.to_string(),
            (y, 1) => format!("{}×{y}", self.x),
            (y, z) => format!("{}×{y}×{z}", self.x),
        };
        f.pad(&text)
    }
}

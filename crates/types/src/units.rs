//! Units as types, so that bytes cannot be mistaken for nanoseconds.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Bytes(pub u64);

#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Joules(#[serde(with = "super::real")] pub f64);

#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Watts(#[serde(with = "super::real")] pub f64);

/// Nanoseconds; fractional, since times are averaged over launches.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Nanoseconds(#[serde(with = "super::real")] pub f64);

impl Nanoseconds {
    pub const fn seconds(self) -> f64 {
        self.0 * 1e-9
    }
}

//! How kernels access a buffer, when its memory is allocated, how its content varies, and what of it stays in the L2.

use serde::{Deserialize, Serialize};

use super::real::Numbers;

/// How kernels access a buffer; decides how its content is reset before every launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Access {
    /// Read only: a kernel that changes it is wrong.
    In,
    /// Written: poisoned before every launch.
    Out,
    /// Read and written: restored before every launch.
    InOut,
    /// Undefined content that is never checked; poisoned before every launch on request.
    Scratch,
}

/// When a buffer's memory is allocated and freed.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, Default, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Allocation {
    /// Allocated before the first run and freed after the last.
    #[default]
    Once,
    /// Allocated and freed in every run, with `cuMemAlloc` and `cuMemFree`.
    EachRun,
    /// Allocated and freed in every run from the device's pool, with `cuMemAllocAsync` and `cuMemFreeAsync` in the
    /// stream of the launches.
    EachRunAsync,
}

/// How the content of a non-random buffer differs between sets of inputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Vary {
    /// The same elements in a different order for each set of inputs.
    Permute,
}

/// A buffer whose lines stay in the L2 while there is room.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(bound(serialize = "B: Serialize, R: Numbers", deserialize = "B: Deserialize<'de>, R: Numbers"))]
pub struct Persist<B = String, R = f64> {
    /// Name of the buffer, or its location on a device.
    pub buffer: B,
    /// Fraction of its lines to keep.
    #[serde(with = "super::real")]
    pub ratio: R,
}

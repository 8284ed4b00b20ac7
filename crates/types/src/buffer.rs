//! When a buffer's memory is allocated, and what happens to its content.

/// What happens to a buffer before every launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Access {
    /// Read only: a kernel that changes it is wrong.
    In,
    /// Written: poisoned before every launch.
    Out,
    /// Read and written: restored before every launch.
    InOut,
    /// The content is undefined and never checked; poisoned before every launch on request.
    Scratch,
}

/// When a buffer's memory is allocated and freed.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, Default, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Allocation {
    /// The memory is allocated before the first run and freed after the last.
    #[default]
    Once,
    /// Every run allocates and frees the memory, by `cuMemAlloc` and `cuMemFree`.
    EachRun,
    /// Every run allocates and frees the memory, by `cuMemAllocAsync` and `cuMemFreeAsync` in the stream of the
    /// launches, from the device's pool.
    EachRunAsync,
}

/// How the content of a buffer that is not random differs between the sets of inputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Vary {
    /// Each set of inputs has the elements in another order.
    Permute,
}

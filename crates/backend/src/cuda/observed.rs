//! How a process observes the kernels of its GPU.

/// The GPUs of this machine that the driver shows to this process, and how the process observes their kernels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cuda {
    /// The clock alone observes the launches.
    Timed,
    /// The clock observes the launches, and so do CUPTI's records, the reference clock: for calibration, in a separate process, since tracing
    /// slows what it traces. Devices cannot be opened if no supported CUPTI is found.
    Traced,
    /// The process runs inside a profiler, which observes the launches: launches are marked for it, and times are not taken, since a
    /// profiler distorts them.
    Profiled,
    /// The process runs inside compute-sanitizer, which observes the launches. Buffers have no guard zones, whose bytes
    /// would be in bounds, and times are not taken.
    Memchecked,
}

impl Cuda {
    /// Whether times are taken. A profiler and compute-sanitizer distort them.
    pub const fn has_clock(self) -> bool {
        matches!(self, Self::Timed | Self::Traced)
    }
}

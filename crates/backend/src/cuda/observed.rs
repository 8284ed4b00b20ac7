/// How a process observes the kernels of the GPUs that the driver shows to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cuda {
    /// Timed by events.
    Timed,
    /// Timed by events and by CUPTI's records, the reference clock. For calibration, in a separate process, since
    /// tracing slows what it traces. Opening a device fails without a supported CUPTI.
    Traced,
    /// Inside a profiler. Launches are marked for it and not timed, since it distorts times.
    Profiled,
    /// Inside compute-sanitizer. Buffers have no guard zones, which would count as in bounds, and launches are not
    /// timed.
    Memchecked,
}

impl Cuda {
    /// Whether times are measured. A profiler and compute-sanitizer would distort them.
    pub const fn has_clock(self) -> bool {
        matches!(self, Self::Timed | Self::Traced)
    }
}

//! Work that a device needs in flight to hide latency, by Little's law: latency × throughput.
//!
//! Nothing is measured here. Values that no driver reports are assumed, with a source.

use runner_types::DeviceInfo;

/// Cycles from a load to its data: the range given in textbooks.
pub const MEMORY_LATENCY: (f64, f64) = (400.0, 800.0);

/// Bytes that a warp loads if each of its 32 threads loads one float.
const BYTES_PER_WARP: f64 = 128.0;

/// Operations in flight that keep the f32 lanes of an SM busy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArithmeticInFlight {
    /// Cycles until a dependent operation can start.
    pub cycles: u32,
    pub source: &'static str,
    /// Operations in flight per SM.
    pub operations: u32,
    /// Warps per SM if each has one operation in flight.
    pub warps: u32,
}

impl ArithmeticInFlight {
    /// Multiplies latency by the number of lanes; `None` if either is unknown.
    pub fn compute(info: &DeviceInfo) -> Option<Self> {
        let (cycles, source) = match info.compute_capability.0 {
            3 => (9, "Kepler, microbenchmarks by Jia et al. 2018"),
            5 | 6 => (6, "Maxwell and Pascal, microbenchmarks by Jia et al. 2018"),
            7..=12 => (4, "since Volta, microbenchmarks by Jia et al. 2018"),
            _ => return None,
        };
        let operations = cycles * info.cores_per_sm?;
        Some(Self { cycles, source, operations, warps: operations.div_ceil(info.warp_size.max(1)) })
    }
}

/// Bytes in flight that keep the memory busy, for the lower and the higher latency.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MemoryInFlight {
    /// Peak bandwidth divided by the SM clock.
    pub bytes_per_cycle: f64,
    /// Bytes in flight on the whole device.
    pub device: (f64, f64),
    /// Bytes in flight per SM.
    pub sm: (f64, f64),
}

impl MemoryInFlight {
    /// Multiplies latency by bandwidth; `None` if the driver reports no clock rates.
    pub fn compute(info: &DeviceInfo) -> Option<Self> {
        let clock = f64::from(info.sm_clock_khz) * 1e3;
        let sms = f64::from(info.sm_count);
        if clock <= 0.0 || sms <= 0.0 {
            return None;
        }
        let bytes_per_cycle = info.peak_bandwidth()? / clock;
        let device = (MEMORY_LATENCY.0 * bytes_per_cycle, MEMORY_LATENCY.1 * bytes_per_cycle);
        Some(Self { bytes_per_cycle, device, sm: (device.0 / sms, device.1 / sms) })
    }
}

/// Number of warps needed to keep `bytes` in flight, with `floats` per thread.
pub fn warps_for(bytes: f64, floats: f64) -> u32 {
    (bytes / (BYTES_PER_WARP * floats)).ceil() as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kepler_needs_192_lanes_times_9_cycles() {
        let mut info = runner_types::h100();
        info.compute_capability = (3, 5);
        info.cores_per_sm = Some(192);
        let need = ArithmeticInFlight::compute(&info).map(|need| (need.operations, need.warps));
        assert_eq!(need, Some((1728, 54)));
    }
}

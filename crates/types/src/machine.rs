//! Measured properties of a machine, per device and driver: ceilings, the clock's calibration, and the spread between
//! processes.
//!
//! Also the request and the result of a device survey.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Compiled;

/// What measurements reveal about a device beyond its driver's data. Unknown values are absent.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Machine {
    /// Distinguishes GPUs of one model: the first 12 hexadecimal digits of the SHA-256 of the UUID. Absent without a
    /// UUID, and in results from several GPUs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu: Option<String>,
    /// Highest measured rates; absent if not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ceilings: Option<Ceilings>,
    /// Calibration of the device's clock; absent for a device without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<Clock>,
    /// Spread between processes; absent if fewer than three measured the device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spread: Option<Spread>,
    /// Settings that an administrator can change; absent without NVML.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settings: Option<Settings>,
    /// Number of other processes that had the device open when the run started, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub other_processes: Option<u32>,
}

/// Highest rates that purpose-built kernels reached on a device.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Ceilings {
    /// Read bandwidth of device memory, bytes per second.
    #[serde(with = "super::real")]
    pub read: f64,
    /// Write bandwidth of device memory, bytes per second; older surveys did not measure it.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "super::real")]
    pub write: Option<f64>,
    /// Copy bandwidth of device memory: bytes read plus bytes written, per second.
    #[serde(with = "super::real")]
    pub copy: f64,
    /// Read bandwidth of the L2 cache, bytes per second.
    #[serde(with = "super::real")]
    pub l2_read: f64,
    /// f32 fused multiply-adds outside tensor cores, operations per second. Each counts as two.
    #[serde(with = "super::real")]
    pub fma_f32: f64,
    /// f64 fused multiply-adds, counted like `fma_f32`.
    #[serde(with = "super::real")]
    pub fma_f64: f64,
    /// f16 fused multiply-adds, counted like `fma_f32`, with two values per register, as on every architecture since
    /// 5.3.
    #[serde(with = "super::real")]
    pub fma_f16: f64,
}

impl Ceilings {
    /// Highest of the device memory bandwidths, bytes per second.
    pub fn memory(&self) -> f64 {
        self.read.max(self.copy).max(self.write.unwrap_or_default())
    }
}

/// Device settings, which are never changed here. Source: NVML; unknown values are absent.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Settings {
    pub max_sm_clock_mhz: Option<u32>,
    pub max_memory_clock_mhz: Option<u32>,
    /// SM clock set by an administrator, or the default.
    pub application_sm_clock_mhz: Option<u32>,
    pub application_memory_clock_mhz: Option<u32>,
    /// Power above which the driver throttles the clocks.
    #[serde(default, with = "super::real")]
    pub power_limit_watts: Option<f64>,
    /// Persistence mode: whether the driver stays loaded without clients.
    pub persistence: Option<bool>,
    /// Compute mode, such as `default` or `exclusive process`.
    pub compute_mode: Option<String>,
    /// Whether the GPU is divided into instances.
    pub mig: Option<bool>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct DeviceState {
    pub sm_clock_mhz: Option<u32>,
    #[serde(default, with = "super::real")]
    pub power_watts: Option<f64>,
    pub temperature_celsius: Option<u32>,
    /// Why the clocks were limited; empty if they were not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub throttled_by: Vec<ThrottleReason>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ThrottleReason {
    PowerCap,
    /// Hardware slowdown for any reason.
    HardwareSlowdown,
    /// Sync boost: clocks follow the slowest GPU of the group.
    SyncBoost,
    Temperature,
    HardwareTemperature,
    /// External power brake, e.g. by the server's power supply.
    PowerBrake,
}

/// Calibration of the measuring clock, or why there is none.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Clock {
    /// A constant is subtracted from every interval.
    Calibrated(Calibration),
    /// Times are reported as read.
    Uncalibrated {
        /// Reason, in a sentence.
        why: String,
        /// Measured length of an empty interval, in nanoseconds.
        #[serde(with = "super::real")]
        empty: f64,
    },
}

/// Excess of a clock interval over the kernel's own time, found by comparison with a reference clock that times only
/// the kernel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// Nanoseconds to subtract from every interval in this process.
    #[serde(with = "super::real")]
    pub constant: f64,
    /// Largest difference between a calibrated time and the reference clock, in nanoseconds: the accuracy of every
    /// time. Not part of the confidence intervals of medians and speedups, which describe repeatability.
    #[serde(with = "super::real")]
    pub uncertainty: f64,
    pub kernels: u32,
    /// Name of the clock, e.g. `CUPTI 13.0`.
    pub reference_clock: String,
    /// Measured length of an empty interval, in nanoseconds.
    #[serde(with = "super::real")]
    pub empty: f64,
}

/// Variation of a kernel's time between processes on one device, after each process subtracted its own constant. An
/// interval computed within one process cannot include it. The numbers are upper limits of the standard deviations, at
/// 95 % confidence.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// Constant part of the standard deviation, in nanoseconds.
    #[serde(with = "super::real")]
    pub nanoseconds: f64,
    /// Part proportional to the time, as a fraction of it.
    #[serde(with = "super::real")]
    pub relative: f64,
    pub processes: u32,
}

impl Spread {
    /// Standard deviation of a sample, as a fraction of its time, if its two events enclose `launches` runs.
    pub fn deviation_at(&self, nanoseconds: f64, launches: u32) -> f64 {
        (self.nanoseconds / (nanoseconds * f64::from(launches.max(1)))).hypot(self.relative)
    }
}

/// Times of the calibration kernels, measured by the reference clock.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReferenceTimes {
    /// Name of the clock, e.g. `CUPTI 13.0`.
    #[serde(alias = "witness")]
    pub reference_clock: String,
    /// Nanoseconds by kernel label.
    #[serde(with = "super::real")]
    pub times: BTreeMap<String, f64>,
}

/// A kernel timed by both clocks, in nanoseconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CalibrationPoint {
    /// Grid, block and duration of the kernel: `132×256, 1000 cycles`.
    pub label: String,
    #[serde(with = "super::real")]
    pub read: f64,
    /// Standard error of the time, from the process's samples.
    #[serde(with = "super::real")]
    pub error: f64,
    /// Time measured by the reference clock, if available.
    #[serde(default, with = "super::real")]
    pub reference: Option<f64>,
}

/// Request to a worker to survey its device.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SurveyRequest {
    pub code: Compiled,
    /// Whether to time the kernels that show the spread between processes too.
    pub spread: bool,
    pub ceilings: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Survey {
    /// Highest measured rates; `None` if not requested.
    pub ceilings: Option<Ceilings>,
    /// Times of the calibration kernels, which are the same in every survey, from the uncorrected clock.
    pub points: Vec<CalibrationPoint>,
    /// Times of kernels of a few microseconds, which show the spread between processes. Measured without the reference
    /// clock, since tracing slows some of them.
    pub short: Vec<CalibrationPoint>,
    /// Times of longer kernels, for the proportional part of the spread.
    pub long: Vec<CalibrationPoint>,
    /// Measured length of an empty interval, in nanoseconds.
    #[serde(with = "super::real")]
    pub empty: f64,
    /// Name of the reference clock; `None` without one.
    pub reference_clock: Option<String>,
}

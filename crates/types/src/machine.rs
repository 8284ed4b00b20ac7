//! Measured properties of a machine, per device and driver: ceilings, the clock's calibration, and the spread between
//! processes.
//!
//! Also what a survey of a device asks for and returns.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Compiled;

/// What measurements show of a device beyond its driver's data. Unknown values are absent.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Machine {
    /// Distinguishes GPUs of one model: the first 12 hexadecimal digits of the SHA-256 of its UUID. Absent without a
    /// UUID, and in results of several GPUs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu: Option<String>,
    /// Highest measured rates; absent if not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ceilings: Option<Ceilings>,
    /// How times are corrected; absent for a device without a clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<Clock>,
    /// Absent if fewer than three processes measured the device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spread: Option<Spread>,
    /// What an administrator can change; absent without NVML.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settings: Option<Settings>,
    /// Number of other processes that had the device open when the run started; absent if there were none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub other_processes: Option<u32>,
}

/// Highest rates that purpose-built kernels reached on a device.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Ceilings {
    /// Device memory read once, bytes per second.
    #[serde(with = "super::real")]
    pub read: f64,
    /// Device memory written once, bytes per second; older surveys did not measure it.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "super::real")]
    pub write: Option<f64>,
    /// Device memory copied, bytes read and written per second.
    #[serde(with = "super::real")]
    pub copy: f64,
    /// L2 cache read, bytes per second.
    #[serde(with = "super::real")]
    pub l2_read: f64,
    /// f32 fused multiply-adds outside matrix units, operations per second; each counts as two.
    #[serde(with = "super::real")]
    pub fma_f32: f64,
    /// The same for f64.
    #[serde(with = "super::real")]
    pub fma_f64: f64,
    /// The same for f16, with two values in a register, as on every architecture since 5.3.
    #[serde(with = "super::real")]
    pub fma_f16: f64,
}

impl Ceilings {
    /// Highest rate of device memory, bytes per second.
    pub fn memory(&self) -> f64 {
        self.read.max(self.copy).max(self.write.unwrap_or_default())
    }
}

/// Settings of a device, which are never changed here. Source: NVML; unknown values are absent.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Settings {
    pub max_sm_clock_mhz: Option<u32>,
    pub max_memory_clock_mhz: Option<u32>,
    /// SM clock that an administrator chose, or the default one.
    pub application_sm_clock_mhz: Option<u32>,
    pub application_memory_clock_mhz: Option<u32>,
    /// Power above which the driver lowers the clocks.
    #[serde(default, with = "super::real")]
    pub power_limit_watts: Option<f64>,
    /// Whether the driver stays loaded without a client.
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
    /// Why its clocks were limited; empty if they were not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub throttled_by: Vec<ThrottleReason>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ThrottleReason {
    PowerCap,
    /// Hardware slowdown for any reason.
    HardwareSlowdown,
    /// Waiting for a slower GPU of its group.
    SyncBoost,
    Temperature,
    HardwareTemperature,
    /// Demand of the server's power supply.
    PowerBrake,
}

/// Calibration of the clock that takes times, or why there is none.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Clock {
    /// A constant is subtracted from every interval.
    Calibrated(Calibration),
    /// Times are reported as they were read.
    Uncalibrated {
        /// Why there is no calibration, in a sentence.
        why: String,
        /// Reading of an empty interval, in nanoseconds.
        #[serde(with = "super::real")]
        empty: f64,
    },
}

/// Excess of a clock interval over the time of its kernel, found by comparison with a reference clock that reads only
/// the kernel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// Nanoseconds to subtract from every interval of this process.
    #[serde(with = "super::real")]
    pub constant: f64,
    /// Largest difference between a calibrated time and the reference clock, in nanoseconds: the accuracy of every
    /// time. It is not part of the intervals of medians and speedups, which say how well a time repeats.
    #[serde(with = "super::real")]
    pub uncertainty: f64,
    pub kernels: u32,
    /// Name of the clock, e.g. `CUPTI 13.0`.
    pub reference_clock: String,
    /// Reading of an empty interval, in nanoseconds.
    #[serde(with = "super::real")]
    pub empty: f64,
}

/// How much the time of one kernel differs from process to process on one device, after each process subtracted its own
/// constant. No interval from within one process can include that. The numbers are upper limits of the standard
/// deviations, at 95 % confidence.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// Deviation of every time, in nanoseconds.
    #[serde(with = "super::real")]
    pub nanoseconds: f64,
    /// Deviation of a long time, as a fraction of it.
    #[serde(with = "super::real")]
    pub relative: f64,
    pub processes: u32,
}

impl Spread {
    /// Standard deviation of a sample's time, as a fraction of it, if its two events surround `launches` runs.
    pub fn deviation_at(&self, nanoseconds: f64, launches: u32) -> f64 {
        (self.nanoseconds / (nanoseconds * f64::from(launches.max(1)))).hypot(self.relative)
    }
}

/// Times of the calibration kernels by the reference clock.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReferenceTimes {
    /// Name of the clock, e.g. `CUPTI 13.0`.
    #[serde(alias = "witness")]
    pub reference_clock: String,
    /// Nanoseconds by kernel label.
    #[serde(with = "super::real")]
    pub times: BTreeMap<String, f64>,
}

/// A kernel that both clocks timed, in nanoseconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CalibrationPoint {
    /// Grid, block and length of the kernel: `132×256, 1000 cycles`.
    pub label: String,
    #[serde(with = "super::real")]
    pub read: f64,
    /// Standard error of the time, from the samples of the process.
    #[serde(with = "super::real")]
    pub error: f64,
    /// Time by the reference clock, if there is one.
    #[serde(default, with = "super::real")]
    pub reference: Option<f64>,
}

/// Tasks of a worker that surveys its device.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SurveyRequest {
    pub code: Compiled,
    /// Whether to time the kernels for the comparison of processes too.
    pub spread: bool,
    pub ceilings: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Survey {
    /// Highest measured rates; `None` if not requested.
    pub ceilings: Option<Ceilings>,
    /// Times of the same kernels in every survey, by the uncorrected clock.
    pub points: Vec<CalibrationPoint>,
    /// Times of kernels of a few microseconds, which show how much processes differ. The reference clock is off for
    /// these, since tracing slows some of them.
    pub short: Vec<CalibrationPoint>,
    /// Times of longer kernels, for the relative part of the spread.
    pub long: Vec<CalibrationPoint>,
    /// Reading of an empty interval, in nanoseconds.
    #[serde(with = "super::real")]
    pub empty: f64,
    /// Name of the reference clock; `None` without one.
    pub reference_clock: Option<String>,
}

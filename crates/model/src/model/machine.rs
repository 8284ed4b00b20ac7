//! The measured properties of a machine, per device and driver.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Compiled;

/// What measurements show of a device beyond its driver's data. What is unknown is absent.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Machine {
    /// The GPU among those of its model: the first 12 hexadecimal digits of the SHA-256 of its UUID. Absent where it
    /// has none, and in results of several GPUs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu: Option<String>,
    /// The highest measured rates; absent if they were not measured.
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
    /// The number of other processes that had the device open when the run started; absent if there were none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub other_processes: Option<u32>,
}

/// The highest rates that kernels made for this purpose reached on a device.
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
    /// The L2 cache read, bytes per second.
    #[serde(with = "super::real")]
    pub l2_read: f64,
    /// Fused multiply-adds outside matrix units, operations per second; each counts as two.
    #[serde(with = "super::real")]
    pub fma_f32: f64,
    /// The rate of multiply-adds in 64 bits.
    #[serde(with = "super::real")]
    pub fma_f64: f64,
    /// The rate of multiply-adds in 16 bits: two are in a register, as on every architecture since 5.3.
    #[serde(with = "super::real")]
    pub fma_f16: f64,
}

impl Ceilings {
    /// Returns the highest rate of device memory, bytes per second.
    pub fn memory(&self) -> f64 {
        self.read.max(self.copy).max(self.write.unwrap_or_default())
    }
}

/// The settings of a device, which are never changed here. Source: NVML; what it does not know is absent.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Settings {
    /// The highest SM clock, MHz.
    pub max_sm_clock_mhz: Option<u32>,
    /// The highest memory clock, MHz.
    pub max_memory_clock_mhz: Option<u32>,
    /// The SM clock that an administrator chose, or the default one, MHz.
    pub application_sm_clock_mhz: Option<u32>,
    /// The memory clock that an administrator chose, or the default one, MHz.
    pub application_memory_clock_mhz: Option<u32>,
    /// The power above which the driver lowers the clocks.
    #[serde(default, with = "super::real")]
    pub power_limit_watts: Option<f64>,
    /// Whether the driver stays loaded without a client.
    pub persistence: Option<bool>,
    /// The mode, such as `default` or `exclusive process`.
    pub compute_mode: Option<String>,
    /// Whether the GPU is divided into instances.
    pub mig: Option<bool>,
}

/// The state that a device has at one moment.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct DeviceState {
    /// The SM clock, MHz.
    pub sm_clock_mhz: Option<u32>,
    /// The power of the board.
    #[serde(default, with = "super::real")]
    pub power_watts: Option<f64>,
    /// The temperature of the GPU.
    pub temperature_celsius: Option<u32>,
    /// Why its clocks were limited; empty if they were not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub throttled_by: Vec<ThrottleReason>,
}

/// Why a device is throttled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ThrottleReason {
    /// The driver limits the power.
    PowerCap,
    /// The hardware slowed down, for any reason.
    HardwareSlowdown,
    /// The GPU waits for a slower one of its group.
    SyncBoost,
    /// The driver limits the temperature.
    Temperature,
    /// The hardware limits the temperature.
    HardwareTemperature,
    /// The server's power supply requires it.
    PowerBrake,
}

/// The calibration of the clock that takes times, or why there is none.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Clock {
    /// A constant is subtracted from every interval.
    Calibrated(Calibration),
    /// Times are reported as they were read.
    Uncalibrated {
        /// Why there is no calibration, in a sentence.
        why: String,
        /// The reading of an empty interval, nanoseconds.
        #[serde(with = "super::real")]
        empty: f64,
    },
}

/// The reading of an interval of the clock beyond its kernel's time, found by comparison with a reference clock that
/// reads the kernel alone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// The nanoseconds that are subtracted from every interval of this process.
    #[serde(with = "super::real")]
    pub constant: f64,
    /// The largest difference between a calibrated time and the reference clock, nanoseconds: the accuracy of every
    /// time. It is not part of the intervals of medians and speedups, which say how well a time repeats.
    #[serde(with = "super::real")]
    pub uncertainty: f64,
    /// Kernels that were compared.
    pub kernels: u32,
    /// The name of the clock, for example `CUPTI 13.0`.
    pub reference_clock: String,
    /// The reading of an empty interval, nanoseconds.
    #[serde(with = "super::real")]
    pub empty: f64,
}

/// How much the time of one kernel differs from process to process on one device, after each process subtracted its own
/// constant. No interval from within one process can include that. The numbers are upper limits of the standard
/// deviations, at a confidence of 95 %.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// The deviation of every time, in nanoseconds.
    #[serde(with = "super::real")]
    pub nanoseconds: f64,
    /// The deviation of a long time, as a fraction of it.
    #[serde(with = "super::real")]
    pub relative: f64,
    /// Processes that measured the device.
    pub processes: u32,
}

impl Spread {
    /// Returns the standard deviation of a sample's time, as a fraction of it, if its two events surround `launches`
    /// runs.
    pub fn deviation_at(&self, nanoseconds: f64, launches: u32) -> f64 {
        (self.nanoseconds / (nanoseconds * f64::from(launches.max(1)))).hypot(self.relative)
    }
}

/// The times of the calibration kernels by the reference clock: nanoseconds by label.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReferenceTimes {
    /// The name of the clock, for example `CUPTI 13.0`.
    #[serde(alias = "witness")]
    pub reference_clock: String,
    /// Nanoseconds, by the label of the kernel.
    #[serde(with = "super::real")]
    pub times: BTreeMap<String, f64>,
}

/// A kernel that both clocks timed, in nanoseconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CalibrationPoint {
    /// The grid, the block and the length of the kernel: `132×256, 1000 cycles`.
    pub label: String,
    /// The time that the device's own clock reads.
    #[serde(with = "super::real")]
    pub read: f64,
    /// The standard error of the time, from the samples of the process.
    #[serde(with = "super::real")]
    pub error: f64,
    /// The time that the reference clock reads, if there is one.
    #[serde(default, with = "super::real")]
    pub reference: Option<f64>,
}

/// What a worker should measure of its device.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SurveyRequest {
    /// The kernels of the survey.
    pub code: Compiled,
    /// Whether to time the kernels for the comparison of processes too.
    pub spread: bool,
    /// Whether to measure ceilings too.
    pub ceilings: bool,
}

/// The results of a survey.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Survey {
    /// The highest measured rates; `None` if they were not asked for.
    pub ceilings: Option<Ceilings>,
    /// The times of the same kernels in every survey, by the uncorrected clock.
    pub points: Vec<CalibrationPoint>,
    /// Kernels of a few microseconds, and longer ones, to see how much times differ between processes. The reference
    /// clock is off for these, since tracing slows some of them.
    pub short: Vec<CalibrationPoint>,
    /// The times of longer kernels, for the relative part of the spread.
    pub long: Vec<CalibrationPoint>,
    /// The reading of an empty interval, nanoseconds.
    #[serde(with = "super::real")]
    pub empty: f64,
    /// The name of the reference clock; `None` without one.
    pub reference_clock: Option<String>,
}

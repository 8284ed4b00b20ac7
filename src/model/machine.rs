//! What a machine is found to be when it is itself measured, once a device and driver.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Compiled;

/// All that is known of a device beyond what its driver says. What was not found out is absent.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Machine {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ceilings: Option<Ceilings>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<Clock>,
    /// Absent where fewer than three processes measured the device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spread: Option<Spread>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settings: Option<Settings>,
    /// Processes that had the device open besides this one when the run started; absent where there were none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub other_processes: Option<u32>,
}

impl Machine {
    /// Whether nothing is known.
    pub fn is_unknown(&self) -> bool {
        *self == Self::default()
    }
}

/// The fastest that kernels made for nothing else were seen to be on a device.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Ceilings {
    /// Device memory read once, bytes a second.
    pub read: f64,
    /// Device memory copied, bytes read and written a second.
    pub copy: f64,
    /// The L2 cache read, bytes a second.
    pub l2_read: f64,
    /// Fused multiply-adds outside matrix units, operations a second; each counts as two.
    pub fma_f32: f64,
    pub fma_f64: f64,
    /// Two at a time in a register, as every architecture since 5.3 does.
    pub fma_f16: f64,
}

/// How a device is set; nothing of it is ever changed here. Source: NVML, which leaves out what it does not know.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Settings {
    pub max_sm_clock_mhz: Option<u32>,
    pub max_memory_clock_mhz: Option<u32>,
    /// The clocks that an administrator chose, or the default ones.
    pub application_sm_clock_mhz: Option<u32>,
    pub application_memory_clock_mhz: Option<u32>,
    pub power_limit_watts: Option<f64>,
    pub persistence: Option<bool>,
    /// `default`, `exclusive process`, …
    pub compute_mode: Option<String>,
    /// Whether the GPU is divided into instances.
    pub mig: Option<bool>,
}

/// What a device did at one moment.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct DeviceState {
    pub sm_clock_mhz: Option<u32>,
    pub power_watts: Option<f64>,
    pub temperature_celsius: Option<u32>,
    /// Why its clocks were limited; empty where they were not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub throttled_by: Vec<ThrottleReason>,
}

/// Why a device is throttled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ThrottleReason {
    /// The driver keeps it within its power limit.
    PowerCap,
    /// The hardware slowed down, for whatever reason.
    HardwareSlowdown,
    /// Another GPU of its group is slower.
    SyncBoost,
    /// The driver keeps its temperature down.
    Temperature,
    /// The hardware keeps its temperature down.
    HardwareTemperature,
    /// The server's power supply asked for it.
    PowerBrake,
}

/// What is known of the clock that takes times.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Clock {
    Calibrated(Calibration),
    /// Times stand as they were read.
    Uncalibrated {
        why: String,
        /// What an interval with nothing in it reads, nanoseconds.
        empty: f64,
    },
}

/// What an interval of the clock reads besides the kernel in it, found by comparison with a reference clock that reads the
/// kernel alone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// Taken off every interval of this process, nanoseconds.
    pub constant: f64,
    /// The largest difference between a calibrated time and the reference clock, nanoseconds: the accuracy of every
    /// time. It has no part in the intervals of medians and speedups, which say how well a time repeats.
    pub uncertainty: f64,
    /// Kernels that were compared.
    pub kernels: u32,
    /// For example `CUPTI 13.0`.
    pub reference_clock: String,
    /// What an interval with nothing in it reads, nanoseconds.
    pub empty: f64,
}

/// How much the time of one kernel differs from process to process on one device once each has taken off its own
/// constant: what no interval from within a process can hold. Standard deviations, or rather what these do not exceed at a confidence of 95 %.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// Of every time, nanoseconds.
    pub nanoseconds: f64,
    /// Of a long time, as a fraction of it.
    pub relative: f64,
    pub processes: u32,
}

impl Spread {
    /// The standard deviation of a sample's time, as a fraction of it, where the two events stand around `launches` runs.
    pub fn of(&self, nanoseconds: f64, launches: u32) -> f64 {
        (self.nanoseconds / (nanoseconds * f64::from(launches.max(1)))).hypot(self.relative)
    }
}

/// The times of the calibration kernels by the reference clock: nanoseconds by label.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReferenceTimes {
    /// For example `CUPTI 13.0`.
    #[serde(alias = "witness")]
    pub reference_clock: String,
    pub times: BTreeMap<String, f64>,
}

/// A calibration point: one kernel by both clocks, in nanoseconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CalibrationPoint {
    pub label: String,
    /// As the device's own clock reads it.
    pub read: f64,
    /// Its standard error, by the samples of the process.
    pub error: f64,
    /// As the reference clock reads it, where there is one.
    pub reference: Option<f64>,
}

/// What a worker is asked to find out about its device.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SurveyRequest {
    /// The kernels of the survey.
    pub code: Compiled,
    /// Whether to time the kernels too by which processes are compared.
    pub spread: bool,
    /// Whether to measure ceilings too.
    pub ceilings: bool,
}

/// What it found out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Survey {
    pub ceilings: Option<Ceilings>,
    /// The same kernels in every survey, by the clock as it is.
    pub points: Vec<CalibrationPoint>,
    /// Kernels of a few microseconds, and longer ones, to see how much times differ between processes. The reference
    /// clock is off for these: tracing slows some.
    pub short: Vec<CalibrationPoint>,
    pub long: Vec<CalibrationPoint>,
    /// What an interval with nothing in it reads, nanoseconds.
    pub empty: f64,
    /// Its name; `None` where there is none.
    pub reference_clock: Option<String>,
}

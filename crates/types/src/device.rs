//! Devices, their capabilities, and the environment of a run.
//!
//! [`Environment`] holds what is the same in every run and is committed. [`RunContext`] holds what changes, and goes
//! only into the journal.

use serde::{Deserialize, Serialize};

use super::{Bytes, Dim3, Machine, Shard, ToolkitInfo};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, strum::Display)]
#[strum(serialize_all = "lowercase")]
#[serde(rename_all = "lowercase")]
pub enum BackendKind {
    /// An NVIDIA GPU through the CUDA driver.
    Cuda,
    /// The embedded SIMT simulator.
    Sim,
    /// Test device that runs host functions instead of kernels.
    Fake,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct DeviceId {
    /// 0-based index by which the backend opens it.
    pub ordinal: u32,
    /// UUID as the driver formats it; `None` for a simulated device.
    pub uuid: Option<String>,
}

/// Capabilities of a device. `execute` checks these, never the backend.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Capabilities {
    pub has_clock: bool,
    pub has_counters: bool,
}

/// Properties of a device that launches, reports and expressions need.
///
/// Sources: `cuDeviceGetAttribute` for a GPU, the profile's data file for the simulator.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeviceInfo {
    pub backend: BackendKind,
    /// Product name, e.g. `NVIDIA H100 80GB HBM3`.
    pub name: String,
    /// Compute capability, e.g. `(9, 0)`.
    pub compute_capability: (u32, u32),
    pub sm_count: u32,
    /// FP32 lanes per SM; `None` if the architecture is not in the table.
    pub cores_per_sm: Option<u32>,
    pub warp_size: u32,
    pub max_threads_per_block: u32,
    pub max_threads_per_sm: u32,
    pub max_blocks_per_sm: u32,
    pub max_block_dim: Dim3,
    pub max_grid_dim: Dim3,
    /// 32-bit registers available to one block.
    pub registers_per_block: u32,
    pub registers_per_sm: u32,
    /// Shared memory per block without opting in, in bytes.
    pub shared_per_block: u32,
    /// Shared memory that a block may opt in to, in bytes.
    pub shared_per_block_optin: u32,
    /// Shared memory per SM, in bytes.
    pub shared_per_sm: u32,
    /// Shared memory that the system reserves per block, in bytes.
    pub shared_reserved_per_block: u32,
    /// Memory for `__constant__` variables, in bytes.
    pub constant_memory: u32,
    pub l2_bytes: u64,
    pub memory_bytes: Bytes,
    /// Free memory when the device was opened; not part of the committed environment.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub memory_free: Option<Bytes>,
    pub memory_bus_bits: u32,
    pub memory_clock_khz: u32,
    pub sm_clock_khz: u32,
    /// Whether the device supports grids that synchronise as a whole.
    pub cooperative_launch: bool,
    /// Whether ECC is enabled for the device memory.
    pub ecc: bool,
    pub capabilities: Capabilities,
}

type Attribute = (&'static str, fn(&DeviceInfo) -> i64);

const ATTRIBUTES: [Attribute; 12] = [
    ("sm_count", |device| device.sm_count.into()),
    ("warp_size", |device| device.warp_size.into()),
    ("max_threads_per_block", |device| device.max_threads_per_block.into()),
    ("max_threads_per_sm", |device| device.max_threads_per_sm.into()),
    ("max_blocks_per_sm", |device| device.max_blocks_per_sm.into()),
    ("registers_per_sm", |device| device.registers_per_sm.into()),
    ("shared_per_block", |device| device.shared_per_block.into()),
    ("shared_per_block_optin", |device| device.shared_per_block_optin.into()),
    ("shared_per_sm", |device| device.shared_per_sm.into()),
    ("l2_bytes", |device| device.l2_bytes as i64),
    ("memory_bytes", |device| device.memory_bytes.0 as i64),
    ("compute_capability", |device| (device.compute_capability.0 * 10 + device.compute_capability.1).into()),
];

impl DeviceInfo {
    /// Data-sheet peak memory bandwidth in bytes per second: clock × 2 (double data rate) × bus width ÷ 8.
    ///
    /// `None` if the driver reports no memory clock, or for a device without a clock.
    pub fn peak_bandwidth(&self) -> Option<f64> {
        let bits = f64::from(self.memory_bus_bits);
        let peak = f64::from(self.memory_clock_khz) * 1e3 * 2.0 * bits / 8.0;
        (self.capabilities.has_clock && peak > 0.0).then_some(peak)
    }

    /// Data-sheet peak f32 operations per second: SMs × lanes × 2 (fused multiply-add) × clock.
    pub fn peak_flops(&self) -> Option<f64> {
        let lanes = f64::from(self.sm_count) * f64::from(self.cores_per_sm?);
        let peak = lanes * 2.0 * f64::from(self.sm_clock_khz) * 1e3;
        (self.capabilities.has_clock && peak > 0.0).then_some(peak)
    }

    /// Architecture name: `sm_90` for `(9, 0)`.
    pub fn architecture(&self) -> String {
        format!("sm_{}{}", self.compute_capability.0, self.compute_capability.1)
    }

    /// Device attributes that expressions may use, with their values.
    pub fn attributes(&self) -> impl Iterator<Item = (&'static str, i64)> {
        ATTRIBUTES.into_iter().map(|(name, value)| (name, value(self)))
    }

    /// Names of [`Self::attributes`]; needs no device.
    pub fn attribute_names() -> impl Iterator<Item = &'static str> {
        ATTRIBUTES.into_iter().map(|(name, _)| name)
    }
}

/// Resource that limits the resident blocks per SM.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OccupancyLimiter {
    Blocks,
    Warps,
    Registers,
    Shared,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Occupancy {
    pub blocks_per_sm: u32,
    /// Resident warps divided by the maximum per SM, 0 to 1.
    #[serde(with = "super::real")]
    pub fraction: f64,
    /// Resource that limits the resident blocks; `None` if unknown.
    pub limiter: Option<OccupancyLimiter>,
}

/// The part of a run's environment that results depend on and that does not change from run to run. Committed as
/// `environment.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Environment {
    pub device: DeviceInfo,
    /// Driver version, e.g. `580.159.04`; `None` for a simulated device.
    pub driver: Option<String>,
    /// CUDA version that the driver supports, e.g. `(13, 0)`.
    pub driver_cuda: Option<(u32, u32)>,
    pub toolkit: ToolkitInfo,
    /// Compiler of the host functions, e.g. `nvcc 13.0.88`; `None` without host functions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_compiler: Option<String>,
    /// Version of `runner`.
    pub runner: String,
    /// How times were measured, in one sentence; `None` if nothing was timed.
    pub timing_method: Option<String>,
    /// How hardware counters were collected, in one sentence; `None` without hardware counters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counting_method: Option<String>,
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub machine: Machine,
}

/// The part of a run's environment that changes from run to run. Kept only in the journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunContext {
    pub host: String,
    /// Git revision of the manifest's checkout, with `-dirty` if it has changes.
    pub revision: Option<String>,
    /// Start time in RFC 3339, UTC.
    pub started: String,
    /// Command line, one entry per argument.
    pub arguments: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_uuid: Option<String>,
    /// Part of the plan that this run covers; `None` for the whole plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shard: Option<Shard>,
    /// Hash of the files that a submitted job copied for this run; `None` outside of jobs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<String>,
}

/// An H100 SXM as its driver reports it, for tests.
pub fn h100() -> DeviceInfo {
    DeviceInfo {
        backend: BackendKind::Cuda,
        name: "NVIDIA H100 80GB HBM3".to_owned(),
        compute_capability: (9, 0),
        sm_count: 132,
        cores_per_sm: Some(128),
        warp_size: 32,
        max_threads_per_block: 1024,
        max_threads_per_sm: 2048,
        max_blocks_per_sm: 32,
        max_block_dim: Dim3::new(1024, 1024, 64),
        max_grid_dim: Dim3::new(2_147_483_647, 65535, 65535),
        registers_per_block: 65536,
        registers_per_sm: 65536,
        shared_per_block: 49152,
        shared_per_block_optin: 232_448,
        shared_per_sm: 233_472,
        shared_reserved_per_block: 1024,
        constant_memory: 65536,
        l2_bytes: 50 << 20,
        memory_bytes: Bytes(85_017_755_648),
        memory_free: None,
        memory_bus_bits: 5120,
        memory_clock_khz: 2_619_000,
        sm_clock_khz: 1_980_000,
        cooperative_launch: true,
        ecc: true,
        capabilities: Capabilities { has_clock: true, has_counters: false },
    }
}

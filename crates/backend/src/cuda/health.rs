//! The state of a GPU before it is used. It is read without a context, so a node can be checked before a task touches
//! its GPU.

use cudarc::driver::sys;

use super::attributes;
use super::nvml::Gpu;
use crate::Monitor as _;
use runner_types::{Bytes, ThrottleReason};

/// State that can be read without a context. Fields that NVML does not report are `None`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Health {
    pub name: String,
    pub driver: Option<String>,
    /// Total and free memory.
    pub memory: Option<(Bytes, Bytes)>,
    /// Number of processes with a context on the GPU.
    pub processes: Option<u32>,
    /// Why its clocks are limited; empty if they are not.
    pub throttled_by: Vec<ThrottleReason>,
    /// Memory errors that ECC could not correct, since the driver was loaded.
    pub uncorrected_errors: Option<u64>,
}

pub(super) fn read_health(device: sys::CUdevice, name: String, driver: Option<String>) -> Health {
    let gpu = attributes::pci_bus_id(device).map_err(|error| error.to_string()).and_then(|pci| Gpu::open(&pci));
    let Ok(mut gpu) = gpu else {
        let throttled_by = Vec::new();
        return Health { name, driver, memory: None, processes: None, throttled_by, uncorrected_errors: None };
    };
    Health {
        name,
        driver,
        memory: gpu.memory().map(|(total, free)| (Bytes(total), Bytes(free))),
        processes: gpu.users(),
        throttled_by: gpu.state().throttled_by,
        uncorrected_errors: gpu.uncorrected_errors(),
    }
}

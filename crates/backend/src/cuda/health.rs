//! The state of a GPU before it is used.

use cudarc::driver::sys;

use super::attributes;
use super::nvml::Gpu;
use crate::Monitor as _;
use crate::model::{Bytes, ThrottleReason};

/// What can be known of a GPU without a context on it. Figures that NVML does not have are `None`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Health {
    /// The name of the GPU.
    pub name: String,
    /// The version that the driver has.
    pub driver: Option<String>,
    /// The memory in total and the memory that is free.
    pub memory: Option<(Bytes, Bytes)>,
    /// Processes that use it.
    pub processes: Option<u32>,
    /// Why its clocks are limited; empty if they are not.
    pub throttled_by: Vec<ThrottleReason>,
    /// Memory errors since the driver was loaded that ECC could not correct.
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

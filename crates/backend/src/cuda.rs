//! Runs kernels on NVIDIA GPUs through the CUDA driver.
//!
//! cudarc's bindings open the driver at run time, so the same binary also runs without one. Any driver that supports
//! CUDA 12.0 or newer works. This backend measures times with CUDA events and does not count: under a profiler, it
//! marks launches. It compiles only PTX, through the driver, and does not change clocks or settings.

mod array;
mod attributes;
mod condition;
mod cupti;
mod cycle;
mod device;
mod device_loop;
mod driver;
mod energy;
mod flush;
mod gate;
mod graph;
mod handles;
mod host;
mod kernel;
mod launch;
mod limits;
mod link;
mod mapping;
mod measure;
mod memory;
mod nvml;
mod occupancy;
mod operation;
mod plugin;
mod prepare;
mod printed;
mod probe;
mod repeated;
mod table;
mod texture;
mod timing;
mod transfer;
mod work;

use super::{Backend, Device, DeviceError, DriverVersion};
use crate::Monitor as _;
use cudarc::driver::sys;
use nvml::Gpu;
use runner_types::{Bytes, DeviceId, DeviceInfo, ThrottleReason};

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

impl Backend for Cuda {
    /// Creates no context, since that would take device memory. Free memory is therefore unknown.
    fn devices(&self) -> Result<Vec<(DeviceId, DeviceInfo)>, DeviceError> {
        Ok(listed()?.into_iter().map(|device| (device.id, device.info)).collect())
    }

    /// Opens by UUID if the id has one, otherwise by ordinal.
    fn open(&self, id: &DeviceId) -> Result<Box<dyn Device>, DeviceError> {
        let mut devices = listed()?;
        let index = position(devices.iter().map(|device| &device.id), id)?;
        let listed = devices.swap_remove(index);
        // Tracing must start before a context exists.
        let start = || cupti::Tracer::start(driver::api()?.cuda).map_err(DeviceError::Unavailable);
        let tracer = if *self == Self::Traced { Some(start()?) } else { None };
        let opened = device::CudaDevice::open(listed, *self, tracer);
        Ok(Box::new(opened.map_err(|error| cannot_open(id, &error))?))
    }
}

/// PCI address of a GPU, e.g. `0000:18:00.0`.
pub fn pci_address(ordinal: u32) -> Result<String, DeviceError> {
    let mut devices = listed()?.into_iter();
    let found = devices.find(|device| device.id.ordinal == ordinal);
    let device = found.ok_or_else(|| DeviceError::Unavailable(format!("there is no device {ordinal}")))?;
    attributes::pci_bus_id(device.raw)
}

/// Every GPU, with its free memory if a context can be created.
pub fn probe() -> Result<Vec<(DeviceId, DeviceInfo)>, DeviceError> {
    let free = |device| {
        let context = handles::Context::retain(device).ok()?;
        context.memory().ok().map(|(free, _)| Bytes(free))
    };
    Ok(listed()?
        .into_iter()
        .map(|mut device| {
            device.info.memory_free = free(device.raw);
            (device.id, device.info)
        })
        .collect())
}

pub fn health(ordinal: u32) -> Result<Health, DeviceError> {
    let listed = listed()?.into_iter().find(|device| device.id.ordinal == ordinal);
    let device = listed.ok_or_else(|| DeviceError::Unavailable(format!("there is no device {ordinal}")))?;
    Ok(read_health(device.raw, device.info.name, driver_version()?.version))
}

/// Version of the driver and the CUDA version that it supports.
pub fn driver_version() -> Result<DriverVersion, DeviceError> {
    driver::api().map(driver::version)
}

fn listed() -> Result<Vec<attributes::Listed>, DeviceError> {
    driver::api()?;
    attributes::list()
}

fn position<'a>(devices: impl Iterator<Item = &'a DeviceId>, wanted: &DeviceId) -> Result<usize, DeviceError> {
    let devices: Vec<&DeviceId> = devices.collect();
    let found = match &wanted.uuid {
        Some(uuid) => devices.iter().position(|id| id.uuid.as_ref() == Some(uuid)),
        None => devices.iter().position(|id| id.ordinal == wanted.ordinal),
    };
    found.ok_or_else(|| {
        let name = wanted.uuid.clone().unwrap_or_else(|| wanted.ordinal.to_string());
        DeviceError::Unavailable(match devices.len() {
            0 => format!("there is no GPU {name}: the driver shows none"),
            1 => format!("there is no GPU {name}: the driver shows one, with ordinal 0"),
            n => format!("there is no GPU {name}: the driver shows {n}, with ordinals 0 to {}", n - 1),
        })
    })
}

fn cannot_open(id: &DeviceId, error: &DeviceError) -> DeviceError {
    DeviceError::Unavailable(format!(
        "GPU {} cannot be opened: {error}; see `nvidia-smi` for the processes that use it",
        id.ordinal
    ))
}

/// The state of a GPU before it is used. It is read without a context, so a node can be checked before a task touches
/// its GPU. Fields that NVML does not report are `None`.
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

fn read_health(device: sys::CUdevice, name: String, driver: Option<String>) -> Health {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn id(ordinal: u32, uuid: Option<&str>) -> DeviceId {
        DeviceId { ordinal, uuid: uuid.map(str::to_owned) }
    }

    #[test]
    fn a_uuid_names_a_device_at_any_ordinal() {
        let devices = [id(0, Some("GPU-a")), id(1, Some("GPU-b"))];
        assert_eq!(position(devices.iter(), &id(0, Some("GPU-b"))), Ok(1));
        assert_eq!(position(devices.iter(), &id(1, None)), Ok(1));
    }

    #[test]
    fn a_missing_device_is_reported_with_the_existing_ones() {
        let devices = [id(0, Some("GPU-a")), id(1, Some("GPU-b"))];
        let refusal = |devices: &[DeviceId], wanted| position(devices.iter(), &wanted).map_err(|e| e.to_string());
        assert_eq!(
            refusal(&devices, id(2, None)),
            Err("there is no GPU 2: the driver shows 2, with ordinals 0 to 1".to_owned())
        );
        assert_eq!(
            refusal(&devices[..1], id(0, Some("GPU-z"))),
            Err("there is no GPU GPU-z: the driver shows one, with ordinal 0".to_owned())
        );
    }
}

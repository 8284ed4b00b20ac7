//! NVIDIA GPUs through the CUDA driver.
//!
//! cudarc's bindings open the driver at run time, so the same binary runs where there is none. Any driver of CUDA 12.0
//! or newer will do. This backend takes times with CUDA events and counts nothing itself: it marks launches for a
//! profiler where one watches. It compiles nothing but PTX, by the driver, and leaves the device's clocks and settings
//! alone.

mod attributes;
mod cupti;
mod device;
mod driver;
mod energy;
mod flush;
mod gate;
mod graph;
mod handles;
mod host;
mod kernel;
mod link;
mod measure;
mod memory;
mod nvml;
mod occupancy;
mod operation;
mod plugin;
mod printed;
mod shape;
mod streams;
mod table;
mod timing;
mod transfer;

pub use printed::flush_c_streams;

use super::{Backend, Device, DeviceError, DriverVersion};
use crate::model::{Bytes, DeviceId, DeviceInfo};

/// The GPUs of this machine that the driver shows to this process.
#[derive(Debug, Clone, Copy, Default)]
pub struct Cuda;

/// The same GPUs for a process that runs inside a profiler: launches stand between the profiler's marks, and times are
/// not taken, since a profiler stretches them.
#[derive(Debug, Clone, Copy, Default)]
pub struct WatchedCuda;

impl Backend for WatchedCuda {
    fn devices(&self) -> Result<Vec<(DeviceId, DeviceInfo)>, DeviceError> {
        Cuda.devices()
    }

    fn open(&self, id: &DeviceId) -> Result<Box<dyn Device>, DeviceError> {
        open(id, true, false)
    }
}

/// The same GPUs with CUPTI's records of their kernels beside the clock: for calibration, in a process of its own, since
/// tracing slows what it traces.
#[derive(Debug, Clone, Copy, Default)]
pub struct TracedCuda;

impl Backend for TracedCuda {
    fn devices(&self) -> Result<Vec<(DeviceId, DeviceInfo)>, DeviceError> {
        Cuda.devices()
    }

    /// Errors where there is no CUPTI that this program knows.
    fn open(&self, id: &DeviceId) -> Result<Box<dyn Device>, DeviceError> {
        open(id, false, true)
    }
}

impl Backend for Cuda {
    /// Creates no context, so that it costs no device memory and nothing about free memory is said.
    fn devices(&self) -> Result<Vec<(DeviceId, DeviceInfo)>, DeviceError> {
        Ok(listed()?.into_iter().map(|device| (device.id, device.info)).collect())
    }

    /// Opens by UUID where the id has one, else by ordinal.
    fn open(&self, id: &DeviceId) -> Result<Box<dyn Device>, DeviceError> {
        open(id, false, false)
    }
}

/// Tracing begins before there is a context.
fn open(id: &DeviceId, watched: bool, traced: bool) -> Result<Box<dyn Device>, DeviceError> {
    let mut devices = listed()?;
    let index = position(devices.iter().map(|device| &device.id), id)?;
    let listed = devices.swap_remove(index);
    let start = || cupti::Tracer::start(driver::api()?.cuda).map_err(DeviceError::Unavailable);
    let tracer = if traced { Some(start()?) } else { None };
    let device = device::CudaDevice::open(listed, watched, tracer).map_err(|error| cannot_open(id, &error))?;
    Ok(Box::new(device))
}

/// Every GPU with the memory that is free on it now, where it lets itself be asked.
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

/// The driver's version and the CUDA version that it speaks.
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
    DeviceError::Unavailable(format!("GPU {} cannot be opened: {error}; see `nvidia-smi` for who uses it", id.ordinal))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(ordinal: u32, uuid: Option<&str>) -> DeviceId {
        DeviceId { ordinal, uuid: uuid.map(str::to_owned) }
    }

    #[test]
    fn a_uuid_names_a_device_wherever_it_stands() {
        let devices = [id(0, Some("GPU-a")), id(1, Some("GPU-b"))];
        assert_eq!(position(devices.iter(), &id(0, Some("GPU-b"))), Ok(1));
        assert_eq!(position(devices.iter(), &id(1, None)), Ok(1));
    }

    #[test]
    fn a_device_that_is_not_there_is_told_with_those_that_are() {
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

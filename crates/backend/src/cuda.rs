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
mod health;
mod host;
mod kernel;
mod launch;
mod limits;
mod link;
mod mapping;
mod measure;
mod memory;
mod nvml;
mod observed;
mod occupancy;
mod operation;
mod plugin;
mod prepare;
mod printed;
mod probe;
mod repeated;
mod shape;
mod streams;
mod table;
mod texture;
mod timing;
mod transfer;
mod work;

use super::{Backend, Device, DeviceError, DriverVersion};
pub use health::Health;
pub use observed::Cuda;

use runner_types::{Bytes, DeviceId, DeviceInfo};

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
    Ok(health::read_health(device.raw, device.info.name, driver_version()?.version))
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

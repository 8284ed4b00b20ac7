//! Device attributes from the driver, as a [`DeviceInfo`].
//!
//! All figures come from the driver except the FP32 lanes per SM, which no driver reports: they are from the table
//! "Arithmetic Instructions" of the CUDA C++ Programming Guide. Nothing here creates a context.

use std::ffi::{CStr, c_char, c_int};
use std::fmt::Write;

use cudarc::driver::{result, sys};

use super::driver::check;
use crate::DeviceError;
use runner_types::{BackendKind, Bytes, Capabilities, DeviceId, DeviceInfo, Dim3};

use sys::CUdevice_attribute as Attribute;

/// A device listed by the driver, with its id in this crate.
#[derive(Debug, Clone)]
pub(super) struct Listed {
    pub raw: sys::CUdevice,
    pub id: DeviceId,
    pub info: DeviceInfo,
}

/// All devices, in the driver's order. The driver must be initialised.
pub(super) fn list() -> Result<Vec<Listed>, DeviceError> {
    let mut count: c_int = 0;
    // SAFETY: the driver is initialised, and `count` outlives the call.
    check("cuDeviceGetCount", unsafe { sys::cuDeviceGetCount(&raw mut count) })?;
    (0..count).map(read).collect()
}

fn read(ordinal: c_int) -> Result<Listed, DeviceError> {
    let mut raw: sys::CUdevice = 0;
    // SAFETY: `raw` outlives the call.
    check("cuDeviceGet", unsafe { sys::cuDeviceGet(&raw mut raw, ordinal) })?;
    let id = DeviceId { ordinal: ordinal.unsigned_abs(), uuid: Some(uuid(raw)?) };
    Ok(Listed { raw, id, info: describe(raw)? })
}

fn describe(device: sys::CUdevice) -> Result<DeviceInfo, DeviceError> {
    let get = |attribute| get(device, attribute);
    let compute_capability = (
        get(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
        get(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
    );
    let max_block_dim = Dim3::new(
        get(Attribute::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X)?,
        get(Attribute::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y)?,
        get(Attribute::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z)?,
    );
    let max_grid_dim = Dim3::new(
        get(Attribute::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X)?,
        get(Attribute::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y)?,
        get(Attribute::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z)?,
    );
    Ok(DeviceInfo {
        backend: BackendKind::Cuda,
        name: name(device)?,
        compute_capability,
        sm_count: get(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
        cores_per_sm: cores_per_sm(compute_capability),
        warp_size: get(Attribute::CU_DEVICE_ATTRIBUTE_WARP_SIZE)?,
        max_threads_per_block: get(Attribute::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?,
        max_threads_per_sm: get(Attribute::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR)?,
        max_blocks_per_sm: get(Attribute::CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR)?,
        max_block_dim,
        max_grid_dim,
        registers_per_block: get(Attribute::CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK)?,
        registers_per_sm: get(Attribute::CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR)?,
        shared_per_block: get(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK)?,
        shared_per_block_optin: get(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?,
        shared_per_sm: get(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR)?,
        shared_reserved_per_block: get(Attribute::CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK)?,
        constant_memory: get(Attribute::CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY)?,
        l2_bytes: u64::from(get(Attribute::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)?),
        memory_bytes: memory_bytes(device)?,
        memory_free: None,
        memory_bus_bits: get(Attribute::CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH)?,
        memory_clock_khz: get(Attribute::CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE)?,
        sm_clock_khz: get(Attribute::CU_DEVICE_ATTRIBUTE_CLOCK_RATE)?,
        cooperative_launch: get(Attribute::CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH)? != 0,
        ecc: get(Attribute::CU_DEVICE_ATTRIBUTE_ECC_ENABLED)? != 0,
        capabilities: Capabilities { has_clock: true, has_counters: false },
    })
}

/// Reads an attribute; the driver's values are never negative.
pub(super) fn get(device: sys::CUdevice, attribute: Attribute) -> Result<u32, DeviceError> {
    let mut value: c_int = 0;
    // SAFETY: `device` comes from `cuDeviceGet`, and `value` outlives the call.
    check("cuDeviceGetAttribute", unsafe { sys::cuDeviceGetAttribute(&raw mut value, attribute, device) })?;
    Ok(u32::try_from(value).unwrap_or(0))
}

fn name(device: sys::CUdevice) -> Result<String, DeviceError> {
    result::device::get_name(device).map_err(|error| driver_error("cuDeviceGetName", error))
}

/// PCI address, e.g. `0000:18:00.0`, which identifies the device to NVML.
pub(super) fn pci_bus_id(device: sys::CUdevice) -> Result<String, DeviceError> {
    let mut text: [c_char; 32] = [0; 32];
    // SAFETY: `device` comes from `cuDeviceGet`; the driver writes at most the given number of bytes, including a final
    // NUL.
    check("cuDeviceGetPCIBusId", unsafe { sys::cuDeviceGetPCIBusId(text.as_mut_ptr(), text.len() as c_int, device) })?;
    // SAFETY: the driver has NUL-terminated the text.
    Ok(unsafe { CStr::from_ptr(text.as_ptr()) }.to_string_lossy().into_owned())
}

fn memory_bytes(device: sys::CUdevice) -> Result<Bytes, DeviceError> {
    // SAFETY: `device` comes from `cuDeviceGet`.
    let bytes = unsafe { result::device::total_mem(device) }.map_err(|e| driver_error("cuDeviceTotalMem", e))?;
    Ok(Bytes(bytes as u64))
}

fn uuid(device: sys::CUdevice) -> Result<String, DeviceError> {
    let uuid = result::device::get_uuid(device).map_err(|error| driver_error("cuDeviceGetUuid", error))?;
    Ok(format_uuid(uuid.bytes.map(|byte| byte.to_ne_bytes()[0])))
}

/// Formats a UUID like nvidia-smi: `GPU-8f3c2a1e-…`.
fn format_uuid(bytes: [u8; 16]) -> String {
    let mut text = String::from("GPU");
    for (index, byte) in bytes.iter().enumerate() {
        if matches!(index, 0 | 4 | 6 | 8 | 10) {
            text.push('-');
        }
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// Converts an error of cudarc's `result` layer.
fn driver_error(call: &'static str, error: result::DriverError) -> DeviceError {
    check(call, error.0).err().unwrap_or_else(|| DeviceError::Driver { call, message: error.to_string() })
}

/// FP32 lanes per SM.
///
/// Source: CUDA C++ Programming Guide, "Arithmetic Instructions", row "32-bit floating-point add, multiply,
/// multiply-add".
const fn cores_per_sm(compute_capability: (u32, u32)) -> Option<u32> {
    match compute_capability {
        (3, _) => Some(192),
        (6 | 8, 0) | (7, _) => Some(64),
        (5 | 6 | 8 | 9 | 10 | 11 | 12, _) => Some(128),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_follow_the_programming_guide() {
        let rows = [((7, 0), 64), ((7, 5), 64), ((8, 0), 64), ((8, 6), 128), ((8, 9), 128), ((9, 0), 128)];
        for (capability, lanes) in rows {
            assert_eq!(cores_per_sm(capability), Some(lanes), "{capability:?}");
        }
        assert_eq!((cores_per_sm((6, 0)), cores_per_sm((6, 1))), (Some(64), Some(128)));
        assert_eq!(cores_per_sm((99, 0)), None);
    }

    #[test]
    fn a_uuid_is_written_as_nvidia_smi_writes_it() {
        let bytes = [0x8f, 0x3c, 0x2a, 0x1e, 0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x99, 0xaa, 0xbb];
        assert_eq!(format_uuid(bytes), "GPU-8f3c2a1e-0011-2233-4455-66778899aabb");
    }
}

//! Maps device memory into a separate range, followed by unmapped addresses.
//!
//! Memory from `cuMemAlloc` borders on other memory, so a write far past a buffer hits something else unnoticed. Here
//! each allocation is mapped into a reserved range that is one granule (2 MiB) longer. An access to the extra granule
//! faults.

use cudarc::driver::sys;

use super::attributes;
use super::driver::check;
use super::handles::Context;
use crate::DeviceError;

/// Physical memory that is mapped for reading and writing.
#[derive(Debug)]
pub(super) struct Mapping {
    /// Declared first, so that it is unmapped before memory and range are released.
    mapped: Mapped,
    _physical: Physical,
    _range: Range,
}

impl Mapping {
    /// Maps at least `bytes`, in whole granules. `None` if the device has no virtual memory management.
    pub fn new(context: &Context, bytes: usize) -> Result<Option<Self>, DeviceError> {
        let supported = sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED;
        if attributes::get(context.device(), supported)? == 0 {
            return Ok(None);
        }
        let location =
            sys::CUmemLocation { type_: sys::CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE, id: context.device() };
        let properties = sys::CUmemAllocationProp {
            type_: sys::CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED,
            requestedHandleTypes: sys::CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_NONE,
            location,
            win32HandleMetaData: std::ptr::null_mut(),
            allocFlags: sys::CUmemAllocationProp_st__bindgen_ty_1 {
                compressionType: 0,
                gpuDirectRDMACapable: 0,
                usage: 0,
                reserved: [0; 4],
            },
        };
        let mut granule = 0;
        let least = sys::CUmemAllocationGranularity_flags::CU_MEM_ALLOC_GRANULARITY_MINIMUM;
        // SAFETY: both pointers outlive the call.
        check("cuMemGetAllocationGranularity", unsafe {
            sys::cuMemGetAllocationGranularity(&raw mut granule, &raw const properties, least)
        })?;
        let sizes = bytes.max(1).checked_next_multiple_of(granule.max(1));
        let sizes = sizes.and_then(|mapped| Some((mapped, mapped.checked_add(granule)?)));
        let Some((mapped, reserved)) = sizes else {
            return Err(DeviceError::OutOfMemory { needed: u64::MAX, available: context.memory()?.0 });
        };
        let enough = |code| enough(context, bytes, code);
        let physical = Physical::new(mapped, &properties, &enough)?;
        let range = Range::reserve(reserved, &enough)?;
        let mapped = Mapped::new(&physical, &range, mapped)?;
        let access =
            sys::CUmemAccessDesc { location, flags: sys::CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
        // SAFETY: the range is mapped, and `access` outlives the call.
        check("cuMemSetAccess", unsafe { sys::cuMemSetAccess(mapped.address, mapped.bytes, &raw const access, 1) })?;
        Ok(Some(Self { mapped, _physical: physical, _range: range }))
    }

    /// Address past the last byte.
    pub fn end(&self) -> sys::CUdeviceptr {
        self.mapped.address + self.mapped.bytes as sys::CUdeviceptr
    }
}

/// Memory without an address.
#[derive(Debug)]
struct Physical(sys::CUmemGenericAllocationHandle);

impl Physical {
    /// Allocates memory; `enough` reports that there is not enough.
    fn new(
        bytes: usize,
        properties: &sys::CUmemAllocationProp,
        enough: &dyn Fn(sys::CUresult) -> Result<(), DeviceError>,
    ) -> Result<Self, DeviceError> {
        let mut handle = 0;
        // SAFETY: both pointers outlive the call; the flags must be zero, and are.
        let code = unsafe { sys::cuMemCreate(&raw mut handle, bytes, properties, 0) };
        enough(code)?;
        check("cuMemCreate", code)?;
        Ok(Self(handle))
    }
}

impl Drop for Physical {
    fn drop(&mut self) {
        // SAFETY: created in `new`, released once; its mappings have been removed.
        let _ = unsafe { sys::cuMemRelease(self.0) };
    }
}

/// Reserved addresses.
#[derive(Debug)]
struct Range {
    address: sys::CUdeviceptr,
    bytes: usize,
}

impl Range {
    /// Reserves addresses; `enough` reports that there are not enough.
    fn reserve(bytes: usize, enough: &dyn Fn(sys::CUresult) -> Result<(), DeviceError>) -> Result<Self, DeviceError> {
        let mut address: sys::CUdeviceptr = 0;
        // SAFETY: `address` outlives the call; zeros leave alignment and location to the driver, and the flags must be
        // zero.
        let code = unsafe { sys::cuMemAddressReserve(&raw mut address, bytes, 0, 0, 0) };
        enough(code)?;
        check("cuMemAddressReserve", code)?;
        Ok(Self { address, bytes })
    }
}

impl Drop for Range {
    fn drop(&mut self) {
        // SAFETY: reserved in `reserve`, freed once; nothing is mapped into it any more.
        let _ = unsafe { sys::cuMemAddressFree(self.address, self.bytes) };
    }
}

/// A mapping of memory to the beginning of a range.
#[derive(Debug)]
struct Mapped {
    address: sys::CUdeviceptr,
    bytes: usize,
}

impl Mapped {
    fn new(physical: &Physical, range: &Range, bytes: usize) -> Result<Self, DeviceError> {
        // SAFETY: the range is reserved and longer than `bytes`, which is the size of the memory; the flags must be
        // zero.
        check("cuMemMap", unsafe { sys::cuMemMap(range.address, bytes, 0, physical.0, 0) })?;
        Ok(Self { address: range.address, bytes })
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: mapped in `new`, unmapped once; every public call of the device waits for the work that uses it.
        let _ = unsafe { sys::cuMemUnmap(self.address, self.bytes) };
    }
}

/// Turns exhausted memory into an error.
fn enough(context: &Context, bytes: usize, code: sys::CUresult) -> Result<(), DeviceError> {
    if code == sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY {
        return Err(DeviceError::OutOfMemory { needed: bytes as u64, available: context.memory()?.0 });
    }
    Ok(())
}

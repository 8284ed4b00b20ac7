//! Device memory, pinned host memory, and the buffers of a case with their guard zones.
//!
//! A buffer is one allocation: guard, data, guard. The data begins on a 512-byte boundary, like an allocation of the
//! driver and as textures require. The guards are adjacent to it on both sides, so a write one past the end hits a
//! guard. The second guard ends at the end of the mapping, so an access beyond it faults. `execute` chooses and checks
//! the content of the guards.

use std::ffi::{c_uint, c_void};
use std::ptr::{self, NonNull};

use cudarc::driver::sys;

use super::driver::check;
use super::handles::{Context, Stream};
use super::mapping::Mapping;
use crate::{DeviceError, ModuleId};

/// Alignment of `cuMemAlloc` in bytes.
const ALIGNMENT: usize = 512;

#[derive(Debug)]
pub(super) struct DeviceMemory {
    address: sys::CUdeviceptr,
}

impl DeviceMemory {
    /// Allocates `bytes`, at least one, in the current context. The error states how much was free.
    pub fn alloc(context: &Context, bytes: usize) -> Result<Self, DeviceError> {
        let mut address: sys::CUdeviceptr = 0;
        // SAFETY: `address` outlives the call.
        let code = unsafe { sys::cuMemAlloc_v2(&raw mut address, bytes.max(1)) };
        if code == sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY {
            let (available, _) = context.memory()?;
            return Err(DeviceError::OutOfMemory { needed: bytes as u64, available });
        }
        check("cuMemAlloc", code)?;
        Ok(Self { address })
    }

    pub fn address(&self) -> sys::CUdeviceptr {
        self.address
    }
}

impl Drop for DeviceMemory {
    fn drop(&mut self) {
        // SAFETY: allocated in `alloc`, freed once; the driver waits for work that uses it.
        let _ = unsafe { sys::cuMemFree_v2(self.address) };
    }
}

/// Page-locked host memory.
#[derive(Debug)]
pub(super) struct PinnedMemory {
    host: NonNull<u8>,
    bytes: usize,
}

impl PinnedMemory {
    /// Allocates zeroed bytes; if `mapped`, they have a device address, too.
    pub fn alloc(bytes: usize, mapped: bool) -> Result<Self, DeviceError> {
        let flags = if mapped { sys::CU_MEMHOSTALLOC_DEVICEMAP } else { 0 };
        let mut host: *mut c_void = ptr::null_mut();
        // SAFETY: `host` outlives the call.
        check("cuMemHostAlloc", unsafe { sys::cuMemHostAlloc(&raw mut host, bytes, flags as c_uint) })?;
        let host = NonNull::new(host.cast::<u8>()).ok_or_else(|| DeviceError::Driver {
            call: "cuMemHostAlloc",
            message: format!("the driver returned a null address for {bytes} bytes of pinned memory"),
        })?;
        // SAFETY: the driver returned `bytes` writable bytes at `host`, and nothing else refers to them yet.
        unsafe { host.write_bytes(0, bytes) };
        Ok(Self { host, bytes })
    }

    pub fn host(&self) -> NonNull<u8> {
        self.host
    }

    pub fn device_address(&self) -> Result<sys::CUdeviceptr, DeviceError> {
        let mut address: sys::CUdeviceptr = 0;
        // SAFETY: the memory was allocated by `cuMemHostAlloc`, and `address` outlives the call.
        check("cuMemHostGetDevicePointer", unsafe {
            sys::cuMemHostGetDevicePointer_v2(&raw mut address, self.host.as_ptr().cast(), 0)
        })?;
        Ok(address)
    }

    /// The memory as bytes. The caller must have waited for all copies by the device.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: the allocation is `self.bytes` long, initialised, and borrowed for as long as `self`; the caller has
        // waited for the device.
        unsafe { std::slice::from_raw_parts_mut(self.host.as_ptr(), self.bytes) }
    }
}

impl Drop for PinnedMemory {
    fn drop(&mut self) {
        // SAFETY: allocated in `alloc`, freed once.
        let _ = unsafe { sys::cuMemFreeHost(self.host.as_ptr().cast()) };
    }
}

/// A range of device memory with an id.
#[derive(Debug)]
pub(super) struct Buffer {
    pub address: sys::CUdeviceptr,
    pub bytes: usize,
    /// Bytes of the guards before and after the data.
    guards: (usize, usize),
    /// Memory without guards, or all memory if the device cannot map it.
    _plain: Option<DeviceMemory>,
    /// Memory with guards. A module's variable owns no memory.
    _mapping: Option<Mapping>,
    /// Module whose variable this is, if any.
    pub module: Option<ModuleId>,
}

impl Buffer {
    pub fn alloc(context: &Context, bytes: usize, guard: usize) -> Result<Self, DeviceError> {
        let Some((front, total)) = layout(bytes, guard) else {
            let (available, _) = context.memory()?;
            return Err(DeviceError::OutOfMemory { needed: u64::MAX, available });
        };
        let mapping = if guard > 0 { Mapping::new(context, total)? } else { None };
        let Some(mapping) = mapping else {
            let memory = DeviceMemory::alloc(context, total)?;
            let address = memory.address() + front as sys::CUdeviceptr;
            let guards = (guard, guard);
            return Ok(Self { address, bytes, guards, _plain: Some(memory), _mapping: None, module: None });
        };
        let address = (mapping.end() - (bytes + guard) as sys::CUdeviceptr) & !(ALIGNMENT as sys::CUdeviceptr - 1);
        let guards = (guard, (mapping.end() - address) as usize - bytes);
        Ok(Self { address, bytes, guards, _plain: None, _mapping: Some(mapping), module: None })
    }

    /// A module's variable, whose memory belongs to the module.
    pub fn variable(module: ModuleId, address: sys::CUdeviceptr, bytes: usize) -> Self {
        Self { address, bytes, guards: (0, 0), _plain: None, _mapping: None, module: Some(module) }
    }

    /// Address and size in bytes of the guards before and after the data; `None` without guards.
    pub fn guards(&self) -> Option<[(sys::CUdeviceptr, usize); 2]> {
        let (before, behind) = self.guards;
        if before == 0 {
            return None;
        }
        Some([
            (self.address - before as sys::CUdeviceptr, before),
            (self.address + self.bytes as sys::CUdeviceptr, behind),
        ])
    }
}

/// Offset of the data and total size in bytes; `None` if they exceed the address space.
fn layout(bytes: usize, guard: usize) -> Option<(usize, usize)> {
    let front = guard.checked_next_multiple_of(ALIGNMENT)?;
    Some((front, front.checked_add(bytes)?.checked_add(guard)?))
}

/// Sets bytes on the device; does nothing if `bytes` is 0.
pub(super) fn fill(stream: &Stream, address: sys::CUdeviceptr, byte: u8, bytes: usize) -> Result<(), DeviceError> {
    if bytes == 0 {
        return Ok(());
    }
    // SAFETY: the caller's buffer holds `bytes` bytes at `address` and outlives the queued work, for which every public
    // call of the device waits.
    check("cuMemsetD8Async", unsafe { sys::cuMemsetD8Async(address, byte, bytes, stream.raw()) })
}

/// Sets consecutive elements of 1, 2 or 4 bytes.
pub(super) fn set(
    stream: &Stream,
    address: sys::CUdeviceptr,
    (value, width): (u32, usize),
    bytes: usize,
) -> Result<(), DeviceError> {
    let count = bytes / width.max(1);
    if count == 0 {
        return Ok(());
    }
    match width {
        1 => fill(stream, address, value as u8, bytes),
        // SAFETY: the caller's buffer holds `bytes` bytes at `address`, aligned to 512, and outlives the queued work,
        // for which every public call of the device waits.
        2 => check("cuMemsetD16Async", unsafe { sys::cuMemsetD16Async(address, value as u16, count, stream.raw()) }),
        // SAFETY: the caller's buffer holds `bytes` bytes at `address`, aligned to 512, and outlives the queued work,
        // for which every public call of the device waits.
        _ => check("cuMemsetD32Async", unsafe { sys::cuMemsetD32Async(address, value, count, stream.raw()) }),
    }
}

/// Copies within the device; does nothing if `bytes` is 0.
pub(super) fn copy(
    stream: &Stream,
    to: sys::CUdeviceptr,
    from: sys::CUdeviceptr,
    bytes: usize,
) -> Result<(), DeviceError> {
    if bytes == 0 {
        return Ok(());
    }
    // SAFETY: the caller's buffers hold `bytes` bytes at both addresses and outlive the queued work.
    check("cuMemcpyDtoDAsync", unsafe { sys::cuMemcpyDtoDAsync_v2(to, from, bytes, stream.raw()) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_stays_aligned_behind_a_guard_of_any_size() {
        assert_eq!(layout(1000, 0), Some((0, 1000)));
        assert_eq!(layout(1000, 64), Some((512, 1576)));
        assert_eq!(layout(1000, 256), Some((512, 1768)));
        assert_eq!(layout(0, 4096), Some((4096, 8192)));
        assert_eq!(layout(usize::MAX, 1), None);
        assert_eq!(layout(1, usize::MAX), None);
    }
}

//! Queries about the device and its kernels, and memory that kernels allocate.

use crate::exec::device_runtime::call::{Call, Fault};
use crate::profile::DeviceProfile;
use crate::runtime::errors::Code;
use crate::runtime::limits::violation;
use crate::runtime::{Shape, heap};

/// Writes an `int` through the pointer in argument 0.
pub fn put(call: &mut Call<'_, '_>, value: u32) -> Result<u64, Fault> {
    call.write(call.u64(0), &value.to_le_bytes())?;
    Ok(0)
}

/// Executes `cudaDeviceGetAttribute(value, attribute, device)`. The call fails with `cudaErrorInvalidValue` for an
/// attribute that depends on a clock or that the simulated device lacks.
pub fn attribute(call: &mut Call<'_, '_>) -> Result<u64, Fault> {
    if call.u32(2) != 0 {
        return Ok(u64::from(Code::INVALID_DEVICE.0));
    }
    match of_device(call.runtime().device.profile, call.u32(1)) {
        Some(value) => put(call, value),
        None => Ok(u64::from(Code::INVALID_VALUE.0)),
    }
}

/// Returns a `cudaDeviceAttr` attribute, if the profile has it.
fn of_device(p: &DeviceProfile, attribute: u32) -> Option<u32> {
    Some(match attribute {
        1..=3 => 1024,
        4 => 64,
        5 | 11 => 0x7fff_ffff,
        6 | 7 => 0xffff,
        8 => p.shared_per_block,
        9 => 64 << 10,
        10 => 32,
        12 => p.registers_per_block,
        16 => p.sm_count,
        37 => p.memory_bus_bits,
        38 => u32::try_from(p.l2).unwrap_or(u32::MAX),
        39 => p.max_warps_per_sm * 32,
        75 => p.capability.0,
        76 => p.capability.1,
        81 => p.shared_per_sm,
        82 => p.registers_per_sm,
        95 => u32::from(p.capability >= (6, 0)),
        97 => p.shared_per_block_optin,
        106 => p.max_blocks_per_sm,
        111 => p.shared_reserved,
        _ => return None,
    })
}

/// Executes `cudaDeviceGetLimit(value, limit)` for the stack, the printf buffer, the heap and pending launches.
pub fn limit(call: &mut Call<'_, '_>) -> Result<u64, Fault> {
    let device = call.runtime().device;
    let value = match call.u32(1) {
        0 => device.stack,
        // The simulator never drops output of printf, so this is CUDA's default.
        1 => 1 << 20,
        2 => device.heap,
        4 => device.slots.limit,
        _ => return Ok(u64::from(Code::INVALID_VALUE.0)),
    };
    call.write(call.u64(0), &value.to_le_bytes())?;
    Ok(0)
}

/// `cudaFuncGetAttributes(attributes, kernel)`. Registers are zero if the compiler did not report them.
pub fn function(call: &mut Call<'_, '_>) -> Result<u64, Fault> {
    let Some(kernel) = call.kernel_at(call.u64(1))? else { return Ok(u64::from(Code::INVALID_DEVICE_FUNCTION.0)) };
    let profile = call.runtime().device.profile;
    let version = profile.capability.0 * 10 + profile.capability.1;
    let dynamic = profile.shared_per_block.saturating_sub(kernel.shared_static);
    // Three sizes, then integers, as in `struct cudaFuncAttributes`; the rest concerns clusters.
    let mut bytes = Vec::with_capacity(144);
    for size in [kernel.shared_static, 0, kernel.local_bytes()] {
        bytes.extend(u64::from(size).to_le_bytes());
    }
    let threads = kernel.max_threads.unwrap_or(1024);
    for value in [threads, kernel.registers, version, version, 0, dynamic, u32::MAX] {
        bytes.extend(value.to_le_bytes());
    }
    bytes.resize(144, 0);
    call.write(call.u64(0), &bytes)?;
    Ok(0)
}

/// Executes `cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks, kernel, threads, shared)`.
pub fn occupancy(call: &mut Call<'_, '_>) -> Result<u64, Fault> {
    let Some(kernel) = call.kernel_at(call.u64(1))? else { return Ok(u64::from(Code::INVALID_DEVICE_FUNCTION.0)) };
    let profile = call.runtime().device.profile;
    let (threads, shared) = (call.u32(2), u32::try_from(call.u64(3)).unwrap_or(u32::MAX));
    if threads == 0 {
        return Ok(u64::from(Code::INVALID_VALUE.0));
    }
    let shape = Shape { grid: [1; 3], block: [threads, 1, 1], shared, cluster: None };
    // A kernel launched from the device cannot raise the limit.
    let blocks = match violation(kernel, &shape, profile, profile.shared_per_block) {
        Some(_) => 0,
        None => profile.occupancy(threads, kernel.registers, kernel.shared_static + shared).blocks_per_sm,
    };
    put(call, blocks)
}

/// Executes `cudaMalloc(pointer, bytes)`, which allocates from the same heap as `malloc` on the device.
pub fn malloc(call: &mut Call<'_, '_>) -> Result<u64, Fault> {
    let address = heap::allocate(call.cx.launch.memory, call.cx.launch.heap, call.u64(1));
    call.write(call.u64(0), &address.unwrap_or(0).to_le_bytes())?;
    Ok(u64::from(if address.is_some() { Code::SUCCESS } else { Code::MEMORY_ALLOCATION }.0))
}

/// Executes `cudaFree(pointer)` for memory from `cudaMalloc` or `malloc` on the device.
pub fn free(call: &mut Call<'_, '_>) -> u64 {
    let known = heap::free(call.cx.launch.memory, call.cx.launch.heap, call.u64(0));
    u64::from(if known { Code::SUCCESS } else { Code::INVALID_VALUE }.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::profiles;

    #[test]
    fn attributes_have_the_numbers_of_the_runtimes_header() {
        let h100 = profiles().into_iter().find(|p| p.id == "h100").unwrap_or_else(|| panic!("no profile"));
        let known = [(1, 1024), (10, 32), (16, 132), (39, 2048), (75, 9), (76, 0), (81, 233_472), (97, 232_448)];
        for (attribute, value) in known {
            assert_eq!(of_device(&h100, attribute), Some(value), "{attribute}");
        }
        assert_eq!(of_device(&h100, 13), None, "a clock rate");
    }
}

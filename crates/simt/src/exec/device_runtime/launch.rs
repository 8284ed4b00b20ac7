//! Launches from the device: parameter buffers, and launches into streams.

use crate::exec::device_runtime::call::{Call, Fault};
use crate::memory::Use;
use crate::program::Kernel;
use crate::runtime::errors::Code;
use crate::runtime::limits::violation;
use crate::runtime::{ChildLaunch, ParameterBuffer, Shape, Work};

/// Error code of launching this kernel with this shape.
fn refusal(call: &Call<'_, '_>, kernel: &Kernel, shape: &Shape) -> Code {
    // The device runtime cannot raise the limit on shared memory per block.
    let profile = call.runtime().device.profile;
    match violation(kernel, shape, profile, profile.shared_per_block) {
        Some(_) => Code::INVALID_CONFIGURATION,
        None => Code::SUCCESS,
    }
}

/// Allocates a parameter buffer and a slot for its launch. On failure, sets the thread's last error and returns null.
fn reserve(call: &Call<'_, '_>, bytes: u64, launch: Option<(u32, Shape)>) -> u64 {
    let runtime = call.runtime();
    if !runtime.device.slots.reserve() {
        call.remember(Code::PENDING_COUNT_EXCEEDED);
        return 0;
    }
    let name = "the parameters of a launch on the device";
    let Some(address) = call.cx.launch.memory.alloc(bytes, name, Use::Internal) else {
        runtime.device.slots.release();
        call.remember(Code::MEMORY_ALLOCATION);
        return 0;
    };
    runtime.state().buffers.insert(address, ParameterBuffer { bytes, launch });
    address
}

/// Executes `cudaGetParameterBuffer(alignment, size)`.
pub fn parameter_buffer(call: &mut Call<'_, '_>) -> u64 {
    let (alignment, bytes) = (call.u64(0), call.u64(1));
    if bytes > 4 << 10 || alignment > 256 {
        call.remember(Code::INVALID_VALUE);
        return 0;
    }
    reserve(call, bytes, None)
}

/// Executes `cudaGetParameterBufferV2(kernel, grid, block, shared)`.
pub fn parameter_buffer_v2(call: &mut Call<'_, '_>) -> Result<u64, Fault> {
    let Some(kernel) = call.kernel_at(call.u64(0))? else {
        call.remember(Code::INVALID_DEVICE_FUNCTION);
        return Ok(0);
    };
    let shape = Shape { grid: call.extents(1), block: call.extents(2), shared: call.u32(3), cluster: None };
    Ok(match refusal(call, kernel, &shape) {
        Code::SUCCESS => reserve(call, u64::from(kernel.param_bytes), Some((kernel.number, shape))),
        code => {
            call.remember(code);
            0
        }
    })
}

/// Executes `cudaLaunchDeviceV2(buffer, stream)`.
pub fn launch_v2(call: &mut Call<'_, '_>) -> u64 {
    let (address, stream) = (call.u64(0), call.u64(1));
    let known = call.runtime().state().buffers.get(&address).and_then(|b| b.launch);
    match known {
        Some((number, shape)) => match call.runtime().device.kernels.get(&number) {
            Some(kernel) => submit(call, kernel, shape, address, stream),
            None => u64::from(Code::INVALID_DEVICE_FUNCTION.0),
        },
        None => u64::from(Code::INVALID_VALUE.0),
    }
}

/// `cudaLaunchDevice(kernel, buffer, grid, block, shared, stream)`. The buffer may be null if the kernel has no
/// parameters.
pub fn launch(call: &mut Call<'_, '_>) -> Result<u64, Fault> {
    let Some(kernel) = call.kernel_at(call.u64(0))? else { return Ok(u64::from(Code::INVALID_DEVICE_FUNCTION.0)) };
    let (mut address, stream) = (call.u64(1), call.u64(5));
    let shape = Shape { grid: call.extents(2), block: call.extents(3), shared: call.u32(4), cluster: None };
    let refused = refusal(call, kernel, &shape);
    if refused != Code::SUCCESS {
        return Ok(u64::from(refused.0));
    }
    if address == 0 && kernel.param_bytes == 0 {
        address = reserve(call, 0, None);
        if address == 0 {
            return Ok(u64::from(call.last_error(false).0));
        }
    }
    let bytes = call.runtime().state().buffers.get(&address).map(|b| b.bytes);
    if bytes.is_none_or(|bytes| bytes < u64::from(kernel.param_bytes)) {
        return Ok(u64::from(Code::INVALID_VALUE.0));
    }
    Ok(submit(call, kernel, shape, address, stream))
}

/// Queues a launch with the parameters in a buffer, and frees the buffer.
fn submit(call: &mut Call<'_, '_>, kernel: &Kernel, shape: Shape, buffer: u64, stream: u64) -> u64 {
    if !call.is_stream(stream) {
        return u64::from(Code::INVALID_HANDLE.0);
    }
    let memory = call.cx.launch.memory;
    let mut params = vec![0; kernel.param_bytes as usize];
    if memory.read(buffer, &mut params).is_err() {
        return u64::from(Code::INVALID_VALUE.0);
    }
    memory.free(buffer);
    // Another thread may be given the same bytes for its own launch.
    call.cx.shadow.barrier();
    call.runtime().state().buffers.remove(&buffer);
    call.queue(Work::Launch(ChildLaunch { kernel: kernel.number, shape, params }), stream);
    call.cx.accesses(call.i).device_launches += 1;
    0
}

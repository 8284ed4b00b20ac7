//! Table of the device runtime: every function of `cuda_device_runtime_api.h` (CUDA 13.0) that kernels link to.

use crate::exec::context::Context;
use crate::exec::device_runtime::call::{Call, Fault};
use crate::exec::device_runtime::{launch, query, transfer};
use crate::memory::Extent;
use crate::program::ins::Ins;
use crate::runtime::errors::Code;
use crate::runtime::{FIRE_AND_FORGET, Handle};

/// Return value of a function: an error code or another value.
type Answer = Result<u64, Fault>;

/// What a function returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Returns {
    /// A `cudaError_t`, which becomes the thread's last error.
    Status,
    /// Another value, or an error that does not become the thread's last error.
    Value,
}

#[derive(Debug)]
pub struct Service {
    /// Name without `__cudaCDP2`.
    name: &'static str,
    /// Size of each argument in bytes.
    args: &'static [u32],
    pub returns: Returns,
    pub run: fn(&mut Call<'_, '_>) -> Answer,
}

const fn status(name: &'static str, args: &'static [u32], run: fn(&mut Call<'_, '_>) -> Answer) -> Service {
    Service { name, args, returns: Returns::Status, run }
}

const fn value(name: &'static str, args: &'static [u32], run: fn(&mut Call<'_, '_>) -> Answer) -> Service {
    Service { name, args, returns: Returns::Value, run }
}

pub static SERVICES: [Service; 33] = [
    value("GetParameterBuffer", &[8, 8], |call| Ok(launch::parameter_buffer(call))),
    value("GetParameterBufferV2", &[8, 12, 12, 4], launch::parameter_buffer_v2),
    status("LaunchDevice", &[8, 8, 12, 12, 4, 8], launch::launch),
    status("LaunchDeviceV2", &[8, 8], |call| Ok(launch::launch_v2(call))),
    value("GetLastError", &[], |call| Ok(u64::from(call.last_error(true).0))),
    value("PeekAtLastError", &[], |call| Ok(u64::from(call.last_error(false).0))),
    value("GetErrorString", &[4], |call| Ok(text(call, false))),
    value("GetErrorName", &[4], |call| Ok(text(call, true))),
    status("StreamCreateWithFlags", &[8, 4], |call| create(call, &[0, 1], Handle::Stream)),
    status("StreamDestroy", &[8], |call| Ok(destroy(call, Handle::Stream))),
    status("StreamWaitEvent", &[8, 8, 4], |call| Ok(ordered(call, 0, 1, Some(2)))),
    status("EventCreateWithFlags", &[8, 4], |call| create(call, &[2, 3], Handle::Event)),
    status("EventRecord", &[8, 8], |call| Ok(ordered(call, 1, 0, None))),
    status("EventRecordWithFlags", &[8, 8, 4], |call| Ok(ordered(call, 1, 0, Some(2)))),
    status("EventDestroy", &[8], |call| Ok(destroy(call, Handle::Event))),
    status("MemcpyAsync", &[8, 8, 8, 4, 8], transfer::copy),
    status("Memcpy2DAsync", &[8, 8, 8, 8, 8, 8, 4, 8], transfer::copy_2d),
    status("Memcpy3DAsync", &[8, 8], transfer::copy_3d),
    status("MemsetAsync", &[8, 4, 8, 8], transfer::set),
    status("Memset2DAsync", &[8, 8, 4, 8, 8, 8], transfer::set_2d),
    status("Memset3DAsync", &[32, 4, 24, 8], transfer::set_3d),
    status("Malloc", &[8, 8], query::malloc),
    status("Free", &[8], |call| Ok(query::free(call))),
    status("DeviceGetAttribute", &[8, 4, 4], query::attribute),
    status("DeviceGetLimit", &[8, 4], query::limit),
    status("DeviceGetCacheConfig", &[8], |call| query::put(call, 0)),
    // Four-byte banks; current devices have no other size.
    status("DeviceGetSharedMemConfig", &[8], |call| query::put(call, 1)),
    status("GetDeviceCount", &[8], |call| query::put(call, 1)),
    status("GetDevice", &[8], |call| query::put(call, 0)),
    // Version of this interface, not of the toolkit. Measured on an H100 with CUDA 13.0.
    status("RuntimeGetVersion", &[8], |call| query::put(call, 6000)),
    status("FuncGetAttributes", &[8, 8], query::function),
    status("OccupancyMaxActiveBlocksPerMultiprocessor", &[8, 8, 4, 8], query::occupancy),
    status("OccupancyMaxActiveBlocksPerMultiprocessorWithFlags", &[8, 8, 4, 8, 4], query::occupancy),
];

/// Returns the table index of a symbol that a kernel calls. Variants for per-thread default streams (`_ptsz`) are the
/// same functions. `Err` explains why a device runtime symbol cannot be used.
pub fn find(symbol: &str, args: impl Iterator<Item = u32>) -> Option<Result<u32, String>> {
    let name = symbol.strip_prefix("__cudaCDP2")?;
    let name = name.strip_suffix("_ptsz").unwrap_or(name);
    let Some(at) = SERVICES.iter().position(|s| s.name == name) else {
        return Some(Err(format!("the simulator has no device runtime function `{symbol}`")));
    };
    if args.ne(SERVICES[at].args.iter().copied()) {
        return Some(Err(format!("`{symbol}` is called with arguments of the wrong sizes")));
    }
    Some(Ok(at as u32))
}

fn text(call: &Call<'_, '_>, name: bool) -> u64 {
    let runtime = call.runtime();
    runtime.device.texts.address(call.cx.launch.memory, Code(call.u32(0)), name)
}

/// Creates a stream or an event. An H100 accepts both stream flags, although the manual allows only
/// `cudaStreamNonBlocking`. An event must disable timing, and may block.
fn create(call: &mut Call<'_, '_>, flags: &[u32], handle: fn(u64) -> Handle) -> Answer {
    if !flags.contains(&call.u32(1)) {
        return Ok(u64::from(Code::INVALID_VALUE.0));
    }
    let number = {
        let mut state = call.runtime().state();
        state.next_handle += 1;
        let number = FIRE_AND_FORGET + state.next_handle;
        state.handles.insert(handle(number));
        number
    };
    call.write(call.u64(0), &number.to_le_bytes())?;
    Ok(0)
}

/// Destroys a handle; queued work stays queued.
fn destroy(call: &Call<'_, '_>, handle: fn(u64) -> Handle) -> u64 {
    let known = call.runtime().state().handles.remove(&handle(call.u64(0)));
    u64::from(if known { Code::SUCCESS } else { Code::INVALID_HANDLE }.0)
}

/// Records an event or waits for one. Queued work runs in the order of calls, so neither has an effect.
fn ordered(call: &Call<'_, '_>, stream: usize, event: usize, flags: Option<usize>) -> u64 {
    let (stream, event) = (call.u64(stream), call.u64(event));
    let known = call.is_stream(stream) && call.runtime().state().handles.contains(&Handle::Event(event));
    if flags.is_some_and(|k| call.u32(k) != 0) {
        return u64::from(Code::INVALID_VALUE.0);
    }
    u64::from(if known { Code::SUCCESS } else { Code::INVALID_HANDLE }.0)
}

/// Executes a call to the device runtime. `imm`: index of the call site; `aux`: index of the service.
pub unsafe fn call(cx: &mut Context<'_>, i: &Ins) -> *const Ins {
    let service = &SERVICES[i.aux as usize];
    if let Some(stopped) = cx.wait_for_commit(i) {
        return stopped;
    }
    // Transfers and allocations may invalidate the cached allocation.
    cx.cached = Extent::default();
    let site = &cx.launch.kernel.calls[i.imm as usize];
    let mut lanes = cx.mask;
    while lanes != 0 {
        let lane = lanes.trailing_zeros() as usize;
        lanes &= lanes - 1;
        let mut call = Call { cx: &mut *cx, i, lane, site };
        match (service.run)(&mut call) {
            Ok(value) => {
                if service.returns == Returns::Status {
                    call.remember(Code(value as u32));
                }
                call.answer(value);
            }
            Err(Fault { kind, message }) => return cx.trap(i, kind, 1 << lane, message),
        }
    }
    Context::next(i)
}

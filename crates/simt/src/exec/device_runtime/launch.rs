//! Launches from the device: parameter buffers, limits, streams.

use std::fmt;

use super::super::program::Kernel;
use super::call::Call;
use super::services::is_stream;
use super::{ChildLaunch, Code, ParameterBuffer, Queued, Shape, Work, origin};
use crate::memory::{FUNCTION_BASE, FUNCTION_STEP, Use};
use crate::profile::DeviceProfile;

/// `cudaStreamTailLaunch`.
pub const TAIL: u64 = 3;
/// `cudaStreamFireAndForget`.
pub const FIRE_AND_FORGET: u64 = 4;

/// Blocks that a cluster may have on every device.
const MOST_OF_CLUSTER: u64 = 8;

/// What of a launch lies outside the limits of kernel or device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Violation {
    Block { block: [u32; 3], most: u32 },
    Grid { grid: [u32; 3] },
    Shared { bytes: u32, most: u32, device: String },
    Cluster { cluster: [u32; 3], grid: [u32; 3] },
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Block { block: [x, y, z], most } => {
                write!(f, "a block of {x}×{y}×{z} threads: 1 to {most} are possible, at most 1024×1024×64")
            }
            Self::Grid { grid: [x, y, z] } => {
                write!(f, "a grid of {x}×{y}×{z} blocks: 1 to 2147483647×65535×65535 are possible")
            }
            Self::Shared { bytes, most, device } => {
                write!(f, "{bytes} bytes of shared memory a block: {device} has {most}")
            }
            Self::Cluster { cluster: [0, ..], .. } => {
                write!(f, "the kernel is compiled for clusters whose size the launch has to say, which none here does")
            }
            Self::Cluster { cluster: [x, y, z], grid: [gx, gy, gz] } => {
                write!(
                    f,
                    "clusters of {x}×{y}×{z} blocks in a grid of {gx}×{gy}×{gz}: along each axis the grid is a multiple of \
                     the cluster, and a cluster has at most {MOST_OF_CLUSTER} blocks"
                )
            }
        }
    }
}

/// What is wrong with a launch whose blocks may have `shared_limit` bytes of shared memory.
pub fn violation(kernel: &Kernel, shape: &Shape, profile: &DeviceProfile, shared_limit: u32) -> Option<Violation> {
    let [bx, by, bz] = shape.block;
    let threads = u64::from(bx) * u64::from(by) * u64::from(bz);
    let most = kernel.max_threads.unwrap_or(1024).min(1024);
    if threads == 0 || threads > u64::from(most) || bx > 1024 || by > 1024 || bz > 64 {
        return Some(Violation::Block { block: shape.block, most });
    }
    let [gx, gy, gz] = shape.grid;
    if gx == 0 || gy == 0 || gz == 0 || gx > 0x7fff_ffff || gy > 0xffff || gz > 0xffff {
        return Some(Violation::Grid { grid: shape.grid });
    }
    if let Some(cluster) = kernel.cluster {
        let blocks = cluster.iter().map(|&n| u64::from(n)).product::<u64>();
        let whole = shape.grid.iter().zip(cluster).all(|(grid, cluster)| cluster != 0 && grid.is_multiple_of(cluster));
        if !whole || blocks > MOST_OF_CLUSTER {
            return Some(Violation::Cluster { cluster, grid: shape.grid });
        }
    }
    let bytes = kernel.shared_static.saturating_add(shape.shared);
    (bytes > shared_limit).then(|| Violation::Shared { bytes, most: shared_limit, device: profile.name.clone() })
}

/// The kernel at an address.
pub(super) fn kernel_at<'m>(call: &Call<'_, 'm>, address: u64) -> Option<&'m Kernel> {
    let offset = address.checked_sub(FUNCTION_BASE).filter(|o| o.is_multiple_of(FUNCTION_STEP))?;
    let number = u32::try_from(offset / FUNCTION_STEP).ok()?;
    call.runtime().device.kernels.get(&number).copied()
}

/// The code of a launch of this kernel in this shape.
fn refusal(call: &Call<'_, '_>, kernel: &Kernel, shape: &Shape) -> Code {
    // The device runtime has no call to opt in to more shared memory than every block may have.
    let profile = call.runtime().device.profile;
    match violation(kernel, shape, profile, profile.shared_per_block) {
        Some(_) => Code::INVALID_CONFIGURATION,
        None => Code::SUCCESS,
    }
}

/// Allocates a parameter buffer and a slot for its launch; null, with the thread's last error set, where there is none.
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

/// `cudaGetParameterBuffer(alignment, size)`.
pub fn parameter_buffer(call: &mut Call<'_, '_>) -> u64 {
    let (alignment, bytes) = (call.u64(0), call.u64(1));
    if bytes > 4 << 10 || alignment > 256 {
        call.remember(Code::INVALID_VALUE);
        return 0;
    }
    reserve(call, bytes, None)
}

/// `cudaGetParameterBufferV2(kernel, grid, block, shared)`.
pub fn parameter_buffer_v2(call: &mut Call<'_, '_>) -> u64 {
    let Some(kernel) = kernel_at(call, call.u64(0)) else {
        call.remember(Code::INVALID_DEVICE_FUNCTION);
        return 0;
    };
    let shape = Shape { grid: call.extents(1), block: call.extents(2), shared: call.u32(3) };
    match refusal(call, kernel, &shape) {
        Code::SUCCESS => reserve(call, u64::from(kernel.param_bytes), Some((kernel.number, shape))),
        code => {
            call.remember(code);
            0
        }
    }
}

/// `cudaLaunchDeviceV2(buffer, stream)`.
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

/// `cudaLaunchDevice(kernel, buffer, grid, block, shared, stream)`; the buffer may be null where the kernel has no
/// parameters.
pub fn launch(call: &mut Call<'_, '_>) -> u64 {
    let Some(kernel) = kernel_at(call, call.u64(0)) else { return u64::from(Code::INVALID_DEVICE_FUNCTION.0) };
    let (mut address, stream) = (call.u64(1), call.u64(5));
    let shape = Shape { grid: call.extents(2), block: call.extents(3), shared: call.u32(4) };
    let refused = refusal(call, kernel, &shape);
    if refused != Code::SUCCESS {
        return u64::from(refused.0);
    }
    if address == 0 && kernel.param_bytes == 0 {
        address = reserve(call, 0, None);
        if address == 0 {
            return u64::from(call.last_error(false).0);
        }
    }
    let bytes = call.runtime().state().buffers.get(&address).map(|b| b.bytes);
    if bytes.is_none_or(|bytes| bytes < u64::from(kernel.param_bytes)) {
        return u64::from(Code::INVALID_VALUE.0);
    }
    submit(call, kernel, shape, address, stream)
}

/// Queues a launch whose parameters lie in a buffer, which goes back.
fn submit(call: &mut Call<'_, '_>, kernel: &Kernel, shape: Shape, buffer: u64, stream: u64) -> u64 {
    if !is_stream(call, stream) {
        return u64::from(Code::INVALID_HANDLE.0);
    }
    let memory = call.cx.launch.memory;
    let mut params = vec![0; kernel.param_bytes as usize];
    if memory.read(buffer, &mut params).is_err() {
        return u64::from(Code::INVALID_VALUE.0);
    }
    memory.free(buffer);
    // Another thread may get the same bytes for its own launch.
    call.cx.monitor.barrier();
    let by = origin(call.cx, call.i, call.lane);
    let queued = Queued { work: Work::Launch(ChildLaunch { kernel: kernel.number, shape, params }), by };
    let mut state = call.runtime().state();
    state.buffers.remove(&buffer);
    if stream == TAIL {
        state.queue.tail.push(queued);
    } else {
        state.queue.children.push(queued);
    }
    drop(state);
    call.cx.counters.device_launches += 1;
    0
}

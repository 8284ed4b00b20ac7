//! Flushes the L2 cache before a measurement and leaves no dirty lines.
//!
//! A flush by memset leaves the cache full of dirty lines, whose write-back is then part of the measured time. This one
//! reads a buffer larger than the cache, so that every line is clean. Lines that a kernel made persistent are reset
//! first.

use cudarc::driver::sys;

use super::attributes;
use super::driver::check;
use super::handles::{Context, Module, Stream};
use super::kernel::{Arguments, Kernel};
use super::launch::Shape;
use super::memory::{self, DeviceMemory};
use crate::{DeviceError, ModuleId};
use runner_types::{DeviceInfo, Dim3};

/// The kernel, as PTX for every supported GPU; the driver needs the final NUL.
const READ_ALL: &str = concat!(include_str!("flush.ptx"), "\0");

/// Name by which a tracer excludes the kernel from the operations that it times.
pub(super) const KERNEL: &str = "read_all";

const THREADS: u32 = 256;
/// Bytes of the vector that a thread reads.
const VECTOR: u64 = 16;

/// The buffer and the kernel that reads it.
#[derive(Debug)]
pub(super) struct Flush {
    kernel: Kernel,
    shape: Shape,
    arguments: Arguments,
    /// Arguments of a launch that reads nothing.
    nothing: Arguments,
    bytes: u64,
    /// Whether the device supports persistent lines.
    persisting: bool,
    _buffer: DeviceMemory,
    _sink: DeviceMemory,
    /// Dropped last, because the kernel is part of it.
    _module: Module,
}

impl Flush {
    /// Loads the kernel, allocates and zeroes the buffer, and reads it once.
    pub fn new(
        context: &Context,
        stream: &Stream,
        device: sys::CUdevice,
        info: &DeviceInfo,
    ) -> Result<Self, DeviceError> {
        let module = Module::load(READ_ALL.as_bytes())?;
        let kernel = Kernel::find(ModuleId(u32::MAX), &module, KERNEL)?;
        let bytes = buffer_bytes(info.l2_bytes);
        let buffer = DeviceMemory::alloc(context, bytes as usize)?;
        let sink = DeviceMemory::alloc(context, size_of::<u32>())?;
        memory::fill(stream, buffer.address(), 0, bytes as usize)?;
        let blocks = info.sm_count * (info.max_threads_per_sm / THREADS).max(1);
        let most = sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE;
        let flush = Self {
            kernel,
            shape: Shape::new(Dim3::new(blocks, 1, 1), Dim3::new(THREADS, 1, 1)),
            arguments: Arguments::new(vec![buffer.address(), bytes / VECTOR, sink.address()]),
            nothing: Arguments::new(vec![buffer.address(), 0, sink.address()]),
            bytes,
            persisting: attributes::get(device, most)? > 0,
            _buffer: buffer,
            _sink: sink,
            _module: module,
        };
        flush.queue(stream)?;
        stream.synchronize()?;
        Ok(flush)
    }

    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Queues one read of the whole buffer.
    pub fn queue(&self, stream: &Stream) -> Result<(), DeviceError> {
        self.kernel.launch(stream, &self.shape, &self.arguments)
    }

    /// Queues a launch that reads nothing.
    pub fn queue_empty(&self, stream: &Stream) -> Result<(), DeviceError> {
        let shape = Shape { grid: Dim3::new(1, 1, 1), ..self.shape };
        self.kernel.launch(stream, &shape, &self.nothing)
    }

    /// Makes persistent lines normal again. The device must be idle.
    pub fn reset_persisting(&self) -> Result<(), DeviceError> {
        if !self.persisting {
            return Ok(());
        }
        // SAFETY: the context is current; the call has no arguments.
        check("cuCtxResetPersistingL2Cache", unsafe { sys::cuCtxResetPersistingL2Cache() })
    }
}

/// Two and a half times the cache, at least 16 MiB, since a cache in two partitions may hold a line twice.
fn buffer_bytes(l2: u64) -> u64 {
    (l2 * 5 / 2).max(16 << 20).next_multiple_of(VECTOR * u64::from(THREADS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_buffer_is_more_than_twice_the_cache() {
        assert_eq!(buffer_bytes(50 << 20), 125 << 20);
        assert_eq!(buffer_bytes(0), 16 << 20);
        assert_eq!(buffer_bytes(40_000_001), 100_003_840);
        assert_eq!(100_003_840 % 4096, 0);
    }
}

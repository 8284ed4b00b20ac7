//! Prepares memory before a run with this program's own kernels.
//!
//! The driver fills and copies with kernels, copy engines or commands, as it sees fit. But the number of launches
//! between two runs must be known: it decides where on the device the second one starts ([`super::cycle`]).

use cudarc::driver::sys;

use super::handles::Module;
use super::kernel::{Arguments, Kernel};
use super::launch::Shape;
use super::operation::Operation;
use crate::{DeviceError, ModuleId};
use runner_types::{DeviceInfo, Dim3};

/// The kernels, as PTX for every supported GPU; the driver needs the final NUL.
const PTX: &str = concat!(include_str!("prepare.ptx"), "\0");
const COPY: &str = "copy_bytes";
const FILL: &str = "fill_bytes";

const THREADS: u32 = 256;
/// Bytes of the vector that a thread writes.
const VECTOR: u64 = 16;

#[derive(Debug)]
pub(super) struct Preparer {
    copy: Kernel,
    fill: Kernel,
    /// Number of blocks that the device runs at once.
    blocks: u32,
    /// Dropped last, because the kernels are part of it.
    _module: Module,
}

impl Preparer {
    pub fn new(info: &DeviceInfo) -> Result<Self, DeviceError> {
        let module = Module::load(PTX.as_bytes())?;
        let find = |name| Kernel::find(ModuleId(u32::MAX), &module, name);
        let blocks = info.sm_count * (info.max_threads_per_sm / THREADS).max(1);
        Ok(Self { copy: find(COPY)?, fill: find(FILL)?, blocks, _module: module })
    }

    pub fn copy(&self, to: sys::CUdeviceptr, from: sys::CUdeviceptr, bytes: usize) -> Operation<'_> {
        self.launch(&self.copy, vec![to, from, bytes as u64], bytes)
    }

    pub fn fill(&self, to: sys::CUdeviceptr, byte: u8, bytes: usize) -> Operation<'_> {
        self.launch(&self.fill, vec![to, repeated(byte), bytes as u64], bytes)
    }

    fn launch<'a>(&self, kernel: &'a Kernel, arguments: Vec<u64>, bytes: usize) -> Operation<'a> {
        let needed = (bytes as u64).div_ceil(VECTOR * u64::from(THREADS)).max(1);
        let blocks = u32::try_from(needed).unwrap_or(u32::MAX).min(self.blocks);
        let shape = Shape::new(Dim3::new(blocks, 1, 1), Dim3::new(THREADS, 1, 1));
        Operation::Launch { kernel, shape, arguments: Arguments::new(arguments), copies: Box::default() }
    }
}

/// Four copies of the byte, as a 32-bit argument.
fn repeated(byte: u8) -> u64 {
    u64::from(u32::from_ne_bytes([byte; 4]))
}

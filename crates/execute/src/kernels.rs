//! Fills, digests and compares buffers on the device.
//!
//! Reading a gigabyte takes a millisecond on the device and a hundred over the bus. These kernels never decide that a
//! result is wrong: a doubtful buffer is downloaded and judged on the host, which finds the element and describes the
//! mismatch. So reports are the same with and without them. Devices that do not run PTX cannot use them, and devices
//! without a clock do not: a simulated device is slower than the host.

pub mod check;
mod fill;
mod hidden;

use runner_backend::{Batch, BufferId, Device, DeviceError, KernelId, Launch, LaunchArg, ModuleId, Prepare, Step};
use runner_types::{Dim3, ElementType, ScalarValue};

use super::operand::Operand;
use hidden::Key;

/// Built from `kernels.cu`; see `tests/it/own_kernels.rs`.
const PTX: &str = include_str!("kernels/kernels.ptx");

const THREADS: u32 = 256;
const BLOCKS_PER_SM: u32 = 8;
/// Words of the result buffer.
const FOUND: usize = 512;

/// The loaded kernels and their result buffer.
#[derive(Debug)]
pub struct Kernels {
    fill: KernelId,
    digest: KernelId,
    compare: KernelId,
    mask: KernelId,
    key: Key,
    found: BufferId,
    most_blocks: u32,
    /// Expected values computed on the host and uploaded. Each is masked with the stream of its index.
    expected: Vec<(Operand, BufferId)>,
}

impl Kernels {
    /// Loads the kernels; `None` if the device cannot run them or the host is faster.
    pub fn load(device: &mut dyn Device) -> Result<Option<Self>, DeviceError> {
        if device.clock().is_some() { Self::load_if_possible(device) } else { Ok(None) }
    }

    fn load_if_possible(device: &mut dyn Device) -> Result<Option<Self>, DeviceError> {
        let _span = tracing::debug_span!("load the kernels of runner").entered();
        match device.load_builtin(PTX) {
            Ok(Some(module)) => Self::find(device, module).map(Some),
            Err(lost @ DeviceError::ContextLost(_)) => Err(lost),
            Ok(None) | Err(_) => Ok(None),
        }
    }

    fn find(device: &mut dyn Device, module: ModuleId) -> Result<Self, DeviceError> {
        Ok(Self {
            fill: device.kernel(module, "runner_fill")?,
            digest: device.kernel(module, "runner_digest")?,
            compare: device.kernel(module, "runner_compare")?,
            mask: device.kernel(module, "runner_mask")?,
            key: Key::draw(),
            found: device.alloc(FOUND * 8, 0)?,
            most_blocks: device.info().sm_count * BLOCKS_PER_SM,
            expected: Vec::new(),
        })
    }

    pub fn free(mut self, device: &mut dyn Device) {
        self.free_expected(device);
        let _ = device.free(self.found);
    }

    /// Frees the memory of the expected values. A failed free leaks memory, which the next allocation reports.
    pub fn free_expected(&mut self, device: &mut dyn Device) {
        // A new key, because a stream may mask only one content.
        self.key = Key::draw();
        for (_, id) in self.expected.drain(..) {
            let _ = device.free(id);
        }
    }

    /// Digest of a buffer's bytes and their positions. A change within one 8-byte word always changes it, a wider one
    /// with probability 1 - 2^-64.
    pub fn digest(&self, device: &mut dyn Device, buffer: BufferId) -> Result<u64, DeviceError> {
        let bytes = device.size(buffer) as u64;
        let args = vec![LaunchArg::Buffer(buffer), word(bytes), LaunchArg::Buffer(self.found)];
        self.run(device, self.digest, bytes.div_ceil(8), args)?;
        Ok(self.found::<1>(device)?[0])
    }

    /// Clears the result buffer and runs one kernel over `items` items.
    fn run(
        &self,
        device: &mut dyn Device,
        kernel: KernelId,
        items: u64,
        args: Vec<LaunchArg>,
    ) -> Result<(), DeviceError> {
        let blocks = items.div_ceil(u64::from(THREADS)).clamp(1, u64::from(self.most_blocks));
        let launch = Launch::new(kernel, Dim3::new(blocks as u32, 1, 1), Dim3::new(THREADS, 1, 1), args);
        let clear = Prepare::Fill { buffer: self.found, byte: 0 };
        device.run(&Batch::once(vec![clear], vec![Step::Launch(launch)])).map(drop)
    }

    fn found<const N: usize>(&self, device: &mut dyn Device) -> Result<[u64; N], DeviceError> {
        let mut bytes = vec![0; N * 8];
        device.download(self.found, 0, &mut bytes)?;
        let mut words = [0; N];
        for (word, raw) in words.iter_mut().zip(bytes.chunks_exact(8)) {
            *word = raw.iter().rev().fold(0, |bits, byte| bits << 8 | u64::from(*byte));
        }
        Ok(words)
    }
}

/// The kernels' code for an element type.
const fn code(element: ElementType) -> LaunchArg {
    number(match element {
        ElementType::I8 => 0,
        ElementType::I16 => 1,
        ElementType::I32 => 2,
        ElementType::I64 => 3,
        ElementType::U8 => 4,
        ElementType::U16 => 5,
        ElementType::U32 => 6,
        ElementType::U64 => 7,
        ElementType::F16 => 8,
        ElementType::Bf16 => 9,
        ElementType::F32 => 10,
        ElementType::F64 => 11,
    })
}

const fn number(value: u32) -> LaunchArg {
    LaunchArg::Scalar(ScalarValue { element: ElementType::U32, bits: value as u64 })
}

const fn word(value: u64) -> LaunchArg {
    LaunchArg::Scalar(ScalarValue { element: ElementType::U64, bits: value })
}

const fn double(value: f64) -> LaunchArg {
    LaunchArg::Scalar(ScalarValue { element: ElementType::F64, bits: value.to_bits() })
}

#[cfg(test)]
mod tests;

//! Prepares memory before a run, by kernels of its own.
//!
//! The driver fills and copies with kernels, copy engines or commands, as it sees fit. The number of launches between two
//! runs decides where on the device the second one begins ([`super::cycle`]), so it has to be known.

use cudarc::driver::sys;

use super::handles::Module;
use super::kernel::{Arguments, Kernel};
use super::operation::Operation;
use super::shape::Shape;
use crate::backend::{Attributes, DeviceError, ModuleId};
use crate::model::{DeviceInfo, Dim3};

/// The kernels, as PTX for every supported GPU; the driver needs the final NUL.
const PTX: &str = concat!(include_str!("prepare.ptx"), "\0");
const COPY: &str = "copy_bytes";
const FILL: &str = "fill_bytes";

const THREADS: u32 = 256;
/// Bytes of the vector that one thread writes.
const VECTOR: u64 = 16;

/// The kernels, loaded.
#[derive(Debug)]
pub(super) struct Preparer {
    copy: Kernel,
    fill: Kernel,
    /// As many blocks as the device runs at once.
    blocks: u32,
    /// Last: the kernels are a part of it.
    _module: Module,
}

impl Preparer {
    /// Loads the kernels into the current context.
    pub fn new(info: &DeviceInfo) -> Result<Self, DeviceError> {
        let module = Module::load(PTX.as_bytes())?;
        let find = |name| Kernel::find(ModuleId(u32::MAX), &module, name);
        let blocks = info.sm_count * (info.max_threads_per_sm / THREADS).max(1);
        Ok(Self { copy: find(COPY)?, fill: find(FILL)?, blocks, _module: module })
    }

    /// Copies `bytes` bytes within the device.
    pub fn copy(&self, to: sys::CUdeviceptr, from: sys::CUdeviceptr, bytes: usize) -> Operation<'_> {
        self.launch(&self.copy, vec![to, from, bytes as u64], bytes)
    }

    /// Writes `byte` to `bytes` bytes.
    pub fn fill(&self, to: sys::CUdeviceptr, byte: u8, bytes: usize) -> Operation<'_> {
        self.launch(&self.fill, vec![to, repeated(byte), bytes as u64], bytes)
    }

    fn launch<'a>(&self, kernel: &'a Kernel, arguments: Vec<u64>, bytes: usize) -> Operation<'a> {
        let needed = (bytes as u64).div_ceil(VECTOR * u64::from(THREADS)).max(1);
        let blocks = u32::try_from(needed).unwrap_or(u32::MAX).min(self.blocks);
        let shape = Shape {
            grid: Dim3::new(blocks, 1, 1),
            block: Dim3::new(THREADS, 1, 1),
            shared: 0,
            cooperative: false,
            attributes: Attributes::default(),
            window: None,
        };
        Operation::Launch { kernel, shape, arguments: Arguments::new(arguments) }
    }
}

/// Four of the byte, as an argument of 32 bits.
fn repeated(byte: u8) -> u64 {
    u64::from(u32::from_ne_bytes([byte; 4]))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test panics to fail")]

    use simt::{LaunchSpec, Machine, Options};

    use super::*;

    const ROOM: u64 = 80_000;

    /// What `kernel` makes of memory that holds 0xaa, `target` bytes behind its begin, given the other arguments.
    fn run(machine: &mut Machine, kernel: &str, to: u64, target: u64, others: [Vec<u8>; 2]) -> Vec<u8> {
        let module = machine.load(PTX.trim_end_matches('\0')).unwrap();
        machine.fill(to, ROOM, 0xaa).unwrap();
        let [second, third] = others;
        let args = [(to + target).to_le_bytes().to_vec(), second, third];
        let (grid, block) = ([2, 1, 1], [THREADS, 1, 1]);
        let spec = LaunchSpec { kernel, grid, block, shared: 0, cooperative: false, cluster: None, args: &args };
        machine.launch(module, &spec).unwrap();
        let mut found = vec![0; ROOM as usize];
        machine.read(to, &mut found).unwrap();
        found
    }

    fn machine() -> Machine {
        Machine::new(simt::profiles().into_iter().next().unwrap(), Options::default()).unwrap()
    }

    #[test]
    fn every_byte_is_copied_and_none_besides_however_they_are_aligned() {
        let mut machine = machine();
        let [from, to] = [(); 2].map(|()| machine.alloc(ROOM).unwrap());
        let content: Vec<u8> = (0..ROOM as u32).map(|i| i.wrapping_mul(2_654_435_761).to_be_bytes()[0]).collect();
        machine.write(from, &content).unwrap();
        for (source, target) in [(0, 0), (16, 32), (4, 0), (3, 1), (0, 8)] {
            for bytes in [0, 1, 15, 16, 17, 4095, 70_001_u64] {
                let others = [from + source, bytes].map(|value| value.to_le_bytes().to_vec());
                let found = run(&mut machine, COPY, to, target, others);
                let mut expected = vec![0xaa; ROOM as usize];
                let [source, target, bytes] = [source, target, bytes].map(|value| value as usize);
                expected[target..target + bytes].copy_from_slice(&content[source..source + bytes]);
                assert!(found == expected, "{bytes} bytes from {source} to {target}");
            }
        }
    }

    #[test]
    fn every_byte_is_filled_and_none_besides_however_they_are_aligned() {
        let mut machine = machine();
        let to = machine.alloc(ROOM).unwrap();
        for target in [0, 16, 4, 1] {
            for bytes in [0, 1, 15, 16, 17, 4095, 70_001_u64] {
                let value = repeated(0xc3) as u32;
                let others = [value.to_le_bytes().to_vec(), bytes.to_le_bytes().to_vec()];
                let found = run(&mut machine, FILL, to, target, others);
                let mut expected = vec![0xaa; ROOM as usize];
                expected[target as usize..(target + bytes) as usize].fill(0xc3);
                assert!(found == expected, "{bytes} bytes at {target}");
            }
        }
    }
}

//! A source file compiled once, and two machines that run its kernels: with one thread and with four.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use runner_compile::{Cache, CompileOptions, Network, Requirement, Target, Toolkit, compile_all};
use runner_types::CompileUnit;
use simt::{LaunchError, LaunchReport, LaunchSpec, Machine, ModuleId, Options, Trap, profiles};

/// PTX of every source compiled so far. Tests run in parallel, and the first one of a source compiles it for all.
static COMPILED: Mutex<BTreeMap<String, String>> = Mutex::new(BTreeMap::new());

/// The PTX of a source next to this file.
fn ptx(name: &str, kernels: &[&str]) -> String {
    let mut compiled = COMPILED.lock().unwrap_or_else(PoisonError::into_inner);
    compiled.entry(name.to_owned()).or_insert_with(|| compile(name, kernels)).clone()
}

fn compile(name: &str, kernels: &[&str]) -> String {
    let cache = Cache::locate().unwrap();
    let toolkit = Toolkit::ensure(Requirement::Pinned, &cache, Network::Allowed, &mut |_| {}).unwrap();
    let unit = CompileUnit::from_kernels(
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/kernels").join(name),
        kernels.iter().copied(),
    );
    let compiler = PathBuf::from(env!("CARGO_BIN_EXE_runner"));
    let options = CompileOptions { compiler, ..CompileOptions::new(cache).unwrap() };
    let mut compiled =
        compile_all(std::slice::from_ref(&unit), Target::Ptx((9, 0)), &toolkit, &options, &mut |_, _, _| {});
    let compiled = compiled.remove(&unit).unwrap();
    let compiled = compiled.unwrap_or_else(|failure| panic!("{}\n{}", failure.summary, failure.log));
    std::fs::read_to_string(compiled.code).unwrap()
}

/// Index of a buffer in both machines.
#[derive(Debug, Clone, Copy)]
pub struct Buffer(usize);

#[derive(Debug, Clone)]
pub enum Arg {
    Buffer(Buffer),
    Bytes(Vec<u8>),
}

impl From<Buffer> for Arg {
    fn from(buffer: Buffer) -> Self {
        Self::Buffer(buffer)
    }
}

impl From<i32> for Arg {
    fn from(value: i32) -> Self {
        Self::Bytes(value.to_le_bytes().to_vec())
    }
}

/// Launch configuration.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub shared: u32,
    pub cooperative: bool,
}

/// One-dimensional grid and blocks.
pub const fn line(grid: u32, block: u32) -> Shape {
    Shape { grid: [grid, 1, 1], block: [block, 1, 1], shared: 0, cooperative: false }
}

struct Side {
    machine: Machine,
    module: ModuleId,
    addresses: Vec<u64>,
}

/// Both machines, with the module of a source loaded.
pub struct Lab {
    sides: [Side; 2],
    sizes: Vec<usize>,
}

/// A value in device representation.
pub trait Plain: Copy {
    fn to_bytes(self) -> Vec<u8>;
    fn from_bytes(bytes: &[u8]) -> Self;
}

macro_rules! plain {
    ($($t:ty),*) => {$(
        impl Plain for $t {
            fn to_bytes(self) -> Vec<u8> {
                self.to_le_bytes().to_vec()
            }
            fn from_bytes(bytes: &[u8]) -> Self {
                Self::from_le_bytes(bytes.try_into().unwrap())
            }
        }
    )*};
}
plain!(u8, u16, i32, u32, u64, f32, f64);

impl Lab {
    pub fn new(source: &str, kernels: &[&str]) -> Self {
        let text = ptx(source, kernels);
        let sides = [1, 4].map(|threads| {
            let options = Options { threads: Some(threads), sanitize: true, ..Options::default() };
            let mut machine = Machine::new(profiles().remove(0), options).unwrap();
            let module = machine.load(&text).unwrap();
            Side { machine, module, addresses: Vec::new() }
        });
        Self { sides, sizes: Vec::new() }
    }

    pub fn buffer<T: Plain>(&mut self, values: &[T]) -> Buffer {
        let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_bytes()).collect();
        for side in &mut self.sides {
            let address = side.machine.alloc(bytes.len() as u64).unwrap();
            side.machine.write(address, &bytes).unwrap();
            side.addresses.push(address);
        }
        self.sizes.push(bytes.len());
        Buffer(self.sizes.len() - 1)
    }

    /// Memory that has not been written yet, which the sanitizer tracks.
    pub fn fresh(&mut self, bytes: usize) -> Buffer {
        for side in &mut self.sides {
            side.addresses.push(side.machine.alloc(bytes as u64).unwrap());
        }
        self.sizes.push(bytes);
        Buffer(self.sizes.len() - 1)
    }

    /// Launches on both machines, which must yield the same counts.
    pub fn launch(&mut self, kernel: &str, shape: Shape, args: &[Arg]) -> LaunchReport {
        self.run(kernel, shape, args).unwrap_or_else(|error| panic!("`{kernel}`: {error}"))
    }

    /// The fault that ends a launch on both machines.
    pub fn trap(&mut self, kernel: &str, shape: Shape, args: &[Arg]) -> Box<Trap> {
        match self.run(kernel, shape, args) {
            Err(LaunchError::Trap(trap)) => trap,
            other => panic!("`{kernel}` ends in {other:?}"),
        }
    }

    fn run(&mut self, kernel: &str, shape: Shape, args: &[Arg]) -> Result<LaunchReport, LaunchError> {
        let [one, four] = self.sides.each_mut().map(|side| {
            let args: Vec<Vec<u8>> = args
                .iter()
                .map(|arg| match arg {
                    Arg::Buffer(Buffer(at)) => side.addresses[*at].to_le_bytes().to_vec(),
                    Arg::Bytes(bytes) => bytes.clone(),
                })
                .collect();
            let Shape { grid, block, shared, cooperative } = shape;
            let spec = LaunchSpec { kernel, grid, block, shared, cooperative, cluster: None, args: &args };
            side.machine.launch(side.module, &spec)
        });
        assert_eq!(one, four, "`{kernel}` on one thread and on four");
        one
    }

    /// A buffer's values, which must be the same on both machines.
    pub fn read<T: Plain>(&self, Buffer(at): Buffer) -> Vec<T> {
        let [one, four] = self.sides.each_ref().map(|side| {
            let mut bytes = vec![0; self.sizes[at]];
            side.machine.read(side.addresses[at], &mut bytes).unwrap();
            bytes
        });
        assert!(one == four, "a buffer differs between one thread and four");
        one.chunks_exact(size_of::<T>()).map(T::from_bytes).collect()
    }
}

/// Pseudorandom numbers below `below`, the same on every machine.
pub fn random(count: usize, below: u64, seed: u64) -> Vec<u64> {
    let mut state = seed.wrapping_mul(2).wrapping_add(1);
    (0..count)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        })
        .collect()
}

/// Like [`random`], as 32-bit integers.
pub fn ints(count: usize, below: u64, seed: u64) -> Vec<i32> {
    random(count, below, seed).into_iter().map(|v| v as i32).collect()
}

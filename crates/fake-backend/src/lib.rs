//! The device for tests: host functions in place of kernels.
//!
//! It implements the same traits as a GPU, with guard zones around memory, limits, a clock whose readings the test
//! chooses, and faults on request. A kernel is a function over the memory of its arguments, and like a real one it may
//! write outside a buffer. The device accepts everything that a GPU accepts, so `execute` has to detect the faults.

mod device;
mod measure;
mod memory;
mod run;

use std::collections::BTreeMap;
use std::sync::Arc;

pub use device::FakeDevice;
pub use memory::Memory;
pub use run::{
    buffer_plan, case_job, compiled, environment, idle_case, idle_group, launch_plan, one_sample, ready_launch,
};

use runner_backend::{Backend, BufferId, Device, DeviceError, LaunchArg, ModuleId};
use runner_types::{
    BackendKind, Bytes, Capabilities, Counters, DeviceId, DeviceInfo, Dim3, KernelResources, Note, ScalarValue,
};

/// A device with a clock, 256 MiB and the limits of a small H100.
pub fn device_info() -> DeviceInfo {
    DeviceInfo {
        backend: BackendKind::Fake,
        name: "Fake".to_owned(),
        compute_capability: (9, 0),
        sm_count: 4,
        cores_per_sm: Some(128),
        warp_size: 32,
        max_threads_per_block: 1024,
        max_threads_per_sm: 2048,
        max_blocks_per_sm: 32,
        max_block_dim: Dim3::new(1024, 1024, 64),
        max_grid_dim: Dim3::new(0x7fff_ffff, 65535, 65535),
        registers_per_block: 65536,
        registers_per_sm: 65536,
        shared_per_block: 48 * 1024,
        shared_per_block_optin: 227 * 1024,
        shared_per_sm: 228 * 1024,
        shared_reserved_per_block: 1024,
        constant_memory: 64 * 1024,
        l2_bytes: 1 << 20,
        memory_bytes: Bytes(256 << 20),
        memory_free: None,
        memory_bus_bits: 1024,
        memory_clock_khz: 1_000_000,
        sm_clock_khz: 1_000_000,
        cooperative_launch: true,
        ecc: false,
        capabilities: Capabilities { has_clock: true, has_counters: false },
    }
}

/// Body of a kernel, run once per launch.
pub type Body = dyn Fn(&mut Call<'_>) -> Result<(), DeviceError> + Send + Sync;

#[derive(Clone)]
pub struct FakeKernel {
    body: Arc<Body>,
    nanoseconds: Arc<dyn Fn(u32) -> f64 + Send + Sync>,
    resources: KernelResources,
}

impl std::fmt::Debug for FakeKernel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FakeKernel").field("resources", &self.resources).finish_non_exhaustive()
    }
}

impl FakeKernel {
    /// A kernel with 32 registers per thread that takes a microsecond.
    pub fn new(body: impl Fn(&mut Call<'_>) -> Result<(), DeviceError> + Send + Sync + 'static) -> Self {
        Self {
            body: Arc::new(body),
            nanoseconds: Arc::new(|_| 1000.0),
            resources: KernelResources { registers: Some(32), ..KernelResources::default() },
        }
    }

    /// Sets the time of each launch, given its 0-based index over the life of the device.
    #[must_use]
    pub fn taking(mut self, nanoseconds: impl Fn(u32) -> f64 + Send + Sync + 'static) -> Self {
        self.nanoseconds = Arc::new(nanoseconds);
        self
    }

    /// Sets the registers and memory that the kernel reports.
    #[must_use]
    pub fn with_resources(mut self, resources: KernelResources) -> Self {
        self.resources = resources;
        self
    }
}

/// One launch, as its kernel sees it.
#[derive(Debug)]
pub struct Call<'a> {
    memory: &'a mut Memory,
    variables: &'a BTreeMap<(ModuleId, String), BufferId>,
    args: &'a [LaunchArg],
    pub grid: Dim3,
    pub block: Dim3,
    /// Number of earlier launches of this kernel on the device.
    pub nth: u32,
    /// Output of `printf`.
    pub printed: String,
    pub notes: Vec<Note>,
    pub counters: Counters,
}

impl Call<'_> {
    /// Content of the buffer in argument `arg`.
    pub fn read(&self, arg: usize) -> Result<Vec<u8>, DeviceError> {
        let id = self.buffer(arg)?;
        Ok(self.memory.data(id)?.to_vec())
    }

    /// Writes at offset `at` of a buffer, which may be in its guard zones. A write beyond them loses the context.
    pub fn write(&mut self, arg: usize, at: i64, bytes: &[u8]) -> Result<(), DeviceError> {
        let id = self.buffer(arg)?;
        self.memory.write_anywhere(id, at, bytes)
    }

    /// Content of a module's variable; empty if no module has it.
    pub fn variable(&self, mangled: &str) -> Result<Vec<u8>, DeviceError> {
        self.find(mangled).map_or(Ok(Vec::new()), |id| Ok(self.memory.data(id)?.to_vec()))
    }

    /// Writes a variable from its start.
    pub fn set_variable(&mut self, mangled: &str, bytes: &[u8]) -> Result<(), DeviceError> {
        self.find(mangled).map_or(Ok(()), |id| self.memory.write_anywhere(id, 0, bytes))
    }

    fn find(&self, mangled: &str) -> Option<BufferId> {
        self.variables.iter().find(|((_, name), _)| name == mangled).map(|(_, id)| *id)
    }

    pub const fn args(&self) -> &[LaunchArg] {
        self.args
    }

    pub fn scalar(&self, arg: usize) -> Result<ScalarValue, DeviceError> {
        match self.args.get(arg) {
            Some(LaunchArg::Scalar(value)) => Ok(*value),
            _ => Err(no_argument(arg, "scalar")),
        }
    }

    fn buffer(&self, arg: usize) -> Result<BufferId, DeviceError> {
        match self.args.get(arg) {
            Some(LaunchArg::Buffer(id)) => Ok(*id),
            _ => Err(no_argument(arg, "buffer")),
        }
    }
}

fn no_argument(arg: usize, kind: &str) -> DeviceError {
    DeviceError::Driver { call: "launch", message: format!("argument {arg} is no {kind}") }
}

/// Opens copies of one device.
#[derive(Debug)]
pub struct FakeBackend {
    /// Device that every [`Backend::open`] copies.
    pub device: FakeDevice,
}

impl Backend for FakeBackend {
    fn devices(&self) -> Result<Vec<(DeviceId, DeviceInfo)>, DeviceError> {
        Ok(vec![(DeviceId { ordinal: 0, uuid: None }, self.device.info().clone())])
    }

    fn open(&self, id: &DeviceId) -> Result<Box<dyn Device>, DeviceError> {
        if id.ordinal == 0 {
            Ok(Box::new(self.device.clone()))
        } else {
            Err(DeviceError::Unavailable(format!("there is no device {}: use 0", id.ordinal)))
        }
    }
}

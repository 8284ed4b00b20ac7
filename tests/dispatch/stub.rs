//! A device that is opened and asked who it is, and nothing else.

use runner::backend::{Batch, BatchReport, BufferId, Device, DeviceError, DriverVersion, KernelId, ModuleId};
use runner::model::{BackendKind, Bytes, Capabilities, Compiled, DeviceInfo, Dim3, KernelResources, Occupancy};

#[derive(Debug)]
pub struct Stub(DeviceInfo);

impl Stub {
    pub fn new() -> Self {
        Self(DeviceInfo {
            backend: BackendKind::Fake,
            name: "Stub".into(),
            compute_capability: (9, 0),
            sm_count: 132,
            cores_per_sm: Some(128),
            warp_size: 32,
            max_threads_per_block: 1024,
            max_threads_per_sm: 2048,
            max_blocks_per_sm: 32,
            max_block_dim: Dim3::new(1024, 1024, 64),
            max_grid_dim: Dim3::new(2_147_483_647, 65535, 65535),
            registers_per_block: 65536,
            registers_per_sm: 65536,
            shared_per_block: 49152,
            shared_per_block_optin: 232_448,
            shared_per_sm: 233_472,
            shared_reserved_per_block: 1024,
            constant_memory: 65536,
            l2_bytes: 52_428_800,
            memory_bytes: Bytes(85_017_493_504),
            memory_free: Some(Bytes(84_400_000_000)),
            memory_bus_bits: 5120,
            memory_clock_khz: 2_619_000,
            sm_clock_khz: 1_980_000,
            cooperative_launch: true,
            ecc: true,
            capabilities: Capabilities { has_clock: true, has_counters: false },
        })
    }
}

fn refused<T>() -> Result<T, DeviceError> {
    Err(DeviceError::Unavailable("the stub does nothing".into()))
}

impl Device for Stub {
    fn info(&self) -> &DeviceInfo {
        &self.0
    }

    fn driver(&self) -> Option<DriverVersion> {
        Some(DriverVersion { version: Some("580.159.04".into()), cuda: (13, 0) })
    }

    fn timing_method(&self) -> Option<String> {
        Some("by the clock on the wall".into())
    }

    fn load(&mut self, _: &Compiled) -> Result<ModuleId, DeviceError> {
        refused()
    }

    fn unload(&mut self, _: ModuleId) -> Result<(), DeviceError> {
        refused()
    }

    fn kernel(&mut self, _: ModuleId, _: &str) -> Result<KernelId, DeviceError> {
        refused()
    }

    fn resources(&self, _: KernelId) -> Result<KernelResources, DeviceError> {
        refused()
    }

    fn occupancy(&self, _: KernelId, _: u32, _: u32) -> Result<Occupancy, DeviceError> {
        refused()
    }

    fn best_block(&self, _: KernelId, _: u32) -> Result<u32, DeviceError> {
        refused()
    }

    fn alloc(&mut self, _: usize, _: usize) -> Result<BufferId, DeviceError> {
        refused()
    }

    fn symbol(&mut self, _: ModuleId, _: &str) -> Result<BufferId, DeviceError> {
        refused()
    }

    fn size(&self, _: BufferId) -> usize {
        0
    }

    fn free(&mut self, _: BufferId) -> Result<(), DeviceError> {
        refused()
    }

    fn upload(&mut self, _: BufferId, _: usize, _: &[u8]) -> Result<(), DeviceError> {
        refused()
    }

    fn download(&mut self, _: BufferId, _: usize, _: &mut [u8]) -> Result<(), DeviceError> {
        refused()
    }

    fn write_guards(&mut self, _: BufferId, _: u8) -> Result<(), DeviceError> {
        refused()
    }

    fn read_guards(&mut self, _: BufferId) -> Result<(Vec<u8>, Vec<u8>), DeviceError> {
        refused()
    }

    fn run(&mut self, _: &Batch) -> Result<BatchReport, DeviceError> {
        refused()
    }

    fn memory_free(&self) -> Option<u64> {
        None
    }
}

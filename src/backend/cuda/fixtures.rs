//! A fixed device for the unit tests of this backend: an H100 SXM as its driver describes it.

use crate::model::{BackendKind, Bytes, Capabilities, DeviceInfo, Dim3};

pub(super) fn h100() -> DeviceInfo {
    DeviceInfo {
        backend: BackendKind::Cuda,
        name: "NVIDIA H100 80GB HBM3".to_owned(),
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
        l2_bytes: 50 << 20,
        memory_bytes: Bytes(85_017_755_648),
        memory_free: None,
        memory_bus_bits: 5120,
        memory_clock_khz: 2_619_000,
        sm_clock_khz: 1_980_000,
        cooperative_launch: true,
        ecc: true,
        capabilities: Capabilities { has_clock: true, has_counters: false },
    }
}

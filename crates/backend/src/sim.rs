//! The simulated device: the machine of the crate `simt` behind the traits of a device.
//!
//! It counts but has no clock. The simulator checks every access against the exact bounds of its allocation, so guard
//! zones are kept on the host, where no kernel reaches them.

use crate::{Backend, Device, DeviceError, host_memory};
use device::SimDevice;
use error::host_error;
use runner_types::{BackendKind, Bytes, Capabilities, DeviceId, DeviceInfo, Dim3};
use simt::{DeviceProfile, Machine, Options};

mod device;
mod error;
mod launch;

/// Opens simulated devices of one profile.
#[derive(Debug, Clone)]
pub struct SimBackend {
    profile: DeviceProfile,
    options: Options,
}

impl SimBackend {
    /// Selects a profile by its id, or the first one.
    pub fn new(id: Option<&str>, options: Options) -> Result<Self, DeviceError> {
        let profiles = simt::profiles();
        let found = match id {
            None => profiles.first().cloned(),
            Some(id) => profiles.iter().find(|p| p.id.eq_ignore_ascii_case(id)).cloned(),
        };
        let Some(profile) = found else {
            let known: Vec<&str> = profiles.iter().map(|p| p.id.as_str()).collect();
            let id = id.unwrap_or("the default");
            let message = format!("there is no simulated device `{id}`: use one of {}", known.join(", "));
            return Err(DeviceError::Unavailable(message));
        };
        Ok(Self { profile, options })
    }
}

impl Backend for SimBackend {
    fn devices(&self) -> Result<Vec<(DeviceId, DeviceInfo)>, DeviceError> {
        Ok(vec![(DeviceId { ordinal: 0, uuid: None }, info(&self.profile))])
    }

    fn open(&self, id: &DeviceId) -> Result<Box<dyn Device>, DeviceError> {
        if id.ordinal != 0 {
            let message = format!("there is one simulated device, number 0; {} does not exist", id.ordinal);
            return Err(DeviceError::Unavailable(message));
        }
        let options = Options { memory: host_memory::limit(), ..self.options };
        let machine = Machine::new(self.profile.clone(), options).map_err(host_error)?;
        Ok(Box::new(SimDevice::new(info(&self.profile), machine)))
    }
}

fn info(p: &DeviceProfile) -> DeviceInfo {
    DeviceInfo {
        backend: BackendKind::Sim,
        name: p.name.clone(),
        compute_capability: p.capability,
        sm_count: p.sm_count,
        cores_per_sm: Some(p.cores_per_sm),
        warp_size: 32,
        max_threads_per_block: 1024,
        max_threads_per_sm: p.max_warps_per_sm * 32,
        max_blocks_per_sm: p.max_blocks_per_sm,
        max_block_dim: Dim3::new(1024, 1024, 64),
        max_grid_dim: Dim3::new(0x7fff_ffff, 0xffff, 0xffff),
        registers_per_block: p.registers_per_block,
        registers_per_sm: p.registers_per_sm,
        shared_per_block: p.shared_per_block,
        shared_per_block_optin: p.shared_per_block_optin,
        shared_per_sm: p.shared_per_sm,
        shared_reserved_per_block: p.shared_reserved,
        constant_memory: 64 << 10,
        l2_bytes: p.l2,
        memory_bytes: Bytes(p.memory),
        memory_free: None,
        memory_bus_bits: p.memory_bus_bits,
        memory_clock_khz: 0,
        sm_clock_khz: 0,
        cooperative_launch: p.capability >= (6, 0),
        ecc: false,
        capabilities: Capabilities { has_clock: false, has_counters: true },
    }
}

//! Device profiles: limits and granularities of the GPUs that can be simulated.
//!
//! The numbers come from the table of compute capabilities in the CUDA C++ Programming Guide and from NVIDIA's
//! occupancy calculator. `profiles.toml` has one table per device.

use serde::Deserialize;

/// Limits of a device.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeviceProfile {
    /// Name on the command line, e.g. `h100`.
    pub id: String,
    /// Product name.
    pub name: String,
    /// Compute capability: major and minor version.
    pub capability: (u32, u32),
    /// Number of streaming multiprocessors.
    pub sm_count: u32,
    /// CUDA cores per SM.
    pub cores_per_sm: u32,
    /// Maximum number of resident warps per SM.
    pub max_warps_per_sm: u32,
    /// Maximum number of resident blocks per SM.
    pub max_blocks_per_sm: u32,
    /// Registers per SM.
    pub registers_per_sm: u32,
    /// Maximum number of registers per block.
    pub registers_per_block: u32,
    /// Granularity of register allocation per warp.
    pub register_unit: u32,
    /// Maximum number of registers per thread.
    pub registers_per_thread: u32,
    /// Granularity of register allocation per block, in warps.
    pub warp_unit: u32,
    /// Shared memory per SM, in bytes.
    pub shared_per_sm: u32,
    /// Maximum shared memory per block without opt-in, in bytes.
    pub shared_per_block: u32,
    /// Maximum shared memory per block with opt-in, in bytes.
    pub shared_per_block_optin: u32,
    /// Shared memory that the system reserves in each block, in bytes.
    pub shared_reserved: u32,
    /// Granularity of shared memory allocation, in bytes.
    pub shared_unit: u32,
    /// Size of the L2 cache in bytes.
    pub l2: u64,
    /// Size of global memory in bytes.
    pub memory: u64,
    /// Width of the memory bus in bits.
    pub memory_bus_bits: u32,
}

#[derive(Debug, Deserialize)]
struct File {
    device: Vec<DeviceProfile>,
}

/// Returns all device profiles, in the order of the file. The first one is the default.
pub fn profiles() -> Vec<DeviceProfile> {
    toml::from_str::<File>(include_str!("profiles.toml")).map(|f| f.device).unwrap_or_default()
}

/// What limits the number of resident blocks per SM.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limiter {
    /// Maximum number of blocks per SM.
    Blocks,
    /// Maximum number of warps per SM.
    Warps,
    /// Registers per SM.
    Registers,
    /// Shared memory per SM.
    Shared,
}

/// Theoretical occupancy of a launch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OccupancyFacts {
    /// Resident blocks per SM; zero if not even one fits.
    pub blocks_per_sm: u32,
    /// Resident warps divided by the SM's maximum, 0 to 1.
    pub fraction: f64,
    /// What limits the number of resident blocks.
    pub limiter: Option<Limiter>,
}

impl DeviceProfile {
    /// Returns the occupancy for `threads` threads per block, `registers` registers per thread (zero if unknown) and
    /// `shared` bytes of shared memory per block.
    pub fn occupancy(&self, threads: u32, registers: u32, shared: u32) -> OccupancyFacts {
        let warps = threads.div_ceil(32).max(1);
        let by_registers = self.by_registers(warps, registers);
        let block_bytes = (shared + self.shared_reserved).next_multiple_of(self.shared_unit);
        let by_shared = self.shared_per_sm.checked_div(block_bytes).unwrap_or(u32::MAX);
        let limits = [
            (self.max_warps_per_sm / warps, Limiter::Warps),
            (self.max_blocks_per_sm, Limiter::Blocks),
            (by_registers, Limiter::Registers),
            (by_shared, Limiter::Shared),
        ];
        let blocks = limits.iter().map(|l| l.0).min().unwrap_or(0);
        let limiter = limits.iter().find(|l| l.0 == blocks).map(|l| l.1);
        let fraction = f64::from(blocks * warps) / f64::from(self.max_warps_per_sm);
        OccupancyFacts { blocks_per_sm: blocks, fraction, limiter }
    }

    /// Returns the maximum number of blocks per SM that registers allow. Each partition of an SM allocates registers
    /// per warp. A single block is checked as if its warps filled all partitions evenly. The results match those of an
    /// H100's driver for every block size.
    fn by_registers(&self, warps: u32, registers: u32) -> u32 {
        if registers == 0 {
            return u32::MAX;
        }
        let warp_registers = (registers * 32).next_multiple_of(self.register_unit);
        let block_registers = warp_registers * warps.next_multiple_of(self.warp_unit);
        if registers > self.registers_per_thread || block_registers > self.registers_per_block {
            return 0;
        }
        self.registers_per_sm / self.warp_unit / warp_registers * self.warp_unit / warps
    }

    /// Returns the block size with the most resident threads; on ties, the largest.
    pub fn best_block(&self, registers: u32, shared: u32, max_threads: u32) -> u32 {
        let mut best = (0, 32);
        for threads in (32..=max_threads.clamp(32, 1024)).rev().filter(|t| t % 32 == 0) {
            let resident = self.occupancy(threads, registers, shared).blocks_per_sm * threads;
            if resident > best.0 {
                best = (resident, threads);
            }
        }
        best.1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(id: &str) -> DeviceProfile {
        profiles().into_iter().find(|p| p.id == id).unwrap_or_else(|| panic!("no profile {id}"))
    }

    #[test]
    fn every_profile_in_the_file_parses() {
        let ids: Vec<String> = profiles().into_iter().map(|p| p.id).collect();
        assert_eq!(ids, ["h100", "a100", "v100", "k80", "rtx4090", "b200"]);
    }

    #[test]
    fn occupancy_names_its_limiter() {
        let h100 = named("h100");
        let full = h100.occupancy(512, 32, 0);
        assert_eq!((full.blocks_per_sm, full.limiter), (4, Some(Limiter::Warps)));
        let registers = h100.occupancy(512, 64, 0);
        assert_eq!((registers.blocks_per_sm, registers.limiter), (2, Some(Limiter::Registers)));
        let shared = h100.occupancy(128, 16, 48 << 10);
        assert_eq!((shared.blocks_per_sm, shared.limiter), (4, Some(Limiter::Shared)));
        let blocks = h100.occupancy(32, 16, 0);
        assert_eq!((blocks.blocks_per_sm, blocks.fraction, blocks.limiter), (32, 0.5, Some(Limiter::Blocks)));
        // As reported by an H100's driver, for one warp with 32 registers per thread and five warps with 40.
        assert_eq!(h100.occupancy(1, 32, 0).blocks_per_sm, 32);
        assert_eq!(h100.occupancy(160, 40, 0).blocks_per_sm, 9);
        assert_eq!(h100.occupancy(1024, 65, 0).blocks_per_sm, 0);
    }
}

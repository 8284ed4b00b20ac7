//! Blocks per SM, calculated from the resources of a launch, next to the driver's own result.
//!
//! The driver's result is reported. The calculation names the limiting resource, unless the two disagree (because of a
//! carveout set elsewhere, or an architecture newer than the table). Granularities are those of `cuda_occupancy.h` in
//! the CUDA toolkit 13.0. Pure: the caller queries the driver.

use runner_types::{DeviceInfo, Occupancy, OccupancyLimiter};

use super::kernel::KernelFacts;

/// Allocation granularity of a warp's registers.
const REGISTER_STEP: u32 = 256;

/// Maximum blocks per SM that each resource allows; `u32::MAX` for an unused resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Limits {
    pub blocks: u32,
    pub warps: u32,
    pub registers: u32,
    pub shared: u32,
}

impl Limits {
    /// Limits for blocks of `threads` threads with `dynamic` bytes of dynamic shared memory.
    pub fn new(info: &DeviceInfo, kernel: &KernelFacts, threads: u32, dynamic: u32) -> Self {
        let warps = threads.max(1).div_ceil(info.warp_size.max(1));
        Self {
            blocks: info.max_blocks_per_sm,
            warps: by_warps(info, threads, warps),
            registers: by_registers(info, kernel.registers, warps),
            shared: by_shared(info, kernel.shared_static.saturating_add(dynamic)),
        }
    }

    /// The smallest limit and its resource. On ties, the first of: warps, registers, shared memory, blocks. Warps come
    /// first, since a full SM gains nothing from the others.
    pub fn tightest(self) -> (u32, OccupancyLimiter) {
        let mut tightest = (self.warps, OccupancyLimiter::Warps);
        for (blocks, limiter) in [
            (self.registers, OccupancyLimiter::Registers),
            (self.shared, OccupancyLimiter::Shared),
            (self.blocks, OccupancyLimiter::Blocks),
        ] {
            if blocks < tightest.0 {
                tightest = (blocks, limiter);
            }
        }
        tightest
    }
}

fn by_warps(info: &DeviceInfo, threads: u32, warps: u32) -> u32 {
    if threads > info.max_threads_per_block { 0 } else { warps_per_sm(info) / warps }
}

/// Blocks that the registers allow. Registers are allocated per warp, from the warp's partition of the SM.
fn by_registers(info: &DeviceInfo, registers: u32, warps: u32) -> u32 {
    let per_warp = (registers * info.warp_size).next_multiple_of(REGISTER_STEP);
    if per_warp == 0 {
        return u32::MAX;
    }
    let partitions = partitions(info.compute_capability);
    // The hardware checks a launch as if a block's warps were spread evenly over all partitions.
    if per_warp * warps.next_multiple_of(partitions) > info.registers_per_block {
        return 0;
    }
    info.registers_per_sm / partitions / per_warp * partitions / warps
}

fn by_shared(info: &DeviceInfo, bytes: u32) -> u32 {
    let step = if info.compute_capability.0 >= 8 { 128 } else { 256 };
    let taken = bytes.saturating_add(info.shared_reserved_per_block).checked_next_multiple_of(step);
    match taken {
        Some(0) => u32::MAX,
        Some(taken) if bytes <= info.shared_per_block_optin.max(info.shared_per_block) => info.shared_per_sm / taken,
        _ => 0,
    }
}

/// Number of warp schedulers, each with its own register file.
pub(super) const fn partitions(compute_capability: (u32, u32)) -> u32 {
    if compute_capability.0 == 6 && compute_capability.1 == 0 { 2 } else { 4 }
}

fn warps_per_sm(info: &DeviceInfo) -> u32 {
    info.max_threads_per_sm / info.warp_size.max(1)
}

/// The driver's number of blocks per SM as an occupancy, with the limiting resource.
pub(super) fn summarise(info: &DeviceInfo, limits: Limits, threads: u32, blocks_per_sm: u32) -> Occupancy {
    let resident = f64::from(threads.div_ceil(info.warp_size.max(1))) * f64::from(blocks_per_sm);
    let (own, limiter) = limits.tightest();
    Occupancy {
        blocks_per_sm,
        fraction: resident / f64::from(warps_per_sm(info).max(1)),
        limiter: (own == blocks_per_sm).then_some(limiter),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use runner_types::h100;

    fn kernel(registers: u32, shared_static: u32) -> KernelFacts {
        KernelFacts { registers, shared_static, local: 0, max_threads: 1024, cluster: None }
    }

    /// Figures from NVIDIA's occupancy calculator for compute capability 9.0.
    #[test]
    fn an_h100_holds_what_the_occupancy_calculator_says() {
        let info = h100();
        let cases = [
            // Columns: registers, static shared, threads, dynamic shared → blocks, limiter.
            (16, 0, 512, 0, 4, OccupancyLimiter::Warps),
            (32, 0, 1024, 0, 2, OccupancyLimiter::Warps),
            (33, 0, 1024, 0, 1, OccupancyLimiter::Registers),
            (64, 0, 256, 0, 4, OccupancyLimiter::Registers),
            (40, 0, 128, 0, 12, OccupancyLimiter::Registers),
            (16, 0, 32, 0, 32, OccupancyLimiter::Blocks),
            (16, 0, 128, 48 * 1024, 4, OccupancyLimiter::Shared),
            (16, 4096, 128, 100 * 1024, 2, OccupancyLimiter::Shared),
            (255, 0, 256, 0, 1, OccupancyLimiter::Registers),
        ];
        for (registers, shared, threads, dynamic, blocks, limiter) in cases {
            let limits = Limits::new(&info, &kernel(registers, shared), threads, dynamic);
            assert_eq!(limits.tightest(), (blocks, limiter), "{registers} registers, {threads} threads: {limits:?}");
        }
    }

    #[test]
    fn a_block_that_cannot_launch_has_no_place() {
        let info = h100();
        assert_eq!(Limits::new(&info, &kernel(16, 0), 1056, 0).tightest().0, 0);
        assert_eq!(Limits::new(&info, &kernel(255, 0), 512, 0).tightest(), (0, OccupancyLimiter::Registers));
        assert_eq!(Limits::new(&info, &kernel(16, 0), 32, 232_449).tightest(), (0, OccupancyLimiter::Shared));
        assert_eq!(Limits::new(&info, &kernel(16, 0), 32, 232_448).tightest(), (1, OccupancyLimiter::Shared));
        assert_eq!(Limits::new(&info, &kernel(16, 0), 32, u32::MAX).tightest().0, 0);
    }

    #[test]
    fn fraction_counts_whole_warps_and_a_disagreement_names_no_limiter() {
        let info = h100();
        let limits = Limits::new(&info, &kernel(16, 0), 48, 0);
        assert_eq!(limits.tightest(), (32, OccupancyLimiter::Warps));
        let agreed = summarise(&info, limits, 48, 32);
        assert_eq!((agreed.fraction, agreed.limiter), (1.0, Some(OccupancyLimiter::Warps)));
        let disputed = summarise(&info, limits, 48, 16);
        assert_eq!((disputed.fraction, disputed.limiter), (0.5, None));
    }

    #[test]
    fn pascals_first_chip_has_two_partitions() {
        let mut info = h100();
        info.compute_capability = (6, 0);
        // With 104 registers, a warp takes 3328. 2 partitions of 32768 registers hold 9 warps each, 18 in total: 6
        // blocks of 3 warps. 4 partitions of 16384 hold 4 each, 16 in total: 5 blocks.
        assert_eq!(Limits::new(&info, &kernel(104, 0), 96, 0).registers, 6);
        info.compute_capability = (6, 1);
        assert_eq!(Limits::new(&info, &kernel(104, 0), 96, 0).registers, 5);
    }
}

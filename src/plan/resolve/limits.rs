//! Launches held against what the device allows, before anything is sent to it.

use crate::model::{BlockPlan, DeviceInfo, Dim3, GridPlan, LaunchPlan};

/// The first limit that a launch breaks: `2048 threads a block, the device allows 1024`.
pub fn exceeded(device: &DeviceInfo, launches: &[LaunchPlan]) -> Option<String> {
    let mut broken = launches.iter().filter_map(|launch| Some((launch, exceeded_by(device, launch)?)));
    let (launch, limit) = broken.next()?;
    Some(if launches.len() > 1 { format!("launch `{}`: {limit}", launch.label) } else { limit })
}

fn exceeded_by(device: &DeviceInfo, launch: &LaunchPlan) -> Option<String> {
    let block = match &launch.block {
        BlockPlan::Fixed(dims) => {
            let threads = dims.iter().copied().fold(1, u64::saturating_mul);
            let allowed = u64::from(device.max_threads_per_block);
            over("threads a block", threads, allowed).or_else(|| extent("block", *dims, device.max_block_dim))
        }
        BlockPlan::Occupancy => None,
    };
    let grid = || match &launch.grid {
        GridPlan::Fixed(dims) => extent("grid", *dims, device.max_grid_dim),
        GridPlan::Occupancy | GridPlan::AfterBlock { .. } => None,
    };
    let allowed = u64::from(device.shared_per_block_optin.max(device.shared_per_block));
    let shared = || over("bytes of dynamic shared memory a block", launch.shared, allowed);
    let cooperative = || {
        (launch.cooperative && !device.cooperative_launch)
            .then(|| "a cooperative launch, the device allows none".to_owned())
    };
    block.or_else(grid).or_else(shared).or_else(cooperative)
}

fn over(what: &str, asked: u64, allowed: u64) -> Option<String> {
    (asked > allowed).then(|| format!("{asked} {what}, the device allows {allowed}"))
}

fn extent(what: &str, dims: [u64; 3], most: Dim3) -> Option<String> {
    let allowed = [most.x, most.y, most.z];
    let mut named = ["x", "y", "z"].into_iter().zip(dims).zip(allowed);
    named.find_map(|((axis, asked), allowed)| match asked {
        0 => Some(format!("{what}.{axis} is 0, a launch needs at least 1")),
        _ => over("", asked, u64::from(allowed))
            .map(|_| format!("{what}.{axis} is {asked}, the device allows {allowed}")),
    })
}

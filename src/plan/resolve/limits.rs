//! Launches held against what the device allows, before anything is sent to it.

use crate::model::{BlockPlan, DeviceInfo, GridPlan, KernelResources, LaunchPlan, limits};

/// The first limit that a launch breaks: `2048 threads a block, the device allows 1024`.
pub fn exceeded(device: &DeviceInfo, launches: &[LaunchPlan]) -> Option<String> {
    let mut broken = launches.iter().filter_map(|launch| Some((launch, judge(device, launch).err()?)));
    let (launch, limit) = broken.next()?;
    Some(if launches.len() > 1 { format!("launch `{}`: {limit}", launch.label) } else { limit })
}

/// Why the code of a launch is for another device: it names an architecture whose own instructions this one lacks.
pub fn foreign(device: &DeviceInfo, launches: &[LaunchPlan]) -> Option<String> {
    launches.iter().find_map(|launch| limits::architecture(device, launch.unit.architecture()?).err())
}

/// What an occupancy query chooses, and what a kernel takes by itself, is judged when there is a kernel.
fn judge(device: &DeviceInfo, launch: &LaunchPlan) -> Result<(), String> {
    let kernel = KernelResources::default();
    if let BlockPlan::Fixed(dims) = &launch.block {
        limits::block(device, &kernel, *dims)?;
    }
    if let GridPlan::Fixed(dims) = &launch.grid {
        limits::grid(device, *dims)?;
    }
    limits::shared(device, &kernel, launch.shared)?;
    if launch.cooperative { limits::cooperative(device) } else { Ok(()) }
}

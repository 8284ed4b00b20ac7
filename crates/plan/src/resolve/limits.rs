//! Checks launches against the limits of the device before anything is sent to it.
//!
//! A case that exceeds a limit is marked invalid without being compiled or run. The messages come from
//! `runner_types::limits`, like those of the later checks.

use runner_types::{BackendKind, BlockPlan, DeviceInfo, GridPlan, KernelResources, LaunchPlan, SourceForm, limits};

/// Error for the first limit that a launch exceeds: `2048 threads per block, the device allows 1024`.
pub fn exceeded(device: &DeviceInfo, launches: &[LaunchPlan]) -> Option<String> {
    let mut broken = launches.iter().filter_map(|launch| Some((launch, judge(device, launch).err()?)));
    let (launch, limit) = broken.next()?;
    Some(if launches.len() > 1 { format!("launch `{}`: {limit}", launch.label) } else { limit })
}

/// Error if a launch has machine code, since the simulator executes PTX.
pub fn machine_code(device: &DeviceInfo, launches: &[LaunchPlan]) -> Option<String> {
    let simulated = device.backend == BackendKind::Sim;
    let code = launches.iter().find(|launch| simulated && launch.unit.form() == SourceForm::MachineCode)?;
    let name = code.unit.source.file_name().unwrap_or_default().display();
    Some(format!("the simulator executes PTX, but {name} is machine code: name the PTX that it was generated from"))
}

/// Error if a launch names an architecture whose specific instructions this device lacks.
pub fn foreign(device: &DeviceInfo, launches: &[LaunchPlan]) -> Option<String> {
    launches.iter().find_map(|launch| limits::architecture(device, launch.unit.architecture()?).err())
}

/// Checks what is known about a launch. An occupancy query's choice and the kernel's own resources are checked when the
/// kernel is loaded.
fn judge(device: &DeviceInfo, launch: &LaunchPlan) -> Result<(), String> {
    let kernel = KernelResources::default();
    if let BlockPlan::Fixed(dims) = &launch.block {
        limits::block(device, &kernel, *dims)?;
    }
    if let GridPlan::Fixed(dims) = &launch.grid {
        limits::grid(device, *dims)?;
    }
    limits::shared(device, &kernel, launch.settings.shared_bytes())?;
    if launch.settings.cooperative { limits::cooperative(device) } else { Ok(()) }
}

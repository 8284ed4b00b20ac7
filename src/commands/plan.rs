//! `runner plan`: what a run would do: cases, exclusions and their reasons, memory and time. Opens no device.

use std::path::Path;

use crate::cli::options::Target;
use crate::cli::{BackendChoice, Narrowing, PlanArgs, TargetArgs};
use crate::console::Console;
use crate::failure::Exit;
use crate::failure::Failure;
use crate::files::load_manifest;
use runner_backend::{Backend, cuda::Cuda, sim::SimBackend};
use runner_compile::Network;
use runner_plan::{self, PlanOptions};
use runner_types::{BackendKind, DeviceInfo};

mod lines;
mod view;

pub fn run(args: &PlanArgs, console: &mut Console) -> Result<Exit, Failure> {
    let manifest = load_manifest(&args.manifest, &args.reach, Network::Forbidden, console)?;
    let (backend, device) = machine(&args.target, args.device_profile.as_deref())?;
    let options = narrowed(&args.narrowing, backend, device);
    let plan = runner_plan::expand(&manifest, &options).map_err(|faults| console.faults(&faults))?;
    if args.json {
        lines::print(&manifest, &plan, (&options, &args.narrowing), &mut |text| console.print(text))?;
        return Ok(Exit::Success);
    }
    let summary = runner_plan::summarise(&manifest, &plan);
    console.print(&view::text(&manifest, &plan, &options, &summary, console.screen().width))?;
    Ok(Exit::Success)
}

/// Plan options for the part of the matrix that the command line selects.
pub fn narrowed(narrowing: &Narrowing, backend: BackendKind, device: Option<DeviceInfo>) -> PlanOptions {
    let Narrowing { set, filter, variant: variants } = narrowing.clone();
    PlanOptions { backend, sizes: backend, device, set, filter, variants }
}

/// Backend and device that `run` would use with the same options. The device is `None` if this machine does not have
/// it.
pub fn machine(args: &TargetArgs, profile: Option<&Path>) -> Result<(BackendKind, Option<DeviceInfo>), Failure> {
    let target = Target::resolve(args)?;
    if let Some(path) = profile {
        let device = read_profile(path)?;
        let backend = match args.backend {
            BackendChoice::Auto => device.backend,
            BackendChoice::Cuda => BackendKind::Cuda,
            BackendChoice::Sim => BackendKind::Sim,
        };
        return Ok((backend, Some(device)));
    }
    match target {
        Target::Simulator(name) => simulator(name.as_deref()),
        Target::Gpu(ordinal) => Ok((BackendKind::Cuda, gpu(ordinal))),
        Target::Auto => gpu(0).map_or_else(|| simulator(None), |device| Ok((BackendKind::Cuda, Some(device)))),
    }
}

/// Properties of the GPU with this ordinal, if this machine has it. Queries the driver without opening the device.
fn gpu(ordinal: u32) -> Option<DeviceInfo> {
    let devices = Cuda::Timed.devices().unwrap_or_default();
    devices.into_iter().find(|(id, _)| id.ordinal == ordinal).map(|(_, info)| info)
}

fn simulator(name: Option<&str>) -> Result<(BackendKind, Option<DeviceInfo>), Failure> {
    let devices = SimBackend::new(name, simt::Options::default())
        .and_then(|backend| backend.devices())
        .map_err(Failure::environment)?;
    Ok((BackendKind::Sim, devices.into_iter().next().map(|(_, info)| info)))
}

/// Reads a device description. Takes the first entry of a list, as written by `runner devices --json`.
fn read_profile(path: &Path) -> Result<DeviceInfo, Failure> {
    let remedy = "`runner devices --json` writes one";
    let fail = |why: String| Failure::usage(format!("--device-profile {}: {why}; {remedy}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|e| fail(e.to_string()))?;
    let value: serde_json::Value = serde_json::from_str(&text).map_err(|e| fail(format!("not JSON: {e}")))?;
    let value = match value {
        serde_json::Value::Array(devices) => {
            devices.into_iter().next().ok_or_else(|| fail("the list has no device".to_owned()))?
        }
        other => other,
    };
    serde_json::from_value(value).map_err(|e| fail(format!("not a device description: {e}")))
}

//! `runner plan`: the matrix, what is left out and why, memory and time, without touching a device.

use std::path::Path;

use super::cli::{BackendChoice, Narrowing, PlanArgs};
use super::{Console, Exit, Failure, load_manifest};
use crate::backend::{Backend, DeviceError, sim::SimBackend};
use crate::model::{BackendKind, DeviceInfo};
use crate::plan::{self, PlanOptions};

mod lines;
mod view;

pub fn run(args: &PlanArgs, console: &mut Console) -> Result<Exit, Failure> {
    let manifest = load_manifest(&args.manifest, console)?;
    let device = args.device_profile.as_deref().map(read_profile).transpose()?;
    let options = options(&args.narrowing, args.backend, device)?;
    let plan = plan::expand(&manifest, &options).map_err(|faults| Failure::faults(&faults, console))?;
    let text = if args.json {
        lines::text(&manifest, &plan, &options, &args.narrowing)?
    } else {
        let summary = plan::summarise(&manifest, &plan);
        view::text(&manifest, &plan, &options, &summary, console.screen().width)
    };
    console.print(&text)?;
    Ok(Exit::Success)
}

/// The choices of the command line as the plan takes them. `auto` plans for the device's backend, and for `cuda` where
/// no device is given; the simulator's device is known without one.
fn options(narrowing: &Narrowing, backend: BackendChoice, device: Option<DeviceInfo>) -> Result<PlanOptions, Failure> {
    let backend = match backend {
        BackendChoice::Auto => device.as_ref().map_or(BackendKind::Cuda, |device| device.backend),
        BackendChoice::Cuda => BackendKind::Cuda,
        BackendChoice::Sim => BackendKind::Sim,
    };
    let device = match device {
        None if backend == BackendKind::Sim => {
            simulated().map_err(|error: DeviceError| Failure::environment(error.to_string()))?
        }
        device => device,
    };
    Ok(PlanOptions {
        backend,
        sizes: backend,
        device,
        set: narrowing.set.clone(),
        filter: narrowing.filter.clone(),
        variants: narrowing.variant.clone(),
    })
}

/// The device that the simulator stands for by default.
fn simulated() -> Result<Option<DeviceInfo>, DeviceError> {
    let devices = SimBackend::new(None, simt::Options::default())?.devices()?;
    Ok(devices.into_iter().next().map(|(_, info)| info))
}

/// Reads a device description; of a list, as `runner devices --json` writes it, the first.
fn read_profile(path: &Path) -> Result<DeviceInfo, Failure> {
    let remedy = "`runner devices --json` on the machine in question writes one";
    let fail = |why: String| Failure::usage(format!("--device-profile {}: {why}; {remedy}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|e| fail(e.to_string()))?;
    let value: serde_json::Value = serde_json::from_str(&text).map_err(|e| fail(format!("not JSON: {e}")))?;
    let value = match value {
        serde_json::Value::Array(devices) => {
            devices.into_iter().next().ok_or_else(|| fail("the list has no device".to_owned()))?
        }
        other => other,
    };
    serde_json::from_value(value).map_err(|e| fail(format!("no device description: {e}")))
}

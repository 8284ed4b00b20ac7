//! `runner setup`: fetch the pinned compiler and headers into the user's cache.

use super::cli::SetupArgs;
use super::{Console, Exit, Failure};
use crate::backend::cuda;
use crate::compile::{self, Cache, Network, Toolkit, Want};

pub fn run(args: &SetupArgs, console: &mut Console) -> Result<Exit, Failure> {
    let cache = Cache::locate().map_err(|e| Failure::environment(e.to_string()))?;
    let want = wanted(args.cuda).map_err(|e| Failure::environment(e.to_string()))?;
    let network = if args.offline { Network::Forbidden } else { Network::Allowed };
    let toolkit = Toolkit::ensure(want, &cache, network, &mut |line| console.say(line))
        .map_err(|e| Failure::environment(e.to_string()))?;
    console.print(&format!("{}: {}\n", toolkit.describe(), toolkit.library.display()))?;
    Ok(Exit::Success)
}

/// The pinned compiler of the major version asked for, else the newest one that suits the driver and every GPU, else
/// the newest.
fn wanted(major: Option<u32>) -> Result<Want, compile::ToolkitError> {
    let major = match (major, cuda::driver_version()) {
        (Some(major), _) => major,
        (None, Err(_)) => return Ok(Want::Pinned),
        (None, Ok(driver)) => {
            let devices = cuda::probe().unwrap_or_default();
            let oldest = devices.iter().map(|(_, info)| info.compute_capability).min().unwrap_or((u32::MAX, 0));
            Want::Gpu { driver: driver.cuda, compute_capability: oldest }.pinned()?.major
        }
    };
    Ok(Want::PinnedMajor(major))
}

/// `runner __compile`: the compiler's own process.
pub fn compile_unit() -> Result<Exit, Failure> {
    compile::serve().map_err(|e| Failure::environment(format!("the compiler process cannot go on: {e}")))?;
    Ok(Exit::Success)
}

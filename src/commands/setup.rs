//! `runner setup`: downloads the pinned compiler and headers into the user's cache.

use crate::cli::SetupArgs;
use crate::cli::options::network;
use crate::console::Console;
use crate::failure::Exit;
use crate::failure::Failure;
use runner_backend::cuda;
use runner_compile::{self, Cache, Disassembler, LibraryHeaders, Nvcc, Requirement, Toolkit};
use runner_process::programs::Programs;

pub fn run(args: &SetupArgs, console: &mut Console) -> Result<Exit, Failure> {
    let cache = Cache::locate().map_err(Failure::environment)?;
    let want = wanted(args.cuda).map_err(Failure::environment)?;
    if let (Some(major), Err(error)) = (args.cuda, want.pinned()) {
        return Err(Failure::usage(format!("--cuda {major}: {error}")));
    }
    let toolkit = Toolkit::ensure(want, &cache, network(args.offline), &mut |line| console.say(line))
        .map_err(Failure::environment)?;
    console.print(&format!("{}: {}\n", toolkit.describe(), toolkit.library.display()))?;
    if args.all {
        let network = network(args.offline);
        let nvcc =
            Nvcc::ensure(&toolkit, &cache, network, &mut |line| console.say(line)).map_err(Failure::environment)?;
        console.print(&format!("{}: {}\n", nvcc.name(), nvcc.path.display()))?;
        for library in LibraryHeaders::of_toolkit(&toolkit) {
            let folders = library.ensure(&toolkit, &cache, network, &mut |line| console.say(line));
            for folder in folders.map_err(Failure::environment)? {
                console.print(&format!("headers of {}: {}\n", library.name, folder.display()))?;
            }
        }
        let programs = Programs::of_this_machine();
        let sanitizer =
            runner_compile::sanitizer::ensure(want, &programs, &cache, network, &mut |line| console.say(line))
                .map_err(Failure::environment)?;
        console.print(&format!("compute-sanitizer: {}\n", sanitizer.display()))?;
        let nvdisasm = Disassembler::ensure(&programs, &cache, network, &mut |line| console.say(line))
            .map_err(Failure::environment)?;
        console.print(&format!("nvdisasm: {}\n", nvdisasm.path().display()))?;
    }
    Ok(Exit::Success)
}

/// The pinned compiler of this major version or, if not given, the newest one that the driver and every GPU support.
fn wanted(major: Option<u32>) -> Result<Requirement, runner_compile::ToolkitError> {
    let major = match (major, cuda::driver_version()) {
        (Some(major), _) => major,
        (None, Err(_)) => return Ok(Requirement::Pinned),
        (None, Ok(driver)) => {
            let devices = cuda::probe().unwrap_or_default();
            let oldest = devices.iter().map(|(_, info)| info.compute_capability).min().unwrap_or((u32::MAX, 0));
            Requirement::Gpu { driver: driver.cuda, compute_capability: oldest }.pinned()?.major
        }
    };
    Ok(Requirement::PinnedMajor(major))
}

/// `runner __compile`: runs the compiler in its own process.
pub fn compile_unit() -> Result<Exit, Failure> {
    runner_compile::serve().map_err(|e| Failure::environment(format!("the compiler process failed: {e}")))?;
    Ok(Exit::Success)
}

//! Implements `runner run`, from the manifest to the report.

mod devices;
mod several;
mod watch;

use super::cli::RunArgs;
use super::options::{RunOptions, network};
use super::session::{compare, interrupt, run_one};
use super::{Console, Exit, Failure, load_manifest};

pub use several::load_all;

pub fn run(args: &RunArgs, console: &mut Console) -> Result<Exit, Failure> {
    console.quiet = args.display.quiet;
    if args.gate.strict && !args.gate.gate && args.against.against.is_none() {
        return Err(Failure::usage("--strict judges nothing by itself: add --gate or --against"));
    }
    if args.watch {
        return watch::run(args, console);
    }
    if let Some(named) = &args.devices {
        return devices::run(args, named, console);
    }
    let [manifest] = args.manifests.as_slice() else { return several::run(args, console) };
    let options = RunOptions::of_run(args, manifest)?;
    let manifest = load_manifest(manifest, &args.trust.reach, network(args.offline), console)?;
    let ended = run_one(&options, &manifest, &interrupt()?, console)?;
    ended.both.map_or(Ok(ended.exit), |both| compare(vec![both], args, console))
}

//! `runner setup`: fetch the pinned compiler and headers into the user's cache.

use super::cli::SetupArgs;
use super::{Console, Exit, Failure};
use crate::compile::{self, Cache, Network, Toolkit, Want};

pub fn run(args: &SetupArgs, console: &mut Console) -> Result<Exit, Failure> {
    let cache = Cache::locate().map_err(|e| Failure::environment(e.to_string()))?;
    let want = args.cuda.map_or(Want::Pinned, Want::PinnedMajor);
    let network = if args.offline { Network::Forbidden } else { Network::Allowed };
    let toolkit = Toolkit::ensure(want, &cache, network, &mut |line| console.say(line))
        .map_err(|e| Failure::environment(e.to_string()))?;
    console.print(&format!("{}: {}\n", toolkit.describe(), toolkit.library.display()))?;
    Ok(Exit::Success)
}

/// `runner __compile`: the compiler's own process.
pub fn compile_unit() -> Result<Exit, Failure> {
    compile::serve().map_err(|e| Failure::environment(format!("the compiler process cannot go on: {e}")))?;
    Ok(Exit::Success)
}

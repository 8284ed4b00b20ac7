//! `runner run`.

use super::cli::RunArgs;
use super::{Console, Exit, Failure};

pub fn run(_args: &RunArgs, _console: &mut Console) -> Result<Exit, Failure> {
    Err(Failure::environment("`run` is not built yet"))
}

/// `runner __worker`.
pub fn worker(_args: &super::cli::WorkerArgs) -> Result<Exit, Failure> {
    Err(Failure::environment("`__worker` is not built yet"))
}

//! `runner setup`.

use super::cli::SetupArgs;
use super::{Console, Exit, Failure};

pub fn run(_args: &SetupArgs, _console: &mut Console) -> Result<Exit, Failure> {
    Err(Failure::environment("`setup` is not built yet"))
}

/// `runner __compile`.
pub fn compile_unit() -> Result<Exit, Failure> {
    Err(Failure::environment("`__compile` is not built yet"))
}

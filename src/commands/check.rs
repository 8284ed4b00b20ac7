//! `runner check`.

use super::cli::CheckArgs;
use super::{Console, Exit, Failure};

pub fn run(_args: &CheckArgs, _console: &mut Console) -> Result<Exit, Failure> {
    Err(Failure::environment("`check` is not built yet"))
}

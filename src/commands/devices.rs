//! `runner devices`.

use super::cli::DevicesArgs;
use super::{Console, Exit, Failure};

pub fn run(_args: &DevicesArgs, _console: &mut Console) -> Result<Exit, Failure> {
    Err(Failure::environment("`devices` is not built yet"))
}

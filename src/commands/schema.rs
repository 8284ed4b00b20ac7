//! `runner schema`.

use super::cli::SchemaArgs;
use super::{Console, Exit, Failure};

pub fn run(_args: &SchemaArgs, _console: &mut Console) -> Result<Exit, Failure> {
    Err(Failure::environment("`schema` is not built yet"))
}

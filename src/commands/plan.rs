//! `runner plan`.

use super::cli::PlanArgs;
use super::{Console, Exit, Failure};

pub fn run(_args: &PlanArgs, _console: &mut Console) -> Result<Exit, Failure> {
    Err(Failure::environment("`plan` is not built yet"))
}

//! `runner report`.

use super::cli::ReportArgs;
use super::{Console, Exit, Failure};

pub fn run(_args: &ReportArgs, _console: &mut Console) -> Result<Exit, Failure> {
    Err(Failure::environment("`report` is not built yet"))
}

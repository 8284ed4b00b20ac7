//! `runner doctor`.

use super::cli::DoctorArgs;
use super::{Console, Exit, Failure};

pub fn run(_args: &DoctorArgs, _console: &mut Console) -> Result<Exit, Failure> {
    Err(Failure::environment("`doctor` is not built yet"))
}

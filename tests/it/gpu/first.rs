//! The first GPU of the machine, for one test at a time.

use std::sync::{Mutex, MutexGuard, PoisonError};

use runner_backend::cuda::Cuda;
use runner_backend::{Backend, Device, DeviceError};
use runner_types::DeviceId;

/// Set by a run that must not skip: without a device the tests then fail.
const REQUIRED: &str = "RUNNER_REQUIRE_GPU";

/// Tests that take times or energy must not overlap with any other that uses the device. Two runs at a time would wait
/// for each other's kernels.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Waits until no other test has a device.
pub fn turn() -> MutexGuard<'static, ()> {
    ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The number of the device for as long as the guard lives, or `None` with a line that says that there is none.
pub fn id() -> Option<(DeviceId, MutexGuard<'static, ()>)> {
    let turn = turn();
    let id = match Cuda::Timed.devices() {
        Ok(devices) => devices.into_iter().next().map(|(id, _)| id),
        Err(DeviceError::Unavailable(_)) => None,
        Err(error) => panic!("{error}"),
    };
    let Some(id) = id else {
        assert!(std::env::var_os(REQUIRED).is_none(), "{REQUIRED} is set and there is no CUDA device");
        println!("skipped: no CUDA device");
        return None;
    };
    Some((id, turn))
}

/// The opened device for as long as the guard lives.
pub fn device() -> Option<(Box<dyn Device>, MutexGuard<'static, ()>)> {
    let (id, turn) = id()?;
    Some((Cuda::Timed.open(&id).unwrap(), turn))
}

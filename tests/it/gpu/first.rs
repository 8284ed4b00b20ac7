//! The first GPU of the machine, for one test at a time.

use std::sync::{Mutex, MutexGuard, PoisonError};

use runner_backend::cuda::Cuda;
use runner_backend::{Backend, Device, DeviceError};
use runner_types::DeviceId;

/// Tests that take times or energy must not overlap with any other that uses the device. Two runs at a time would wait
/// for each other's kernels.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Waits until no other test has a device.
pub fn turn() -> MutexGuard<'static, ()> {
    ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The number of the device for as long as the guard lives, or `None` without one.
fn find() -> Option<(DeviceId, MutexGuard<'static, ()>)> {
    let turn = turn();
    match Cuda::Timed.devices() {
        Ok(devices) => devices.into_iter().next().map(|(id, _)| (id, turn)),
        Err(DeviceError::Unavailable(_)) => None,
        Err(error) => panic!("{error}"),
    }
}

/// The number of the device for as long as the guard lives.
pub fn id() -> (DeviceId, MutexGuard<'static, ()>) {
    find().expect("a CUDA device")
}

/// The opened device for as long as the guard lives.
pub fn device() -> (Box<dyn Device>, MutexGuard<'static, ()>) {
    device_if_any().expect("a CUDA device")
}

/// The opened device for as long as the guard lives, or `None` without one.
pub fn device_if_any() -> Option<(Box<dyn Device>, MutexGuard<'static, ()>)> {
    let (id, turn) = find()?;
    Some((Cuda::Timed.open(&id).unwrap(), turn))
}

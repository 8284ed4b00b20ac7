//! The machine's first GPU, for one test at a time.

use std::sync::{Mutex, MutexGuard, PoisonError};

use runner_backend::cuda::Cuda;
use runner_backend::{Backend, Device, DeviceError};
use runner_types::DeviceId;

/// Tests that measure time or energy must not overlap with any other test that uses the device: each would wait for the
/// other's kernels.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Waits until no other test has a device.
pub fn turn() -> MutexGuard<'static, ()> {
    ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Id of the device, reserved while the guard lives; `None` without a device.
fn find() -> Option<(DeviceId, MutexGuard<'static, ()>)> {
    let turn = turn();
    match Cuda::Timed.devices() {
        Ok(devices) => devices.into_iter().next().map(|(id, _)| (id, turn)),
        Err(DeviceError::Unavailable(_)) => None,
        Err(error) => panic!("{error}"),
    }
}

/// Id of the device, reserved while the guard lives.
pub fn id() -> (DeviceId, MutexGuard<'static, ()>) {
    find().expect("a CUDA device")
}

/// The opened device, reserved while the guard lives.
pub fn device() -> (Box<dyn Device>, MutexGuard<'static, ()>) {
    device_if_any().expect("a CUDA device")
}

/// The opened device, reserved while the guard lives; `None` without a device.
pub fn device_if_any() -> Option<(Box<dyn Device>, MutexGuard<'static, ()>)> {
    let (id, turn) = find()?;
    Some((Cuda::Timed.open(&id).unwrap(), turn))
}

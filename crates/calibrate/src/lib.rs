//! Measures the machine itself: its ceilings and its clock.
//!
//! [`survey`] runs its own kernels, compiled from [`unit`](fn@unit), on a device. [`calibrate`] compares surveys with
//! the [`reference_times`], and [`constant`] does so for one process. [`spread`] estimates how much processes differ.
//! [`Store`] keeps the results per device and driver. Nothing here starts a process, changes a clock, or judges a case.

mod bench;
mod ceilings;
mod clock;
#[cfg(test)]
mod fixture;
mod spread;
mod store;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use bench::Bench;
use runner_backend::{Device, DeviceError};
use runner_files::atomic::{self, WriteError};
use runner_files::regular;
use runner_types::{CompileUnit, Survey, SurveyRequest, sha256_hex};

pub use clock::{calibrate, constant, reference_times};
pub use spread::spread;
pub use store::{Known, Store, StoreError};

const SOURCE: &str = include_str!("kernels.cu");

/// Writes the kernels' source to a file in `folder`, named by a hash of its content.
pub fn write_source(folder: &Path) -> Result<PathBuf, WriteError> {
    let path = folder.join(format!("survey-{}.cu", &sha256_hex(SOURCE.as_bytes())[..16]));
    if regular::read_text(&path).is_ok_and(|text| text == SOURCE) {
        return Ok(path);
    }
    atomic::write(&path, SOURCE.as_bytes())?;
    Ok(path)
}

/// Unit to compile, with its source at `source`.
pub fn unit(source: PathBuf) -> CompileUnit {
    let kernels: BTreeSet<&str> = ceilings::kernels().chain(clock::kernels()).chain(spread::kernels()).collect();
    CompileUnit::from_kernels(source, kernels)
}

/// Measures the device, and frees its allocations even on failure. Resets the clock's calibration first, so that the
/// survey reads uncorrected intervals.
///
/// # Errors
///
/// Errors of the device, and [`DeviceError::Driver`] if its clock returns an invalid time.
pub fn survey(device: &mut dyn Device, request: &SurveyRequest) -> Result<Survey, DeviceError> {
    let mut bench = Bench::new(device, &request.code)?;
    bench.clock()?.calibrate(0.0);
    let measured = measure(&mut bench, request);
    let freed = bench.close();
    let survey = measured?;
    freed.map(|()| survey)
}

fn measure(bench: &mut Bench<'_>, request: &SurveyRequest) -> Result<Survey, DeviceError> {
    let empty = clock::empty_interval(bench)?;
    let points = clock::points(bench)?;
    let (short, long) = if request.spread { spread::run(bench)? } else { Default::default() };
    let ceilings = if request.ceilings { Some(ceilings::measure(bench)?) } else { None };
    Ok(Survey { ceilings, points, short, long, empty, reference_clock: bench.clock()?.reference_clock() })
}

//! One survey of a device: its kernels loaded, everything measured, everything freed.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::bench::Bench;
use super::{ceilings, clock, spread};
use runner_backend::{Device, DeviceError};
use runner_files::atomic::{self, WriteError};
use runner_types::{CompileUnit, Survey, SurveyRequest, sha256_hex};

/// The source code that the kernels have.
const SOURCE: &str = include_str!("kernels.cu");

/// Writes the kernels' source below `folder`, under a name that changes with its text.
pub fn write_source(folder: &Path) -> Result<PathBuf, WriteError> {
    let path = folder.join(format!("survey-{}.cu", &sha256_hex(SOURCE.as_bytes())[..16]));
    if std::fs::read_to_string(&path).is_ok_and(|text| text == SOURCE) {
        return Ok(path);
    }
    atomic::write(&path, SOURCE.as_bytes())?;
    Ok(path)
}

/// Returns what is to be compiled, with its source at `source`.
pub fn unit(source: PathBuf) -> CompileUnit {
    let kernels: BTreeSet<&str> = ceilings::kernels().chain(clock::kernels()).chain(spread::kernels()).collect();
    CompileUnit::from_kernels(source, kernels)
}

/// Measures the device, and frees what that took even if it fails. What was subtracted from intervals no longer is: a
/// survey finds what is to be subtracted.
///
/// # Errors
///
/// The device's own, and [`DeviceError::Driver`] where its clock gives no sound time.
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

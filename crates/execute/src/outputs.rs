//! Writes what the first run of a case left, for inspection: every buffer, both sides of every check, and the kernels'
//! output.

use std::path::Path;

use super::bench::Bench;
use super::cases::ReadyCase;
use super::operand::{Lanes, Operand, PIECE};
use super::stop::Stop;
use super::values::{expectation, read_actual};
use runner_files::atomic;
use runner_files::npy;
use runner_types::{CaseJob, ElementType, LineCounts};

/// Writes the outputs of a case's last run to the folder that its job names, if any.
pub fn keep_outputs(bench: &mut Bench<'_>, case: &ReadyCase<'_>, printed: &str) -> Result<(), Stop> {
    let job = case.job;
    let Some(folder) = &job.outputs else { return Ok(()) };
    atomic::create_folder(folder).map_err(|error| error.to_string())?;
    if !printed.is_empty() {
        write(&folder.join("printed.txt"), printed.as_bytes())?;
    }
    for (name, _) in case.device_body().into_iter().flat_map(|body| &body.slots) {
        let Some(slot) = case.slot_after(bench, name) else { continue };
        let Some(buffer) = bench.store.get(slot) else { continue };
        let (id, element) = (buffer.id, buffer.plan.element);
        let mut bytes = vec![0; bench.device.size(id)];
        bench.device.download(id, 0, &mut bytes)?;
        write(&folder.join(format!("{name}.npy")), &npy::file(element, &bytes))?;
    }
    for (number, check) in job.checks.iter().enumerate() {
        let Ok(Some(expected)) = expectation(bench, case, check) else { continue };
        let actual = read_actual(bench, case, check)?;
        for (side, value) in [("actual", actual), ("expected", expected)] {
            write(&folder.join(format!("check{number}.{side}.npy")), &file_of(&value))?;
        }
    }
    Ok(())
}

/// Writes the per-line counts of a case's first run, if its job names a folder and the device counted them.
pub fn keep_lines(job: &CaseJob, lines: &[LineCounts]) -> Result<(), Stop> {
    for folder in [&job.outputs, &job.line_counts].into_iter().flatten().filter(|_| !lines.is_empty()) {
        atomic::create_folder(folder).map_err(|error| error.to_string())?;
        let json = serde_json::to_vec(lines).map_err(|error| error.to_string())?;
        write(&folder.join(LineCounts::FILE), &json)?;
    }
    Ok(())
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), Stop> {
    atomic::write(path, bytes).map_err(|error| Stop::unresolved(error.to_string()))
}

/// `.npy` file of a value. Widened results stay wide; a number is an array of one element.
fn file_of(value: &Operand) -> Vec<u8> {
    if let Operand::Bytes { element, bytes } = value {
        return npy::file(*element, bytes);
    }
    let len = value.len().unwrap_or(1);
    let element = if value.is_float() { ElementType::F64 } else { ElementType::I64 };
    let mut bytes = Vec::with_capacity(len * element.size());
    for start in (0..len).step_by(PIECE) {
        match value.lanes(start..len.min(start + PIECE)) {
            Lanes::Int(lanes) => bytes.extend(lanes.iter().flat_map(|lane| lane.to_le_bytes())),
            Lanes::Float(lanes) => bytes.extend(lanes.iter().flat_map(|lane| lane.to_le_bytes())),
        }
    }
    npy::file(element, &bytes)
}

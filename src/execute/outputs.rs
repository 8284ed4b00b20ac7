//! Writes what the first run of a case left, for a look at it: every buffer, both sides of every check, and the text that
//! kernels printed.

use std::path::Path;

use super::buffers::Slot;
use super::group::{Body, Group};
use super::operand::{Lanes, Operand, PIECE};
use super::stop::Stop;
use crate::atomic;
use crate::model::ElementType;
use crate::npy;

impl Group<'_> {
    /// Writes the outputs of the last run of a case to the folder that its job names, if it names one.
    pub fn keep_outputs(&mut self, member: usize, printed: &str) -> Result<(), Stop> {
        let job = self.members[member].job;
        let Some(folder) = &job.outputs else { return Ok(()) };
        atomic::create_folder(folder).map_err(|error| error.to_string())?;
        if !printed.is_empty() {
            write(&folder.join("printed.txt"), printed.as_bytes())?;
        }
        let slots: Vec<(String, Slot)> = match &self.members[member].body {
            Some(Body::Device(body)) => body.slots.clone(),
            _ => Vec::new(),
        };
        let (steps, iterations) = (job.steps.as_ref(), self.device.iterations());
        for (name, _) in &slots {
            let meant = steps.map_or(name.as_str(), |steps| steps.buffer_after(name, iterations));
            let Some((_, slot)) = slots.iter().find(|(known, _)| known == meant) else { continue };
            let Some(buffer) = self.store.get(*slot) else { continue };
            let (id, element) = (buffer.id, buffer.plan.element);
            let mut bytes = vec![0; self.device.size(id)];
            self.device.download(id, 0, &mut bytes)?;
            write(&folder.join(format!("{name}.npy")), &npy::file(element, &bytes))?;
        }
        for (number, check) in job.checks.iter().enumerate() {
            let Ok(Some(expected)) = self.expectation(member, check) else { continue };
            let actual = self.actual(member, check)?;
            for (side, value) in [("actual", actual), ("expected", expected)] {
                write(&folder.join(format!("check{number}.{side}.npy")), &file_of(&value))?;
            }
        }
        Ok(())
    }
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), Stop> {
    atomic::write(path, bytes).map_err(|error| Stop::unresolved(error.to_string()))
}

/// The file of a value. What is wider than its type stays so; a number is an array of one element.
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

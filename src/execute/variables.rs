//! Variables of modules that the manifest does not name: which of them kernels write.
//!
//! Those that the first two launches of a case wrote are restored before every launch. Libraries bring hundreds that no
//! kernel writes, and restoring these would take longer than a short kernel and change its times. So they are compared
//! with what they held when the module was loaded, once the case has been timed.

use super::group::Group;
use super::stop::Stop;
use crate::backend::{BufferId, Device, ModuleId};

/// Bytes that are compared at a time.
const PIECE: usize = 1 << 20;

impl Group<'_> {
    /// Finds the variables that launches have written since the module was loaded. True if one of them was thought to
    /// be left alone: samples without restoring it are void.
    pub fn look_at_variables(&mut self, member: usize) -> Result<bool, Stop> {
        let mut is_late = false;
        for (module, name, id, pristine, was_written) in self.variables_left_alone(member) {
            let is_written = differ(self.device, id, pristine)?;
            is_late |= is_written && was_written == Some(false);
            self.modules.note_written(module, &name, is_written);
        }
        Ok(is_late)
    }

    /// The variables of a case's modules that are not known to be written, each with its memory, a copy of what it held,
    /// and what is known.
    fn variables_left_alone(&self, member: usize) -> Vec<(ModuleId, String, BufferId, BufferId, Option<bool>)> {
        let Some(body) = self.members[member].device_body() else { return Vec::new() };
        let slots = body.all_slots();
        let mut found = Vec::new();
        for module in &body.modules {
            for variable in self.modules.variables(*module) {
                let is_open =
                    variable.written != Some(true) && !self.store.has_variable(&slots, *module, &variable.name);
                if let (true, Some(pristine)) = (is_open, variable.pristine) {
                    found.push((*module, variable.name.clone(), variable.id, pristine, variable.written));
                }
            }
        }
        found
    }
}

fn differ(device: &mut dyn Device, a: BufferId, b: BufferId) -> Result<bool, Stop> {
    let size = device.size(a);
    for start in (0..size).step_by(PIECE) {
        let mut pieces = [vec![0; PIECE.min(size - start)], vec![0; PIECE.min(size - start)]];
        device.download(a, start, &mut pieces[0])?;
        device.download(b, start, &mut pieces[1])?;
        if pieces[0] != pieces[1] {
            return Ok(true);
        }
    }
    Ok(false)
}

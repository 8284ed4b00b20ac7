//! Variables of modules that the manifest does not name: which of them kernels write.
//!
//! Those that the first two launches of a case wrote are restored before every launch. Libraries bring hundreds that no
//! kernel writes, and restoring these would take longer than a short kernel and change its times. So they are compared
//! with what they held when the module was loaded, once the case has been timed.

use super::bench::Bench;
use super::buffers::Poison;
use super::cases::ReadyCase;
use super::launch::Variable;
use super::stop::Stop;
use crate::backend::{BufferId, Device, ModuleId, Prepare};

/// Bytes that are compared at a time.
const PIECE: usize = 1 << 20;

/// Returns the operations that bring the memory of a case into its state before a launch: its buffers, and the
/// variables of its modules that the manifest does not name and launches write.
pub fn preparation(bench: &Bench<'_>, case: &ReadyCase<'_>, poison: Poison) -> Vec<Prepare> {
    let mut prepare = bench.store.prepare(&case.slots(), poison);
    let restored = |(_, variable): (ModuleId, &Variable)| {
        variable.pristine.filter(|_| variable.is_restored()).map(|from| Prepare::Copy { from, to: variable.id })
    };
    prepare.extend(undeclared_variables(bench, case).into_iter().filter_map(restored));
    prepare
}

/// Returns the variables of a case's modules that the manifest does not name.
pub fn undeclared_variables<'v>(bench: &'v Bench<'_>, case: &ReadyCase<'_>) -> Vec<(ModuleId, &'v Variable)> {
    let slots = case.slots();
    let modules = case.device_body().map_or(&[][..], |body| &body.modules);
    let variables =
        modules.iter().flat_map(|module| bench.modules.variables(*module).iter().map(|variable| (*module, variable)));
    variables.filter(|(module, variable)| !bench.store.has_variable(&slots, *module, &variable.name)).collect()
}

/// Finds the variables that launches have written since the module was loaded. True if samples were taken without
/// restoring one of them, so that they are void.
pub fn look_at_variables(bench: &mut Bench<'_>, case: &ReadyCase<'_>) -> Result<bool, Stop> {
    let open = undeclared_variables(bench, case).into_iter().filter_map(|(module, variable)| {
        let pristine = variable.pristine.filter(|_| variable.written != Some(true))?;
        Some((module, variable.name.clone(), variable.id, pristine, variable.written == Some(false)))
    });
    let open: Vec<_> = open.collect();
    let mut is_late = false;
    for (module, name, id, pristine, was_left_alone) in open {
        let is_written = differ(bench.device, id, pristine)?;
        is_late |= is_written && was_left_alone;
        bench.modules.note_written(module, &name, is_written);
    }
    Ok(is_late)
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

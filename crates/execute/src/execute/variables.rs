//! Variables of modules that the manifest does not name: which of them kernels write.
//!
//! Those that a launch of a case wrote are restored before every later launch. Libraries bring hundreds that no kernel
//! writes, and restoring these would take longer than a short kernel and change its times. So all are compared with what
//! they held when the module was loaded: before and after the first launches of a case, and once it has been timed.

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
    let variables = undeclared_variables(bench, case).into_iter();
    prepare.extend(
        variables
            .filter_map(|(_, variable)| variable.restored_from.map(|from| Prepare::Copy { from, to: variable.id })),
    );
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

/// Finds variables that launches have written since their module was loaded, and restores them from now on. Returns
/// whether there are new ones: samples that were taken without restoring them are void.
pub fn look_at_variables(bench: &mut Bench<'_>, case: &ReadyCase<'_>) -> Result<bool, Stop> {
    let open = undeclared_variables(bench, case).into_iter().filter(|(_, variable)| variable.restored_from.is_none());
    let (large, small): (Vec<_>, Vec<_>) = open
        .filter_map(|(_, variable)| Some((variable.id, variable.initial.clone()?)))
        .partition(|(_, initial)| initial.len() > PIECE);
    let now = bench.device.download_all(&small.iter().map(|(id, _)| *id).collect::<Vec<_>>())?;
    let mut written: Vec<_> =
        small.into_iter().zip(now).filter(|((_, initial), now)| **initial != **now).map(|(found, _)| found).collect();
    for (id, initial) in large {
        if differs(bench.device, id, &initial)? {
            written.push((id, initial));
        }
    }
    for (id, initial) in &written {
        let kept = bench.device.alloc(initial.len(), 0)?;
        bench.device.upload(kept, 0, initial)?;
        bench.modules.restore_from(*id, kept);
    }
    Ok(!written.is_empty())
}

fn differs(device: &mut dyn Device, buffer: BufferId, content: &[u8]) -> Result<bool, Stop> {
    for (index, piece) in content.chunks(PIECE).enumerate() {
        let mut now = vec![0; piece.len()];
        device.download(buffer, index * PIECE, &mut now)?;
        if now != piece {
            return Ok(true);
        }
    }
    Ok(false)
}

//! Module variables that the manifest does not name: which of them kernels write.
//!
//! Variables written by a case's launch are restored before every later launch. Libraries bring hundreds that no kernel
//! writes; restoring these would take longer than a short kernel and change its times. So all are compared with their
//! content at module load: before and after the first launches of a case, and again once it has been timed.

use std::rc::Rc;

use super::bench::Bench;
use super::buffers::Poison;
use super::cases::ReadyCase;
use super::launch::Variable;
use super::stop::Stop;
use runner_backend::{BufferId, Device, ModuleId, Prepare};

/// Bytes compared at a time.
const PIECE: usize = 1 << 20;

/// Operations that restore a case's memory before a launch: its buffers, and those variables of its modules that
/// launches write and the manifest does not name. `scratch` that another case used last is poisoned or, if it is a
/// variable, restored.
pub fn preparation(bench: &mut Bench<'_>, case: &ReadyCase<'_>, poison: Poison) -> Vec<Prepare> {
    let slots = case.slots();
    let mut prepare = bench.store.prepare(&slots, poison);
    for slot in bench.store.take_scratch(&slots, case.place) {
        match bench.store.variable(slot) {
            Some((module, name)) => {
                prepare.extend(bench.modules.variable(module, name).and_then(Variable::restoration));
            }
            None => prepare.extend(bench.store.undefine(slot, poison)),
        }
    }
    prepare.extend(undeclared_variables(bench, case).into_iter().filter_map(|(_, variable)| variable.restoration()));
    prepare
}

/// Resets everything that outlives a case's launches to the state of a new process, so that its verdict depends on no
/// other case: `scratch` becomes unused, variables get their content at module load, and the heap is emptied.
pub fn begin(bench: &mut Bench<'_>, case: &ReadyCase<'_>) -> Result<(), Stop> {
    let slots = case.slots();
    bench.store.forget_users(&slots);
    bench.device.clear_heap()?;
    if bench.device.clock().is_none() {
        let modules = case.device_body().map_or(&[][..], |body| &body.modules);
        return Ok(modules.iter().try_for_each(|module| bench.modules.begin(bench.device, *module))?);
    }
    // Other variables are restored as soon as a launch writes them.
    let scratch = slots.into_iter().filter(|slot| bench.store.is_scratch(*slot));
    let variables = scratch.filter_map(|slot| {
        let (module, name) = bench.store.variable(slot)?;
        let variable = bench.modules.variable(module, name).filter(|variable| variable.restored_from.is_none())?;
        Some((variable.id, variable.initial.clone()))
    });
    let variables: Vec<_> = variables.collect();
    restore_from_now_on(bench, &variables)
}

/// Keeps the initial content of variables on the device, to restore them from.
fn restore_from_now_on(bench: &mut Bench<'_>, variables: &[(BufferId, Rc<[u8]>)]) -> Result<(), Stop> {
    for (id, initial) in variables {
        let kept = bench.device.alloc(initial.len(), 0)?;
        bench.device.upload(kept, 0, initial)?;
        bench.modules.restore_from(*id, kept);
    }
    Ok(())
}

/// Variables of a case's modules that the manifest does not name.
pub fn undeclared_variables<'v>(bench: &'v Bench<'_>, case: &ReadyCase<'_>) -> Vec<(ModuleId, &'v Variable)> {
    let slots = case.slots();
    let modules = case.device_body().map_or(&[][..], |body| &body.modules);
    let variables =
        modules.iter().flat_map(|module| bench.modules.variables(*module).iter().map(|variable| (*module, variable)));
    variables.filter(|(module, variable)| !bench.store.has_variable(&slots, *module, &variable.name)).collect()
}

/// Finds variables that launches have written since their module was loaded, and restores them from now on. Returns
/// whether there are new ones: samples taken without restoring them are void.
pub fn look_at_variables(bench: &mut Bench<'_>, case: &ReadyCase<'_>) -> Result<bool, Stop> {
    if bench.device.clock().is_none() {
        return Ok(false);
    }
    let open = undeclared_variables(bench, case).into_iter().filter(|(_, variable)| variable.restored_from.is_none());
    let (large, small): (Vec<_>, Vec<_>) = open
        .map(|(_, variable)| (variable.id, variable.initial.clone()))
        .partition(|(_, initial)| initial.len() > PIECE);
    let now = bench.device.download_all(&small.iter().map(|(id, _)| *id).collect::<Vec<_>>())?;
    let mut written: Vec<_> =
        small.into_iter().zip(now).filter(|((_, initial), now)| **initial != **now).map(|(found, _)| found).collect();
    for (id, initial) in large {
        if differs(bench.device, id, &initial)? {
            written.push((id, initial));
        }
    }
    restore_from_now_on(bench, &written)?;
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

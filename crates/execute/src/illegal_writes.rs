//! Whether a case wrote only where it may: inputs keep their content, and guard zones their pattern.
//!
//! Separate from the result checks, because it applies to every launch whatever the manifest checks.

use super::bench::Bench;
use super::buffers::{GUARD_PATTERN, Slot};
use super::cases::ReadyCase;
use super::compare::{Difference, bitwise};
use super::stop::Stop;
use runner_types::{Access, ElementType, Mismatch, Phase};

/// Bytes of an input to compare at a time.
const LOOK: usize = 64 << 20;

/// Finds a write outside the case's buffers, or into an input that is a variable of its module.
pub fn find_trespass(bench: &mut Bench<'_>, case: &ReadyCase<'_>) -> Result<Option<Mismatch>, Stop> {
    let Some(body) = case.device_body() else { return Ok(None) };
    for (name, slot) in &body.slots {
        let Some(buffer) = bench.store.get(*slot) else { continue };
        let (id, element, is_input) = (buffer.id, buffer.plan.element, buffer.plan.access == Access::In);
        if buffer.is_symbol() {
            if is_input && let Some(difference) = find_change(bench, *slot)? {
                return Ok(Some(changed_text(name, &difference, element)));
            }
            continue;
        }
        let (before, behind) = bench.device.read_guards(id)?;
        let found = damage("before", name, before.iter().rev()).or_else(|| damage("after", name, behind.iter()));
        if found.is_some() {
            // Repaired, so that the next case that shares the buffer does not fail.
            bench.device.write_guards(id, GUARD_PATTERN)?;
            return Ok(found);
        }
    }
    Ok(None)
}

/// Compares every shared input with its initial content; returns the first changed one.
pub fn find_changed_input(bench: &mut Bench<'_>) -> Result<Option<Mismatch>, Stop> {
    for slot in bench.store.shared_inputs() {
        if let (Some(difference), Some(buffer)) = (find_change(bench, slot)?, bench.store.get(slot)) {
            return Ok(Some(changed_text(&buffer.plan.name, &difference, buffer.plan.element)));
        }
    }
    Ok(None)
}

pub fn restore_inputs(bench: &mut Bench<'_>) -> Result<(), Stop> {
    bench.store.shared_inputs().into_iter().try_for_each(|slot| bench.store.restore(bench.device, slot))
}

/// Finds how an input differs from its initial content.
fn find_change(bench: &mut Bench<'_>, slot: Slot) -> Result<Option<Difference>, Stop> {
    let phase = bench.spend(Phase::Transfer);
    let difference = compare_with_first(bench, slot);
    bench.spend(phase);
    difference
}

fn compare_with_first(bench: &mut Bench<'_>, slot: Slot) -> Result<Option<Difference>, Stop> {
    let Some(buffer) = bench.store.get(slot).filter(|buffer| buffer.has_content()) else { return Ok(None) };
    let (id, element, plan) = (buffer.id, buffer.plan.element, buffer.plan.clone());
    if bench.store.surely_unchanged(bench.device, slot)? {
        return Ok(None);
    }
    let first = bench.store.input(&plan)?;
    let mut now = vec![0; first.len().min(LOOK)];
    let mut found: Option<Difference> = None;
    for (part, before) in first.chunks(LOOK).enumerate() {
        let now = &mut now[..before.len()];
        bench.device.download(id, part * LOOK, now)?;
        let Some(difference) = bitwise(now, before, element) else { continue };
        let start = (part * LOOK / element.size()) as u64;
        let known = found.get_or_insert(Difference { index: start + difference.index, wrong: 0, ..difference });
        known.wrong += difference.wrong;
        known.of = (first.len() / element.size()) as u64;
    }
    Ok(found)
}

fn changed_text(name: &str, difference: &Difference, element: ElementType) -> Mismatch {
    difference.mismatch(format!("input `{name}` was changed"), Some(element))
}

/// Mismatch of a damaged guard zone; its index is the distance of the first damaged byte from the buffer.
fn damage<'b>(side: &str, name: &str, zone: impl ExactSizeIterator<Item = &'b u8>) -> Option<Mismatch> {
    let of = zone.len() as u64;
    let mut broken = zone.enumerate().filter(|(_, byte)| **byte != GUARD_PATTERN);
    let (index, byte) = broken.next()?;
    Some(Mismatch {
        what: format!("guard zone {side} `{name}`, indexed by distance in bytes"),
        index: index as u64,
        expected: format!("{GUARD_PATTERN:#04x}"),
        got: format!("{byte:#04x}"),
        error: None,
        wrong: 1 + broken.count() as u64,
        of,
        allowed: None,
    })
}

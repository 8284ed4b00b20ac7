//! Cases whose launches write none of their outputs; such a case is never right.
//!
//! A size that overflows, or a guard that no thread passes, makes all variants agree with each other. So the outputs
//! are read back: `out` buffers must no longer hold their poison, nor `inout` buffers their earlier content. A kernel
//! may rewrite an `inout` buffer with the same content; only a device that counts stores can distinguish this from no
//! store at all.

use super::bench::Bench;
use super::buffers::{Buffer, Poison, Slot};
use super::cases::ReadyCase;
use super::stop::Stop;
use runner_backend::{CountReport, Step};
use runner_types::{Access, BodyPlan, BufferPlan, Mismatch, Unchecked, Verdict};

/// Bytes of an output to read first; nearly every kernel changes some of them.
const HEAD: usize = 1 << 12;

/// Bytes to read at a time after that.
const PIECE: usize = 1 << 20;

/// Global stores of a run in warp instructions. `None` if the device did not count them, or if a step other than a
/// kernel may have stored.
pub fn count_stores(report: &CountReport, steps: &[Step]) -> Option<f64> {
    let counters = report.counters.as_ref().filter(|_| steps.iter().all(launches_only))?;
    ["ptx_gst_requests", "ptx_global_atomics"].iter().map(|name| counters.whole.get(name)).sum()
}

fn launches_only(step: &Step) -> bool {
    match step {
        Step::Launch(_) => true,
        Step::Loop(inner) => inner.iterations.iter().all(|iteration| iteration.steps.iter().all(launches_only)),
        Step::Copy { .. } | Step::Call(_) | Step::Memset { .. } => false,
    }
}

/// Verdict on a case that passed although its first run changed none of its outputs; `None` for any other case.
pub fn find_idle(bench: &mut Bench<'_>, case: &ReadyCase<'_>, verdict: &Verdict) -> Result<Option<Verdict>, Stop> {
    let is_compared = matches!(verdict, Verdict::Pass | Verdict::Unchecked(Unchecked::IsReference));
    let job = case.job;
    if !is_compared || case.is_partial || !matches!(job.body, BodyPlan::Launches(_) | BodyPlan::Host(_)) {
        return Ok(None);
    }
    // If all inputs are empty, there is nothing to do.
    let mut inputs = job.buffers.iter().filter(|plan| plan.access == Access::In).peekable();
    if inputs.peek().is_some() && inputs.all(|plan| plan.len == 0) {
        return Ok(None);
    }
    let is_output = |plan: &BufferPlan| matches!(plan.access, Access::Out | Access::InOut) && plan.len > 0;
    let slots = case.slots().into_iter().filter(|slot| bench.store.get(*slot).is_some_and(|b| is_output(&b.plan)));
    let slots: Vec<Slot> = slots.collect();
    if slots.is_empty() {
        return Ok(None);
    }
    for all in [false, true] {
        for slot in &slots {
            if is_changed(bench, *slot, all)? {
                return Ok(None);
            }
        }
    }
    let outputs: Vec<&BufferPlan> = slots.iter().filter_map(|slot| bench.store.get(*slot)).map(|b| &b.plan).collect();
    let may_rewrite = outputs.iter().any(|plan| plan.access == Access::InOut);
    match case.stores {
        Some(stores) if may_rewrite && stores > 0.0 => Ok(None),
        None if may_rewrite => Ok(Some(Verdict::Unchecked(Unchecked::NothingChanged))),
        _ => Ok(Some(Verdict::Mismatch(nothing_written(&outputs)))),
    }
}

/// Whether an output (only its beginning unless `all`) differs from its content before the first run.
fn is_changed(bench: &mut Bench<'_>, slot: Slot, all: bool) -> Result<bool, Stop> {
    let before = bench.store.first_content(slot);
    let Some(Buffer { id, plan, .. }) = bench.store.get(slot) else { return Ok(false) };
    let (id, poison) = (*id, Poison::Checked.byte(plan.element));
    let before = before.filter(|_| plan.access == Access::InOut);
    let size = bench.device.size(id);
    // A kernel may legitimately write the poison's value.
    if before.is_none()
        && let Some(unwritten) = bench.device.unwritten(id)?
    {
        return Ok(unwritten.iter().map(|range| range.end - range.start).sum::<u64>() < size as u64);
    }
    let (end, piece) = if all { (size, PIECE) } else { (size.min(HEAD), HEAD) };
    for start in (0..end).step_by(piece) {
        let mut now = vec![0; piece.min(end - start)];
        let mut held = vec![poison; now.len()];
        bench.device.download(id, start, &mut now)?;
        if let Some(before) = before {
            bench.device.download(before, start, &mut held)?;
        }
        if now != held {
            return Ok(true);
        }
    }
    Ok(false)
}

fn nothing_written(outputs: &[&BufferPlan]) -> Mismatch {
    let names: Vec<String> = outputs.iter().map(|plan| format!("`{}`", plan.name)).collect();
    let elements = outputs.iter().map(|plan| plan.len).sum();
    Mismatch {
        what: format!(
            "no launch wrote to an output ({}): choose sizes and a grid for which there is something to do \
             (`runner try`: --n, or --arg NAME=4 for one parameter)",
            names.join(", ")
        ),
        index: 0,
        expected: "a value that the launch writes".to_owned(),
        got: "none (never written)".to_owned(),
        error: None,
        allowed: None,
        wrong: elements,
        of: elements,
    }
}

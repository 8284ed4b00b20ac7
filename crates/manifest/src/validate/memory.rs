//! Validates when a buffer's memory is allocated, and what happens to it before every launch.

use super::context::Context;
use crate::raw::{Expr, RawBuffer, RawFill, RawFillTable, RawManifest};
use crate::read::At;
use runner_lang::diagnostics::Diagnostic;
use runner_types::{Access, Allocation, Regime, Vary};

/// Checks memory that is allocated in every run: it has no contents before the run and cannot be checked after it.
pub fn allocation(ctx: &mut Context, name: &At<String>, fields: &RawBuffer, access: Access) -> Allocation {
    let Some(given) = fields.allocate.as_ref().filter(|given| given.value != Allocation::Once) else {
        return Allocation::Once;
    };
    if access != Access::Scratch || fields.symbol.is_some() {
        let message = format!("buffer `{}` cannot be allocated in each run: only `scratch` memory can", name.value);
        let hint = if fields.symbol.is_some() {
            "the memory of a `symbol` exists as long as its module"
        } else {
            "buffers that are filled, poisoned or checked are allocated once; write access = \"scratch\""
        };
        ctx.fault(Diagnostic::at(given.span.clone(), message).hint(hint));
    }
    given.value
}

/// Checks that `vary` has an effect: the contents must be the same for every seed, and their order must matter.
pub fn varied(ctx: &mut Context, name: &At<String>, fields: &RawBuffer, access: Access) -> Option<Vary> {
    let given = fields.vary.as_ref()?;
    let refusal = match fields.fill.as_ref().map(|fill| &fill.value) {
        None => Some(("has no `fill`", "only `in` and `inout` buffers have content before a launch")),
        // Reported as a fill that no kernel can read.
        Some(_) if matches!(access, Access::Out | Access::Scratch) => None,
        Some(RawFill::Constant(Expr(expression))) if expression.text() != "iota" => {
            Some(("has equal elements", "vary other buffers, or fill it with `iota` or at random"))
        }
        Some(RawFill::Table(table)) if table.like.is_some() => {
            Some(("is filled like another buffer", "write `vary` in that one: both keep the same content"))
        }
        Some(RawFill::Table(table)) if !is_fixed(table) => {
            Some(("is random", "every set of inputs has its own seed: remove `vary`"))
        }
        Some(_) => None,
    };
    if let Some((why, hint)) = refusal {
        let message = format!("buffer `{}` {why}, so `vary` has no effect", name.value);
        ctx.fault(Diagnostic::at(given.span.clone(), message).hint(hint));
    }
    Some(given.value)
}

/// Whether a fill's contents are the same for every seed.
const fn is_fixed(table: &RawFillTable) -> bool {
    table.iota.is_some() || table.npy.is_some() || table.raw.is_some() || table.safetensors.is_some()
}

/// Checks `poison`: the memory must be kept between launches and must not have initial contents.
pub fn poisoned(ctx: &mut Context, name: &At<String>, fields: &RawBuffer, access: Access) -> bool {
    let Some(given) = fields.poison.as_ref().filter(|given| given.value) else { return false };
    let is_fresh = fields.allocate.as_ref().is_some_and(|given| given.value != Allocation::Once);
    let hint = match access {
        Access::In => "kernels may not change it: remove `poison`",
        Access::Out => "an `out` buffer is always poisoned: remove `poison`",
        Access::InOut => "it is filled again before every launch: remove `poison`",
        Access::Scratch if is_fresh => "every run allocates it: remove `poison` or `allocate`",
        Access::Scratch => return true,
    };
    let message = format!("buffer `{}` cannot be poisoned: only `scratch` memory that stays allocated can", name.value);
    ctx.fault(Diagnostic::at(given.span.clone(), message).hint(hint));
    true
}

/// `in` and `inout` buffers need a fill; `out` and `scratch` buffers must not have one.
pub fn agree(ctx: &mut Context, name: &At<String>, fields: &RawBuffer, access: Access) {
    let Some(given) = &fields.access else { return };
    let (filled, name) = (fields.fill.as_ref(), &name.value);
    match (access, filled) {
        (Access::In | Access::InOut, None) => {
            let message = format!("buffer `{name}` is read by kernels, but has no `fill`");
            let hint = "say what it holds: a number, \"iota\", { uniform = [low, high] }, { npy = \"file\" }";
            ctx.fault(Diagnostic::at(given.span.clone(), message).hint(hint));
        }
        (Access::Out | Access::Scratch, Some(fill)) => {
            let what = if access == Access::Out { "out" } else { "scratch" };
            let message = format!("buffer `{name}` is `{what}`, but has a `fill`, which no kernel would see");
            let hint = "`inout` buffers are filled again before every launch; `in` buffers are only read";
            let fault = Diagnostic::at(given.span.clone(), message).related(fill.span.clone(), "the fill");
            ctx.fault(fault.hint(hint));
        }
        _ => {}
    }
}

/// Rejects buffers that are allocated in every run if no regime times the allocation.
pub fn allocations_are_timed(ctx: &mut Context, raw: &RawManifest, regimes: &[Regime]) {
    let shared = raw.buffers.iter();
    let own = raw.variant.0.iter().flatten().filter_map(|variant| variant.value.buffers.as_ref());
    let buffers = shared.chain(own).flat_map(|named| &named.0).map(|(_, buffer)| &buffer.value);
    let given: Vec<_> = buffers.filter_map(|buffer| buffer.allocate.clone()).collect();
    for At { span, .. } in given.into_iter().filter(|given| given.value != Allocation::Once) {
        if !regimes.contains(&Regime::Host) {
            let message = "only the regime `host` times an allocation in every run, but it is not in `regimes`";
            ctx.fault(Diagnostic::at(span, message).hint("write [measure] regimes = [\"host\"]"));
        }
    }
}

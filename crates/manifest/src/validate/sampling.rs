//! Validates variants of which the simulator runs only a sample of the blocks.
//!
//! Such a variant's results are incomplete. Its checks may compare only elements that a block wrote, and no other check
//! may expect its results.

use super::context::Context;
use super::declared::{Declared, DeclaredVariant};
use crate::raw::{RawBlocks, RawManifest};
use runner_experiment::{BodySpec, CheckSpec, Expectation, LaunchSpec, PrintedSpec, VariantSpec};
use runner_lang::diagnostics::Diagnostic;

/// Checks and printed lines for variants without their own.
pub struct Shared<'a> {
    pub checks: &'a [CheckSpec],
    pub printed: Option<&'a PrintedSpec>,
}

pub fn check(ctx: &mut Context, raw: &RawManifest, variants: &[VariantSpec], declared: &Declared, shared: &Shared<'_>) {
    let tables = raw.variant.0.iter().flatten().zip(variants).zip(&declared.variants);
    for ((raw, variant), declared) in tables {
        let Some(blocks) = raw.value.simulate.as_ref().and_then(|table| table.value.blocks.0.as_ref()) else {
            continue;
        };
        if blocks.value == RawBlocks::All {
            continue;
        }
        let mut refuse = |why: String| {
            let message = format!("variant `{}` cannot be sampled: {why}", variant.name.text());
            let hint = "remove `simulate` to run all blocks; if that takes too long, choose smaller sizes in \
                `[on.sim.axes]`";
            ctx.fault(Diagnostic::at(blocks.span.clone(), message).hint(hint));
        };
        if let Some(why) = body(&variant.body) {
            refuse(why.to_owned());
        }
        let (checks, printed) = match &variant.checks {
            Some(own) => (own.as_slice(), variant.printed.as_ref()),
            None => (shared.checks, variant.printed.as_ref().or(shared.printed)),
        };
        if printed.is_some() {
            refuse("blocks that do not run print nothing, but its printed lines are checked".to_owned());
        }
        for check in checks.iter().filter(|check| !check.actual.is_part_of_buffer()) {
            let (actual, which) = (check.actual.text(), "a buffer or part of a buffer can be compared");
            refuse(format!("its check compares `{actual}`, which needs all blocks; only {which}"));
        }
        if let Some(other) = compared_with(declared, variants, shared.checks) {
            refuse(format!("a check of `{other}` compares all results of this variant"));
        }
    }
}

/// Why a body's blocks cannot be sampled.
fn body(body: &BodySpec) -> Option<&'static str> {
    let BodySpec::Launches { rounds, launches, steps } = body else {
        return Some("it launches no kernel");
    };
    match launches.as_slice() {
        // Reported elsewhere.
        [] => None,
        [LaunchSpec { repeat: None, settings, cluster, .. }] if rounds.is_none() && steps.is_none() => {
            if settings.cooperative {
                Some("the blocks of a cooperative launch communicate")
            } else if cluster.is_some() {
                Some("the blocks of a cluster communicate")
            } else {
                None
            }
        }
        _ => Some("it has several launches or steps, and a later one may read what skipped blocks would have written"),
    }
}

/// The variant whose check expects this variant's results.
fn compared_with<'v>(
    declared: &DeclaredVariant,
    variants: &'v [VariantSpec],
    shared: &'v [CheckSpec],
) -> Option<&'v str> {
    variants.iter().find_map(|other| {
        let checks = other.checks.as_deref().unwrap_or(shared);
        let is_expected = |check: &CheckSpec| match &check.expect {
            Expectation::Variant { name, .. } => declared.expanded.contains(name),
            _ => false,
        };
        checks.iter().any(is_expected).then(|| other.name.text())
    })
}

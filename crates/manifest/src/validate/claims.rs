//! Validates `[[claim]]`.

use super::context::{Context, Names};
use super::declared::Declared;
use crate::raw::{ClaimText, RawManifest};
use crate::read::At;
use runner_experiment::{Expression, MeasureSpec, place};
use runner_lang::claim::{ClaimFunction, Measured};
use runner_lang::diagnostics::Diagnostic;
use runner_types::{Claim, CounterInfo, Regime, VOCABULARY};

/// Validates the claims. All names must exist: a claim with a misspelt name would stay undecided forever.
pub fn claims(
    ctx: &mut Context,
    raw_manifest: &RawManifest,
    compare: &[String],
    measure: &MeasureSpec,
    declared: &Declared,
) -> Vec<Claim> {
    let mut claims = Vec::new();
    for At { value: raw, .. } in raw_manifest.claim.iter().flatten() {
        let Some(that) = &raw.that.0 else { continue };
        for result in that.program.results() {
            names(ctx, that, result, measure, declared);
            work(ctx, that, result, raw_manifest, declared);
        }
        if let Some(condition) = &raw.r#where {
            shared(ctx, &condition.0, compare, declared);
        }
        claims.push(Claim {
            text: that.text.clone(),
            condition: raw.r#where.as_ref().map(|condition| condition.0.text().to_owned()),
            regime: raw.regime.as_ref().and_then(|name| regime(ctx, name, measure)),
            backend: raw.on.as_ref().and_then(|name| ctx.backend(&name.value, &name.span)),
        });
    }
    claims
}

fn names(ctx: &mut Context, that: &ClaimText, result: &Measured, measure: &MeasureSpec, declared: &Declared) {
    let place_of = |span: &std::ops::Range<usize>| place(&that.text, &that.span, span.clone());
    for case in &result.cases {
        // `sum[bx=32, by=8]` is the variant `sum` at a point of the compared axes, which only the plan knows.
        let variant = case.name.split_once('[').map_or(case.name.as_str(), |(variant, _)| variant);
        declared.require_variant(ctx, variant, place_of(&case.at));
    }
    if let Some(counter) = &result.counter
        && CounterInfo::named(&counter.name).is_none()
        && !measure.metrics.contains(&counter.name)
    {
        ctx.unknown(place_of(&counter.at), "counter", &counter.name, VOCABULARY.iter().map(|info| info.name));
    }
}

/// Checks that the work is defined if a claim is about a rate.
fn work(ctx: &mut Context, that: &ClaimText, result: &Measured, raw: &RawManifest, declared: &Declared) {
    let needs_bytes = matches!(result.function, ClaimFunction::Bandwidth | ClaimFunction::FractionOfPeak);
    let is_stated = raw.work.is_some() || declared.variants.iter().any(|variant| variant.has_own_work);
    if needs_bytes && !is_stated {
        let message =
            format!("`{}` needs `bytes` in [work], which this manifest does not state", result.function.name());
        ctx.fault(Diagnostic::at(that.span.clone(), message).hint("add [work] with `bytes`"));
    }
}

/// Checks a condition on groups, which may use only shared axes that are not compared.
fn shared(ctx: &mut Context, condition: &Expression, compare: &[String], declared: &Declared) {
    let known = declared.axes.iter().map(|axis| axis.name.clone()).filter(|name| !compare.contains(name)).collect();
    if let Some(name) = condition.names().iter().find(|name| compare.contains(name)) {
        let message = format!("the axis `{name}` is compared within a group, so it has no single value there");
        let hint = "name the cell instead, as the report does: \"sum[bx=32, by=8]\"";
        ctx.fault(Diagnostic::at(condition.place_of(name), message).hint(hint));
        return;
    }
    let shared = Names { known, ..Names::default() };
    ctx.known(condition, &[&shared]);
    if let Some(value) = ctx.constant(condition) {
        let message = format!("`where` is {value} for every group: it uses no axis");
        ctx.fault(Diagnostic::at(condition.span.clone(), message));
    }
}

fn regime(ctx: &mut Context, name: &At<String>, measure: &MeasureSpec) -> Option<Regime> {
    let found = name.value.parse().ok();
    match found {
        Some(regime) if measure.regimes.contains(&regime) => {}
        Some(regime) => {
            let message = format!("the regime `{regime}` is not measured, so the claim is never judged");
            ctx.fault(Diagnostic::at(name.span.clone(), message).hint("add it to `measure.regimes`"));
        }
        None => ctx.unknown(name.span.clone(), "regime", &name.value, Regime::NAMES.iter().copied()),
    }
    found
}

//! Validates `check` and `work`, both shared ones and those of single variants.

use super::buffers;
use super::context::{Context, Names};
use super::declared::{CheckedVariants, Declared, DeclaredVariant};
use super::function::{self, Language};
use super::printed::printed;
use super::uses::{Use, before_launch};
use crate::raw::{Expr, OneOrMany, RawCheck, RawExpect, RawExpectTable, RawManifest, RawTolerance, RawWork, Ref, Text};
use crate::read::{At, Table as _, missing};
use runner_experiment::{
    CheckSpec, Expectation, Expression, FileSpec, PrintedSpec, Reference, TensorSpec, ToleranceSpec, WorkSpec,
};
use runner_lang::diagnostics::Diagnostic;
use runner_types::{Access, INDEX, Span};

pub type Checks = (Vec<CheckSpec>, Option<PrintedSpec>);

/// Checks for the variants that define none themselves.
pub fn shared_checks(ctx: &mut Context, raw: &RawManifest, declared: &Declared) -> Checks {
    let without_own = declared.variants.iter().filter(|variant| !variant.on_host && variant.own_checks.is_none());
    let entries = raw.check.as_ref().map(OneOrMany::as_slice).unwrap_or_default();
    checks(ctx, entries, CheckedVariants { declared, variants: &without_own.collect::<Vec<_>>() })
}

pub fn checks(ctx: &mut Context, entries: &[At<RawCheck>], of: CheckedVariants<'_>) -> Checks {
    let of_values = entries.iter().filter(|entry| entry.value.printed.is_none());
    (of_values.filter_map(|entry| check(ctx, entry, of)).collect(), printed(ctx, entries, of))
}

fn check(ctx: &mut Context, entry: &At<RawCheck>, of: CheckedVariants<'_>) -> Option<CheckSpec> {
    let raw = &entry.value;
    let given = [("actual", raw.actual.is_some()), ("expect", raw.expect.is_some())];
    for (key, given) in given {
        if !given && !ctx.refused(&entry.span, key) && !ctx.refused(&entry.span, "printed") {
            ctx.fault(missing(key, Some(&entry.span), "check"));
        }
    }
    let tolerance = raw.tolerance.as_ref().map(|at| tolerance(ctx, &at.value)).unwrap_or_default();
    let actual = raw.actual.as_ref().map(|Ref(actual)| {
        actual_side(ctx, actual, of);
        actual.clone()
    });
    let expect = raw.expect.as_ref().and_then(|expect| expectation(ctx, expect, of));
    if let (Some(Ref(actual)), Some(Expectation::Npy(file))) = (&raw.actual, &expect) {
        golden(ctx, file, actual, of);
    }
    let mask = raw.r#where.as_ref().map(|Ref(mask)| {
        let used = uses(ctx, mask, of, Some(INDEX));
        before_launch(ctx, &used);
        mask.clone()
    });
    let error = raw.error.as_ref().is_some_and(|at| at.value);
    Some(CheckSpec { actual: actual?, expect: expect?, tolerance, mask, error })
}

fn tolerance(ctx: &mut Context, raw: &RawTolerance) -> ToleranceSpec {
    for bound in [&raw.abs, &raw.rel, &raw.norm, &raw.max_norm, &raw.fraction].into_iter().flatten() {
        if bound.value < 0.0 {
            ctx.fault(Diagnostic::at(bound.span.clone(), "a tolerance must not be negative"));
        }
    }
    if let Some(fraction) = raw.fraction.as_ref().filter(|at| at.value > 1.0) {
        let message = "a fraction of the elements must be at most 1";
        ctx.fault(Diagnostic::at(fraction.span.clone(), message).hint("write 0.01 for one percent"));
    }
    ToleranceSpec {
        fraction: raw.fraction.as_ref().map(|at| at.value),
        norm: raw.norm.as_ref().map(|at| at.value),
        max_norm: raw.max_norm.as_ref().map(|at| at.value),
        abs: raw.abs.as_ref().map(|at| at.value),
        rel: raw.rel.as_ref().map(|at| at.value),
        ulp: raw.ulp.as_ref().map(|at| at.value),
    }
}

/// Checks the names in a reference expression in every variant. Returns the buffers that it uses.
pub fn reference(ctx: &mut Context, reference: &Reference, of: CheckedVariants<'_>) -> Vec<Use> {
    uses(ctx, reference, of, None)
}

/// Like [`reference`], but `given` is a name that need not be a buffer.
fn uses(ctx: &mut Context, reference: &Reference, of: CheckedVariants<'_>, given: Option<&str>) -> Vec<Use> {
    let (CheckedVariants { declared, variants }, scopes) = (of, of.scopes());
    ctx.known(reference, &scopes);
    let mut used = Vec::new();
    for name in reference.buffers() {
        // Such a name may be a number rather than a buffer.
        if reference.either().contains(name) && scopes.iter().all(|scope| scope.known.contains(name)) {
            continue;
        }
        for variant in variants {
            match variant.buffer(&declared.buffers, name) {
                Some(buffer) => used.push((name.clone(), buffer.access, reference.place_of(name))),
                None if given == Some(name) => {}
                None => no_buffer(ctx, reference.place_of(name), name, declared, variant),
            }
        }
    }
    used
}

pub fn no_buffer(ctx: &mut Context, at: Span, name: &str, declared: &Declared, variant: &DeclaredVariant) {
    let elsewhere = declared.variants.iter().any(|other| other.has_own_buffer(name));
    if elsewhere {
        let message = format!("variant `{}` has no buffer `{name}`", variant.name.text());
        let hint = format!("define it in [buffers.{name}], or in the variant's own `buffers`");
        ctx.fault(Diagnostic::at(at, message).label("only other variants have it").hint(hint));
    } else if variant.names.known.contains(name) {
        let fault = Diagnostic::at(at, format!("expected a buffer, but `{name}` is a number"));
        ctx.fault(
            fault
                .label("an axis, a let or an attribute")
                .hint(format!("to pass a number, write its type: `i32({name})`")),
        );
    } else {
        ctx.unknown(at, "buffer", name, declared.buffers_of(variant).map(|buffer| buffer.name.as_str()));
    }
}

/// Checks `actual`, which must use a buffer that kernels write.
fn actual_side(ctx: &mut Context, actual: &Reference, of: CheckedVariants<'_>) {
    let used = reference(ctx, actual, of);
    for (name, _, at) in used.iter().filter(|(_, access, _)| *access == Access::Scratch) {
        let message = format!("buffer `{name}` is `scratch`: its content is undefined");
        ctx.fault(Diagnostic::at(at.clone(), message).hint("make it `out` to check it"));
    }
    let written = used.iter().any(|(_, access, _)| *access != Access::In);
    if !written && !ctx.faulty(&actual.span) && !of.variants.is_empty() {
        let what = if actual.buffers().is_empty() { "uses no buffer" } else { "uses only `in` buffers" };
        let message = format!("`actual` {what}: no kernel writes it");
        ctx.fault(Diagnostic::at(actual.span.clone(), message).hint("name a buffer that kernels write"));
    }
}

fn expectation(ctx: &mut Context, raw: &At<RawExpect>, of: CheckedVariants<'_>) -> Option<Expectation> {
    match &raw.value {
        RawExpect::Reference(Ref(expected)) => {
            let used = reference(ctx, expected, of);
            before_launch(ctx, &used);
            Some(Expectation::Reference(expected.clone()))
        }
        RawExpect::List(elements) => {
            let elements: Vec<Expression> = elements.iter().map(|Expr(element)| element.clone()).collect();
            for element in &elements {
                ctx.known(element, &of.scopes());
            }
            Some(Expectation::List(elements))
        }
        RawExpect::Table(table) => of_table(ctx, table, &raw.span, of),
    }
}

fn of_table(ctx: &mut Context, table: &RawExpectTable, span: &Span, of: CheckedVariants<'_>) -> Option<Expectation> {
    let RawExpectTable { variant, npy, raw, safetensors, tensor, python, cpp } = table;
    let sources = table.given().into_iter().filter(|(key, _)| *key != "tensor");
    if sources.count() != 1 || tensor.is_some() != safetensors.is_some() {
        if !ctx.faulty(span) {
            let message = "`expect` needs exactly one of `variant`, `npy`, `raw`, `python`, `cpp`, and `safetensors` \
                           with `tensor`";
            ctx.fault(Diagnostic::at(span.clone(), message));
        }
        return None;
    }
    for Text(file) in [npy, raw, safetensors, tensor].into_iter().flatten() {
        ctx.known(file, &of.scopes());
    }
    if let Some(At { value: name, span }) = variant {
        of.declared.require_variant(ctx, name, span.clone());
        return Some(Expectation::Variant { name: name.clone(), span: span.clone() });
    }
    if let Some(text) = python {
        return function::function(ctx, (text, Language::Python), of).map(Expectation::Python);
    }
    if let Some(text) = cpp {
        return function::function(ctx, (text, Language::Cpp), of).map(Expectation::Cpp);
    }
    if let Some(file) = npy {
        return Some(Expectation::Npy(buffers::npy_file(ctx, file)));
    }
    if let Some(file) = raw {
        return Some(Expectation::Raw(buffers::raw_file(ctx, file)));
    }
    let (file, Text(tensor)) = (safetensors.as_ref()?, tensor.clone()?);
    Some(Expectation::Tensor(TensorSpec { file: buffers::raw_file(ctx, file), tensor }))
}

/// Reports a file that does not fit the checked buffer. If `actual` is a function of buffers, the plan checks the file.
fn golden(ctx: &mut Context, file: &FileSpec, actual: &Reference, of: CheckedVariants<'_>) {
    let CheckedVariants { declared, variants } = of;
    for variant in variants {
        let Some(buffer) = actual.bare().and_then(|name| variant.buffer(&declared.buffers, name)) else { continue };
        let (axes, scopes) = (declared.axes_of(Some(variant)), [&variant.names]);
        if buffers::is_vector(buffer, &axes) {
            continue;
        }
        let types = buffers::element_types(ctx, &buffer.element, (&scopes, &axes), false);
        buffers::fits_file(ctx, file, buffer, &types, &axes);
    }
}

/// `[work]` for the variants that define none themselves.
pub fn shared_work(ctx: &mut Context, raw: &RawManifest, declared: &Declared) -> WorkSpec {
    let scopes = declared.scopes(|variant| !variant.has_own_work);
    raw.work.as_ref().map(|at| work(ctx, &at.value, &scopes)).unwrap_or_default()
}

pub fn work(ctx: &mut Context, raw: &RawWork, scopes: &[&Names]) -> WorkSpec {
    for Expr(expression) in [&raw.bytes, &raw.flops].into_iter().flatten() {
        ctx.known(expression, scopes);
    }
    let expression = |raw: &Option<Expr>| raw.as_ref().map(|Expr(expression)| expression.clone());
    WorkSpec { bytes: expression(&raw.bytes), flops: expression(&raw.flops) }
}

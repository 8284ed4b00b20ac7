//! Validates each variant's body: launches, a driver operation, or a reference on the host.
//!
//! Bodies are validated after all declarations, since a body may use shared buffers and its checks may expect another
//! variant's result.

use std::collections::BTreeMap;

use super::checks;
use super::context::Context;
use super::declared::{CheckedVariants, Declared, DeclaredVariant};
use super::launches;
use super::uses::before_launch;
use crate::raw::{
    Expr, OneOrMany, RawBlocks, RawBuiltin, RawFails, RawManifest, RawOff, RawSanitize, RawVariant, RawVariantOn, Ref,
    Text,
};
use crate::read::{At, Named};
use runner_experiment::{BodySpec, BuiltinSpec, ExpectedFailure, OnBackend, Reference, VariantSpec};
use runner_lang::diagnostics::Diagnostic;
use runner_types::{Access, BackendKind, Failure, Span, Unsanitized};

pub fn variants(ctx: &mut Context, raw: &RawManifest, declared: &Declared) -> Vec<VariantSpec> {
    let pairs = raw.variant.0.iter().flatten().zip(&declared.variants);
    pairs.map(|(raw, variant)| spec(ctx, raw, variant, declared)).collect()
}

fn spec(ctx: &mut Context, raw: &At<RawVariant>, variant: &DeclaredVariant, declared: &Declared) -> VariantSpec {
    let fields = &raw.value;
    let requires = fields.requires.as_ref().map(OneOrMany::as_slice).unwrap_or_default();
    for Expr(condition) in requires {
        ctx.known(condition, &[&variant.names]);
    }
    let work = fields.work.as_ref().map(|work| checks::work(ctx, &work.value, &[&variant.names]));
    let own: &[&DeclaredVariant] = if variant.on_host { &[] } else { &[variant] };
    let own = CheckedVariants { declared, variants: own };
    let checks = fields.check.as_ref().map(|entries| checks::checks(ctx, entries.as_slice(), own));
    let (checks, printed) = checks.map_or((None, None), |(checks, printed)| (Some(checks), printed));
    VariantSpec {
        name: variant.name.clone(),
        axes: variant.axes.clone(),
        requires: requires.iter().map(|Expr(condition)| condition.clone()).collect(),
        lets: variant.lets.clone(),
        buffers: variant.buffers.clone(),
        work,
        checks,
        printed,
        fails: fails(ctx, raw, variant, declared),
        on: on_backends(ctx, fields.on.as_ref(), variant, declared),
        unsanitized: fields.sanitize.as_ref().and_then(|given| unsanitized(ctx, given)),
        sampled: fields.simulate.as_ref().and_then(|given| given.value.blocks.0.as_ref()).is_some_and(is_sample),
        body: body(ctx, raw, variant, declared),
        span: raw.span.clone(),
    }
}

fn is_sample(blocks: &At<RawBlocks>) -> bool {
    blocks.value == RawBlocks::Sample
}

/// Sanitizer findings to ignore in a variant.
fn unsanitized(ctx: &mut Context, given: &At<RawSanitize>) -> Option<Unsanitized> {
    let RawSanitize { off, reason } = &given.value;
    let off = off.0.as_ref()?;
    match (&off.value, reason) {
        (RawOff::Reason(reason), None) => Some(Unsanitized { classes: Vec::new(), reason: reason.clone() }),
        (RawOff::Reason(_), Some(reason)) => {
            let fault = Diagnostic::at(reason.span.clone(), "`off` already gives the reason for all classes");
            ctx.fault(fault.hint("write the classes in `off`, as in [\"race\"], or leave `reason` out"));
            None
        }
        (RawOff::Classes(classes), Some(reason)) if !classes.is_empty() => {
            Some(Unsanitized { classes: classes.clone(), reason: reason.value.clone() })
        }
        (RawOff::Classes(_), _) => {
            if !ctx.faulty(&off.span) {
                let fault =
                    Diagnostic::at(off.span.clone(), "`sanitize` needs the classes to switch off and the reason");
                ctx.fault(fault.hint("write { off = [\"race\"], reason = \"…\" }"));
            }
            None
        }
    }
}

/// Backend-specific settings of a variant.
fn on_backends(
    ctx: &mut Context,
    raw: Option<&Named<At<RawVariantOn>>>,
    variant: &DeclaredVariant,
    declared: &Declared,
) -> BTreeMap<BackendKind, OnBackend> {
    let mut on = BTreeMap::new();
    for (name, given) in raw.iter().flat_map(|named| &named.0) {
        let Some(backend) = ctx.backend(&name.value, &name.span) else { continue };
        let requires = given.value.requires.as_ref().map(OneOrMany::as_slice).unwrap_or_default();
        for Expr(condition) in requires {
            ctx.known(condition, &[&variant.names]);
        }
        let fails = given.value.fails.as_ref();
        let own = OnBackend {
            requires: requires.iter().map(|Expr(condition)| condition.clone()).collect(),
            fails: fails.map(|fails| {
                let expected = expected_failures(ctx, fails, variant, declared);
                expected.into_iter().map(|(expected, _)| expected).collect()
            }),
        };
        on.insert(backend, own);
    }
    on
}

/// Ways in which the variant is expected to fail. `wrong` requires a check.
fn fails(
    ctx: &mut Context,
    raw: &At<RawVariant>,
    variant: &DeclaredVariant,
    declared: &Declared,
) -> Vec<ExpectedFailure> {
    let given = raw.value.fails.as_ref();
    let entries = given.map(|given| expected_failures(ctx, given, variant, declared)).unwrap_or_default();
    let name = variant.name.text();
    if let Some((_, span)) = entries.first().filter(|_| variant.on_host) {
        let message = format!("`{name}` has `fails`, but reference functions on the host do not fail");
        ctx.fault(Diagnostic::at(span.clone(), message));
    }
    let unchecked = match &raw.value.check {
        Some(own) => own.as_slice().is_empty(),
        None => !declared.has_checks,
    };
    if let Some((_, span)) = entries.iter().find(|(entry, _)| entry.failure == Failure::Wrong).filter(|_| unchecked) {
        let message = format!("`{name}` is expected to be wrong, but no check compares its results");
        ctx.fault(Diagnostic::at(span.clone(), message).hint("give the manifest or the variant a `check`"));
    }
    entries.into_iter().map(|(entry, _)| entry).collect()
}

/// Expected failures with their locations. Conditions may use only axes, since a failed case is identified by its axes.
fn expected_failures(
    ctx: &mut Context,
    raw: &RawFails,
    variant: &DeclaredVariant,
    declared: &Declared,
) -> Vec<(ExpectedFailure, Span)> {
    let given = match raw {
        RawFails::Ways(ways) => {
            let all = |way: &At<Failure>| (ExpectedFailure { failure: way.value, condition: None }, way.span.clone());
            return ways.as_slice().iter().map(all).collect();
        }
        RawFails::Where(given) => given,
    };
    let conditions = given.value.conditions();
    if conditions.is_empty() && !ctx.faulty(&given.span) {
        let fault = Diagnostic::at(given.span.clone(), "`fails` lists no way to fail");
        ctx.fault(fault.hint("write a way and its condition, as in { trap = \"n > 64\" }"));
    }
    let mut expected = Vec::new();
    for (failure, condition) in conditions {
        ctx.known(condition, &[&variant.names]);
        let is_axis = |name: &str| variant.axes.iter().chain(&declared.axes).any(|axis| axis.name == name);
        if let Some(name) = condition.names().iter().find(|name| variant.names.known.contains(*name) && !is_axis(name))
        {
            let message = format!("a condition of `fails` may only use axes, and `{name}` is not one");
            ctx.fault(Diagnostic::at(condition.span.clone(), message).hint("write out what it stands for"));
        }
        let span = condition.span.clone();
        expected.push((ExpectedFailure { failure, condition: Some(condition.clone()) }, span));
    }
    expected
}

fn body(ctx: &mut Context, raw: &At<RawVariant>, variant: &DeclaredVariant, declared: &Declared) -> BodySpec {
    let fields = &raw.value;
    let given_kind = |key, given: bool| (given || ctx.refused(&raw.span, key)).then_some(key);
    let kinds = [
        given_kind("kernel", fields.kernel.0.kernel.is_some()),
        given_kind("launch", fields.launch.is_some()),
        given_kind("builtin", fields.builtin.is_some()),
        given_kind("cpu", fields.cpu.is_some()),
        given_kind("host", fields.host.is_some()),
    ];
    let given: Vec<&str> = kinds.into_iter().flatten().collect();
    // An entry of a sequence inherits omitted keys, including the kernel, from the variant.
    if given.len() != 1 && given != ["kernel", "launch"] {
        let name = variant.name.text();
        let message = format!("variant `{name}` needs exactly one of `kernel`, `launch`, `builtin`, `host` and `cpu`");
        let found = if given.is_empty() { "has none".to_owned() } else { format!("has {}", given.join(" and ")) };
        ctx.fault(Diagnostic::at(raw.span.clone(), message).label(found));
        return empty_body();
    }
    if let (None, Some(library)) = (&fields.host, fields.libraries.as_ref().and_then(|list| list.first())) {
        let message = "`libraries` has no meaning without `host`: kernels are not linked with libraries";
        ctx.fault(Diagnostic::at(library.0.span.clone(), message).hint("remove `libraries`"));
    }
    if let Some(builtin) = &fields.builtin {
        launches::meaningless(ctx, &fields.kernel.0, "builtin");
        return BodySpec::Builtin(memcpy(ctx, builtin, variant, declared));
    }
    if let Some(Ref(cpu)) = &fields.cpu {
        launches::meaningless(ctx, &fields.kernel.0, "cpu");
        reference(ctx, cpu, variant, declared);
        return BodySpec::Cpu(cpu.clone());
    }
    if let Some(Text(function)) = &fields.host {
        return BodySpec::Host(Box::new(launches::host(ctx, raw, function, variant, declared)));
    }
    match given.as_slice() {
        ["kernel" | "launch"] | ["kernel", "launch"] => launches::launches(ctx, raw, variant, declared),
        // A key of a later version or a rejected value, already reported.
        _ => empty_body(),
    }
}

/// Placeholder for a missing or invalid body, which has been reported.
fn empty_body() -> BodySpec {
    BodySpec::Launches { rounds: None, launches: Vec::new(), steps: None }
}

fn memcpy(ctx: &mut Context, raw: &At<RawBuiltin>, variant: &DeclaredVariant, declared: &Declared) -> BuiltinSpec {
    let Some(list) = &raw.value.memcpy.0 else { return BuiltinSpec::Memcpy(Vec::new()) };
    if list.value.is_empty() && !ctx.faulty(&list.span) {
        ctx.fault(Diagnostic::at(list.span.clone(), "`memcpy` copies nothing").hint("write [[\"from\", \"to\"]]"));
    }
    for pair in &list.value {
        let [from, to] = &pair.value;
        for (name, side) in [(from, "from"), (to, "to")] {
            let Some(buffer) = variant.buffer(&declared.buffers, &name.value) else {
                checks::no_buffer(ctx, name.span.clone(), &name.value, declared, variant);
                continue;
            };
            let problem = match (side, buffer.access) {
                ("to", Access::In) => "is `in`: a copy into it would be caught as a changed input",
                ("from", Access::Out | Access::Scratch) if !copied_before(list, pair, &name.value) => {
                    "is empty: it was neither filled nor copied into before"
                }
                _ if buffer.symbol.is_some() => "is a `__device__` variable, which only a kernel's module defines",
                _ => continue,
            };
            ctx.fault(Diagnostic::at(name.span.clone(), format!("buffer `{}` {problem}", name.value)));
        }
        if from.value == to.value {
            ctx.fault(Diagnostic::at(pair.span.clone(), format!("`memcpy` copies `{}` onto itself", from.value)));
        }
    }
    let pairs = list.value.iter().map(|pair| (pair.value[0].value.clone(), pair.value[1].value.clone()));
    BuiltinSpec::Memcpy(pairs.collect())
}

type Pair = At<[At<String>; 2]>;

fn copied_before(list: &At<Vec<Pair>>, pair: &Pair, name: &str) -> bool {
    list.value.iter().take_while(|other| other.span != pair.span).any(|other| other.value[1].value == name)
}

fn reference(ctx: &mut Context, cpu: &Reference, variant: &DeclaredVariant, declared: &Declared) {
    let used = checks::reference(ctx, cpu, CheckedVariants { declared, variants: &[variant] });
    before_launch(ctx, &used);
    if cpu.buffers().is_empty() {
        let fault = Diagnostic::at(cpu.span.clone(), "`cpu` computes nothing: it uses no buffer");
        ctx.fault(fault.hint("write a reference function, such as `sum(input)`"));
    }
}

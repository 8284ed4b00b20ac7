//! Bindings: their names, and cycles among them.

use std::collections::BTreeMap;

use super::context::{Context, word};
use super::variants::{Declared, DeclaredVariant};
use crate::expr::Program;
use crate::manifest::raw::Expr;
use crate::manifest::read::Named;
use crate::model::{Diagnostic, Expression, LetBinding};

/// The bindings of a table, in its order.
pub fn bindings(raw: Option<&Named<Expr>>) -> Vec<LetBinding> {
    let entries = raw.map(|named| named.0.as_slice()).unwrap_or_default();
    entries.iter().map(|(name, Expr(value))| LetBinding { name: name.value.clone(), value: value.clone() }).collect()
}

/// Looks at the bindings as every variant has them, on every backend.
pub fn check(ctx: &mut Context, declared: &Declared) {
    let replaced = declared.on.values().flat_map(|on| &on.lets);
    for binding in declared.lets.iter().chain(replaced) {
        let overrides = |variant: &DeclaredVariant| variant.lets.iter().any(|own| own.name == binding.name);
        ctx.expression(&binding.value, &declared.scopes(|variant| !overrides(variant)));
    }
    for variant in &declared.variants {
        for binding in &variant.lets {
            ctx.expression(&binding.value, &[&variant.names]);
        }
    }
    let mut layers: Vec<&[LetBinding]> = vec![&[]];
    layers.extend(declared.on.values().map(|on| on.lets.as_slice()));
    let mut owners: Vec<&[LetBinding]> = vec![&[]];
    owners.extend(declared.variants.iter().map(|variant| variant.lets.as_slice()));
    for layer in layers {
        for own in &owners {
            let merged = merged(ctx, &[&declared.lets, layer, own]);
            cycles(ctx, &merged);
        }
    }
}

type Bindings<'b> = BTreeMap<&'b str, (&'b Expression, Program)>;

/// Later layers replace bindings of earlier ones.
fn merged<'b>(ctx: &mut Context, layers: &[&'b [LetBinding]]) -> Bindings<'b> {
    let mut merged = Bindings::new();
    for binding in layers.iter().copied().flatten() {
        match ctx.parse(&binding.value) {
            Some(program) => merged.insert(&binding.name, (&binding.value, program)),
            None => merged.remove(binding.name.as_str()),
        };
    }
    merged
}

/// Reports every cycle once, from its first binding in the file.
fn cycles(ctx: &mut Context, bindings: &Bindings<'_>) {
    for start in bindings.keys() {
        let mut path = Vec::new();
        if let Some(cycle) = walk(bindings, start, start, &mut path) {
            report(ctx, bindings, &cycle);
        }
    }
}

/// A way from `at` back to `start`; depth first, each binding once.
fn walk<'b>(
    bindings: &'b BTreeMap<&str, (&Expression, Program)>,
    start: &str,
    at: &'b str,
    visited: &mut Vec<&'b str>,
) -> Option<Vec<&'b str>> {
    visited.push(at);
    let (_, program) = bindings.get(at)?;
    for next in program.names() {
        if next == start {
            return Some(vec![at]);
        }
        if visited.contains(&next.as_str()) {
            continue;
        }
        if let Some(mut rest) = walk(bindings, start, next, visited) {
            rest.insert(0, at);
            return Some(rest);
        }
    }
    None
}

fn report(ctx: &mut Context, bindings: &Bindings<'_>, cycle: &[&str]) {
    // Every binding of the cycle finds it; the first in the file speaks.
    let first = cycle.iter().enumerate().min_by_key(|(_, name)| bindings[*name].0.span.start).map_or(0, |(at, _)| at);
    let ordered: Vec<&str> = (0..cycle.len()).map(|i| cycle[(first + i) % cycle.len()]).collect();
    let chain: Vec<String> = ordered.iter().chain(ordered.first()).map(|name| format!("`{name}`")).collect();
    let place = |i: usize| {
        let expression = bindings[ordered[i]].0;
        let next = ordered[(i + 1) % ordered.len()];
        word(&expression.text, next).map_or(expression.span.clone(), |at| expression.place(at))
    };
    let message = if let [name] = ordered.as_slice() {
        format!("`{name}` is defined by itself")
    } else {
        format!("bindings go round in a circle: {}", chain.join(" → "))
    };
    let needs = |i: usize| format!("`{}` needs `{}`", ordered[i], ordered[(i + 1) % ordered.len()]);
    let mut fault = Diagnostic::at(place(0), message).label(needs(0));
    for i in 1..ordered.len() {
        fault = fault.related(place(i), needs(i));
    }
    ctx.fault(fault);
}

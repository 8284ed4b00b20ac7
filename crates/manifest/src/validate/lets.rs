//! Bindings: their values, and cycles among them.

use std::collections::{BTreeMap, BTreeSet};

use super::context::{Context, Names};
use super::declared::Declared;
use crate::experiment::{Expression, LetBinding};
use crate::model::Diagnostic;
use crate::raw::Expr;
use crate::read::Named;

/// The bindings of a table, in the order of the file.
pub fn bindings(raw: Option<&Named<Expr>>) -> Vec<LetBinding> {
    let entries = raw.map(|named| named.0.as_slice()).unwrap_or_default();
    entries
        .iter()
        .map(|(name, Expr(value))| LetBinding { name: name.value.as_str().into(), value: value.clone() })
        .collect()
}

/// The bindings that have no value if only `base` and the bindings of `layers` are known, each with the name that it
/// lacks.
///
/// An unused binding is never evaluated, so it may use a name that only other variants have.
pub fn broken(base: &BTreeSet<String>, layers: &[&[LetBinding]]) -> BTreeMap<String, String> {
    let bindings = merged(layers);
    let mut broken: BTreeMap<String, String> = BTreeMap::new();
    loop {
        let sound = bindings.iter().filter(|(name, _)| !broken.contains_key(**name));
        let found = sound.flat_map(|(name, value)| value.names().iter().map(move |used| (*name, used)));
        let mut lacking = found.filter_map(|(name, used)| match broken.get(used) {
            Some(root) => Some((name.to_owned(), root.clone())),
            None if base.contains(used) || bindings.contains_key(used.as_str()) => None,
            None => Some((name.to_owned(), used.clone())),
        });
        let Some((name, root)) = lacking.next() else { return broken };
        broken.insert(name, root);
    }
}

/// Checks the bindings of every variant, on every backend.
pub fn check(ctx: &mut Context, declared: &Declared) {
    let replaced = declared.on.values().flat_map(|on| &on.lets);
    for binding in declared.lets.iter().chain(replaced) {
        shared(ctx, binding, &declared.scopes(|_| true));
    }
    for variant in &declared.variants {
        for binding in &variant.lets {
            ctx.known(&binding.value, &[&variant.names]);
        }
    }
    let layers = layers(declared);
    let mut owners: Vec<&[LetBinding]> = vec![&[]];
    owners.extend(declared.variants.iter().map(|variant| variant.lets.as_slice()));
    for layer in layers {
        for own in &owners {
            let merged = merged(&[&declared.lets, layer, own]);
            cycles(ctx, &merged);
        }
    }
}

/// The layers between the shared bindings and those of a variant: none, and the overrides of each backend.
pub fn layers(declared: &Declared) -> Vec<&[LetBinding]> {
    let nothing: &[LetBinding] = &[];
    std::iter::once(nothing).chain(declared.on.values().map(|on| on.lets.as_slice())).collect()
}

/// A shared binding may use names that only some variants have, but not names that no variant has.
fn shared(ctx: &mut Context, binding: &LetBinding, scopes: &[&Names]) {
    for name in binding.value.names() {
        let has = |scope: &&Names| scope.known.contains(name) || scope.broken.contains_key(name);
        if !scopes.iter().any(has) {
            ctx.name(name, binding.value.place_of(name), scopes);
        }
    }
}

type Bindings<'b> = BTreeMap<&'b str, &'b Expression>;

/// The bindings of all layers. A later layer replaces bindings of earlier ones.
fn merged<'b>(layers: &[&'b [LetBinding]]) -> Bindings<'b> {
    layers.iter().copied().flatten().map(|binding| (&*binding.name, &binding.value)).collect()
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

/// A path from `at` back to `start`, depth first, each binding at most once.
fn walk<'b>(bindings: &'b Bindings<'b>, start: &str, at: &'b str, visited: &mut Vec<&'b str>) -> Option<Vec<&'b str>> {
    visited.push(at);
    for next in bindings.get(at)?.names() {
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
    // Every binding of the cycle finds it. Reporting it from the first one in the file makes the faults equal.
    let first = cycle.iter().enumerate().min_by_key(|(_, name)| bindings[*name].span.start).map_or(0, |(at, _)| at);
    let ordered: Vec<&str> = (0..cycle.len()).map(|i| cycle[(first + i) % cycle.len()]).collect();
    let chain: Vec<String> = ordered.iter().chain(ordered.first()).map(|name| format!("`{name}`")).collect();
    let place = |i: usize| bindings[ordered[i]].place_of(ordered[(i + 1) % ordered.len()]);
    let message = if let [name] = ordered.as_slice() {
        format!("`{name}` is defined by itself")
    } else {
        format!("bindings form a cycle: {}", chain.join(" → "))
    };
    let needs = |i: usize| format!("`{}` needs `{}`", ordered[i], ordered[(i + 1) % ordered.len()]);
    let mut fault = Diagnostic::at(place(0), message).label(needs(0));
    for i in 1..ordered.len() {
        fault = fault.related(place(i), needs(i));
    }
    ctx.fault(fault);
}

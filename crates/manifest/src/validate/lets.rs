//! Validates bindings: their values, and cycles among them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::context::{Context, Names};
use super::declared::Declared;
use super::graph::{Bindings, Graph};
use crate::raw::Expr;
use crate::read::Named;
use runner_experiment::LetBinding;
use runner_lang::diagnostics::Diagnostic;

/// Largest set of mutually dependent bindings in which to search for every cycle.
const MOST_SEARCHED: usize = 16;

/// Maximum number of bindings of a cycle to list in a message.
const MOST_SHOWN: usize = 8;

/// Bindings of a table, in file order.
pub fn bindings(raw: Option<&Named<Expr>>) -> Vec<LetBinding> {
    let entries = raw.map(|named| named.0.as_slice()).unwrap_or_default();
    entries
        .iter()
        .map(|(name, Expr(value))| LetBinding { name: name.value.as_str().into(), value: value.clone() })
        .collect()
}

/// Bindings that have no value if only `base` and the bindings of `layers` are known, each with the missing name.
///
/// An unused binding is never evaluated, so it may use a name that only other variants have.
pub fn broken(base: &BTreeSet<String>, layers: &[&[LetBinding]]) -> BTreeMap<String, String> {
    let bindings = merged(layers);
    let mut users: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut broken: BTreeMap<String, String> = BTreeMap::new();
    let mut found: VecDeque<&str> = VecDeque::new();
    for (name, value) in &bindings {
        for used in value.names() {
            if bindings.contains_key(used.as_str()) {
                users.entry(used).or_default().push(name);
            } else if !base.contains(used) && !broken.contains_key(*name) {
                broken.insert((*name).to_owned(), used.clone());
                found.push_back(name);
            }
        }
    }
    while let Some(name) = found.pop_front() {
        let Some(root) = broken.get(name).cloned() else { continue };
        for user in users.get(name).into_iter().flatten() {
            if !broken.contains_key(*user) {
                broken.insert((*user).to_owned(), root.clone());
                found.push_back(user);
            }
        }
    }
    broken
}

/// Checks every variant's bindings on every backend.
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

/// Layers between the shared bindings and a variant's: an empty one, and each backend's overrides.
pub fn layers(declared: &Declared) -> Vec<&[LetBinding]> {
    let nothing: &[LetBinding] = &[];
    std::iter::once(nothing).chain(declared.on.values().map(|on| on.lets.as_slice())).collect()
}

/// Checks a shared binding. It may use names that only some variants have, but not names that none has.
fn shared(ctx: &mut Context, binding: &LetBinding, scopes: &[&Names]) {
    for name in binding.value.names() {
        let has = |scope: &&Names| scope.known.contains(name) || scope.broken.contains_key(name);
        if !scopes.iter().any(has) {
            ctx.name(name, binding.value.place_of(name), scopes);
        }
    }
}

/// Bindings of all layers. Later layers override earlier ones.
fn merged<'b>(layers: &[&'b [LetBinding]]) -> Bindings<'b> {
    layers.iter().copied().flatten().map(|binding| (&*binding.name, &binding.value)).collect()
}

/// Reports every cycle once, starting at its first binding in the file. For a large set of mutually dependent bindings,
/// reports only the shortest cycle through the first one.
fn cycles(ctx: &mut Context, bindings: &Bindings<'_>) {
    for component in Graph::new(bindings).components() {
        let inside: BTreeSet<&str> = component.iter().copied().collect();
        if component.len() <= MOST_SEARCHED {
            for start in &component {
                if let Some(cycle) = walk(bindings, (start, &inside), start, &mut Vec::new()) {
                    report(ctx, bindings, &cycle);
                }
            }
        } else if let Some(first) = component.iter().min_by_key(|name| bindings[**name].span.start) {
            report(ctx, bindings, &shortest(bindings, first, &inside));
        }
    }
}

/// Depth-first search for a path from `at` back to `start` that visits bindings in `inside` at most once.
fn walk<'b>(
    bindings: &'b Bindings<'b>,
    (start, inside): (&str, &BTreeSet<&str>),
    at: &'b str,
    visited: &mut Vec<&'b str>,
) -> Option<Vec<&'b str>> {
    visited.push(at);
    for next in bindings.get(at)?.names() {
        if next == start {
            return Some(vec![at]);
        }
        if !inside.contains(next.as_str()) || visited.contains(&next.as_str()) {
            continue;
        }
        if let Some(mut rest) = walk(bindings, (start, inside), next, visited) {
            rest.insert(0, at);
            return Some(rest);
        }
    }
    None
}

/// Shortest cycle through `start`, found breadth-first.
fn shortest<'b>(bindings: &'b Bindings<'b>, start: &'b str, inside: &BTreeSet<&str>) -> Vec<&'b str> {
    let mut before: BTreeMap<&str, &str> = BTreeMap::new();
    let mut queue = VecDeque::from([start]);
    while let Some(at) = queue.pop_front() {
        for next in bindings[at].names().iter().map(String::as_str) {
            if next == start {
                let mut path = vec![at];
                while let Some(previous) = path.last().and_then(|last| before.get(last)) {
                    path.push(previous);
                }
                path.reverse();
                return path;
            }
            if inside.contains(next) && !before.contains_key(next) {
                before.insert(next, at);
                queue.push_back(next);
            }
        }
    }
    vec![start]
}

fn report(ctx: &mut Context, bindings: &Bindings<'_>, cycle: &[&str]) {
    // Every binding of the cycle finds it. Rotating the cycle to its first binding in the file makes these reports
    // equal, so only one remains.
    let first = cycle.iter().enumerate().min_by_key(|(_, name)| bindings[*name].span.start).map_or(0, |(at, _)| at);
    let ordered: Vec<&str> = (0..cycle.len()).map(|i| cycle[(first + i) % cycle.len()]).collect();
    let shown = ordered.len().min(MOST_SHOWN);
    let named = ordered[..shown].iter().map(|name| format!("`{name}`"));
    let more = (shown < ordered.len()).then(|| format!("{} more", ordered.len() - shown));
    let chain: Vec<String> = named.chain(more).chain(ordered.first().map(|name| format!("`{name}`"))).collect();
    let place = |i: usize| bindings[ordered[i]].place_of(ordered[(i + 1) % ordered.len()]);
    let message = if let [name] = ordered.as_slice() {
        format!("`{name}` is defined in terms of itself")
    } else {
        format!("bindings form a cycle: {}", chain.join(" → "))
    };
    let needs = |i: usize| format!("`{}` needs `{}`", ordered[i], ordered[(i + 1) % ordered.len()]);
    let mut fault = Diagnostic::at(place(0), message).label(needs(0));
    for i in 1..shown {
        fault = fault.related(place(i), needs(i));
    }
    ctx.fault(fault);
}

//! Collects the buffers used by bodies and checks, from the raw manifest.
//!
//! This happens before bodies are validated: only used buffers are checked with a variant's names.

use std::collections::BTreeSet;

use crate::raw::{Arg, Expr, RawCheck, RawExpect, RawLaunch, RawLaunchEntry, RawVariant, Ref};
use crate::read::At;

/// Buffers used by a body of any kind.
pub fn in_body(raw: &RawVariant) -> BTreeSet<String> {
    let mut entries = Vec::new();
    let mut others = BTreeSet::new();
    for entry in raw.launch.iter().flat_map(|launch| &launch.value) {
        in_step(&entry.value, &mut entries, &mut others);
    }
    let args = entries
        .into_iter()
        .chain([&raw.kernel.0])
        .filter_map(|launch| launch.args.as_ref())
        .flat_map(|args| &args.value);
    let args = args.flat_map(|Arg(arg)| arg.value.buffers().cloned());
    let copies = raw.builtin.iter().filter_map(|builtin| builtin.value.memcpy.0.as_ref());
    let copied = copies.flat_map(|list| &list.value).flat_map(|pair| &pair.value).map(|name| name.value.clone());
    let host = raw.cpu.iter().flat_map(|Ref(cpu)| cpu.buffers().clone());
    args.chain(copied).chain(host).chain(others).collect()
}

/// Collects the launches of a step, and the buffers that it uses itself. Names in a condition need not be buffers.
fn in_step<'r>(entry: &'r RawLaunchEntry, launches: &mut Vec<&'r RawLaunch>, named: &mut BTreeSet<String>) {
    launches.push(&entry.kernel.0);
    let pairs = entry.swap.iter().chain(&entry.copy).flat_map(|pair| &pair.value);
    named.extend(pairs.chain(&entry.memset).map(|name| name.value.clone()));
    named.extend(entry.until.iter().flat_map(|Expr(condition)| condition.names().iter().cloned()));
    for inner in entry.r#loop.iter().flat_map(|inner| &inner.value) {
        in_step(&inner.value, launches, named);
    }
}

pub fn in_checks(entries: &[At<RawCheck>]) -> BTreeSet<String> {
    let actual = entries.iter().filter_map(|entry| entry.value.actual.as_ref());
    let expect = entries.iter().filter_map(|entry| match &entry.value.expect.as_ref()?.value {
        RawExpect::Reference(reference) => Some(reference),
        RawExpect::List(_) | RawExpect::Table(_) => None,
    });
    let masks = entries.iter().filter_map(|entry| entry.value.r#where.as_ref());
    actual.chain(expect).chain(masks).flat_map(|Ref(reference)| reference.buffers().clone()).collect()
}

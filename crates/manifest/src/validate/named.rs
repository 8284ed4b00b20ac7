//! The buffers that bodies and checks name.

use std::collections::BTreeSet;

use crate::experiment::ArgSpec;
use crate::raw::{Arg, RawCheck, RawExpect, RawVariant, Ref};
use crate::read::At;

/// The buffers that a body of any kind uses.
pub fn in_body(raw: &RawVariant) -> BTreeSet<String> {
    let entries = raw.launch.iter().flat_map(|launch| &launch.value).map(|entry| &entry.value.kernel.0);
    let args = entries.chain([&raw.kernel.0]).filter_map(|launch| launch.args.as_ref()).flat_map(|args| &args.value);
    let args = args.filter_map(|Arg(arg)| match &arg.value {
        ArgSpec::Buffer(name) | ArgSpec::Offset { buffer: name, .. } => Some(name.clone()),
        ArgSpec::Scalar { .. } | ArgSpec::Struct(_) => None,
    });
    let copies = raw.builtin.iter().filter_map(|builtin| builtin.value.memcpy.0.as_ref());
    let copied = copies.flat_map(|list| &list.value).flat_map(|pair| &pair.value).map(|name| name.value.clone());
    let host = raw.cpu.iter().flat_map(|Ref(cpu)| cpu.buffers().clone());
    args.chain(copied).chain(host).collect()
}

/// The buffers used in checks.
pub fn in_checks(entries: &[At<RawCheck>]) -> BTreeSet<String> {
    let actual = entries.iter().filter_map(|entry| entry.value.actual.as_ref());
    let expect = entries.iter().filter_map(|entry| match &entry.value.expect.as_ref()?.value {
        RawExpect::Reference(reference) => Some(reference),
        RawExpect::List(_) | RawExpect::Table(_) => None,
    });
    actual.chain(expect).flat_map(|Ref(reference)| reference.buffers().clone()).collect()
}

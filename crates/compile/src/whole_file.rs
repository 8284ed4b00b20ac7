//! Takes a kernel from the code of its file that was compiled for another kernel.
//!
//! A compiler translates every kernel of a file that is no template and not static, whichever it is asked for. So
//! variants that name such kernels of one file, in one manifest or in several, share one compilation of it.

use std::collections::BTreeMap;

use super::elf;
use super::key::Identity;
use crate::model::{CodeKind, CompileUnit, Compiled};
use crate::ptx;

/// Returns the mangled names of all kernels in compiled code.
pub(super) fn list_kernels(kind: CodeKind, code: &[u8]) -> Vec<String> {
    match kind {
        CodeKind::Cubin => elf::attributes(code).into_keys().collect(),
        CodeKind::Ptx => ptx::entries(&String::from_utf8_lossy(code)).into_iter().map(|entry| entry.name).collect(),
        CodeKind::Plugin => Vec::new(),
    }
}

/// Describes the kernels of a unit in the code of its file, which names all kernels as they are mangled; `None` if one of
/// them is not in it, or if it is not clear which one is meant.
pub(super) fn narrow(file: &Compiled, unit: &CompileUnit, identity: &Identity) -> Option<Compiled> {
    let find = |kernel: &String| Some((kernel.clone(), find_mangled(kernel, file.kernels.keys())?));
    let kernels: BTreeMap<String, String> = unit.kernels.iter().map(find).collect::<Option<_>>()?;
    Some(Compiled {
        key: identity.key.clone(),
        resources: rename_keys(&file.resources, &kernels),
        digests: rename_keys(&file.digests, &kernels),
        operations: rename_keys(&file.operations, &kernels),
        kernels,
        ..file.clone()
    })
}

/// Returns what is known by the mangled names of kernels by their plain ones.
pub(super) fn rename_keys<T: Clone>(
    known: &BTreeMap<String, T>,
    kernels: &BTreeMap<String, String>,
) -> BTreeMap<String, T> {
    kernels.iter().filter_map(|(name, mangled)| Some((name.clone(), known.get(mangled)?.clone()))).collect()
}

/// Returns the mangled name of a plain kernel: its own if it is `extern "C"`, else by the Itanium C++ ABI. Of several
/// overloads, none.
fn find_mangled<'a>(kernel: &str, entries: impl Iterator<Item = &'a String>) -> Option<String> {
    let prefix = format!("_Z{}{kernel}", kernel.len());
    // `I` begins the arguments of a template, and no parameter.
    let is_it = |entry: &&String| match entry.strip_prefix(&prefix) {
        Some(parameters) => !parameters.starts_with('I'),
        None => *entry == kernel,
    };
    let mut found = entries.filter(is_it);
    match (found.next(), found.next()) {
        (Some(entry), None) => Some(entry.clone()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_is_found_by_its_name_alone_or_with_its_parameters() {
        let entries = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let find = |kernel: &str, names: &[&str]| find_mangled(kernel, entries(names).iter());
        // Names by the Itanium C++ ABI.
        let names = ["plain", "_Z4plusPi", "_Z5twicePfS_", "_Z5twicePdS_", "_Z6scaledIfEvPT_", "_ZN2ns1kEv"];
        assert_eq!(find("plain", &names).as_deref(), Some("plain"));
        assert_eq!(find("plus", &names).as_deref(), Some("_Z4plusPi"));
        assert_eq!(find("twice", &names), None, "two overloads");
        assert_eq!(find("scaled", &names), None, "an instance of a template");
        assert_eq!(find("k", &names), None, "another namespace's");
        assert_eq!(find("plai", &names), None);
    }
}

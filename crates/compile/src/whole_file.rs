//! Takes a kernel from code that was compiled from the same file for another kernel.
//!
//! A compiler translates every kernel of a file that is neither a template nor static, whichever one is requested. So
//! variants that name such kernels, in one manifest or several, share one compilation.

use std::collections::BTreeMap;

use super::elf;
use super::key::Identity;
use runner_cuda_source::ptx;
use runner_types::{CodeKind, CompileUnit, Compiled};

pub(super) fn list_kernels(kind: CodeKind, code: &[u8]) -> Vec<String> {
    match kind {
        CodeKind::Cubin => elf::attributes(code).into_keys().collect(),
        CodeKind::Ptx => ptx::entries(&String::from_utf8_lossy(code)).into_iter().map(|entry| entry.name).collect(),
        CodeKind::Plugin => Vec::new(),
    }
}

/// Describes a unit's kernels in the code of its whole file, which lists mangled names. `None` if a kernel is missing
/// or ambiguous.
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

/// Replaces mangled names with plain ones.
pub(super) fn rename_keys<T: Clone>(
    known: &BTreeMap<String, T>,
    kernels: &BTreeMap<String, String>,
) -> BTreeMap<String, T> {
    kernels.iter().filter_map(|(name, mangled)| Some((name.clone(), known.get(mangled)?.clone()))).collect()
}

/// Mangled name of a plain kernel: the name itself if `extern "C"`, otherwise per the Itanium C++ ABI. `None` if
/// overloaded.
fn find_mangled<'a>(kernel: &str, entries: impl Iterator<Item = &'a String>) -> Option<String> {
    let prefix = format!("_Z{}{kernel}", kernel.len());
    // `I` begins template arguments, never a parameter.
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
        // Names per the Itanium C++ ABI.
        let names = ["plain", "_Z4plusPi", "_Z5twicePfS_", "_Z5twicePdS_", "_Z6scaledIfEvPT_", "_ZN2ns1kEv"];
        assert_eq!(find("plain", &names).as_deref(), Some("plain"));
        assert_eq!(find("plus", &names).as_deref(), Some("_Z4plusPi"));
        assert_eq!(find("twice", &names), None, "two overloads");
        assert_eq!(find("scaled", &names), None, "an instance of a template");
        assert_eq!(find("k", &names), None, "another namespace's");
        assert_eq!(find("plai", &names), None);
    }
}

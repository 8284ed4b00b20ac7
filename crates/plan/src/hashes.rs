//! Hashes of the parts of a case, so that a comparison can tell what changed.
//!
//! Unlike the fingerprint in `link`, they do not depend on paths or the driver.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;

use runner_cuda_source::cpp;
use runner_files::regular;
use runner_types::{
    ArgPlan, BodyPlan, BufferPlan, CaseHashes, CaseJob, CheckPlan, Compiled, ExpectPlan, FillPlan, LaunchPlan,
    PrintedPlan, list_of, operation_counts, sha256_hex, with_lists, write_operations,
};

/// Hexadecimal digits of each hash. 48 bits are enough for the few versions of one case.
const DIGITS: usize = 12;

/// Hashes of a case whose launches are compiled.
pub fn hash_case(case: &CaseJob) -> CaseHashes {
    let units: Vec<Option<&Compiled>> = match &case.body {
        BodyPlan::Launches(launches) => launches.iter().map(|launch| launch.compiled.as_ref()).collect(),
        BodyPlan::Host(host) => vec![host.compiled.as_ref()],
        BodyPlan::Memcpy(_) | BodyPlan::Cpu(_) => Vec::new(),
    };
    let each = |part: fn(&Compiled) -> &str| units.iter().map(|unit| unit.map_or("", part)).collect::<Vec<_>>();
    CaseHashes {
        code: hash_code(case),
        operations: if case.lines { operations(case) } else { None },
        ..hash_uncompiled(case, &each(|unit| &unit.source), &each(|unit| &unit.options))
    }
}

/// Hashes of an uncompiled case, from the source and option hashes of its units.
pub fn hash_uncompiled(case: &CaseJob, sources: &[&str], options: &[&str]) -> CaseHashes {
    let args: Vec<&[ArgPlan]> = match &case.body {
        BodyPlan::Launches(launches) => launches.iter().map(|launch| launch.args.as_slice()).collect(),
        BodyPlan::Host(host) => vec![host.args.as_slice()],
        BodyPlan::Memcpy(_) | BodyPlan::Cpu(_) => Vec::new(),
    };
    let source = match &case.body {
        BodyPlan::Launches(_) | BodyPlan::Host(_) => of_sources(sources),
        body @ (BodyPlan::Memcpy(_) | BodyPlan::Cpu(_)) => hash(body),
    };
    let buffers: Vec<BufferPlan> = case.buffers.iter().cloned().map(without_path).collect();
    let fills = case.buffers.iter().filter_map(|buffer| buffer.fill.as_ref()?.file().map(content));
    CaseHashes {
        source,
        options: hash(&options),
        inputs: match &case.steps {
            Some(steps) => hash(&(buffers, args, fills.collect::<Vec<_>>(), steps)),
            None => hash(&(buffers, args, fills.collect::<Vec<_>>())),
        },
        check: check(case),
        code: None,
        operations: None,
    }
}

/// Hash of the machine code of all launches; `None` if that of any launch is unknown.
pub fn hash_code(case: &CaseJob) -> Option<String> {
    let BodyPlan::Launches(launches) = &case.body else { return None };
    let digest = |launch: &LaunchPlan| launch.compiled.as_ref()?.digests.get(&launch.kernel).cloned();
    let digests: Vec<String> = launches.iter().map(digest).collect::<Option<_>>()?;
    Some(hash(&digests))
}

/// Opcode counts of a case's kernels, each kernel once; `None` if those of any kernel are unknown.
fn operations(case: &CaseJob) -> Option<String> {
    let BodyPlan::Launches(launches) = &case.body else { return None };
    let of_kernel = |launch: &LaunchPlan| {
        let compiled = launch.compiled.as_ref()?;
        Some(((compiled.key.clone(), launch.kernel.clone()), compiled.operations.get(&launch.kernel)?.clone()))
    };
    let kernels: BTreeMap<_, String> = launches.iter().map(of_kernel).collect::<Option<_>>()?;
    let mut counts: BTreeMap<&str, u32> = BTreeMap::new();
    for (name, count) in kernels.values().flat_map(|operations| operation_counts(operations)) {
        *counts.entry(name).or_default() += count;
    }
    let lists = kernels.values().map(|operations| list_of(operations));
    (!counts.is_empty()).then(|| with_lists(write_operations(&counts), lists))
}

/// Combined hash of the sources of a case's launches.
pub fn of_sources(sources: &[&str]) -> String {
    hash(&sources)
}

fn check(case: &CaseJob) -> String {
    let mut files = Vec::new();
    let mut checks: Vec<CheckPlan> = case.checks.clone();
    for check in &mut checks {
        files.extend(golden(&check.expect));
        if let Some(path) = check.expect.file_mut() {
            *path = name_of(path);
        }
    }
    let mut printed = case.printed.clone();
    if let Some(PrintedPlan::File(path)) = &mut printed {
        files.push(content(path));
        *path = name_of(path);
    }
    hash(&(checks, printed, files))
}

fn without_path(mut buffer: BufferPlan) -> BufferPlan {
    if let Some(path) = buffer.fill.as_mut().and_then(FillPlan::file_mut) {
        *path = name_of(path);
    }
    buffer
}

fn name_of(path: &Path) -> std::path::PathBuf {
    path.file_name().map(Into::into).unwrap_or_default()
}

/// Hash of a file of expected values. For a C++ source, includes the files that it includes.
pub(super) fn golden(expect: &ExpectPlan) -> Option<String> {
    let path = expect.file()?;
    Some(match expect {
        ExpectPlan::Cpp(_) => cpp::digest(path).ok().flatten().unwrap_or_else(|| content(path)),
        _ => content(path),
    })
}

/// Hash of a file. An unreadable file hashes as empty; the case itself reports the error.
pub(super) fn content(path: &Path) -> String {
    sha256_hex(&regular::read_data(path, regular::LONGEST_DATA).unwrap_or_default())
}

fn hash(part: &impl Serialize) -> String {
    // Serialization cannot fail: plain data with string keys.
    let mut digest = sha256_hex(&serde_json::to_vec(part).unwrap_or_default());
    digest.truncate(DIGITS);
    digest
}

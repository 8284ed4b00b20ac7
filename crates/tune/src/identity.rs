//! What the evaluations of a search depend on besides the device: the manifest and the files read by its cases.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use runner_cuda_source::cpp;
use runner_files::regular;

use runner_experiment::Manifest;
use runner_types::{CaseJob, sha256_hex};

/// Hashes of everything besides the device that evaluations depend on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// Hash of the manifest's parts that affect evaluations.
    pub manifest: String,
    /// Hash of the files read by cases.
    pub files: String,
}

#[must_use]
pub fn identify(manifest: &Manifest, files: &BTreeSet<PathBuf>) -> Identity {
    let each: Vec<String> = files.iter().map(|path| content(path)).collect();
    Identity { manifest: essence(&manifest.source.text), files: sha256_hex(each.join("\n").as_bytes()) }
}

/// Adds the files that a case reads to `files`.
pub fn files_of(case: &CaseJob, files: &mut BTreeSet<PathBuf>) {
    let units = case.body.units();
    let sources = units
        .iter()
        .flat_map(|unit| [unit.source.as_path()].into_iter().chain(unit.linked.iter().map(PathBuf::as_path)));
    let inputs = case.buffers.iter().filter_map(|buffer| buffer.fill.as_ref()?.file());
    let expected = case.checks.iter().filter_map(|check| check.expect.file());
    for path in sources.chain(inputs).chain(expected) {
        // Most cases read the same files as the previous one.
        if !files.contains(path) {
            files.insert(path.to_owned());
        }
    }
}

/// Hash of a file and of the files that it includes from its own folder. An unreadable file hashes as empty; its cases
/// report the error.
fn content(path: &Path) -> String {
    let whole = cpp::digest(path).ok().flatten();
    whole.unwrap_or_else(|| sha256_hex(&regular::read_data(path, regular::LONGEST_DATA).unwrap_or_default()))
}

/// Key of `[search]` that defines the configurations. The others affect only how the search proceeds.
const OF_THE_SPACE: &str = "axes";

/// Hash of a manifest, ignoring comments, texts for the report and search settings.
fn essence(text: &str) -> String {
    let Ok(mut table) = text.parse::<toml::Table>() else { return sha256_hex(text.as_bytes()) };
    for key in ["claim", "accept"] {
        table.remove(key);
    }
    if let Some(experiment) = table.get_mut("experiment").and_then(toml::Value::as_table_mut) {
        for key in ["title", "question", "baseline", "steps", "threshold"] {
            experiment.remove(key);
        }
    }
    if let Some(search) = table.get_mut("search").and_then(toml::Value::as_table_mut) {
        search.retain(|key, _| key == OF_THE_SPACE);
        if search.is_empty() {
            table.remove("search");
        }
    }
    sha256_hex(table.to_string().as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_changes_an_evaluation_changes_the_hash_of_a_manifest() {
        let plain = "[experiment]\nname = \"x\"\n[axes]\na = [1, 2]\n[search.axes]\na = [1, 2, 3]\n";
        let same = "[experiment]\nname = \"x\" # why\ntitle = \"X\"\nquestion = \"?\"\n[axes]\na = [1, 2]\n\
                    [search]\nbudget = 7\nfinalists = 2\nobjective = \"energy\"\n[search.axes]\na = [1, 2, 3]\n";
        assert_eq!(essence(plain), essence(same));
        assert_eq!(essence("[axes]\na = [1]\n"), essence("[axes]\na = [1]\n[search]\nseed = 3\n"));
        assert_ne!(essence(plain), essence(&plain.replace("[1, 2, 3]", "[1, 2, 4]")));
        assert_ne!(essence(plain), essence(&plain.replace("[1, 2]\n[", "[1]\n[")));
    }
}

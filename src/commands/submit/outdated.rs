//! Finds finished shards whose results no longer apply, because sources, options, inputs or checks have changed.
//!
//! Fingerprints could tell too, but they contain the driver, which the submitting machine does not know.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use super::ahead::CompiledKernels;
use crate::failure::Failure;
use runner_cluster::{Job, Outdated, Work, finished_journal, mark_outdated};
use runner_experiment::Manifest;
use runner_results::journal::{self, Contents, History};
use runner_types::{CaseHashes, CaseKey, Event, Outcome};

/// Finished shards with at least one case whose hashes have changed, and their journals.
pub fn find(dir: &Path, job: &Job, manifests: &[(&Path, Manifest)], ahead: &CompiledKernels) -> Vec<(Work, PathBuf)> {
    let mut found = Vec::new();
    for (index, (_, manifest)) in manifests.iter().enumerate() {
        // Computed only if there is something to compare: a large matrix has many hashes.
        let mut hashes = None;
        for work in job.work().filter(|work| work.experiment == index) {
            let Some(path) = finished_journal(&job.folder(dir, work)) else { continue };
            // The task that continues a damaged journal will report it.
            let Ok(history) = journal::read(&path).and_then(Contents::into_history) else { continue };
            if differ(&history, hashes.get_or_insert_with(|| ahead.hashes(manifest))) {
                found.push((work, path));
            }
        }
    }
    found
}

/// Marks these journals as outdated: results of the first `submissions` submissions no longer apply.
pub fn mark(journals: &[(Work, PathBuf)], submissions: u32) -> Result<(), Failure> {
    for (_, journal) in journals {
        mark_outdated(journal, Outdated { submissions, is_rerun: false }).map_err(Failure::environment)?;
    }
    Ok(())
}

/// Marks the finished shards in `again` for another run. Reports keep their results until there are new ones.
pub fn mark_again(dir: &Path, job: &Job, again: &[Work], submissions: u32) -> Result<(), Failure> {
    for journal in again.iter().filter_map(|work| finished_journal(&job.folder(dir, *work))) {
        mark_outdated(&journal, Outdated { submissions, is_rerun: true }).map_err(Failure::environment)?;
    }
    Ok(())
}

/// Whether some case was run with different hashes. A case that did not compile has none.
fn differ(history: &History, now: &HashMap<CaseKey, CaseHashes>) -> bool {
    history.settled().any(|(key, events)| {
        let then = events.rev().find_map(|event| match event {
            Event::CaseChecked { hashes, .. } => Some(hashes.as_ref()),
            Event::CaseSettled { outcome: Outcome::CompileError { .. }, .. } => Some(None),
            _ => None,
        });
        then.is_some_and(|then| now.get(key).is_some_and(|now| then != Some(now)))
    })
}

//! Finds finished shards whose results no longer apply, because sources, options, inputs or checks have changed.
//!
//! Fingerprints could tell too, but they contain the driver, which the submitting machine does not know.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use super::ahead::CompiledKernels;
use crate::failure::Failure;
use runner_cluster::{Job, Outdated, Work, apply_to, finished_journal, mark_outdated};
use runner_experiment::Manifest;
use runner_results::journal::{self, Contents, History};
use runner_types::{CaseHashes, CaseKey, Event, Outcome};

/// Finished shards and their journals.
#[derive(Debug, Default)]
pub struct Finished {
    /// Finished shards with at least one case whose hashes have changed.
    pub outdated: Vec<(Work, PathBuf)>,
    /// Journals of the other shards, whose results still apply. Journals of the submitted version are left out.
    current: Vec<PathBuf>,
}

/// Finds the finished shards. `version` is the one to be submitted, if known.
pub fn find(
    dir: &Path,
    job: &Job,
    manifests: &[(&Path, Manifest)],
    ahead: &CompiledKernels,
    version: Option<&str>,
) -> Finished {
    let mut found = Finished::default();
    for (index, (_, manifest)) in manifests.iter().enumerate() {
        // Computed only if there is something to compare: a large matrix has many hashes.
        let mut hashes = None;
        for work in job.work().filter(|work| work.experiment == index) {
            let Some(path) = finished_journal(&job.folder(dir, work), None) else { continue };
            // The task that continues a damaged journal will report it.
            let Ok(history) = journal::read(&path).and_then(Contents::into_history) else { continue };
            if differ(&history, hashes.get_or_insert_with(|| ahead.hashes(manifest))) {
                found.outdated.push((work, path));
            } else if history.run().is_none_or(|run| run.context.files.as_deref() != version) {
                found.current.push(path);
            }
        }
    }
    found
}

impl Finished {
    /// Marks results that no longer apply as outdated, with the number of `submissions` so far, and makes the others
    /// count for the submitted `version`.
    pub fn mark(&self, submissions: u32, version: &str) -> Result<(), Failure> {
        for (_, journal) in &self.outdated {
            mark_outdated(journal, Outdated { submissions, is_rerun: false }).map_err(Failure::environment)?;
        }
        for journal in &self.current {
            apply_to(journal, version).map_err(Failure::environment)?;
        }
        Ok(())
    }
}

/// Marks the finished shards in `again` for another run. Reports keep their results until there are new ones.
pub fn mark_again(dir: &Path, job: &Job, again: &[Work], submissions: u32) -> Result<(), Failure> {
    for journal in again.iter().filter_map(|work| finished_journal(&job.folder(dir, *work), None)) {
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

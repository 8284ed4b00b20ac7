//! Finds finished shards whose results no longer apply, because sources, options, inputs or checks have changed.
//!
//! Fingerprints could tell too, but they contain the driver, which the submitting machine does not know.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use super::ahead::CompiledKernels;
use crate::failure::Failure;
use runner_cluster::{Job, Outdated, Work, apply_to, finished_attempts, finished_journal, mark_outdated};
use runner_experiment::Manifest;
use runner_results::journal::{self, Contents, History};
use runner_types::{CaseHashes, CaseKey, Event, Outcome};

/// Finished shards.
#[derive(Debug, Default)]
pub struct Finished {
    /// Shards with at least one case whose hashes have changed, with their journals.
    pub outdated: Vec<(Work, PathBuf)>,
    /// The other shards.
    pub current: Vec<Current>,
}

/// A shard with results that apply. They may be older than those of another version.
#[derive(Debug)]
pub struct Current {
    pub work: Work,
    journal: PathBuf,
    /// Version that the results come from.
    files: Option<String>,
    /// Whether another version has outdated them.
    is_marked: bool,
}

/// Finds the finished shards.
pub fn find(dir: &Path, job: &Job, manifests: &[(&Path, Manifest)], ahead: &CompiledKernels) -> Finished {
    let mut found = Finished::default();
    for (index, (_, manifest)) in manifests.iter().enumerate() {
        // Computed only if there is something to compare: a large matrix has many hashes.
        let mut hashes = None;
        for work in job.work().filter(|work| work.experiment == index) {
            let mut outdated = None;
            let current = finished_attempts(&job.folder(dir, work)).find_map(|(journal, is_marked)| {
                // The task that continues a damaged journal will report it.
                let history = journal::read(&journal).and_then(Contents::into_history).ok()?;
                if differ(&history, hashes.get_or_insert_with(|| ahead.hashes(manifest))) {
                    if !is_marked {
                        outdated.get_or_insert(journal);
                    }
                    return None;
                }
                let files = history.run().and_then(|run| run.context.files.clone());
                Some(Current { work, journal, files, is_marked })
            });
            match current {
                Some(current) => found.current.push(current),
                None => found.outdated.extend(outdated.map(|journal| (work, journal))),
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
        for Current { journal, files, is_marked, .. } in &self.current {
            if *is_marked || files.as_deref() != Some(version) {
                apply_to(journal, version).map_err(Failure::environment)?;
            }
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

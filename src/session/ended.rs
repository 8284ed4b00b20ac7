//! Outcome of a run, as commands report it.

use std::path::PathBuf;

use crate::failure::Exit;
use runner_results::analyse::compare::{SourceChange, Together};
use runner_types::{ManifestComparison, Records};

#[derive(Debug)]
pub struct Ended {
    pub exit: Exit,
    /// Case counts: `26 of 36 cases measured, every result checked; 10 invalid.`
    pub counts: String,
    /// Base and new, for a finished run with `--against`.
    pub both: Option<BaseAndNew>,
}

/// Result of a run that measured base and new.
#[derive(Debug)]
pub struct BaseAndNew {
    pub together: Together,
    /// Commits of base and new, or their other labels.
    pub labels: [String; 2],
    pub names: [String; 2],
    /// Differences between the manifests, if any.
    pub manifest: Option<ManifestComparison>,
    /// Sentences about the parts of the base that could not be run.
    pub faults: Vec<String>,
    /// Source files that differ; `None` if the sources of a side are unknown.
    pub sources: Option<Vec<SourceChange>>,
    pub records: Records,
    pub dir: PathBuf,
}

//! Says how a run ended.

use std::path::PathBuf;

use crate::analyse::compare::Together;
use crate::commands::Exit;
use crate::model::Records;

/// How an experiment ended.
#[derive(Debug)]
pub struct Ended {
    pub exit: Exit,
    /// The counts of cases: `26 of 36 cases measured, every result checked; 10 invalid.`
    pub counts: String,
    /// Base and new, of a finished run with `--against`.
    pub both: Option<BaseAndNew>,
}

/// A run that has measured base and new.
#[derive(Debug)]
pub struct BaseAndNew {
    pub together: Together,
    /// The commits of base and new, or what else they are called.
    pub labels: [String; 2],
    /// The manifests of base and new.
    pub names: [String; 2],
    /// Sentences on what of the base could not be run.
    pub faults: Vec<String>,
    pub records: Records,
    /// The folder of the report.
    pub dir: PathBuf,
}

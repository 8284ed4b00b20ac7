//! The records of a journal.

use std::collections::HashMap;
use std::path::Path;

use super::ReadError;
use crate::analyse;
use crate::journal::{self, Damaged, JournalError, Torn};
use crate::model::{CaseKey, Event, Records, Regime, Round};

/// The records that a journal gives, and what was left out of it.
pub fn read_journal(path: &Path) -> Result<(Records, Vec<String>), ReadError> {
    let contents = journal::read(path)?;
    let warnings = warnings_of(path, contents.torn, &contents.damaged);
    let no_run = |source| ReadError::NoRun { place: path.display().to_string(), source };
    Ok((analyse::records_of(contents.events).map_err(no_run)?, warnings))
}

/// The last samples of each case and regime in a journal.
pub fn samples(path: &Path) -> Result<HashMap<(CaseKey, Regime), Vec<Round>>, JournalError> {
    let of = |event| match event {
        Event::CaseMeasured { case, measurement } => Some(((case.key, measurement.regime), measurement.rounds)),
        _ => None,
    };
    Ok(journal::read(path)?.events.into_iter().filter_map(of).collect())
}

/// A sentence on each line of a journal that could not be used.
pub(super) fn warnings_of(path: &Path, torn: Option<Torn>, damaged: &[Damaged]) -> Vec<String> {
    let torn = torn.map(|torn| format!("{}:{} is incomplete and was skipped", path.display(), torn.line));
    torn.into_iter().chain(damaged.iter().map(|damaged| damaged_line(path, damaged))).collect()
}

/// What is said of a damaged line.
pub fn damaged_line(path: &Path, Damaged { line, message }: &Damaged) -> String {
    format!("{}:{line} is damaged ({message}); the cases of its group count as not run", path.display())
}

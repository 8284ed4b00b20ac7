//! Creates records from a journal, for folders without records.

use std::collections::HashMap;
use std::path::Path;

use super::ReadError;
use crate::analyse;
use crate::journal::{self, Damaged, JournalError, Torn};
use runner_types::{CaseKey, Event, Records, Regime, Round};

/// A journal's records, and warnings about lines that were left out.
pub fn read_journal(path: &Path) -> Result<(Records, Vec<String>), ReadError> {
    let contents = journal::read(path)?;
    let warnings = warnings_of(path, contents.torn(), contents.damaged());
    let no_run = |source| ReadError::NoRun { place: path.display().to_string(), source };
    Ok((analyse::records_of(contents.into_history()?).map_err(no_run)?, warnings))
}

pub fn samples(path: &Path) -> Result<HashMap<(CaseKey, Regime), Vec<Round>>, JournalError> {
    let last = journal::read(path)?.into_history()?.into_last_run();
    let samples_of = |(_, event)| match event {
        Event::CaseMeasured { case, measurement } => Some(((case.key, measurement.regime), measurement.rounds)),
        _ => None,
    };
    let cases = last.into_iter().flat_map(|last| last.cases);
    Ok(cases.flat_map(|case| case.lines).filter_map(samples_of).collect())
}

/// A warning about each line of a journal that could not be used.
pub(super) fn warnings_of<'a>(
    path: &Path,
    torn: Option<Torn>,
    damaged: impl IntoIterator<Item = &'a Damaged>,
) -> Vec<String> {
    let torn = torn.map(|torn| format!("{}:{} is incomplete and was skipped", path.display(), torn.line));
    torn.into_iter().chain(damaged.into_iter().map(|damaged| damaged_line(path, damaged))).collect()
}

/// The warning about a damaged line.
pub fn damaged_line(path: &Path, Damaged { line, message }: &Damaged) -> String {
    format!("{}:{line} is damaged ({message}); the cases of its group count as not run", path.display())
}

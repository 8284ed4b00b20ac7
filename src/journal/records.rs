//! `records.jsonl` and `environment.json`: what goes to git.

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::Path;

use serde::Deserialize;

use super::JournalError;
use crate::model::{Environment, RECORDS_VERSION, RecordLine, Records};

/// The records' name in the folder of a report.
pub const RECORDS_FILE: &str = "records.jsonl";

/// The environment's name in the folder of a report.
pub const ENVIRONMENT_FILE: &str = "environment.json";

/// The environment less what changes from run to run (free memory): the part that git keeps.
pub fn without_run_facts(environment: &Environment) -> Environment {
    let mut kept = environment.clone();
    kept.device.memory_free = None;
    kept
}

/// The text of `records.jsonl`: the header, then one line a record.
pub fn records_text(records: &Records) -> Result<String, serde_json::Error> {
    let header = RecordLine::Header {
        version: RECORDS_VERSION,
        header: Box::new(records.header.clone()),
        environment: Box::new(without_run_facts(&records.environment)),
    };
    let mut text = serde_json::to_string(&header)? + "\n";
    for case in &records.cases {
        text += &serde_json::to_string(&RecordLine::Case(Box::new(case.clone())))?;
        text.push('\n');
    }
    Ok(text)
}

/// The text of `environment.json`.
pub fn environment_text(environment: &Environment) -> Result<String, serde_json::Error> {
    Ok(serde_json::to_string_pretty(&without_run_facts(environment))? + "\n")
}

/// Reads `records.jsonl`. Since it is written whole or not at all, any line that does not parse is damage.
pub fn read_records(path: &Path) -> Result<Records, JournalError> {
    let text = std::fs::read_to_string(path).map_err(JournalError::io("read", path))?;
    let mut lines = text.lines().enumerate();
    let (_, first) = lines.next().ok_or_else(|| JournalError::NoHeader { path: path.to_owned() })?;
    let mut records = header(path, first)?;
    for (i, line) in lines {
        match parse(path, i, line)? {
            RecordLine::Case(case) => records.cases.push(*case),
            RecordLine::Header { .. } => {
                let message = "a second header".to_owned();
                return Err(JournalError::Corrupt { path: path.to_owned(), line: i + 1, message });
            }
        }
    }
    Ok(records)
}

/// Which experiment a file of records is of, by its header alone.
pub fn experiment_of(path: &Path) -> Result<String, JournalError> {
    let mut first = String::new();
    let file = File::open(path).map_err(JournalError::io("read", path))?;
    BufReader::new(file).read_line(&mut first).map_err(JournalError::io("read", path))?;
    Ok(header(path, &first)?.header.experiment)
}

/// The header that a file's first line is, with no cases yet.
fn header(path: &Path, first: &str) -> Result<Records, JournalError> {
    /// As much of the header as tells whether the rest can be read.
    #[derive(Deserialize)]
    struct HeaderVersion {
        version: u32,
    }

    let no_header = || JournalError::NoHeader { path: path.to_owned() };
    let found = serde_json::from_str::<HeaderVersion>(first).map_err(|_| no_header())?.version;
    if found != RECORDS_VERSION {
        return Err(JournalError::Version { path: path.to_owned(), line: 1, found, expected: RECORDS_VERSION });
    }
    let RecordLine::Header { header, environment, .. } = parse(path, 0, first)? else { return Err(no_header()) };
    Ok(Records { header: *header, environment: *environment, cases: Vec::new() })
}

fn parse(path: &Path, index: usize, line: &str) -> Result<RecordLine, JournalError> {
    serde_json::from_str(line).map_err(|e| JournalError::Corrupt {
        path: path.to_owned(),
        line: index + 1,
        message: e.to_string(),
    })
}

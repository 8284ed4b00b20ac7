//! `records.jsonl` and `environment.json`: what goes to git.

use std::io::{self, BufRead as _, BufReader};
use std::path::Path;

use rayon::prelude::*;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::line::{CaseLine, Columns, Numbers};
use super::{JournalError, seal};
use crate::model::{CaseRecord, Environment, Records, RunHeader};
use crate::regular;

/// The version of the lines, increased when a reader of older lines would misread new ones.
pub const RECORDS_VERSION: u32 = 3;

/// How a header's line begins.
const HEADER_MARK: &str = "{\"line\":\"header\"";

/// The records' name in the folder of a report.
pub const RECORDS_FILE: &str = "records.jsonl";

/// The environment's name in the folder of a report.
pub const ENVIRONMENT_FILE: &str = "environment.json";

/// The environment without what changes from run to run (free memory): the part that is committed.
pub fn without_run_facts(environment: &Environment) -> Environment {
    let mut kept = environment.clone();
    kept.device.memory_free = None;
    kept
}

/// The header's line.
#[derive(Serialize)]
struct HeaderOut<'a> {
    line: &'static str,
    version: u32,
    columns: &'a Columns,
    header: &'a RunHeader,
    environment: &'a Environment,
}

/// The same as it is read.
#[derive(Deserialize)]
struct HeaderIn {
    columns: Columns,
    header: RunHeader,
    environment: Environment,
}

/// The text of `records.jsonl`: the header, then one line per record, each with its checksum.
pub fn records_text(records: &Records) -> Result<String, serde_json::Error> {
    let columns = Columns::of(records);
    let header = HeaderOut {
        line: "header",
        version: RECORDS_VERSION,
        columns: &columns,
        header: &records.header,
        environment: &without_run_facts(&records.environment),
    };
    let mut text = seal::seal(serde_json::to_string(&header)?) + "\n";
    let numbers = Numbers::of(&columns);
    let line = |case: &CaseRecord| -> Result<String, serde_json::Error> {
        Ok(seal::seal(serde_json::to_string(&CaseLine::of(case, &records.header, &numbers))?) + "\n")
    };
    let lines: Vec<Result<String, serde_json::Error>> = records.cases.par_iter().map(line).collect();
    for line in lines {
        text += &line?;
    }
    Ok(text)
}

/// The text of `environment.json`.
pub fn environment_text(environment: &Environment) -> Result<String, serde_json::Error> {
    Ok(serde_json::to_string_pretty(&without_run_facts(environment))? + "\n")
}

/// Reads `records.jsonl`. Since it is written whole or not at all, a line that does not
/// parse, or that does not have its checksum, is damage.
pub fn read_records(path: &Path) -> Result<Records, JournalError> {
    let bytes = regular::read_up_to(path, u64::MAX).map_err(JournalError::io("read", path))?;
    let text = String::from_utf8(bytes)
        .map_err(|error| JournalError::io("read", path)(io::Error::new(io::ErrorKind::InvalidData, error)))?;
    parse_records(&text, path)
}

/// The same from the text of such a file; errors call it `path`.
pub fn parse_records(text: &str, path: &Path) -> Result<Records, JournalError> {
    let mut lines = text.lines().enumerate();
    let (_, first) = lines.next().ok_or_else(|| JournalError::NoHeader { path: path.to_owned() })?;
    let (mut records, columns) = header(path, first)?;
    let lines: Vec<(usize, &str)> = lines.collect();
    let case = |(i, line): &(usize, &str)| {
        let corrupt = |message| JournalError::Corrupt { path: path.to_owned(), line: i + 1, message };
        if line.starts_with(HEADER_MARK) {
            return Err(corrupt("a second header".to_owned()));
        }
        sealed::<CaseLine>(line).and_then(|line| line.record(&records.header, &columns)).map_err(corrupt)
    };
    // In the order of the lines, so that the first that is damaged is reported.
    let cases: Vec<Result<CaseRecord, JournalError>> = lines.par_iter().map(case).collect();
    records.cases = cases.into_iter().collect::<Result<_, _>>()?;
    Ok(records)
}

/// The experiment of a file of records, by its header alone.
pub fn experiment_of(path: &Path) -> Result<String, JournalError> {
    let mut first = String::new();
    let file = regular::open(path).map_err(JournalError::io("read", path))?;
    BufReader::new(file).read_line(&mut first).map_err(JournalError::io("read", path))?;
    Ok(header(path, first.trim_end())?.0.header.experiment)
}

/// The header in a file's first line, with no cases yet, and what the other lines refer to.
fn header(path: &Path, first: &str) -> Result<(Records, Columns), JournalError> {
    /// The part of the header that tells whether the rest can be read.
    #[derive(Deserialize)]
    struct HeaderVersion {
        version: u32,
    }

    let no_header = || JournalError::NoHeader { path: path.to_owned() };
    let corrupt = |message| JournalError::Corrupt { path: path.to_owned(), line: 1, message };
    let found = serde_json::from_str::<HeaderVersion>(first).map_err(|_| no_header())?.version;
    if found != RECORDS_VERSION {
        return Err(JournalError::Version { path: path.to_owned(), line: 1, found, expected: RECORDS_VERSION });
    }
    let HeaderIn { columns, header, environment } = sealed(first).map_err(corrupt)?;
    Ok((Records { header, environment, cases: Vec::new() }, columns))
}

fn sealed<T: DeserializeOwned>(line: &str) -> Result<T, String> {
    seal::check(line.as_bytes())?;
    serde_json::from_str(line).map_err(|e| e.to_string())
}

//! Reads and writes `records.jsonl` and `environment.json`, which are committed to git.

use std::io::{self, BufRead as _, BufReader, Read as _};
use std::path::Path;

use rayon::prelude::*;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::JournalError;
use super::line::{CaseLine, Columns, Numbers};
use super::older::Older;
use runner_files::regular;
use runner_files::sealed;
use runner_types::{CaseRecord, Environment, Records, RunHeader, hex};

/// Version of the lines. Increase it when a reader of older lines would misread new ones.
pub const RECORDS_VERSION: u32 = 4;

/// Start of the header line.
const HEADER_MARK: &str = "{\"line\":\"header\"";
/// Start of the last line.
const END_MARK: &str = "{\"line\":\"end\"";

/// Name of the environment file in a report folder.
pub const ENVIRONMENT_FILE: &str = "environment.json";

/// The committed part of an environment, without values that change from run to run (free memory).
pub fn without_run_facts(environment: &Environment) -> Environment {
    let mut kept = environment.clone();
    kept.device.memory_free = None;
    kept
}

/// The header line for writing.
#[derive(Serialize)]
struct HeaderOut<'a> {
    line: &'static str,
    version: u32,
    columns: &'a Columns,
    header: &'a RunHeader,
    environment: &'a Environment,
}

/// The header line for reading.
#[derive(Deserialize)]
struct HeaderIn {
    columns: Columns,
    header: RunHeader,
    environment: Environment,
}

/// The last line, which reveals missing, duplicated or misplaced lines.
#[derive(Serialize)]
struct EndOut {
    line: &'static str,
    cases: u64,
    sha256: String,
}

/// The last line for reading.
#[derive(Deserialize)]
struct EndIn {
    cases: u64,
    sha256: String,
}

/// Text of `records.jsonl`: the header, one line per record, and the last line, each with its checksum.
pub fn records_text(records: &Records) -> Result<String, serde_json::Error> {
    let columns = Columns::collect(records);
    let header = HeaderOut {
        line: "header",
        version: RECORDS_VERSION,
        columns: &columns,
        header: &records.header,
        environment: &without_run_facts(&records.environment),
    };
    let mut text = sealed::line(serde_json::to_string(&header)?) + "\n";
    let numbers = Numbers::new(&columns);
    let line = |case: &CaseRecord| -> Result<String, serde_json::Error> {
        Ok(sealed::line(serde_json::to_string(&CaseLine::new(case, &records.header, &numbers))?) + "\n")
    };
    let lines: Vec<Result<String, serde_json::Error>> = records.cases.par_iter().map(line).collect();
    for line in lines {
        text += &line?;
    }
    let end = EndOut { line: "end", cases: records.cases.len() as u64, sha256: digest(text.lines()) };
    text += &sealed::line(serde_json::to_string(&end)?);
    text.push('\n');
    Ok(text)
}

pub fn environment_text(environment: &Environment) -> Result<String, serde_json::Error> {
    Ok(serde_json::to_string_pretty(&without_run_facts(environment))? + "\n")
}

/// Reads `records.jsonl`. Since it is written atomically, a line is damaged if it does not parse, has a wrong checksum,
/// or is missing, duplicated or misplaced.
pub fn read_records(path: &Path) -> Result<Records, JournalError> {
    let bytes = regular::read_data(path, regular::LONGEST_DATA).map_err(JournalError::io("read", path))?;
    let text = String::from_utf8(bytes)
        .map_err(|error| JournalError::io("read", path)(io::Error::new(io::ErrorKind::InvalidData, error)))?;
    parse_records(&text, path)
}

/// Parses the text of `records.jsonl`; errors name the file `path`.
pub fn parse_records(text: &str, path: &Path) -> Result<Records, JournalError> {
    let corrupt = |line: usize, message| JournalError::Corrupt { path: path.to_owned(), line: line + 1, message };
    let mut lines: Vec<&str> = text.lines().collect();
    let first = lines.first().ok_or_else(|| JournalError::NoHeader { path: path.to_owned() })?;
    let format = Format::of_file(path, first, || lines.iter().copied())?;
    let (mut records, columns) = format.header(path, first)?;
    let last = lines.len() - 1;
    let end = if format.has_end() {
        let end = lines.pop().filter(|line| line.starts_with(END_MARK));
        let end =
            end.ok_or_else(|| corrupt(last, "the file ends here without its last line: it was truncated".to_owned()))?;
        Some(read_line::<EndIn>(end).map_err(|message| corrupt(last, message))?)
    } else {
        None
    };
    let case = |(i, line): (usize, &&str)| {
        let of_other_kind = [(HEADER_MARK, "a second header"), (END_MARK, "there are lines after the last one")];
        if let Some((_, message)) = of_other_kind.iter().find(|(mark, _)| line.starts_with(mark)) {
            return Err(corrupt(i, (*message).to_owned()));
        }
        let parsed = format.case(line).and_then(|line| line.record(&records.header, &columns));
        parsed.map_err(|message| corrupt(i, message))
    };
    // Collected in order, so that the first damaged line is reported.
    let cases: Vec<Result<CaseRecord, JournalError>> = lines.par_iter().enumerate().skip(1).map(case).collect();
    records.cases = cases.into_iter().collect::<Result<_, _>>()?;
    let place = |record: &CaseRecord| (record.case.ordinal, record.result.as_ref().map(|result| result.regime));
    let moved = records.cases.windows(2).position(|pair| place(&pair[0]) >= place(&pair[1]));
    if let Some(before) = moved {
        return Err(corrupt(before + 2, "the line is duplicated or out of order".to_owned()));
    }
    let Some(EndIn { cases: count, sha256 }) = end else { return Ok(records) };
    let found = records.cases.len() as u64;
    if found != count {
        return Err(corrupt(last, format!("it states {count} case lines, but there are {found}")));
    }
    if digest(lines.into_iter()) != sha256 {
        return Err(corrupt(last, "the lines before it have changed since they were written".to_owned()));
    }
    Ok(records)
}

/// Format of a file's lines, depending on its version.
enum Format {
    Current,
    /// The flag is whether lines have checksums, which version 1 lacks.
    Older(Older, bool),
}

impl Format {
    /// The format of a file, from the version in its first line.
    fn of_file<'a, L: Iterator<Item = &'a str>>(
        path: &Path,
        first: &str,
        lines: impl FnOnce() -> L,
    ) -> Result<Self, JournalError> {
        /// The part of the header that tells whether the rest can be read.
        #[derive(Deserialize)]
        struct HeaderVersion {
            version: u32,
        }

        let no_header = |_| JournalError::NoHeader { path: path.to_owned() };
        match serde_json::from_str::<HeaderVersion>(first).map_err(no_header)?.version {
            RECORDS_VERSION => Ok(Self::Current),
            version @ 1..RECORDS_VERSION => Ok(Self::Older(Older::new(version, lines()), version > 1)),
            found => Err(JournalError::Version { path: path.to_owned(), line: 1, found, expected: RECORDS_VERSION }),
        }
    }

    /// The records in a file's header line, without cases, and the lists that the other lines refer to.
    fn header(&self, path: &Path, first: &str) -> Result<(Records, Columns), JournalError> {
        let corrupt = |message| JournalError::Corrupt { path: path.to_owned(), line: 1, message };
        let read = self.read(first, Older::header).map_err(corrupt)?;
        let HeaderIn { columns, header, environment } = read;
        Ok((Records { header, environment, cases: Vec::new() }, columns))
    }

    fn case(&self, line: &str) -> Result<CaseLine, String> {
        self.read(line, Older::case)
    }

    fn read<T: DeserializeOwned>(&self, line: &str, migrate: fn(&Older, Value) -> Value) -> Result<T, String> {
        match self {
            Self::Current => read_line(line),
            Self::Older(older, has_sums) => {
                if *has_sums {
                    sealed::check_line(line.as_bytes()).map_err(|bad| bad.to_string())?;
                }
                let read = serde_json::from_str(line).map(|line| migrate(older, line));
                read.and_then(serde_json::from_value).map_err(|e| e.to_string())
            }
        }
    }

    const fn has_end(&self) -> bool {
        matches!(self, Self::Current)
    }
}

/// SHA-256 of lines, including newlines.
fn digest<'a>(lines: impl Iterator<Item = &'a str>) -> String {
    let digest = lines.fold(Sha256::new(), |digest, line| digest.chain_update(line).chain_update("\n"));
    hex(&digest.finalize())
}

/// Reads only the header of a records file.
pub fn header_of(path: &Path) -> Result<RunHeader, JournalError> {
    let mut first = String::new();
    let file = regular::open(path).map_err(JournalError::io("read", path))?;
    BufReader::new(file.take(regular::LONGEST_TEXT)).read_line(&mut first).map_err(JournalError::io("read", path))?;
    let first = first.trim_end();
    Ok(Format::of_file(path, first, std::iter::empty)?.header(path, first)?.0.header)
}

fn read_line<T: DeserializeOwned>(line: &str) -> Result<T, String> {
    sealed::check_line(line.as_bytes()).map_err(|bad| bad.to_string())?;
    serde_json::from_str(line).map_err(|e| e.to_string())
}

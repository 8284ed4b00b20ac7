//! Reads a report at each revision that changed it.

use std::path::Path;

use super::{ReadError, Source};
use crate::journal::{RECORDS_FILE, parse_records};
use runner_process::programs::Programs;
use runner_revision::{File, Files, RevisionError};
use runner_types::{Commit, Records};

/// A range of revisions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    /// Revision to start after: it and its ancestors are excluded.
    pub since: Option<String>,
    /// The newest revision.
    pub until: String,
}

impl Span {
    /// Parses `REV..REV` like git, where either side may be omitted, or a single `REV` as the newest.
    pub fn parse(text: &str) -> Self {
        let (since, until) = text.split_once("..").unwrap_or(("", text));
        let named = |name: &str| (!name.is_empty()).then(|| name.to_owned());
        Self { since: named(since), until: named(until).unwrap_or_else(|| "HEAD".to_owned()) }
    }
}

/// A report over revisions.
#[derive(Debug, Clone, PartialEq)]
pub struct History {
    /// Folder of the report, relative to the root of the repository.
    pub place: String,
    /// Versions of the report, oldest first.
    pub versions: Vec<Version>,
    /// Revisions whose records cannot be read, oldest first.
    pub unread: Vec<Unread>,
}

/// A revision whose records are damaged, or were written by a newer version of this program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unread {
    pub commit: Commit,
    pub why: String,
}

/// A report at the commit that changed it.
#[derive(Debug, Clone, PartialEq)]
pub struct Version {
    pub commit: Commit,
    pub records: Records,
}

/// All reports below a path of the last revision, at each commit that changed their records.
pub fn histories(path: &Path, span: &Span, dir: &Path, programs: &Programs) -> Result<Vec<History>, ReadError> {
    let files = Files::open(dir, &span.until, programs)?;
    let since = span.since.as_ref().map(|since| Files::open(dir, since, programs)).transpose()?;
    let named = files.path_of(path).ok_or_else(|| ReadError::Missing {
        place: path.display().to_string(),
        hint: "as a path of this repository; name a folder of reports in it".to_owned(),
    })?;
    let listed = files.list(&named).map_err(|error| match error {
        RevisionError::NoPath { .. } => ReadError::NotCommitted { path: named.clone(), revision: span.until.clone() },
        other => other.into(),
    })?;
    let is_records = |path: &str| Path::new(path).ends_with(RECORDS_FILE);
    let reports: Vec<String> = listed.into_iter().map(|file| file.path).filter(|path| is_records(path)).collect();
    if reports.is_empty() {
        let source = Source::Revision { revision: span.until.clone(), path: named };
        return Err(ReadError::NoReport { place: source.to_string() });
    }
    let mut found = Vec::new();
    for report in reports {
        let history = of_report(&files, since.as_ref(), &report)?;
        if !(history.versions.is_empty() && history.unread.is_empty()) {
            found.push(history);
        }
    }
    if found.is_empty() { Err(ReadError::NoHistory { path: named }) } else { Ok(found) }
}

fn of_report(files: &Files, since: Option<&Files>, path: &str) -> Result<History, ReadError> {
    // A commit that deleted the report has no version of it.
    let changes = files.changes(since, path)?.into_iter().filter_map(|change| Some((change.commit, change.file?)));
    let (commits, versions): (Vec<Commit>, Vec<File>) = changes.unzip();
    let place = path.strip_suffix(RECORDS_FILE).unwrap_or(path).trim_end_matches('/').to_owned();
    let mut history = History { place, versions: Vec::new(), unread: Vec::new() };
    let mut commits = commits.into_iter();
    files.read(&versions, |_, content| {
        let Some(commit) = commits.next() else { return Ok(()) };
        let name = format!("{}:{path}", commit.short());
        match parse_records(&String::from_utf8_lossy(&content), Path::new(&name)) {
            Ok(records) => history.versions.push(Version { commit, records }),
            Err(error) => history.unread.push(Unread { commit, why: error.to_string() }),
        }
        Ok::<_, ReadError>(())
    })?;
    Ok(history)
}

#[cfg(test)]
mod tests {
    use super::Span;

    #[test]
    fn a_range_is_read_as_git_reads_it() {
        let span = |since: Option<&str>, until: &str| Span { since: since.map(str::to_owned), until: until.to_owned() };
        assert_eq!(Span::parse("v1..main"), span(Some("v1"), "main"));
        assert_eq!(Span::parse("v1.."), span(Some("v1"), "HEAD"));
        assert_eq!(Span::parse("..main"), span(None, "main"));
        assert_eq!(Span::parse("main~3"), span(None, "main~3"));
    }
}

//! `runner merge`: merges the journals of shards into one journal and one report.
//!
//! `runner collect` and runs on several GPUs merge through this module too.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use crate::cli::MergeArgs;
use crate::console::Console;
use crate::failure::Exit;
use crate::failure::Failure;
use crate::files::refuse_path_outside;
use crate::templates;
use runner_files::file_names::{FileNames, hyphenated, slug};
use runner_lang::format::plural;
use runner_results::analyse;
use runner_results::journal::{self, FolderLock, History, JOURNAL_FILE, JournalError, Merged, Missing, RECORDS_FILE};
use runner_results::stored::{self, ReadError, folder_of_device};
use runner_types::{Environment, GroupKey, Records, RunContext, RunHeader, Shard};

const MOST_NAMES: usize = 5;

/// How long to wait for another process that writes to the reports folder. Writing a report takes seconds.
const PATIENCE: Duration = Duration::from_mins(1);

/// Interval for checking whether that process has ended.
const PAUSE: Duration = Duration::from_millis(200);

pub fn run(args: &MergeArgs, console: &mut Console) -> Result<Exit, Failure> {
    merge(&args.sources, &Target { out: args.out.as_deref(), job: None, counts: &|_, _| true }, console)
        .map(|written| written.exit)
}

/// Which journals to merge, and where to write reports.
#[derive(Clone, Copy)]
pub struct Target<'a> {
    /// Folder named by the user.
    pub out: Option<&'a Path>,
    /// Cluster job that produced the results. Folders of partial reports carry its name, since other jobs of the
    /// experiment write partial reports too.
    pub job: Option<&'a str>,
    /// Whether to merge a journal, given its path and its last run.
    pub counts: &'a dyn Fn(&Path, &RunContext) -> bool,
}

impl Target<'_> {
    /// Suffix, after the device, of the folder name of a partial report.
    fn ending(&self) -> String {
        self.job.map(|job| format!("-{}", hyphenated(job))).unwrap_or_default()
    }
}

#[derive(Debug)]
pub struct Written {
    pub exit: Exit,
    pub reports: Vec<Report>,
}

#[derive(Debug)]
pub struct Report {
    /// Folder that the report was written to.
    pub folder: PathBuf,
    /// Usual folder of the experiment's report, which may already hold a complete report.
    pub usual: PathBuf,
    pub records: Records,
}

pub fn merge(sources: &[PathBuf], target: &Target<'_>, console: &mut Console) -> Result<Written, Failure> {
    let found: Vec<Vec<PathBuf>> =
        sources.iter().map(|path| stored::journals(path)).collect::<Result<_, _>>().map_err(|e| failure(&e))?;
    let mut files: Vec<PathBuf> = found.into_iter().flatten().collect();
    files.sort();
    files.dedup();
    let joined = stored::join_if(&files, target.counts).map_err(|e| failure(&e))?;
    for warning in &joined.warnings {
        console.say(&format!("warning: {warning}"));
    }
    let folders = folders(target, &joined.parts);
    if target.out.is_none() {
        folders.iter().try_for_each(|dir| refuse_path_outside(dir))?;
    }
    let mut exit = Exit::Success;
    let mut reports = Vec::new();
    for (part, usual) in joined.parts.into_iter().zip(folders) {
        let missing = part.missing.clone();
        let dir = folder_for(&part, &usual, target, console)?;
        if target.job.is_some() {
            wait_for(&dir);
        }
        let records = write(part, &dir)?;
        let counts = runner_report::counts(&records);
        console.print(&format!(
            "{}: {counts}\nreport: {}\n",
            records.header.experiment,
            dir.join(runner_report::REPORT_FILE).display()
        ))?;
        for line in lacking(&missing) {
            console.say(&format!("warning: {}: {line}", records.header.experiment));
        }
        if !missing.is_empty() || records.cases.iter().any(|case| case.outcome.is_failure()) {
            exit = Exit::CaseFailed;
        }
        reports.push(Report { folder: dir, usual, records });
    }
    Ok(Written { exit, reports })
}

/// Waits while another process writes to a folder: results of two jobs may be collected at the same time.
fn wait_for(dir: &Path) {
    let until = Instant::now() + PATIENCE;
    while matches!(FolderLock::take(dir), Err(JournalError::Held { .. })) && Instant::now() < until {
        thread::sleep(PAUSE);
    }
}

fn failure(error: &ReadError) -> Failure {
    if error.is_misnamed() { Failure::usage(error) } else { Failure::environment(error) }
}

/// Folder for partial reports, which are not committed.
const PARTIAL_REPORTS: &str = "target/reports";

/// Folder for the report. A partial report never replaces a complete one, nor the results of a job newer ones.
fn folder_for(part: &Merged, usual: &Path, target: &Target<'_>, console: &mut Console) -> Result<PathBuf, Failure> {
    let Some((header, _)) = part.run() else { return Ok(usual.to_owned()) };
    let is_part = header.narrowed.is_some() || !part.missing.is_empty();
    let is_whole = |known: &RunHeader| known.complete && known.narrowed.is_none();
    // An unreadable file is not a report.
    let (kept, own) = if is_part && journal::header_of(&usual.join(RECORDS_FILE)).is_ok_and(|known| is_whole(&known)) {
        ("the report of a complete run".to_owned(), "partial")
    } else if let Some(newer) = target.job.and_then(|_| newer_run(part, usual)) {
        (format!("results of a newer run, which was started at {newer}"), "older")
    } else {
        return Ok(usual.to_owned());
    };
    let mut name = usual.file_name().unwrap_or_default().to_owned();
    name.push(target.ending());
    let other = Path::new(PARTIAL_REPORTS).join(&header.experiment).join(name);
    refuse_path_outside(&other)?;
    console.say(&format!(
        "warning: {} has {kept} and is kept; the {own} report goes to {}",
        usual.display(),
        other.display()
    ));
    Ok(other)
}

/// When the run in a report's folder was started, if that is later than the merged runs. Unknown for a report without
/// its journal, as in a fresh checkout.
fn newer_run(part: &Merged, usual: &Path) -> Option<String> {
    let found = journal::scan(&usual.join(JOURNAL_FILE)).ok()?;
    let started = &found.run()?.context.started;
    (started.as_str() > part.started()?).then(|| started.clone())
}

/// Folder of each report. Reports of one experiment on devices with the same name are distinguished by driver, then by
/// number.
fn folders(target: &Target<'_>, parts: &[Merged]) -> Vec<PathBuf> {
    if let (Some(out), [_]) = (target.out, parts) {
        return vec![out.to_owned()];
    }
    // Root of the folders, and suffix of their names.
    let place = |header: &RunHeader| match (target.out, &header.narrowed) {
        (Some(out), _) => (out, String::new()),
        (None, Some(_)) => (Path::new(PARTIAL_REPORTS), target.ending()),
        (None, None) => (Path::new("reports"), String::new()),
    };
    let named = |with_driver: bool| -> Vec<PathBuf> {
        let folder = |(header, environment): (&RunHeader, &Environment)| {
            let driver = environment.driver.as_deref().filter(|_| with_driver);
            let driver = driver.map(|driver| format!("-driver-{}", slug(driver))).unwrap_or_default();
            let (root, ending) = place(header);
            let ending = driver + &ending;
            folder_of_device(&root.join(&header.experiment), &environment.device.name, &ending, None)
        };
        parts.iter().filter_map(Merged::run).map(folder).collect()
    };
    let (plain, by_driver) = (named(false), named(true));
    let is_unique = |all: &[PathBuf], one: &PathBuf| all.iter().filter(|other| *other == one).count() == 1;
    let chosen = plain.iter().zip(&by_driver);
    number_equal(chosen.map(
        |(plain_name, with_driver)| {
            if is_unique(&plain, plain_name) { plain_name } else { with_driver }
        },
    ))
}

/// Appends a distinct number to each repeated folder.
fn number_equal<'a>(folders: impl Iterator<Item = &'a PathBuf>) -> Vec<PathBuf> {
    let mut used: HashMap<&Path, FileNames> = HashMap::new();
    let number = |folder: &'a PathBuf| {
        let (parent, name) = (folder.parent()?, folder.file_name()?);
        Some(parent.join(used.entry(parent).or_default().claim(&name.to_string_lossy())))
    };
    folders.filter_map(number).collect()
}

/// Writes the journal and everything derived from it, and returns the records.
pub fn write(mut part: Merged, dir: &Path) -> Result<Records, Failure> {
    let failed =
        |error: &dyn std::fmt::Display| Failure::environment(format!("{error}; name another folder with --out"));
    if let (Ok(other), Some((header, _))) = (journal::header_of(&dir.join(RECORDS_FILE)), part.run())
        && other.experiment != header.experiment
    {
        let (dir, other, own) = (dir.display(), &other.experiment, &header.experiment);
        return Err(Failure::usage(format!(
            "{dir} holds the report of experiment `{other}`, not `{own}`: name another folder with --out"
        )));
    }
    let (journal, groups) = part.write(dir, History::fold).map_err(|e| failed(&e))?;
    let lock = journal.close();
    let records = analyse::records_of_groups(part.into_run_events(), groups);
    let records = records.map_err(Failure::environment)?;
    templates::watched(&records, || runner_report::write_all(dir, &lock, &records))?.map_err(|e| failed(&e))?;
    Ok(records)
}

/// Sentences on what is missing.
fn lacking(missing: &Missing) -> Vec<String> {
    let mut lines = Vec::new();
    if !missing.shards.is_empty() {
        let names: Vec<String> = missing.shards.iter().take(MOST_NAMES).map(Shard::to_string).collect();
        let more = rest(missing.shards.len());
        let what = plural(missing.shards.len() as u64, "shard");
        lines.push(format!("no journal of {what}: {}{more}", names.join(", ")));
    }
    if missing.cases > 0 {
        lines.push(format!("{} missing from all journals", plural(missing.cases, "case")));
    }
    if !missing.groups.is_empty() {
        let names: Vec<String> = missing.groups.iter().take(MOST_NAMES).map(GroupKey::to_string).collect();
        let more = rest(missing.groups.len());
        let what = plural(missing.groups.len() as u64, "group");
        lines.push(format!("{what} without a complete run: {}{more}", names.join("; ")));
    }
    lines
}

fn rest(count: usize) -> String {
    if count > MOST_NAMES { format!(" and {} more", count - MOST_NAMES) } else { String::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_reports_have_one_folder() {
        let folders = ["a", "a", "a-2", "a", "b"].map(PathBuf::from);
        assert_eq!(number_equal(folders.iter()), ["a", "a-2", "a-2-2", "a-3", "b"].map(PathBuf::from));
    }
}

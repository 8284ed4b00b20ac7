//! `runner report`: rewrites reports from the records of finished runs, or checks that they match. Needs no device.

mod html;

use std::path::{Path, PathBuf};

use rayon::prelude::*;

use super::compare::read_failure;
use super::stale::{self, Placed, Tree};
use crate::cli::ReportArgs;
use crate::console::Console;
use crate::failure::Exit;
use crate::failure::Failure;
use crate::templates;
use runner_lang::format::plural;
use runner_process::programs::Programs;
use runner_report::{Deviation, RenderError};
use runner_results::analyse::stale::Staleness;
use runner_results::journal::{self, FolderLock, JOURNAL_FILE, PREVIOUS_JOURNAL_FILE, RECORDS_FILE};
use runner_results::stored;
use runner_results::stored::{Source, Stored};
use runner_types::Records;

/// Failure of rendering a page; a usage error if the user's template is at fault.
fn failure(error: &RenderError) -> Failure {
    let message = error.to_string();
    if matches!(error, RenderError::OfUser { .. }) { Failure::usage(message) } else { Failure::environment(message) }
}

const REPORTS: &str = "reports";

pub fn run(args: &ReportArgs, console: &mut Console) -> Result<Exit, Failure> {
    if args.check {
        return check(args, console);
    }
    if args.html {
        let [dir] = args.dirs.as_slice() else {
            return Err(Failure::usage("--html writes one file: name one folder, or the folder above all of them"));
        };
        return html::run(dir, args.out.as_deref(), console);
    }
    let template = args.template.as_deref().map(templates::read).transpose()?;
    for dir in &args.dirs {
        let sources = if args.from_journal { &[JOURNAL_FILE][..] } else { &[RECORDS_FILE, JOURNAL_FILE] };
        if !sources.iter().any(|name| dir.join(name).exists()) {
            return Err(Failure::usage(nothing_in(dir, args.from_journal)));
        }
        let lock = FolderLock::take(dir).map_err(Failure::environment)?;
        let mut records = load(dir, args.from_journal, console)?;
        if args.from_journal {
            keep_whole(dir, &records)?;
        }
        if let Some(template) = &template {
            records.header.template = Some(template.clone());
        }
        let screen = console.screen();
        let (written, table) = templates::watched(&records, || {
            rayon::join(|| runner_report::write_all(dir, &lock, &records), || runner_report::terminal(&records, screen))
        })?;
        written.map_err(|error| failure(&error))?;
        console.print(&table)?;
        console.say(&format!("wrote {}", dir.join(runner_report::REPORT_FILE).display()));
    }
    Ok(Exit::Success)
}

/// Compares every report in or below the folders with what its records produce, and with the files that it was measured
/// from.
fn check(ReportArgs { dirs, strict, .. }: &ReportArgs, console: &mut Console) -> Result<Exit, Failure> {
    let default = [PathBuf::from(REPORTS)];
    let mut reports: Vec<Stored> = Vec::new();
    let mut unproved: Vec<PathBuf> = Vec::new();
    for dir in if dirs.is_empty() { &default[..] } else { dirs } {
        let found = stored::read(&Source::Path(dir.clone()), Path::new("."), &Programs::of_this_machine());
        without_records(dir, &mut unproved);
        match found {
            Ok(found) => reports.extend(found),
            // Without any records there is nothing else to check.
            Err(error) if !unproved.is_empty() => console.print(&format!("{error}\n"))?,
            Err(error) => return Err(read_failure(&error)),
        }
    }
    for dir in &unproved {
        console.print(&format!("{} has files of a report but no {RECORDS_FILE}\n", dir.display()))?;
    }
    let deviations = |report: &Stored| {
        let dir = Path::new(&report.place);
        if !dir.is_dir() {
            return Err(Failure::usage(format!("{} is a file: name the folder of a report", report.place)));
        }
        templates::watched(&report.records, || runner_report::deviations(dir, &report.records))?
            .map_err(|error| failure(&error))
    };
    let found: Vec<Result<Vec<Deviation>, Failure>> = reports.par_iter().map(deviations).collect();
    let found: Vec<Vec<Deviation>> = found.into_iter().collect::<Result<_, Failure>>()?;
    let differing = found.iter().filter(|found| !found.is_empty()).count() + unproved.len();
    for deviation in found.iter().flatten() {
        console.print(&format!("{deviation}\n"))?;
    }
    let stale = stale::find(reports.iter().map(|stored| Placed::new(stored, "")), Tree::Working);
    for sentence in [runner_report::stale::sentences(&stale), runner_report::stale::unknown(&stale)].concat() {
        console.print(&format!("{sentence}\n"))?;
    }
    let checked = plural(reports.len() as u64, "report");
    let tally = runner_report::stale::tally(&stale).map(|tally| format!("; {tally}")).unwrap_or_default();
    if differing > 0 {
        let differ = if differing == 1 { "differs from its records" } else { "differ from their records" };
        console.say(&format!("{checked} checked, {differing} {differ}; run `runner report DIR` to rewrite one{tally}"));
        return Ok(Exit::CaseFailed);
    }
    console.say(&format!("{checked} checked: every file matches its records{tally}"));
    Ok(if *strict && stale.iter().any(Staleness::is_stale) { Exit::Incomparable } else { Exit::Success })
}

/// Finds folders at or below `dir` with pages of a report, but without the records that they are made from.
fn without_records(dir: &Path, found: &mut Vec<PathBuf>) {
    let has = |names: &[&str]| names.iter().any(|name| dir.join(name).exists());
    if has(&[runner_report::REPORT_FILE, runner_report::RESULTS_FILE]) && !has(&[RECORDS_FILE, JOURNAL_FILE]) {
        found.push(dir.to_owned());
    }
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    let mut folders: Vec<PathBuf> = folders.map(|entry| entry.path()).collect();
    folders.sort();
    for folder in &folders {
        without_records(folder, found);
    }
}

/// Records of `dir`. Reads its journal if requested, or if there are no records.
fn load(dir: &Path, from_journal: bool, console: &mut Console) -> Result<Records, Failure> {
    let stored = dir.join(RECORDS_FILE);
    let journal = dir.join(JOURNAL_FILE);
    if !from_journal && stored.exists() {
        return journal::read_records(&stored).map_err(Failure::environment);
    }
    let (records, warnings) = stored::read_journal(&journal).map_err(Failure::environment)?;
    for warning in warnings {
        console.say(&format!("warning: {warning}"));
    }
    Ok(records)
}

/// Refuses to replace the report of a complete run with one that lacks cases. Damaged records are replaced.
fn keep_whole(dir: &Path, new: &Records) -> Result<(), Failure> {
    let stored = dir.join(RECORDS_FILE);
    let is_whole = |records: &Records| records.header.complete && records.header.narrowed.is_none();
    if is_whole(new) || !journal::read_records(&stored).is_ok_and(|known| is_whole(&known)) {
        return Ok(());
    }
    Err(Failure::usage(format!(
        "{} has the report of a complete run, but its journal lacks cases: the report is kept. `run` with --resume \
         and the same options completes the journal; {PREVIOUS_JOURNAL_FILE} is the journal of the previous run. To \
         replace the report, remove {RECORDS_FILE}",
        dir.display()
    )))
}

/// Why there is nothing to report in `dir`, and which folder may have been meant.
fn nothing_in(dir: &Path, from_journal: bool) -> String {
    let missing = match (dir.exists(), from_journal) {
        (false, _) => "does not exist".to_owned(),
        (true, true) => format!("has no {JOURNAL_FILE}"),
        (true, false) => format!("has neither {RECORDS_FILE} nor {JOURNAL_FILE}"),
    };
    let reports: Vec<String> = reports_near(dir).iter().map(|path| format!("`{}`", path.display())).collect();
    let hint = match reports.as_slice() {
        [] => "name the folder of a report, such as `reports/reduce/nvidia-h100-80gb-hbm3`".to_owned(),
        [only] => format!("did you mean {only}?"),
        [first @ .., last] => format!("did you mean {} or {last}?", first.join(", ")),
    };
    format!("{} {missing}; {hint}", dir.display())
}

/// Report folders below `dir`; for a file, its own folder.
fn reports_near(dir: &Path) -> Vec<PathBuf> {
    let is_report = |path: &PathBuf| path.join(RECORDS_FILE).exists() || path.join(JOURNAL_FILE).exists();
    if dir.is_file() {
        return dir.parent().map(Path::to_owned).filter(is_report).into_iter().collect();
    }
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let mut reports: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(is_report).collect();
    reports.sort();
    reports
}

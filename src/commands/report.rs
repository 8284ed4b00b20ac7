//! `runner report`: writes the reports of a finished run again. Needs no device.

mod html;

use std::path::{Path, PathBuf};

use super::cli::ReportArgs;
use super::{Console, Exit, Failure};
use crate::journal::{self, JOURNAL_FILE, RECORDS_FILE};
use crate::model::Records;
use crate::{render, stored};

pub fn run(args: &ReportArgs, console: &mut Console) -> Result<Exit, Failure> {
    if let Some(file) = &args.html {
        return html::run(args, Path::new(file), console);
    }
    let records = load(&args.dir, args.from_journal, console)?;
    render::write_all(&args.dir, &records).map_err(|e| Failure::environment(e.to_string()))?;
    console.print(&render::terminal(&records, console.screen()))?;
    console.say(&format!("wrote {}", args.dir.join(render::REPORT_FILE).display()));
    Ok(Exit::Success)
}

/// The records of `dir`, or of its journal if that is asked for or there are no records.
fn load(dir: &Path, from_journal: bool, console: &mut Console) -> Result<Records, Failure> {
    let stored = dir.join(RECORDS_FILE);
    let journal = dir.join(JOURNAL_FILE);
    if !from_journal && stored.exists() {
        return journal::read_records(&stored).map_err(|e| Failure::environment(e.to_string()));
    }
    if !journal.exists() {
        return Err(Failure::usage(nothing_in(dir, from_journal)));
    }
    let (records, warnings) = stored::read_journal(&journal).map_err(|e| Failure::environment(e.to_string()))?;
    for warning in warnings {
        console.say(&format!("warning: {warning}"));
    }
    Ok(records)
}

/// Why nothing can be reported from `dir`, and which folder was meant.
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

/// Folders of reports below `dir`; for a file, the folder that it is in.
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

//! `runner report`: the files of a finished run, again, from what it left. Reaches no device.

use std::path::Path;

use super::cli::ReportArgs;
use super::{Console, Exit, Failure};
use crate::journal::{self, JOURNAL_FILE, RECORDS_FILE};
use crate::model::Records;
use crate::{analyse, render};

pub fn run(args: &ReportArgs, console: &mut Console) -> Result<Exit, Failure> {
    let records = load(&args.dir, args.from_journal, console)?;
    render::write_all(&args.dir, &records).map_err(|e| Failure::environment(e.to_string()))?;
    console.print(&render::terminal(&records, console.screen()))?;
    console.say(&format!("wrote {}", args.dir.join(render::REPORT_FILE).display()));
    Ok(Exit::Success)
}

/// The records of `dir`; made of the journal where that is asked for, or where there is nothing else.
fn load(dir: &Path, from_journal: bool, console: &mut Console) -> Result<Records, Failure> {
    let stored = dir.join(RECORDS_FILE);
    let journal = dir.join(JOURNAL_FILE);
    if !from_journal && stored.exists() {
        return journal::read_records(&stored).map_err(|e| Failure::environment(e.to_string()));
    }
    if !journal.exists() {
        let wanted = if from_journal { "no journal.jsonl" } else { "neither records.jsonl nor journal.jsonl" };
        let hint = "name the folder of a report, for example reports/reduce/nvidia-h100-80gb-hbm3";
        return Err(Failure::usage(format!("{} holds {wanted}: {hint}", dir.display())));
    }
    let contents = journal::read(&journal).map_err(|e| Failure::environment(e.to_string()))?;
    if let Some(torn) = contents.torn {
        let line = torn.line;
        console.say(&format!("{}:{line}: cut off while it was written; left out", journal.display()));
    }
    analyse::records(&contents.events).map_err(|e| Failure::environment(format!("{}: {e}", journal.display())))
}

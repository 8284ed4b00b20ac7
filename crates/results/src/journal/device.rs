//! Finds the device that a report folder belongs to.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use serde::Deserialize;

use super::format::JOURNAL_FILE;
use super::parse::parse;
use super::read::LONGEST_LINE;
use super::records::ENVIRONMENT_FILE;
use runner_files::regular;
use runner_types::Event;

/// Device name of the report or journal in `dir`; `None` if neither can be read.
pub fn device_of(dir: &Path) -> Option<String> {
    device_of_report(dir).or_else(|| device_of_journal(dir))
}

fn device_of_report(dir: &Path) -> Option<String> {
    /// The part of `environment.json` that names the device.
    #[derive(Deserialize)]
    struct Environment {
        device: Device,
    }

    #[derive(Deserialize)]
    struct Device {
        name: String,
    }

    let text = regular::read(&dir.join(ENVIRONMENT_FILE)).ok()?;
    Some(serde_json::from_slice::<Environment>(&text).ok()?.device.name)
}

/// Device name in the first line of a journal, which is the start of a run.
fn device_of_journal(dir: &Path) -> Option<String> {
    let file = regular::open(&dir.join(JOURNAL_FILE)).ok()?;
    let mut first = Vec::new();
    BufReader::new(file.take(LONGEST_LINE)).read_until(b'\n', &mut first).ok()?;
    match parse(first.trim_ascii_end()).ok()?.content {
        Event::RunStarted { environment, .. } => Some(environment.device.name),
        _ => None,
    }
}

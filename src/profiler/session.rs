//! The profiler's program and its command line.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use tempfile::TempDir;

use super::table::{self, Table};
use super::{ProfilerError, metrics};
use crate::dispatch::{Limits, WorkerSpec};
use crate::programs::Programs;

/// Profiling of one run: where the profiler is, what it is asked for, where it writes.
#[derive(Debug)]
pub struct Session {
    program: PathBuf,
    version: String,
    /// The profiler's names, those of the vocabulary first.
    wanted: Vec<String>,
    /// Each worker's profiler writes a file of its own here.
    folder: TempDir,
}

impl Session {
    /// Finds the profiler. `extra` are metrics by the profiler's names, besides those of the vocabulary.
    pub fn start(programs: &Programs, extra: &[String]) -> Result<Self, ProfilerError> {
        let program = programs.find("ncu").ok_or(ProfilerError::NotFound)?;
        let version = version(&program)?;
        let folder = tempfile::Builder::new().prefix("runner-ncu-").tempdir();
        let folder = folder.map_err(|e| ProfilerError::Folder(e.to_string()))?;
        let mut wanted: Vec<String> = metrics::of_vocabulary().map(str::to_owned).collect();
        wanted.extend(extra.iter().filter(|name| !metrics::of_vocabulary().any(|known| known == *name)).cloned());
        Ok(Self { program, version, wanted, folder })
    }

    /// How the counters come about, in one sentence for the environment.
    pub fn method(&self) -> String {
        format!(
            "Nsight Compute {}: one launch of each case, replayed with its memory restored and the caches flushed before \
             each replay, clocks left alone",
            self.version
        )
    }

    /// A worker inside the profiler: `program` with `args`.
    pub fn worker(&self, program: &Path, args: impl IntoIterator<Item = OsString>) -> WorkerSpec {
        let mut words: Vec<OsString> = OPTIONS.iter().map(OsString::from).collect();
        words.extend(["--metrics".into(), self.wanted.join(",").into()]);
        words.extend(["--log-file".into(), self.folder.path().join("%p.csv").into()]);
        words.push(program.into());
        words.extend(args);
        let mut spec = WorkerSpec::new(&self.program, words);
        spec.limits = Limits {
            start: Duration::from_mins(3),
            // A launch is replayed some dozen times, with its memory saved and restored around each.
            grace: Duration::from_mins(5),
            silence: Duration::from_mins(5),
            departure: Duration::from_mins(2),
            ..spec.limits
        };
        spec
    }

    /// Why the profiler did not let a worker start, in its own words; `None` where it said nothing.
    pub fn refusal(&self) -> Option<ProfilerError> {
        let complaints = self.results().ok()?.complaints;
        (!complaints.is_empty()).then(|| ProfilerError::of_complaints(&complaints))
    }

    /// Everything that the profilers of all workers wrote.
    pub fn results(&self) -> Result<Table, ProfilerError> {
        let folder = |e: std::io::Error| ProfilerError::Folder(e.to_string());
        let mut whole = Table::default();
        let mut paths: Vec<PathBuf> = Vec::new();
        for entry in fs::read_dir(self.folder.path()).map_err(folder)? {
            paths.push(entry.map_err(folder)?.path());
        }
        paths.sort();
        for path in paths {
            let text = fs::read(&path).map_err(folder)?;
            let Table { rows, complaints } = table::read(&String::from_utf8_lossy(&text))?;
            whole.rows.extend(rows);
            whole.complaints.extend(complaints);
        }
        Ok(whole)
    }
}

/// Caches are flushed and memory restored before each replay, clocks are left alone, values come in base units, and
/// only what stands between the marks is counted.
const OPTIONS: [&str; 16] = [
    "--csv",
    "--page",
    "raw",
    "--print-units",
    "base",
    "--print-kernel-base",
    "mangled",
    "--clock-control",
    "none",
    "--cache-control",
    "all",
    "--replay-mode",
    "kernel",
    "--target-processes",
    "all",
    "--profile-from-start=off",
];

/// The version, for example `2025.3.1.0`.
fn version(program: &Path) -> Result<String, ProfilerError> {
    let broken = |why: String| ProfilerError::Broken { program: program.to_owned(), why };
    let output = Command::new(program).arg("--version").output().map_err(|e| broken(e.to_string()))?;
    let text = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        return Err(broken(output.status.to_string()));
    }
    let version = text.split_whitespace().skip_while(|word| *word != "Version").nth(1);
    version.map(str::to_owned).ok_or_else(|| broken(format!("it says `{}`", text.trim())))
}

//! Runs Nsight Compute: its command line, worker processes, and output files.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use tempfile::TempDir;

use super::table::{self, Table};
use super::{ProfilerError, metrics, source_page};
use runner_process::programs::Programs;
use runner_workers::{Interrupt, Limits, Pool, Ready, StartError, WorkerSpec};

/// Granularity of the counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    /// Only each launch as a whole.
    Launches,
    /// Also each machine instruction of a launch.
    Instructions,
}

impl Detail {
    pub const fn for_lines(lines: bool) -> Self {
        if lines { Self::Instructions } else { Self::Launches }
    }
}

/// Profiling of one run: the profiler, its metrics, and its output folder.
#[derive(Debug)]
pub struct ProfilerSession {
    program: PathBuf,
    version: String,
    /// Requested metrics under the profiler's names, the vocabulary's first.
    wanted: Vec<String>,
    detail: Detail,
    /// Requested metrics that the profiler rejected.
    unknown: Vec<String>,
    /// Folder to which each worker's profiler writes its own file.
    folder: TempDir,
}

impl ProfilerSession {
    /// Locates the profiler. `extra` lists additional metrics under the profiler's names.
    pub fn start(programs: &Programs, extra: &[String], detail: Detail) -> Result<Self, ProfilerError> {
        let program = programs.find("ncu").ok_or(ProfilerError::NotFound)?;
        let version = version(&program)?;
        let folder = tempfile::Builder::new().prefix("runner-ncu-").tempdir();
        let folder = folder.map_err(|e| ProfilerError::Folder(e.to_string()))?;
        let mut wanted: Vec<String> = metrics::of_vocabulary().map(str::to_owned).collect();
        wanted.extend(extra.iter().filter(|name| !metrics::of_vocabulary().any(|known| known == *name)).cloned());
        Ok(Self { program, version, wanted, detail, unknown: Vec::new(), folder })
    }

    /// How the counters are measured, as a sentence for the report's environment.
    pub fn method(&self) -> String {
        format!(
            "Nsight Compute {}: one launch of each case, replayed with its memory restored and the caches flushed \
             before each replay, clocks left alone",
            self.version
        )
    }

    /// Specification of a worker inside the profiler that runs `program` with `args`.
    pub fn worker(&self, program: &Path, args: impl IntoIterator<Item = OsString>) -> WorkerSpec {
        let mut words: Vec<OsString> = COLLECTION.iter().map(OsString::from).collect();
        match self.detail {
            Detail::Launches => words.extend(PRINTING.iter().chain(&["--page", "raw"]).map(OsString::from)),
            // `ncu` prints one page per call, so several pages need a report file.
            Detail::Instructions => {
                words.extend(["--section", "SourceCounters", "--export"].map(OsString::from));
                words.push(self.folder.path().join("%p").into());
            }
        }
        words.extend(without_config_file(Path::new(".")).map(OsString::from));
        words.extend(["--metrics".into(), self.wanted.join(",").into()]);
        words.extend(["--log-file".into(), self.folder.path().join("%p.csv").into()]);
        words.push(program.into());
        words.extend(args);
        let mut spec = WorkerSpec::new(&self.program, words);
        spec.limits = Limits {
            start: Duration::from_mins(3),
            // A launch is replayed about a dozen times, with its memory saved and restored around each replay.
            grace: Duration::from_mins(5),
            silence: Duration::from_mins(5),
            exit: Duration::from_mins(2),
            ..spec.limits
        };
        spec
    }

    /// Starts a worker inside the profiler and waits until its device is open. `worker` returns its specification (see
    /// [`Self::worker`]). The profiler does not start if this GPU lacks a requested metric, so such metrics are
    /// dropped. Fails with the profiler's message, if any.
    pub fn open(
        &mut self,
        worker: impl Fn(&Self) -> WorkerSpec,
        interrupt: &Interrupt,
    ) -> Result<(Pool, Ready), ProfilerError> {
        loop {
            let error = match Pool::start(worker(self), interrupt) {
                Ok(started) => return Ok(started),
                Err(StartError::Interrupted) => return Err(ProfilerError::Start(StartError::Interrupted.to_string())),
                Err(error) => error,
            };
            let complaints = self.results()?.complaints;
            if !self.leave_out(&complaints)? {
                return Err(if complaints.is_empty() {
                    ProfilerError::Start(error.to_string())
                } else {
                    ProfilerError::of_complaints(&complaints)
                });
            }
        }
    }

    /// Drops the requested metrics that the messages name, and deletes their file; returns whether there were any.
    fn leave_out(&mut self, complaints: &[String]) -> Result<bool, ProfilerError> {
        let is_end = |c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '.');
        let word = |message: &str, name: &str| message.split(is_end).any(|word| word.trim_end_matches('.') == name);
        let refused = |name: &String| complaints.iter().any(|message| word(message, name));
        let unknown: Vec<String> = self.wanted.extract_if(.., |name| refused(name)).collect();
        if unknown.is_empty() {
            return Ok(false);
        }
        self.unknown.extend(unknown);
        for path in self.files()? {
            fs::remove_file(path).map_err(|e| ProfilerError::Folder(e.to_string()))?;
        }
        Ok(!self.wanted.is_empty())
    }

    /// Metrics that this GPU lacks, as found by [`Self::open`].
    pub fn unknown(&self) -> &[String] {
        &self.unknown
    }

    fn is_wanted(&self, metric: &str) -> bool {
        let ends_a_metric = |rest: &str| rest.is_empty() || rest.starts_with('.');
        self.wanted.iter().any(|name| metric.strip_prefix(name.as_str()).is_some_and(ends_a_metric))
    }

    fn files(&self) -> Result<Vec<PathBuf>, ProfilerError> {
        let folder = |e: std::io::Error| ProfilerError::Folder(e.to_string());
        let mut paths: Vec<PathBuf> = Vec::new();
        for entry in fs::read_dir(self.folder.path()).map_err(folder)? {
            paths.push(entry.map_err(folder)?.path());
        }
        paths.sort();
        Ok(paths)
    }

    /// Reads the launches in a report file, with their instructions.
    fn read_report(&self, report: &Path) -> Result<Table, ProfilerError> {
        let mut table = table::read(&self.print(report, &["--page", "raw"])?)?;
        let pages = source_page::read(&self.print(report, &["--page", "source", "--print-source", "sass"])?);
        let kernels: Vec<&str> = table.rows.iter().map(|row| row.launch.kernel.as_str()).collect();
        let pages = source_page::assign(pages, &kernels);
        table.without_page = pages.iter().filter(|page| page.is_none()).count();
        for (row, page) in table.rows.iter_mut().zip(pages) {
            row.instructions = page.unwrap_or_default();
        }
        Ok(table)
    }

    fn print(&self, report: &Path, page: &[&str]) -> Result<String, ProfilerError> {
        let mut command = Command::new(&self.program);
        command.args(without_config_file(Path::new("."))).arg("--import").arg(report).args(PRINTING).args(page);
        let output = command.output().map_err(|error| ProfilerError::Unreadable(error.to_string()))?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        if output.status.success() { Ok(text) } else { Err(ProfilerError::Unreadable(text.trim().to_owned())) }
    }

    /// Requested metrics from the output of all workers' profilers. The profilers also print device attributes and
    /// extremes over units, which are dropped. A metric requested without a rollup keeps all of its rollups.
    pub fn results(&self) -> Result<Table, ProfilerError> {
        let mut whole = Table::default();
        for path in self.files()? {
            let Table { mut rows, complaints, without_page } =
                if path.extension().is_some_and(|extension| extension == REPORT) {
                    self.read_report(&path)?
                } else {
                    let text = fs::read(&path).map_err(|e| ProfilerError::Folder(e.to_string()))?;
                    table::read(&String::from_utf8_lossy(&text))?
                };
            for row in &mut rows {
                row.values.retain(|name, _| self.is_wanted(name));
            }
            whole.rows.extend(rows);
            whole.complaints.extend(complaints);
            whole.without_page += without_page;
        }
        Ok(whole)
    }
}

/// File in the working directory from which the profiler reads more options. In an untrusted checkout, these could
/// write files and run rules from other folders. Versions that do not read the file do not know the option to ignore it
/// either.
const CONFIG_FILE: &str = "config.ncu-cfg";

fn without_config_file(dir: &Path) -> impl Iterator<Item = &'static str> {
    let there = dir.join(CONFIG_FILE).exists();
    ["--config-file", "off"].into_iter().filter(move |_| there)
}

/// Flushes caches and restores memory before each replay, leaves clocks alone, and counts only launches between the
/// marks.
const COLLECTION: [&str; 9] = [
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

/// Prints pages as tables, with values in base units.
const PRINTING: [&str; 5] = ["--csv", "--print-units", "base", "--print-kernel-base", "mangled"];

/// File extension of the profiler's reports.
const REPORT: &str = "ncu-rep";

/// Version of the profiler, e.g. `2025.3.1.0`.
fn version(program: &Path) -> Result<String, ProfilerError> {
    let broken = |why: String| ProfilerError::Broken { program: program.to_owned(), why };
    let output = Command::new(program).arg("--version").output().map_err(|e| broken(e.to_string()))?;
    let text = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        return Err(broken(output.status.to_string()));
    }
    let version = text.split_whitespace().skip_while(|word| *word != "Version").nth(1);
    version.map(str::to_owned).ok_or_else(|| broken(format!("its output is `{}`", text.trim())))
}

//! Starts the binary, waits for it with a time limit, and sends it signals.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::sync::MutexGuard;
use std::thread;
use std::time::{Duration, Instant};

use runner_results::journal;
use runner_types::Event;
use rustix::process::{Pid, Signal};
use tempfile::TempDir;

use super::left::Left;
use crate::gpu::first;

/// A run that takes longer counts as hung.
const LIMIT: Duration = Duration::from_mins(3);
const TICK: Duration = Duration::from_millis(10);

/// An empty folder to run in. Only one test at a time has one.
pub struct Bench {
    dir: TempDir,
    _turn: MutexGuard<'static, ()>,
}

/// Waits until no other test has a bench.
pub fn bench() -> Bench {
    let (_, turn) = first::id();
    Bench { dir: tempfile::tempdir().unwrap(), _turn: turn }
}

/// Path of a manifest or kernel of these tests.
pub fn fixture(name: &str) -> PathBuf {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/faults");
    let path = std::env::var_os("RUNNER_FAULTS").map_or(beside, PathBuf::from).join(name);
    fs::canonicalize(&path).unwrap_or_else(|e| panic!("{}: {e}; RUNNER_FAULTS names the folder", path.display()))
}

pub fn binary() -> PathBuf {
    let path = std::env::var_os("RUNNER_BIN").map_or_else(|| env!("CARGO_BIN_EXE_runner").into(), PathBuf::from);
    fs::canonicalize(&path).unwrap_or_else(|e| panic!("{}: {e}; RUNNER_BIN names the binary", path.display()))
}

impl Bench {
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Runs a manifest to its end, with its results in `out` below the folder.
    pub fn run(&self, manifest: &Path, out: &str, more: &[&str]) -> Left {
        self.begin(manifest, out, more).end()
    }

    /// Starts to run a manifest, with its results in `out` below the folder.
    pub fn begin(&self, manifest: &Path, out: &str, more: &[&str]) -> Running {
        let out = self.path(out);
        let mut args = vec!["run".to_owned(), text(manifest), "--out".to_owned(), text(&out)];
        args.extend(more.iter().map(|arg| (*arg).to_owned()));
        self.start(&args, out)
    }

    /// Starts the binary in the folder; its results are expected in `out`.
    ///
    /// Compiled code goes to the cache of the environment or the user, because the compiler may be there too.
    pub fn start(&self, args: &[String], out: PathBuf) -> Running {
        let said = tempfile::Builder::new().prefix("said-").tempdir_in(self.dir.path()).unwrap().keep();
        let child = Command::new(binary())
            .args(args)
            .current_dir(self.dir.path())
            .env("NO_COLOR", "1")
            .stdout(File::create(said.join("stdout")).unwrap())
            .stderr(File::create(said.join("stderr")).unwrap())
            .spawn()
            .unwrap();
        Running { child, said, out, begun: Instant::now() }
    }
}

pub fn text(path: &Path) -> String {
    path.to_str().unwrap().to_owned()
}

/// A run in progress. Dropping it kills the run, so that a failed test leaves nothing behind.
pub struct Running {
    child: Child,
    said: PathBuf,
    out: PathBuf,
    begun: Instant,
}

impl Running {
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn signal(&self, signal: Signal) {
        rustix::process::kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    pub fn is_over(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Waits until the run ends, in whatever way.
    pub fn end(mut self) -> Left {
        let status = self.wait();
        let said = |name: &str| String::from_utf8_lossy(&fs::read(self.said.join(name)).unwrap()).into_owned();
        let took = self.begun.elapsed();
        Left { status, took, stdout: said("stdout"), stderr: said("stderr"), dir: self.out.clone() }
    }

    fn wait(&mut self) -> ExitStatus {
        while self.begun.elapsed() < LIMIT {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            thread::sleep(TICK);
        }
        panic!("the run did not end within {} s and said:\n{}", LIMIT.as_secs(), self.stderr());
    }

    fn stderr(&self) -> String {
        String::from_utf8_lossy(&fs::read(self.said.join("stderr")).unwrap()).into_owned()
    }

    /// Waits until the journal contains an event that `wanted` accepts.
    pub fn until_journal_has(&mut self, wanted: impl Fn(&Event) -> bool) {
        let journal = self.out.join(journal::JOURNAL_FILE);
        self.until("an event in its journal", |_| {
            // The journal may not exist yet, or may be partly written.
            journal::read(&journal).is_ok_and(|contents| contents.events().any(&wanted))
        });
    }

    /// Waits until the run, started with `--progress json`, has printed an event that `wanted` accepts.
    pub fn until_it_shows(&mut self, wanted: impl Fn(&Event) -> bool) {
        self.until("an event on its standard error", |run| {
            run.stderr().lines().filter_map(|line| serde_json::from_str(line).ok()).any(|event| wanted(&event))
        });
    }

    fn until(&mut self, what: &str, there: impl Fn(&Self) -> bool) {
        while !there(self) {
            assert!(self.begun.elapsed() < LIMIT, "waited for {what} in vain; it said:\n{}", self.stderr());
            assert!(!self.is_over() || there(self), "it ended before {what}; it said:\n{}", self.stderr());
            thread::sleep(TICK);
        }
    }

    /// Process id of the run's worker, which holds the device.
    pub fn worker(&self) -> u32 {
        let workers: Vec<u32> = processes().filter(|pid| is_worker_of(*pid, self.pid())).collect();
        assert_eq!(workers.len(), 1, "workers of process {}: {workers:?}", self.pid());
        workers[0]
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.is_over() {
            self.child.kill().unwrap();
            self.child.wait().unwrap();
        }
    }
}

fn processes() -> impl Iterator<Item = u32> {
    fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
}

fn is_worker_of(pid: u32, parent: u32) -> bool {
    let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let is_worker = command.split(|byte| *byte == 0).any(|argument| argument == b"__worker");
    is_worker && stat(pid).is_some_and(|(_, of)| of == parent)
}

/// State and parent of a process; `None` if there is no such process.
fn stat(pid: u32) -> Option<(char, u32)> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name of the process comes first and may contain anything, even parentheses.
    let mut fields = text.rsplit_once(')')?.1.split_whitespace();
    Some((fields.next()?.chars().next()?, fields.next()?.parse().ok()?))
}

/// Waits until a process has ended; panics after `limit`.
pub fn expect_gone(pid: u32, limit: Duration) {
    let begun = Instant::now();
    // A process that its new parent does not reap stays as a zombie, which holds no resources.
    while stat(pid).is_some_and(|(state, _)| !matches!(state, 'Z' | 'X')) {
        assert!(begun.elapsed() < limit, "process {pid} is there {} s later: {:?}", limit.as_secs(), stat(pid));
        thread::sleep(TICK);
    }
}

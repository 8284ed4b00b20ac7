//! Runs nvcc, clang and the assembler, confined by [`sandbox`]. They start further processes, which must end with them.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::child::{self, NoReply};
use runner_process::sandbox;
use runner_types::CompileFailure;

/// Where a compiler may read and write, and for how long it may run.
pub(super) struct Bounds<'a> {
    /// Files it may read besides its own installation and the system's.
    pub readable: Vec<PathBuf>,
    /// The only folder it may write to, including temporary files.
    pub folder: &'a Path,
    pub limit: Duration,
    /// Set to end it early.
    pub stop: &'a AtomicBool,
}

/// A string for cache addresses that changes with the program's file.
pub(super) fn identity(program: &Path) -> String {
    let file = fs::metadata(program).map(|of| (of.len(), of.mtime(), of.mtime_nsec())).ok();
    format!("{} {file:?}", program.display())
}

/// Runs a compiler until it exits, its time limit has passed or `stop` is set. Returns its warnings.
pub(super) fn run(command: &mut Command, bounds: &Bounds<'_>) -> Result<String, CompileFailure> {
    run_into(command, Stdio::null(), bounds)
}

/// Like [`run`], with a given standard output.
pub(super) fn run_into(command: &mut Command, output: Stdio, bounds: &Bounds<'_>) -> Result<String, CompileFailure> {
    let Bounds { limit, stop, .. } = *bounds;
    let program = command.get_program().to_owned();
    command
        .stdin(Stdio::null())
        .stdout(output)
        .stderr(Stdio::piped())
        // The compiler starts other processes, which must end with it. The parent handles Ctrl-C.
        .process_group(0);
    let _span = tracing::info_span!("run a compiler", ?command).entered();
    let readable = [bounds.readable.as_slice(), &[sandbox::installation(program.as_ref())]].concat();
    let mut child = sandbox::spawn(command, &readable, bounds.folder)
        .map_err(|source| failure(NoReply::NotStarted { program: program.clone().into(), source }.to_string(), ""))?;
    sandbox::limit_program(child.id());
    let stderr = child::read_all(child.stderr.take());
    let Some(log) = child::wait(&stderr, Instant::now() + limit, stop) else {
        end(&mut child);
        let interrupted = stop.load(Ordering::Relaxed);
        let reason = if interrupted { NoReply::Interrupted } else { NoReply::Killed(limit) };
        return Err(failure(reason.to_string(), ""));
    };
    // The compiler's standard error has closed, so it has exited or is about to.
    let status =
        child.wait().map_err(|error| failure(format!("cannot wait for {}: {error}", program.display()), ""))?;
    let log = String::from_utf8_lossy(&log).into_owned();
    if status.success() { Ok(log) } else { Err(rejected(&log)) }
}

/// Kills a compiler and the processes that it started.
fn end(child: &mut Child) {
    if let Some(group) = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw) {
        // Killing fails if it has already exited.
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    }
    let _ = child.wait();
}

fn rejected(log: &str) -> CompileFailure {
    let error = log.lines().find(|line| line.contains("error"));
    let summary = error.or_else(|| log.lines().next()).unwrap_or("the compiler gave no reason").trim();
    failure(format!("{summary}{}", sandbox::hint(log)), log)
}

fn failure(summary: String, log: &str) -> CompileFailure {
    CompileFailure { summary, log: log.to_owned() }
}

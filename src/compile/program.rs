//! Runs compilers that are programs: nvcc, clang and the assembler.

use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::child::{self, NoReply};
use crate::model::CompileFailure;
use crate::programs::search_path;

/// Runs a compiler until it ends, `limit` has passed or `stop` is set. Returns its warnings.
pub(super) fn run(command: &mut Command, limit: Duration, stop: &AtomicBool) -> Result<String, CompileFailure> {
    let program = command.get_program().to_owned();
    let mut child = command
        .env("PATH", search_path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        // It starts other compilers, which must end with it. The parent handles Ctrl-C.
        .process_group(0)
        .spawn()
        .map_err(|source| failure(NoReply::NotStarted { program: program.clone().into(), source }.to_string(), ""))?;
    let stderr = child::read_all(child.stderr.take());
    let Some(log) = child::wait(&stderr, Instant::now() + limit, stop) else {
        end(&mut child);
        let interrupted = stop.load(Ordering::Relaxed);
        let reason = if interrupted { NoReply::Interrupted } else { NoReply::Killed(limit) };
        return Err(failure(reason.to_string(), ""));
    };
    // Its standard error has ended, so it has ended or is about to.
    let status =
        child.wait().map_err(|error| failure(format!("cannot wait for {}: {error}", program.display()), ""))?;
    let log = String::from_utf8_lossy(&log).into_owned();
    if status.success() { Ok(log) } else { Err(rejected(&log)) }
}

/// Ends a compiler and those that it started.
fn end(child: &mut Child) {
    if let Some(group) = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw) {
        // Killing fails if it has already ended.
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    }
    let _ = child.wait();
}

fn rejected(log: &str) -> CompileFailure {
    let error = log.lines().find(|line| line.contains("error"));
    let summary = error.or_else(|| log.lines().next()).unwrap_or("the compiler gave no reason");
    failure(summary.trim().to_owned(), log)
}

fn failure(summary: String, log: &str) -> CompileFailure {
    CompileFailure { summary, log: log.to_owned() }
}

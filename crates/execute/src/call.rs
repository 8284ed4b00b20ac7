//! One call of a user-defined function, and the child process that runs it.

use std::fmt::Display;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Resource, Rlimit, prlimit};

use runner_backend::host_memory;
use runner_lang::format::bytes;
use runner_process::sandbox;
use runner_types::{ElementType, FunctionPlan};

/// How often a waiting parent checks whether the child has exited.
pub const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// An input: buffer name, element type, bytes.
pub type Input = (String, ElementType, Arc<Vec<u8>>);

pub struct Call<'a> {
    pub plan: &'a FunctionPlan,
    pub inputs: &'a [Input],
    /// Folder for the call's files.
    pub folder: &'a Path,
    /// Output `.npy` file, with elements of type f64, i64 or u64.
    pub output: &'a Path,
    pub end: End<'a>,
    /// Cache folder, if caching is on.
    pub cache: Option<&'a Path>,
}

/// When a child is killed.
#[derive(Clone, Copy)]
pub struct End<'a> {
    pub deadline: Instant,
    /// Set when the result is no longer needed.
    pub cancelled: &'a AtomicBool,
}

impl Call<'_> {
    /// Type and elements of an input.
    pub fn input(&self, name: &str) -> Result<(ElementType, &[u8]), String> {
        let known = self.inputs.iter().find(|(known, ..)| *known == name);
        let (_, element, bytes) = known.ok_or_else(|| format!("the case has no buffer `{name}`"))?;
        Ok((*element, bytes))
    }
}

/// Why there is no result.
#[derive(Debug, PartialEq, Eq)]
pub enum Failed {
    /// The child exceeded its time limit and was killed.
    Limit,
    /// This machine could not run it now: a full disk, a missing folder. Says nothing about the function.
    Environment(String),
    Reason(String),
}

impl Failed {
    /// An error of this process's own files and children.
    pub fn environment(what: impl Display, error: &io::Error) -> Self {
        Self::Environment(format!("{what}: {error}"))
    }
}

impl From<String> for Failed {
    fn from(reason: String) -> Self {
        Self::Reason(reason)
    }
}

/// Files that a child may access besides the installed system files.
#[derive(Clone, Copy)]
pub struct Bounds<'a> {
    pub readable: &'a [PathBuf],
    /// The only writable folder.
    pub folder: &'a Path,
}

/// Runs a program in the sandbox with this standard input until it exits, or kills it. Returns whether it succeeded,
/// and its standard error.
pub fn finish(
    command: &mut Command,
    stdin: &[u8],
    end: End<'_>,
    bounds: Bounds<'_>,
) -> Result<Result<(), String>, Failed> {
    let program = command.get_program().to_owned();
    let _span = tracing::info_span!("run a reference program", ?command).entered();
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = sandbox::spawn(command, bounds.readable, bounds.folder)
        .map_err(|e| Failed::environment(format_args!("cannot start `{}`", program.display()), &e))?;
    let most = most_bytes();
    limit(&child, most);
    // On a thread, since a child may stop reading. If the child exits early, its error is reported below.
    let (pipe, stdin) = (child.stdin.take(), stdin.to_vec());
    std::thread::spawn(move || pipe.map_or(Ok(()), |mut pipe| pipe.write_all(&stdin)));
    let errors = child.stderr.take().map(|mut stderr| {
        std::thread::spawn(move || {
            let mut text = Vec::new();
            let _ = stderr.by_ref().take(LONGEST_ERRORS).read_to_end(&mut text);
            // The pipe must be drained, or the child blocks.
            let _ = io::copy(&mut stderr, &mut io::sink());
            String::from_utf8_lossy(&text).into_owned()
        })
    });
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if Instant::now() < end.deadline && !end.cancelled.load(Ordering::Relaxed) => {
                std::thread::sleep(POLL_INTERVAL);
            }
            Ok(None) => {
                // Fails if the child has just exited.
                let _ = child.kill();
                let _ = child.wait();
                return Err(Failed::Limit);
            }
            Err(error) => {
                return Err(Failed::environment(format_args!("cannot wait for `{}`", program.display()), &error));
            }
        }
    };
    if status.success() {
        return Ok(Ok(()));
    }
    let errors = errors.and_then(|thread| thread.join().ok()).unwrap_or_default();
    let errors = if errors.trim().is_empty() { format!("it ended with {status}") } else { errors };
    if let Some(line) = errors.lines().find(|line| line.contains(DISK_FULL)) {
        return Err(Failed::Environment(line.trim().to_owned()));
    }
    let is_at_limit = OF_LIMITS.iter().any(|message| errors.contains(message));
    let hint = || {
        format!("; limited to {} of memory (all that the host can spare) and to the same amount of output", bytes(most))
    };
    Ok(Err(if is_at_limit { errors.trim_end().to_owned() + &hint() } else { errors }))
}

/// How the system describes a full disk.
const DISK_FULL: &str = "No space left on device";

/// Messages of programs that run out of memory or exceed the file size limit.
const OF_LIMITS: [&str; 4] = ["std::bad_alloc", "MemoryError", "Cannot allocate memory", "File too large"];

/// How many bytes of a child's standard error are kept.
const LONGEST_ERRORS: u64 = 1 << 20;

/// Minimum memory limit in bytes, since libraries reserve more than they use.
const LEAST_LIMIT: u64 = 4 << 30;

/// Limit in bytes for a child's memory and for each file it writes: what the host can spare, since the result must also
/// fit into this process's memory.
fn most_bytes() -> u64 {
    host_memory::limit().unwrap_or(LEAST_LIMIT).max(LEAST_LIMIT)
}

/// Limits a child, and makes the kernel kill it first if memory runs out. The child runs even if the system refuses
/// these limits.
fn limit(child: &Child, most: u64) {
    let Some(pid) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) else { return };
    for resource in [Resource::Data, Resource::Fsize] {
        let _ = prlimit(Some(pid), resource, Rlimit { current: Some(most), maximum: Some(most) });
    }
    let _ = std::fs::write(format!("/proc/{}/oom_score_adj", child.id()), "1000");
}

/// Last non-blank line of an error.
pub fn last_line(errors: &str) -> &str {
    errors.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it gave no reason")
}

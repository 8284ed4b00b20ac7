//! The compiler's child process: one request in, one reply out.
//!
//! NVRTC may crash on a source, exhaust the memory or hang. The child is this executable, and the parent kills it at
//! the time limit, so that only one unit is lost. The child's libraries print to standard error; only the reply goes to
//! the pipe.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::AsFd as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::elf;
use super::nvrtc::{self, Nvrtc, Refusal, Source};
use super::options::Target;
use super::toolkit::Toolkit;
use runner_files::cache_folder::CACHE_VARIABLE;
use runner_process::sandbox;
use runner_types::CodeKind;

/// Environment variable with the time limit per unit, e.g. `10min`.
pub const LIMIT_VARIABLE: &str = "RUNNER_COMPILE_LIMIT";

/// Hidden command that starts the child.
pub const COMMAND: &str = "__compile";

const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// How many bytes of a crashed child's standard error are kept.
const STDERR_TAIL: usize = 4096;

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Request {
    pub toolkit: Toolkit,
    pub target: Target,
    /// Architecture named in the manifest's options.
    pub architecture: Option<String>,
    /// Name of the source in the log and the line table.
    pub name: String,
    pub source: String,
    /// C++ names of kernels, and of variables prefixed with `&`.
    pub expressions: Vec<String>,
    pub options: Vec<String>,
    /// Output file for the code.
    pub output: PathBuf,
    /// Output file for the machine code, if the code is PTX.
    pub machine: PathBuf,
    /// Files that the child may read.
    pub readable: Vec<PathBuf>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Reply {
    /// The code is in the request's `output`.
    Compiled {
        kind: CodeKind,
        /// Mangled name of each expression.
        lowered: BTreeMap<String, String>,
        /// Opcode counts of each function's machine code, by mangled name, even if `kind` is PTX.
        operations: BTreeMap<String, String>,
        log: String,
    },
    /// The program has an error.
    Rejected { log: String },
    /// The compiler cannot be used.
    Unusable { reason: String },
    /// The code cannot be stored.
    Unwritable { reason: String },
}

#[derive(Debug, thiserror::Error)]
pub(super) enum NoReply {
    #[error("cannot start the compiler {}: {source}", program.display())]
    NotStarted { program: PathBuf, source: io::Error },
    #[error(
        "the compiler was killed: it ran past its limit of {} s; set {LIMIT_VARIABLE} to a longer one, such as 10min",
        .0.as_secs_f64()
    )]
    Killed(Duration),
    #[error("the compiler crashed ({status})")]
    Crashed { status: ExitStatus, stderr: String },
    #[error("interrupted before compilation finished")]
    Interrupted,
}

impl NoReply {
    /// Output of the child before it crashed.
    pub fn stderr(&self) -> &str {
        match self {
            Self::Crashed { stderr, .. } => stderr,
            _ => "",
        }
    }
}

/// Runs the child: reads one request from standard input, compiles, replies on standard output.
pub fn serve() -> io::Result<()> {
    let mut pipe = take_stdout()?;
    end_with_parent();
    let mut text = String::new();
    io::stdin().lock().read_to_string(&mut text)?;
    let request: Request = serde_json::from_str(&text)?;
    let reply = answer(&request).unwrap_or_else(|refusal| match refusal {
        Refusal::Program(log) => Reply::Rejected { log },
        Refusal::Compiler(reason) => Reply::Unusable { reason },
    });
    pipe.write_all(&serde_json::to_vec(&reply)?)
}

/// Reserves standard output for the reply and redirects everything else to standard error.
fn take_stdout() -> io::Result<File> {
    let pipe = io::stdout().as_fd().try_clone_to_owned()?;
    rustix::stdio::dup2_stdout(io::stderr())?;
    Ok(File::from(pipe))
}

/// Makes this process die with its parent, and before it if memory runs out. Errors are ignored, since compiling works
/// regardless.
fn end_with_parent() {
    let _ = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL));
    end_first();
}

/// Makes the kernel kill this process first if memory runs out. Errors are ignored.
pub fn end_first() {
    let _ = fs::write("/proc/self/oom_score_adj", "1000");
}

fn answer(request: &Request) -> Result<Reply, Refusal> {
    let toolkit = &request.toolkit;
    let nvrtc = Nvrtc::open(&toolkit.library, &toolkit.builtins)?;
    let mut output = match File::create(&request.output) {
        Ok(output) => output,
        Err(error) => return Ok(unwritable(&request.output, &error)),
    };
    let mut machine = match File::create(&request.machine) {
        Ok(machine) => machine,
        Err(error) => return Ok(unwritable(&request.machine, &error)),
    };
    sandbox::limit();
    let confined = sandbox::confine(request.readable.iter().chain(&toolkit.include_dirs));
    confined.map_err(|error| Refusal::Compiler(format!("the compiler cannot be confined: {error}")))?;
    let version = nvrtc.version()?;
    if version != toolkit.info.version {
        let (expected, found) = (toolkit.info.version, version);
        return Err(Refusal::Compiler(format!(
            "{} reports NVRTC {}.{}, but its builtins library is {}.{}: the toolkit mixes two versions",
            toolkit.library.display(),
            found.0,
            found.1,
            expected.0,
            expected.1
        )));
    }
    let own = request.architecture.as_deref();
    let name = format!("NVRTC {}.{}", version.0, version.1);
    let (architecture, kind) = nvrtc::architecture(request.target, own, &nvrtc.architectures()?, &name)?;
    let Request { source: text, name, expressions, options, .. } = request;
    let product = nvrtc.compile(&Source { text, name, expressions, options }, &architecture, kind)?;
    if let Err(error) = output.write_all(&product.code) {
        return Ok(unwritable(&request.output, &error));
    }
    if kind == CodeKind::Ptx
        && let Err(error) = machine.write_all(&product.machine)
    {
        return Ok(unwritable(&request.machine, &error));
    }
    Ok(Reply::Compiled {
        kind,
        operations: elf::operations(&product.machine),
        lowered: product.lowered,
        log: product.log,
    })
}

fn unwritable(output: &Path, error: &io::Error) -> Reply {
    let remedy = format!("free space there, or set {CACHE_VARIABLE} to another folder");
    Reply::Unwritable { reason: format!("cannot write {}: {error}; {remedy}", output.display()) }
}

/// Starts a child, sends the request and waits for the reply until `limit` has passed or `stop` is set.
pub(super) fn ask(program: &Path, request: &Request, limit: Duration, stop: &AtomicBool) -> Result<Reply, NoReply> {
    let deadline = Instant::now() + limit;
    let not_started = |source| NoReply::NotStarted { program: program.to_owned(), source };
    let asked = serde_json::to_vec(request).map_err(|e| not_started(e.into()))?;
    let mut child = Command::new(program)
        .arg(COMMAND)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        // The parent handles Ctrl-C.
        .process_group(0)
        .spawn()
        .map_err(not_started)?;
    let replies = read_all(child.stdout.take());
    let stderr = read_all(child.stderr.take());
    write_all(child.stdin.take(), asked);
    let Some(bytes) = wait(&replies, deadline, stop) else {
        end(&mut child);
        return Err(if stop.load(Ordering::Relaxed) { NoReply::Interrupted } else { NoReply::Killed(limit) });
    };
    if let Ok(reply) = serde_json::from_slice(&bytes) {
        end(&mut child);
        return Ok(reply);
    }
    // The pipe closed without a reply, so the child has exited or is about to.
    let status = child.wait().map_err(not_started)?;
    let stderr = stderr.recv().unwrap_or_default();
    let stderr = String::from_utf8_lossy(&stderr[stderr.len().saturating_sub(STDERR_TAIL)..]).trim().to_owned();
    Err(NoReply::Crashed { status, stderr })
}

/// Content of the pipe; `None` at the deadline or once `stop` is set.
pub(super) fn wait(pipe: &Receiver<Vec<u8>>, deadline: Instant, stop: &AtomicBool) -> Option<Vec<u8>> {
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        match pipe.recv_timeout(left.min(POLL_INTERVAL)) {
            Ok(bytes) => return Some(bytes),
            Err(RecvTimeoutError::Disconnected) => return Some(Vec::new()),
            Err(RecvTimeoutError::Timeout) if left.is_zero() || stop.load(Ordering::Relaxed) => return None,
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
}

/// Reads a pipe to its end in a thread, so that the child never blocks on a full pipe.
pub(super) fn read_all(pipe: Option<impl Read + Send + 'static>) -> Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            // After an error, the bytes read so far are used.
            let _ = pipe.read_to_end(&mut bytes);
        }
        let _ = sender.send(bytes);
    });
    receiver
}

/// Writes to a pipe and closes it, in a thread, so that a child that never reads still hits its time limit. If the
/// child exits early, its missing reply shows that.
fn write_all(pipe: Option<impl Write + Send + 'static>, bytes: Vec<u8>) {
    thread::spawn(move || pipe.map_or(Ok(()), |mut pipe| pipe.write_all(&bytes)));
}

fn end(child: &mut Child) {
    // Killing fails if the child has already exited.
    let _ = child.kill();
    let _ = child.wait();
}

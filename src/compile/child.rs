//! The compiler's own process: one request in, one reply out.
//!
//! NVRTC may crash on a source, eat the memory or never end. It runs in a child of this same executable, which the
//! parent kills at its time limit and whose death costs one unit. Whatever the child's libraries print goes to its
//! standard error; the reply alone goes to the pipe.

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

use super::cache::CACHE_VARIABLE;
use super::nvrtc::{self, Nvrtc, Refusal, Source};
use super::options::Target;
use super::toolkit::Toolkit;
use crate::model::CodeKind;

/// The hidden command that the child is started with.
pub const COMMAND: &str = "__compile";

/// How often a waiting parent looks whether to stop.
const GLANCE: Duration = Duration::from_millis(50);

/// How much of a dead child's last words is kept.
const LAST_WORDS: usize = 4096;

/// One unit to compile.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Request {
    pub toolkit: Toolkit,
    pub target: Target,
    /// The architecture that the manifest's own options name.
    pub architecture: Option<String>,
    /// What the log and the line table call the source.
    pub name: String,
    pub source: String,
    /// C++ names of kernels, and of variables with `&` in front.
    pub expressions: Vec<String>,
    pub options: Vec<String>,
    /// Where the code goes.
    pub output: PathBuf,
}

/// What the child has to say.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Reply {
    /// The code lies in the request's `output`.
    Compiled {
        kind: CodeKind,
        /// Expression → mangled name.
        lowered: BTreeMap<String, String>,
        log: String,
    },
    /// The program is at fault.
    Rejected { log: String },
    /// The compiler is.
    Unusable { reason: String },
}

/// Why there is no reply.
#[derive(Debug, thiserror::Error)]
pub(super) enum Death {
    #[error("cannot start the compiler {}: {source}", program.display())]
    NotStarted { program: PathBuf, source: io::Error },
    #[error("the compiler was killed: it ran past its limit of {} s", .0.as_secs_f64())]
    Killed(Duration),
    #[error("the compiler crashed ({status})")]
    Crashed { status: ExitStatus, words: String },
    #[error("the run was interrupted before this was compiled")]
    Interrupted,
}

impl Death {
    /// What the child printed before it died.
    pub fn words(&self) -> &str {
        match self {
            Self::Crashed { words, .. } => words,
            _ => "",
        }
    }
}

/// The child's life: read one request from standard input, compile, reply on standard output.
pub fn serve() -> io::Result<()> {
    let mut pipe = take_stdout()?;
    die_with_parent();
    let mut text = String::new();
    io::stdin().lock().read_to_string(&mut text)?;
    let request: Request = serde_json::from_str(&text)?;
    let reply = answer(&request).unwrap_or_else(|refusal| match refusal {
        Refusal::Program(log) => Reply::Rejected { log },
        Refusal::Compiler(reason) => Reply::Unusable { reason },
    });
    pipe.write_all(&serde_json::to_vec(&reply)?)
}

/// Takes standard output for the protocol and sends everybody else's words to standard error.
fn take_stdout() -> io::Result<File> {
    let pipe = io::stdout().as_fd().try_clone_to_owned()?;
    rustix::stdio::dup2_stdout(io::stderr())?;
    Ok(File::from(pipe))
}

/// A parent that was killed cannot kill its children, and one that runs out of memory should lose them first. Both
/// are courtesies: a system that refuses them changes nothing.
fn die_with_parent() {
    let _ = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL));
    let _ = fs::write("/proc/self/oom_score_adj", "1000");
}

fn answer(request: &Request) -> Result<Reply, Refusal> {
    let toolkit = &request.toolkit;
    let nvrtc = Nvrtc::open(&toolkit.library, &toolkit.builtins)?;
    let version = nvrtc.version()?;
    if version != toolkit.info.version {
        let (expected, found) = (toolkit.info.version, version);
        return Err(Refusal::Compiler(format!(
            "{} says that it is NVRTC {}.{}, its builtins library is of {}.{}; the toolkit is mixed up",
            toolkit.library.display(),
            found.0,
            found.1,
            expected.0,
            expected.1
        )));
    }
    let own = request.architecture.as_deref();
    let (architecture, kind) = nvrtc::architecture(request.target, own, &nvrtc.architectures()?, version)?;
    let source = Source {
        text: &request.source,
        name: &request.name,
        expressions: &request.expressions,
        options: &request.options,
    };
    let product = nvrtc.compile(&source, &architecture, kind)?;
    fs::write(&request.output, &product.code).map_err(|e| {
        let remedy = format!("see to room there, or set {CACHE_VARIABLE} to another folder");
        Refusal::Compiler(format!("cannot write {}: {e}; {remedy}", request.output.display()))
    })?;
    Ok(Reply::Compiled { kind, lowered: product.lowered, log: product.log })
}

/// Starts a child, hands it the request and waits for its reply, no longer than `limit` and not when `stop` is set.
pub(super) fn ask(program: &Path, request: &Request, limit: Duration, stop: &AtomicBool) -> Result<Reply, Death> {
    let deadline = Instant::now() + limit;
    let not_started = |source| Death::NotStarted { program: program.to_owned(), source };
    let asked = serde_json::to_vec(request).map_err(|e| not_started(e.into()))?;
    let mut child = Command::new(program)
        .arg(COMMAND)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        // Ctrl-C is the parent's to answer.
        .process_group(0)
        .spawn()
        .map_err(not_started)?;
    let replies = read_all(child.stdout.take());
    let words = read_all(child.stderr.take());
    // A child that died before it read everything is found out below.
    let _ = child.stdin.take().map_or(Ok(()), |mut stdin| stdin.write_all(&asked));
    let Some(bytes) = wait(&replies, deadline, stop) else {
        end(&mut child);
        return Err(if stop.load(Ordering::Relaxed) { Death::Interrupted } else { Death::Killed(limit) });
    };
    if let Ok(reply) = serde_json::from_slice(&bytes) {
        end(&mut child);
        return Ok(reply);
    }
    // Without a reply the pipe is closed all the same, so the child is at its end.
    let status = child.wait().map_err(not_started)?;
    let words = words.recv().unwrap_or_default();
    let words = String::from_utf8_lossy(&words[words.len().saturating_sub(LAST_WORDS)..]).trim().to_owned();
    Err(Death::Crashed { status, words })
}

/// What the pipe gave, or `None` at the deadline or where it is to stop.
pub(super) fn wait(pipe: &Receiver<Vec<u8>>, deadline: Instant, stop: &AtomicBool) -> Option<Vec<u8>> {
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        match pipe.recv_timeout(left.min(GLANCE)) {
            Ok(bytes) => return Some(bytes),
            Err(RecvTimeoutError::Disconnected) => return Some(Vec::new()),
            Err(RecvTimeoutError::Timeout) if left.is_zero() || stop.load(Ordering::Relaxed) => return None,
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
}

/// Reads a pipe to its end beside, so that none ever fills up.
pub(super) fn read_all(pipe: Option<impl Read + Send + 'static>) -> Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            // What arrived before an error is judged as it is.
            let _ = pipe.read_to_end(&mut bytes);
        }
        let _ = sender.send(bytes);
    });
    receiver
}

/// Ends a child that has replied or must not go on.
fn end(child: &mut Child) {
    // It may be gone already, which is what is wanted.
    let _ = child.kill();
    let _ = child.wait();
}

//! One worker process: started, spoken to, listened to with a deadline, killed and buried.
//!
//! The worker has a process group of its own, so that the terminal's Ctrl-C reaches the dispatcher alone and a kill
//! reaches everything that the worker started. This module knows nothing of groups and cases.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io::{self, BufReader, Read};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};

use super::interrupt::{Interrupt, TICK, Urgency};
use super::protocol::{self, PROTOCOL_VERSION, Ready, Reply, Request};

/// How long the reader of a dead worker's standard error may take to reach its end.
const LAST_WORDS: Duration = Duration::from_millis(500);
/// How long the system may take to tear down a killed worker and its device context.
const BURIAL: Duration = Duration::from_secs(30);
/// How much of a worker's standard error is kept, bytes.
const STDERR_KEPT: usize = 8 << 10;
/// How many of its last lines a message shows.
const STDERR_SHOWN: usize = 4;
/// Replies that may wait unread: a worker that says more waits for the dispatcher.
const BACKLOG: usize = 1024;

/// How to start a worker.
#[derive(Debug, Clone)]
pub struct WorkerSpec {
    pub program: PathBuf,
    pub args: Vec<OsString>,
    /// Added to the environment of this process.
    pub env: Vec<(OsString, OsString)>,
    pub limits: Limits,
}

impl WorkerSpec {
    /// A worker that is this program again, and stays it when the file is replaced during a run.
    pub fn of_this_program(args: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        Self::new("/proc/self/exe", args)
    }

    /// A worker with the limits of a real device.
    pub fn new(program: impl Into<PathBuf>, args: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        Self {
            program: program.into(),
            args: args.into_iter().map(Into::into).collect(),
            env: Vec::new(),
            limits: Limits::default(),
        }
    }
}

/// How long a worker may stay silent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// From its start to its device being open.
    pub start: Duration,
    /// Beyond the limit of a case's step: for what is not the kernel's fault.
    pub grace: Duration,
    /// Between steps.
    pub silence: Duration,
    /// For all tries together to start another after one died.
    pub restart: Duration,
    /// To be gone, for one that closed its replies; a profiler around it writes its results then.
    pub departure: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            start: Duration::from_mins(1),
            grace: Duration::from_secs(1),
            silence: Duration::from_mins(2),
            restart: Duration::from_mins(2),
            departure: Duration::from_millis(500),
        }
    }
}

/// Why there is no worker.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("cannot start the worker `{program}`: {source}", program = program.display())]
    Spawn { program: PathBuf, source: io::Error },
    /// The worker's own words: no driver, no such device.
    #[error("{0}")]
    Refused(String),
    #[error("{0}")]
    Version(String),
    #[error("the worker did not open its device within {seconds} s{said}")]
    TimedOut { seconds: f64, said: String },
    #[error("the worker {how} before its device was open{said}")]
    Died { how: String, said: String },
    #[error("the worker came back with another device: `{now}` in place of `{before}`")]
    OtherDevice { before: String, now: String },
    #[error("interrupted")]
    Interrupted,
}

impl StartError {
    /// Whether another try may go better: a device needs a moment after a worker was killed.
    pub(super) const fn may_pass(&self) -> bool {
        matches!(self, Self::Refused(_) | Self::TimedOut { .. } | Self::Died { .. })
    }
}

/// What came of listening.
#[derive(Debug)]
pub(super) enum Heard {
    Reply(Reply),
    /// It said something that is no reply; nothing after it can be trusted.
    Garbled(String),
    /// It closed its replies: it is dead or dying.
    Gone,
    /// The deadline passed.
    Silence,
    /// The user wants to stop more urgently than was heeded so far.
    Interrupted(Urgency),
}

/// How a worker ended.
#[derive(Debug)]
pub(super) struct Death {
    /// `was killed by SIGSEGV (invalid memory access)`.
    pub how: String,
    /// `; it said last:` and the last lines of its standard error; empty where it said nothing.
    pub said: String,
}

/// A running worker. Dropping it kills it.
#[derive(Debug)]
pub(super) struct WorkerProcess {
    child: Child,
    requests: Option<ChildStdin>,
    replies: Receiver<Result<Reply, String>>,
    stderr: StderrTail,
    /// The worker itself, where the child is a program around it.
    inner: Option<Pid>,
    departure: Duration,
    buried: bool,
}

impl WorkerProcess {
    /// Starts a worker and waits until its device is open.
    pub(super) fn start(spec: &WorkerSpec, interrupt: &Interrupt) -> Result<(Self, Ready), StartError> {
        let mut worker =
            Self::spawn(spec).map_err(|source| StartError::Spawn { program: spec.program.clone(), source })?;
        let heeded = interrupt.urgency();
        // A worker that is dead already is heard as gone.
        let _ = worker.send(&Request::Hello { version: PROTOCOL_VERSION });
        match worker.hear(Instant::now() + spec.limits.start, interrupt, heeded) {
            Heard::Reply(Reply::Ready(ready)) if ready.version == PROTOCOL_VERSION => {
                worker.inner = i32::try_from(ready.process).ok().and_then(Pid::from_raw).filter(|pid| {
                    // A worker that is the child is killed with its group.
                    *pid != Pid::from_child(&worker.child)
                });
                Ok((worker, *ready))
            }
            Heard::Reply(Reply::Ready(ready)) => {
                Err(StartError::Version(protocol::version_refusal(ready.version, PROTOCOL_VERSION)))
            }
            Heard::Reply(Reply::Failed { message }) => Err(StartError::Refused(message)),
            Heard::Reply(_) => Err(worker.misbehaved("answered the greeting with something else")),
            Heard::Garbled(why) => Err(worker.misbehaved(&format!("cannot be understood ({why})"))),
            Heard::Gone => {
                let Death { how, said } = worker.bury();
                Err(StartError::Died { how, said })
            }
            Heard::Silence => {
                worker.kill();
                Err(StartError::TimedOut { seconds: spec.limits.start.as_secs_f64(), said: worker.bury().said })
            }
            Heard::Interrupted(_) => Err(StartError::Interrupted),
        }
    }

    fn misbehaved(&mut self, how: &str) -> StartError {
        self.kill();
        StartError::Died { how: how.to_owned(), said: self.bury().said }
    }

    fn spawn(spec: &WorkerSpec) -> io::Result<Self> {
        let mut child = Command::new(&spec.program)
            .args(&spec.args)
            .envs(spec.env.iter().map(|(k, v)| (k, v)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()?;
        let missing = || io::Error::other("a pipe is missing");
        let requests = child.stdin.take().ok_or_else(missing)?;
        let stdout = child.stdout.take().ok_or_else(missing)?;
        let stderr = StderrTail::follow(child.stderr.take().ok_or_else(missing)?);
        let (say, replies) = mpsc::sync_channel(BACKLOG);
        thread::spawn(move || {
            let mut stdout = BufReader::new(stdout);
            loop {
                let said = match protocol::receive(&mut stdout) {
                    Ok(Some(reply)) => Ok(reply),
                    Ok(None) => return,
                    Err(e) => Err(e.to_string()),
                };
                let last = said.is_err();
                if say.send(said).is_err() || last {
                    return;
                }
            }
        });
        let departure = spec.limits.departure;
        Ok(Self { child, requests: Some(requests), replies, stderr, inner: None, departure, buried: false })
    }

    pub(super) fn send(&mut self, request: &Request) -> Result<(), protocol::ProtocolError> {
        let requests = self.requests.as_mut().ok_or_else(|| io::Error::from(io::ErrorKind::BrokenPipe))?;
        protocol::send(requests, request)
    }

    /// The next thing that the worker says, at the latest at the deadline.
    pub(super) fn hear(&self, deadline: Instant, interrupt: &Interrupt, heeded: Urgency) -> Heard {
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.replies.recv_timeout(left.min(TICK)) {
                Ok(Ok(reply)) => return Heard::Reply(reply),
                Ok(Err(why)) => return Heard::Garbled(why),
                Err(RecvTimeoutError::Disconnected) => return Heard::Gone,
                Err(RecvTimeoutError::Timeout) => {}
            }
            let urgency = interrupt.urgency();
            if urgency > heeded {
                return Heard::Interrupted(urgency);
            }
            if Instant::now() >= deadline {
                return Heard::Silence;
            }
        }
    }

    /// Kills the worker, and lets a program around it, a profiler that has results to write, end by itself for the
    /// time that it may take to depart; then kills what is left of the group.
    pub(super) fn kill(&mut self) {
        if let Some(inner) = self.inner.take().filter(|_| !self.buried && !self.wait_for_exit(Duration::ZERO)) {
            // One that is gone already is what was wanted.
            let _ = rustix::process::kill_process(inner, Signal::KILL);
            self.wait_for_exit(self.departure);
        }
        self.kill_group();
    }

    /// Kills the child and everything that it started.
    fn kill_group(&self) {
        if !self.buried {
            // A group that is gone already is what was wanted.
            let _ = rustix::process::kill_process_group(Pid::from_child(&self.child), Signal::KILL);
        }
    }

    /// Waits until the worker is gone, killing it if it lingers; says how it ended and what it said last.
    pub(super) fn bury(&mut self) -> Death {
        self.requests = None;
        if !self.wait_for_exit(self.departure) {
            self.kill_group();
            self.wait_for_exit(BURIAL);
        }
        // What it started must not outlive it; the dead worker still holds the group's number here.
        self.kill_group();
        let how = match self.child.try_wait() {
            Ok(Some(status)) => describe(status),
            Ok(None) => format!("could not be killed within {} s", BURIAL.as_secs()),
            Err(e) => format!("is lost: {e}"),
        };
        self.buried = true;
        Death { how, said: self.stderr.quote() }
    }

    /// Asks an idle worker to end, and kills it if it does not.
    pub(super) fn dismiss(mut self) {
        let _ = self.send(&Request::Quit);
        self.bury();
    }

    /// Whether the worker has exited, at the latest after `patience`; leaves it unburied.
    fn wait_for_exit(&self, patience: Duration) -> bool {
        let deadline = Instant::now() + patience;
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        loop {
            match rustix::process::waitid(WaitId::Pid(Pid::from_child(&self.child)), options) {
                Ok(None) if Instant::now() < deadline => thread::sleep(Duration::from_millis(5)),
                Ok(None) => return false,
                Ok(Some(_)) | Err(_) => return true,
            }
        }
    }
}

impl Drop for WorkerProcess {
    fn drop(&mut self) {
        if !self.buried {
            self.kill();
            self.bury();
        }
    }
}

/// `was killed by SIGSEGV (invalid memory access)`, `exited with code 3`.
fn describe(status: ExitStatus) -> String {
    let Some(number) = status.signal() else {
        return format!("exited with code {}", status.code().unwrap_or_default());
    };
    let name = match Signal::from_named_raw(number) {
        Some(Signal::SEGV) => "SIGSEGV (invalid memory access)",
        Some(Signal::ABORT) => "SIGABRT (it aborted itself)",
        Some(Signal::BUS) => "SIGBUS (invalid memory access)",
        Some(Signal::ILL) => "SIGILL (invalid instruction)",
        Some(Signal::FPE) => "SIGFPE (division by zero or overflow)",
        Some(Signal::KILL) => "SIGKILL (from outside: often the system when memory runs out)",
        Some(Signal::TERM) => "SIGTERM (from outside)",
        _ => return format!("was killed by signal {number}"),
    };
    format!("was killed by {name}")
}

/// The end of what a worker wrote to its standard error.
#[derive(Debug)]
struct StderrTail {
    kept: Arc<Mutex<VecDeque<u8>>>,
    reader: thread::JoinHandle<()>,
}

impl StderrTail {
    fn follow(mut stderr: impl Read + Send + 'static) -> Self {
        let kept = Arc::new(Mutex::new(VecDeque::new()));
        let keep = Arc::clone(&kept);
        let reader = thread::spawn(move || {
            let mut chunk = [0; 4096];
            while let Ok(n @ 1..) = stderr.read(&mut chunk) {
                let mut keep = keep.lock().unwrap_or_else(PoisonError::into_inner);
                keep.extend(&chunk[..n]);
                let excess = keep.len().saturating_sub(STDERR_KEPT);
                keep.drain(..excess);
            }
        });
        Self { kept, reader }
    }

    /// `; it said last:` and the last lines, in one line; empty where the worker said nothing.
    fn quote(&self) -> String {
        // The pipe of a dead worker ends at once; the wait is for the thread, and for a stray that holds the pipe.
        let deadline = Instant::now() + LAST_WORDS;
        while !self.reader.is_finished() && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(2));
        }
        let kept: Vec<u8> = self.kept.lock().unwrap_or_else(PoisonError::into_inner).iter().copied().collect();
        let text = String::from_utf8_lossy(&kept);
        let lines: Vec<&str> = text.lines().filter(|l| !l.trim().is_empty()).collect();
        let shown = &lines[lines.len().saturating_sub(STDERR_SHOWN)..];
        if shown.is_empty() { String::new() } else { format!("; it said last: {}", shown.join(" ⏎ ")) }
    }
}

//! One worker process: starts it, sends requests, receives replies with a deadline, kills and reaps it.
//!
//! The worker has its own process group. So the terminal's Ctrl-C reaches only the dispatcher, and a kill reaches
//! everything that the worker started. This module knows nothing about groups or cases.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io::{self, BufRead as _, BufReader, Read, Write as _};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};

use super::interrupt::{Interrupt, TICK, Urgency};
use super::protocol::{self, PROTOCOL_VERSION, Ready, Reply, Request};
use runner_progress::log;

/// Time limit for reading the rest of a dead worker's standard error.
const STDERR_LIMIT: Duration = Duration::from_millis(500);
/// Time limit for the system to tear down a killed worker and its device context.
const REAP_LIMIT: Duration = Duration::from_secs(30);
/// Number of bytes kept of a worker's standard error.
const STDERR_KEPT: usize = 8 << 10;
/// Maximum length of a line of standard error in bytes; longer lines are split.
const LONGEST_LINE: u64 = 1 << 20;
/// Number of last lines of standard error shown in a message.
const STDERR_SHOWN: usize = 4;
/// Maximum number of unread replies. A worker that sends more blocks until the dispatcher reads.
const BACKLOG: usize = 1024;

#[derive(Debug, Clone)]
pub struct WorkerSpec {
    pub program: PathBuf,
    pub args: Vec<OsString>,
    /// Variables added to this process's environment.
    pub env: Vec<(OsString, OsString)>,
    pub limits: Limits,
}

impl WorkerSpec {
    /// A worker that runs this program, even if its file is replaced during the run.
    pub fn of_this_program(args: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        Self::new("/proc/self/exe", args)
    }

    /// A worker with the time limits for a real device.
    pub fn new(program: impl Into<PathBuf>, args: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        Self {
            program: program.into(),
            args: args.into_iter().map(Into::into).collect(),
            env: log::for_worker(),
            limits: Limits::default(),
        }
    }
}

/// How long a worker may stay silent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// From the worker's start until its device is open.
    pub start: Duration,
    /// Added to the time limit of a case's step, for delays not caused by the kernel.
    pub grace: Duration,
    /// Between steps.
    pub silence: Duration,
    /// For all attempts together to restart a dead worker.
    pub restart: Duration,
    /// From when the worker closes its replies until it exits. A profiler around it writes its results in this time.
    pub exit: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            start: Duration::from_mins(1),
            grace: Duration::from_secs(1),
            silence: Duration::from_mins(2),
            restart: Duration::from_mins(2),
            exit: Duration::from_millis(500),
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("cannot start the worker `{program}`: {source}", program = program.display())]
    Spawn { program: PathBuf, source: io::Error },
    /// The worker's message, e.g. that there is no driver or no such device.
    #[error("{0}")]
    Refused(String),
    /// The worker uses a different version of the protocol; the message names both.
    #[error("{0}")]
    Version(String),
    /// The worker did not open its device within [`Limits::start`].
    #[error("the worker did not open its device within {seconds} s{stderr}")]
    TimedOut {
        seconds: f64,
        /// Last lines of its standard error; may be empty.
        stderr: String,
    },
    #[error("the worker {how} before its device was open{stderr}")]
    Died {
        /// Exit status or signal, for messages.
        how: String,
        /// Last lines of its standard error; may be empty.
        stderr: String,
    },
    #[error("the restarted worker found a different device: expected `{before}`, found `{now}`")]
    OtherDevice { before: String, now: String },
    /// A worker was killed from outside for the second time during the same case.
    #[error("{0}")]
    Killed(String),
    #[error("interrupted")]
    Interrupted,
}

impl StartError {
    /// Whether another attempt may succeed: a device needs some time after a worker was killed.
    pub(super) const fn may_pass(&self) -> bool {
        matches!(self, Self::Refused(_) | Self::TimedOut { .. } | Self::Died { .. })
    }
}

/// Result of waiting for a reply.
#[derive(Debug)]
pub(super) enum Received {
    Reply(Reply),
    /// A line that is not a valid reply, and why; the worker is unusable.
    Malformed(String),
    /// The worker closed its replies: it exited or is about to.
    Closed,
    TimedOut,
    /// The user asks to stop, more urgently than before.
    Interrupted(Urgency),
}

/// How a worker ended.
#[derive(Debug)]
pub(super) struct Exit {
    /// E.g. `was killed by SIGSEGV (invalid memory access)`.
    pub how: String,
    /// `; its last output:` and the last lines of its standard error; empty if there are none.
    pub stderr: String,
    /// Whether something else killed it, e.g. the kernel's OOM killer.
    pub from_outside: bool,
}

/// A running worker process. Dropping it kills it.
#[derive(Debug)]
pub(super) struct WorkerProcess {
    child: Child,
    /// Lines for a thread to write to the worker, which may have stopped reading. Dropping the sender makes the thread
    /// close the pipe.
    requests: Option<Sender<Vec<u8>>>,
    replies: Receiver<Result<Reply, String>>,
    stderr: StderrTail,
    /// The worker itself, if the child is a wrapper such as a profiler.
    inner: Option<Pid>,
    exit_limit: Duration,
    /// Whether this program killed it.
    killed: bool,
    reaped: bool,
}

impl WorkerProcess {
    /// Starts a worker and waits until its device is open.
    pub(super) fn start(spec: &WorkerSpec, interrupt: &Interrupt) -> Result<(Self, Ready), StartError> {
        let mut worker =
            Self::spawn(spec).map_err(|source| StartError::Spawn { program: spec.program.clone(), source })?;
        let handled = interrupt.urgency();
        // If the worker is already dead, the next receive returns `Closed`.
        let _ = worker.send(&Request::Hello { version: PROTOCOL_VERSION });
        match worker.receive(Instant::now() + spec.limits.start, interrupt, handled) {
            Received::Reply(Reply::Ready(ready)) if ready.version == PROTOCOL_VERSION => {
                worker.inner = i32::try_from(ready.process).ok().and_then(Pid::from_raw).filter(|pid| {
                    // If the worker is the child itself, killing the process group also kills it.
                    *pid != Pid::from_child(&worker.child)
                });
                Ok((worker, *ready))
            }
            Received::Reply(Reply::Ready(ready)) => {
                Err(StartError::Version(protocol::version_refusal(ready.version, PROTOCOL_VERSION)))
            }
            Received::Reply(Reply::Failed { message }) => Err(StartError::Refused(message)),
            Received::Reply(_) => Err(worker.protocol_violation("answered the first request with an unexpected reply")),
            Received::Malformed(why) => Err(worker.protocol_violation(&format!("sent an invalid reply ({why})"))),
            Received::Closed => {
                let Exit { how, stderr, .. } = worker.reap();
                Err(StartError::Died { how, stderr })
            }
            Received::TimedOut => {
                worker.kill();
                Err(StartError::TimedOut { seconds: spec.limits.start.as_secs_f64(), stderr: worker.reap().stderr })
            }
            Received::Interrupted(_) => Err(StartError::Interrupted),
        }
    }

    fn protocol_violation(&mut self, how: &str) -> StartError {
        self.kill();
        StartError::Died { how: how.to_owned(), stderr: self.reap().stderr }
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
        tracing::info!(program = %spec.program.display(), arguments = ?spec.args, "started worker {}", child.id());
        let missing = || io::Error::other("a pipe is missing");
        let requests = write_requests(child.stdin.take().ok_or_else(missing)?);
        let stdout = child.stdout.take().ok_or_else(missing)?;
        let stderr = StderrTail::follow(child.id(), child.stderr.take().ok_or_else(missing)?);
        let (sender, replies) = mpsc::sync_channel(BACKLOG);
        thread::spawn(move || {
            let mut stdout = BufReader::new(stdout);
            loop {
                let reply = match protocol::receive(&mut stdout) {
                    Ok(Some(reply)) => Ok(reply),
                    Ok(None) => return,
                    Err(e) => Err(e.to_string()),
                };
                let last = reply.is_err();
                if sender.send(reply).is_err() || last {
                    return;
                }
            }
        });
        let exit_limit = spec.limits.exit;
        Ok(Self {
            child,
            requests: Some(requests),
            replies,
            stderr,
            inner: None,
            exit_limit,
            killed: false,
            reaped: false,
        })
    }

    /// Sends a request without waiting until the worker reads it. A worker that does not read does not reply either,
    /// and [`Self::receive`] has a deadline. Fails if the request cannot be serialized as one line.
    pub(super) fn send(&self, request: &Request) -> Result<(), protocol::ProtocolError> {
        let line = protocol::write_line(request)?;
        tracing::info!(bytes = line.len(), "send to worker {}: {request}", self.child.id());
        if let Some(requests) = &self.requests {
            // Fails if the worker closed its requests; the next receive returns `Closed`.
            let _ = requests.send(line);
        }
        Ok(())
    }

    /// Waits for the next reply, until the deadline. `handled` is the urgency that the caller has already acted on.
    pub(super) fn receive(&self, deadline: Instant, interrupt: &Interrupt, handled: Urgency) -> Received {
        loop {
            // Check first: a worker may send replies without a pause.
            let urgency = interrupt.urgency();
            if urgency > handled {
                return Received::Interrupted(urgency);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            match self.replies.recv_timeout(left.min(TICK)) {
                Ok(Ok(reply)) => return Received::Reply(reply),
                Ok(Err(why)) => return Received::Malformed(why),
                Err(RecvTimeoutError::Disconnected) => return Received::Closed,
                Err(RecvTimeoutError::Timeout) => {}
            }
            if Instant::now() >= deadline {
                return Received::TimedOut;
            }
        }
    }

    /// Kills the worker, then the rest of its process group. A wrapper such as a profiler first gets time to write its
    /// results and exit.
    pub(super) fn kill(&mut self) {
        tracing::info!("kill worker {}", self.child.id());
        self.killed = true;
        if let Some(inner) = self.inner.take().filter(|_| !self.reaped && !self.wait_for_exit(Duration::ZERO)) {
            // Fails if the worker exited meanwhile.
            let _ = rustix::process::kill_process(inner, Signal::KILL);
            self.wait_for_exit(self.exit_limit);
        }
        self.kill_group();
    }

    /// Kills the child and everything that it started.
    fn kill_group(&self) {
        if !self.reaped {
            // Fails if the group exited meanwhile.
            let _ = rustix::process::kill_process_group(Pid::from_child(&self.child), Signal::KILL);
        }
    }

    /// Waits for the worker to exit; kills it if that takes too long.
    pub(super) fn reap(&mut self) -> Exit {
        self.requests = None;
        let ended_itself = self.wait_for_exit(self.exit_limit);
        if !ended_itself {
            self.kill_group();
            self.wait_for_exit(REAP_LIMIT);
        }
        // No process that the worker started may outlive it. The group id is still valid, since the worker is not
        // reaped yet.
        self.kill_group();
        let status = self.child.try_wait();
        let is_kill = |status: &ExitStatus| status.signal() == Some(Signal::KILL.as_raw());
        let from_outside = ended_itself && !self.killed && matches!(&status, Ok(Some(status)) if is_kill(status));
        let how = match status {
            Ok(Some(_)) if self.killed => "was killed by runner".to_owned(),
            Ok(Some(status)) => describe(status),
            Ok(None) => format!("could not be killed within {} s", REAP_LIMIT.as_secs()),
            Err(e) => format!("is lost: {e}"),
        };
        tracing::info!("worker {} {how}", self.child.id());
        self.reaped = true;
        Exit { how, stderr: self.stderr.quote(), from_outside }
    }

    /// Asks idle workers to exit, all at once, and kills those that do not.
    pub(super) fn shut_down(workers: impl IntoIterator<Item = Self>) {
        let asked = workers.into_iter().inspect(|worker| drop(worker.send(&Request::Quit)));
        asked.collect::<Vec<Self>>().iter_mut().for_each(|worker| drop(worker.reap()));
    }

    /// Waits at most `limit` for the worker to exit, without reaping it; returns whether it did.
    fn wait_for_exit(&self, limit: Duration) -> bool {
        let deadline = Instant::now() + limit;
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
        if !self.reaped {
            self.kill();
            self.reap();
        }
    }
}

/// Starts a thread that writes lines to a worker until the worker closes its end or the sender is dropped.
fn write_requests(mut stdin: ChildStdin) -> Sender<Vec<u8>> {
    let (sender, lines) = mpsc::channel::<Vec<u8>>();
    thread::spawn(move || {
        for line in lines {
            if stdin.write_all(&line).is_err() {
                return;
            }
        }
    });
    sender
}

/// Name in messages for the signal of a worker that was killed from outside.
pub const KILLED: &str = "SIGKILL (from outside: often the system when memory runs out)";

/// Describes how a process ended, e.g. `was killed by SIGSEGV (invalid memory access)` or `exited with code 3`.
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
        Some(Signal::KILL) => KILLED,
        Some(Signal::TERM) => "SIGTERM (from outside)",
        _ => return format!("was killed by signal {number}"),
    };
    format!("was killed by {name}")
}

/// Collects the last lines of a worker's standard error.
#[derive(Debug)]
struct StderrTail {
    kept: Arc<Mutex<VecDeque<u8>>>,
    reader: thread::JoinHandle<()>,
}

impl StderrTail {
    /// Keeps the end of a worker's standard error. Log lines go to this process's log instead.
    fn follow(worker: u32, stderr: impl Read + Send + 'static) -> Self {
        let kept = Arc::new(Mutex::new(VecDeque::new()));
        let keep = Arc::clone(&kept);
        let reader = thread::spawn(move || {
            let (mut stderr, mut line) = (BufReader::new(stderr), Vec::new());
            while let Ok(1..) = stderr.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line) {
                let text = std::mem::take(&mut line);
                if log::forward(worker, &String::from_utf8_lossy(&text)) {
                    continue;
                }
                let mut keep = keep.lock().unwrap_or_else(PoisonError::into_inner);
                keep.extend(text);
                let excess = keep.len().saturating_sub(STDERR_KEPT);
                keep.drain(..excess);
            }
        });
        Self { kept, reader }
    }

    /// `; its last output:` and the last lines, joined into one; empty if the worker wrote nothing.
    fn quote(&self) -> String {
        // A dead worker's pipe ends at once, unless a process that it started still holds it open.
        let deadline = Instant::now() + STDERR_LIMIT;
        while !self.reader.is_finished() && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(2));
        }
        let kept: Vec<u8> = self.kept.lock().unwrap_or_else(PoisonError::into_inner).iter().copied().collect();
        let text = String::from_utf8_lossy(&kept);
        let lines: Vec<&str> = text.lines().filter(|l| !l.trim().is_empty()).collect();
        let shown = &lines[lines.len().saturating_sub(STDERR_SHOWN)..];
        if shown.is_empty() { String::new() } else { format!("; its last output: {}", shown.join(" ⏎ ")) }
    }
}

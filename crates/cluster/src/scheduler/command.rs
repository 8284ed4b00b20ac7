//! Runs scheduler commands with a time limit: a hung controller must not hang this program.

use std::io::Read;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use super::QueueError;

/// Longer than Slurm's own time limits.
const LIMIT: Duration = Duration::from_mins(5);

/// Start of the message about a command that exceeded the time limit.
pub const NO_ANSWER: &str = "no answer";

/// Runs a command and returns its standard output.
pub fn run(words: &[&str]) -> Result<String, QueueError> {
    run_as(words.first().copied().unwrap_or_default(), words)
}

/// Like [`run`], but messages name the command `program`.
pub fn run_as(program: &str, words: &[&str]) -> Result<String, QueueError> {
    run_within(LIMIT, program, words)
}

fn run_within(limit: Duration, program: &str, words: &[&str]) -> Result<String, QueueError> {
    let [file, arguments @ ..] = words else { return Ok(String::new()) };
    let _span = tracing::info_span!("ask the scheduler", program, ?arguments).entered();
    let mut command = Command::new(file);
    command.args(arguments).env("PATH", runner_process::programs::search_path());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let program = program.to_owned();
    let missing = |error: std::io::Error| QueueError::Missing { program: program.clone(), why: error.to_string() };
    let mut child = command.spawn().map_err(missing)?;
    let (output, errors) = (read(child.stdout.take()), read(child.stderr.take()));
    let id = Pid::from_child(&child);
    let (ended, waits) = mpsc::channel();
    thread::spawn(move || ended.send(child.wait()));
    let Ok(status) = waits.recv_timeout(limit) else {
        // The command may have just ended, but its process id cannot be reused until the thread has waited for it.
        let _ = kill_process(id, Signal::KILL);
        let why = format!("{NO_ANSWER} within {}", humantime::format_duration(limit));
        return Err(QueueError::Failed { program, why });
    };
    let status = status.map_err(missing)?;
    if status.success() {
        return Ok(String::from_utf8_lossy(&output.recv().unwrap_or_default()).into_owned());
    }
    let said = errors.recv().unwrap_or_default();
    let said = String::from_utf8_lossy(&said);
    let why = said.trim().lines().last().map_or_else(|| status.to_string(), str::to_owned);
    Err(QueueError::Failed { program, why })
}

/// Reads a pipe to its end in a thread, so that the command never blocks on a full pipe.
fn read(pipe: Option<impl Read + Send + 'static>) -> mpsc::Receiver<Vec<u8>> {
    let (send, receive) = mpsc::channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        // On a read error, keep what was read so far.
        let _ = pipe.map(|mut pipe| pipe.read_to_end(&mut bytes));
        send.send(bytes)
    });
    receive
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(limit: Duration, script: &str) -> Result<String, String> {
        run_within(limit, "sh", &["sh", "-c", script]).map_err(|error| error.to_string())
    }

    #[test]
    fn a_command_that_does_not_end_is_no_answer() {
        assert_eq!(said(LIMIT, "echo yes").as_deref(), Ok("yes\n"));
        assert_eq!(said(LIMIT, "echo one >&2; echo no >&2; exit 1"), Err("sh failed: no".to_owned()));
        assert_eq!(said(Duration::from_millis(1), "exec sleep 600"), Err("sh failed: no answer within 1ms".to_owned()));
    }
}

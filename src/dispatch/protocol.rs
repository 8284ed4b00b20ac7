//! The line protocol between the dispatcher and a worker process: one JSON object a line, in both directions.
//!
//! Requests reach the worker on its standard input; replies leave it on a descriptor of its own (see
//! [`capture`](super::capture)), because device printf writes to standard output. The first line of each side carries
//! the version, and either side refuses another version by name. This module frames and parses; it decides nothing.

use std::io::{self, BufRead, Write};

use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::model::{DeviceInfo, Event, GroupJob, Settings, Survey, SurveyRequest};

/// The version of the lines; raised when either side would misread the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ProtocolVersion(pub u32);

/// What this build speaks.
pub const PROTOCOL_VERSION: ProtocolVersion = ProtocolVersion(2);

/// Longest line that is read, bytes: a peer that sends more is broken, and is not worth the memory.
const LONGEST_LINE: u64 = 256 << 20;

/// Dispatcher to worker.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "request")]
pub enum Request {
    /// Always first. Its shape never changes, so that every version can refuse every other.
    Hello { version: ProtocolVersion },
    /// Run these cases.
    Group { job: Box<GroupJob> },
    /// Measure the device itself; an idle worker's.
    Survey { wanted: Box<SurveyRequest> },
    /// Take so much off every interval that the device's clock reads. There is no reply.
    Calibrate { nanoseconds: f64 },
    /// Stop before the next step of a case; an idle worker ends.
    Quit,
}

/// Worker to dispatcher.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "reply")]
pub enum Reply {
    /// The device is open: answers `Hello`.
    Ready(Box<Ready>),
    /// The worker cannot serve and ends.
    Failed { message: String },
    /// Something happened.
    Event { event: Box<Event> },
    /// The group has run to its end.
    GroupDone { ordinal: u32 },
    /// What a survey found, or why it found nothing; the device lives on.
    Surveyed { found: Result<Box<Survey>, String> },
    /// The device's context is gone; what it cost is settled, the worker ends.
    Lost { message: String },
    /// `Quit` was obeyed in the middle of a group; the worker ends.
    Stopped,
}

/// What a worker has opened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ready {
    pub version: ProtocolVersion,
    /// Its process: not the dispatcher's child where a profiler stands between.
    pub process: u32,
    pub device: DeviceInfo,
    /// The device's UUID, where it has one.
    #[serde(default)]
    pub uuid: Option<String>,
    /// For example `580.159.04`; `None` for a device without a driver.
    pub driver: Option<String>,
    /// The CUDA version that the driver speaks.
    pub driver_cuda: Option<(u32, u32)>,
    /// How the device is set, where anybody can tell.
    #[serde(default)]
    pub settings: Option<Settings>,
    /// Processes that have the device open besides the worker, where they can be counted.
    #[serde(default)]
    pub other_processes: Option<u32>,
    /// How the device takes times, in one sentence; `None` without a clock.
    pub timing_method: Option<String>,
    /// Whether the host's speed stays out of the device's times.
    #[serde(default)]
    pub shuts_out_host: bool,
}

/// Why a line could not be exchanged.
#[derive(Debug, thiserror::Error)]
pub enum ProtocolError {
    #[error("the other side of the worker protocol is gone: {0}")]
    Io(#[from] io::Error),
    #[error("not a line of the worker protocol: {why} in `{start}`")]
    Malformed { why: String, start: String },
    #[error("a line of the worker protocol is longer than {LONGEST_LINE} bytes")]
    TooLong,
}

/// Says that the two sides were built from different sources.
pub(super) fn version_refusal(worker: ProtocolVersion, dispatcher: ProtocolVersion) -> String {
    format!(
        "the worker speaks version {} of the worker protocol, the dispatcher version {}: run both from one build of \
         `runner`",
        worker.0, dispatcher.0
    )
}

/// Writes one line and flushes it.
pub(super) fn send<T: Serialize>(to: &mut impl Write, message: &T) -> Result<(), ProtocolError> {
    let mut line = serde_json::to_vec(message).map_err(io::Error::from)?;
    line.push(b'\n');
    to.write_all(&line)?;
    to.flush()?;
    Ok(())
}

/// Reads one line; `None` at the end of the stream. A last line without its end is a torn one, and malformed.
pub(super) fn receive<T: DeserializeOwned>(from: &mut impl BufRead) -> Result<Option<T>, ProtocolError> {
    let mut line = Vec::new();
    io::Read::take(&mut *from, LONGEST_LINE).read_until(b'\n', &mut line)?;
    if line.is_empty() {
        return Ok(None);
    }
    if line.last() != Some(&b'\n') {
        return Err(if line.len() as u64 >= LONGEST_LINE {
            ProtocolError::TooLong
        } else {
            malformed("the line breaks off", &line)
        });
    }
    line.pop();
    serde_json::from_slice(&line).map(Some).map_err(|e| malformed(&e.to_string(), &line))
}

fn malformed(why: &str, line: &[u8]) -> ProtocolError {
    let start = String::from_utf8_lossy(&line[..line.len().min(120)]).replace(char::is_control, "\u{fffd}");
    ProtocolError::Malformed { why: why.to_owned(), start }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test panics to fail")]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_one_line_that_reads_back() {
        let mut wire = Vec::new();
        send(&mut wire, &Request::Hello { version: ProtocolVersion(7) }).unwrap();
        send(&mut wire, &Request::Quit).unwrap();
        assert_eq!(wire, b"{\"request\":\"hello\",\"version\":7}\n{\"request\":\"quit\"}\n");
        let mut wire = wire.as_slice();
        assert_eq!(receive(&mut wire).unwrap(), Some(Request::Hello { version: ProtocolVersion(7) }));
        assert_eq!(receive(&mut wire).unwrap(), Some(Request::Quit));
        assert_eq!(receive::<Request>(&mut wire).unwrap(), None);
    }

    #[test]
    fn a_torn_line_and_a_foreign_line_are_refused_with_their_start() {
        let torn = receive::<Request>(&mut b"{\"request\":\"qu".as_slice()).unwrap_err().to_string();
        assert_eq!(torn, "not a line of the worker protocol: the line breaks off in `{\"request\":\"qu`");
        let foreign = receive::<Reply>(&mut b"hello\x1b[m from printf\n".as_slice()).unwrap_err().to_string();
        assert!(foreign.contains("`hello\u{fffd}[m from printf`"), "{foreign}");
    }

    #[test]
    fn a_message_with_line_ends_inside_stays_one_line() {
        let mut wire = Vec::new();
        send(&mut wire, &Reply::Lost { message: "one\ntwo".into() }).unwrap();
        assert_eq!(wire, b"{\"reply\":\"lost\",\"message\":\"one\\ntwo\"}\n");
        assert_eq!(receive(&mut wire.as_slice()).unwrap(), Some(Reply::Lost { message: "one\ntwo".into() }));
    }
}

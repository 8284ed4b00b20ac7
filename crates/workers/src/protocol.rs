//! The line protocol between the dispatcher and a worker process: one JSON object per line, in both directions.
//!
//! Requests arrive on the worker's standard input. Replies use a separate descriptor (see [`capture`](super::capture)),
//! because device printf writes to standard output. Each side first sends its version, and refuses a peer with a
//! different one.

use std::fmt;
use std::io::{self, BufRead, Write};

use serde::{Deserialize, Serialize, de::DeserializeOwned};

use runner_types::{DeviceInfo, Event, GroupJob, Settings, Survey, SurveyRequest, real};

/// Protocol version, raised when either side would misread the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ProtocolVersion(pub u32);

/// Version that this build uses.
pub const PROTOCOL_VERSION: ProtocolVersion = ProtocolVersion(2);

/// Maximum length of a line in bytes. A peer that sends a longer one is broken.
const LONGEST_LINE: u64 = 256 << 20;

/// A message from the dispatcher to a worker.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "request")]
pub enum Request {
    /// The first request to a worker. Its form never changes, so that any two versions can refuse each other.
    Hello { version: ProtocolVersion },
    /// Run these cases.
    Group { job: Box<GroupJob> },
    /// Measure the device itself. Sent only to an idle worker.
    Survey { wanted: Box<SurveyRequest> },
    /// Subtract this from every device-clock interval. There is no reply.
    Calibrate {
        #[serde(with = "real")]
        nanoseconds: f64,
    },
    /// Stop before the next step of a case. An idle worker exits.
    Quit,
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Hello { .. } => write!(f, "hello"),
            Self::Group { job } => write!(f, "group {}, {} cases {}", job.ordinal, job.cases.len(), job.key),
            Self::Survey { .. } => write!(f, "survey"),
            Self::Calibrate { nanoseconds } => write!(f, "calibrate by {nanoseconds} ns"),
            Self::Quit => write!(f, "quit"),
        }
    }
}

/// A message from a worker to the dispatcher.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "reply")]
pub enum Reply {
    /// The device is open. Answers `Hello`.
    Ready(Box<Ready>),
    /// The worker cannot continue and exits.
    Failed { message: String },
    /// An event of the group.
    Event { event: Box<Event> },
    /// The group is finished; no more of its events follow.
    GroupDone { ordinal: u32 },
    /// The result of a survey, or why it failed. The device remains usable.
    Surveyed { found: Result<Box<Survey>, String> },
    /// The device's context is lost. The case at fault is settled; the worker exits.
    Lost { message: String },
    /// Answers `Quit` within a group; the worker exits.
    Stopped,
}

/// The worker's process and the device that it opened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ready {
    pub version: ProtocolVersion,
    /// Process id of the worker. Under a profiler, the worker is not the dispatcher's child.
    pub process: u32,
    pub device: DeviceInfo,
    #[serde(default)]
    pub uuid: Option<String>,
    /// Driver version, e.g. `580.159.04`; `None` for a device without a driver.
    pub driver: Option<String>,
    /// CUDA version that the driver supports.
    pub driver_cuda: Option<(u32, u32)>,
    #[serde(default)]
    pub settings: Option<Settings>,
    /// Number of other processes that have the device open, if they can be counted.
    #[serde(default)]
    pub other_processes: Option<u32>,
    /// How the device measures times, in one sentence; `None` without a clock.
    pub timing_method: Option<String>,
    /// Whether the device's times are independent of the host's speed.
    #[serde(default)]
    pub excludes_host: bool,
}

#[derive(Debug, thiserror::Error)]
pub enum ProtocolError {
    #[error("the worker protocol is closed: {0}")]
    Io(#[from] io::Error),
    #[error("not a line of the worker protocol: {why} in `{start}`")]
    Malformed { why: String, start: String },
    #[error("it cannot be written as JSON: {0}")]
    Unwritable(serde_json::Error),
    #[error("a line of the worker protocol is longer than {LONGEST_LINE} bytes")]
    TooLong,
}

/// Error message for two sides with different versions.
pub(super) fn version_refusal(worker: ProtocolVersion, dispatcher: ProtocolVersion) -> String {
    format!(
        "the worker uses version {} of the worker protocol, the dispatcher version {}: run both from one build of \
         `runner`",
        worker.0, dispatcher.0
    )
}

/// Serializes a message as one line.
pub(super) fn write_line<T: Serialize>(message: &T) -> Result<Vec<u8>, ProtocolError> {
    let mut line = serde_json::to_vec(message).map_err(ProtocolError::Unwritable)?;
    line.push(b'\n');
    Ok(line)
}

/// Writes one line and flushes it.
pub(super) fn send<T: Serialize>(to: &mut impl Write, message: &T) -> Result<(), ProtocolError> {
    to.write_all(&write_line(message)?)?;
    to.flush()?;
    Ok(())
}

/// Reads one line; `None` at the end of the stream. A last line without a newline is malformed.
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
            malformed("the line is cut off", &line)
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
    fn a_line_that_is_cut_off_or_not_json_is_refused_with_its_start() {
        let cut = receive::<Request>(&mut b"{\"request\":\"qu".as_slice()).unwrap_err().to_string();
        assert_eq!(cut, "not a line of the worker protocol: the line is cut off in `{\"request\":\"qu`");
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

    #[test]
    fn numbers_that_json_does_not_have_reach_the_other_side() {
        use runner_types::{Case, CaseKey, GroupKey, ResultError};

        let key = CaseKey { experiment: "x".into(), variant: "v".into(), axes: Vec::new() };
        let case = Case { ordinal: 0, key, group: GroupKey(Vec::new()) };
        let error = ResultError { abs: 1.5, rel: f64::INFINITY, mean_rel: f64::NEG_INFINITY, ulp: f64::INFINITY };
        let reply = Reply::Event { event: Box::new(Event::CaseErred { case, error }) };
        let request = Request::Calibrate { nanoseconds: f64::INFINITY };
        let (mut replies, mut requests) = (Vec::new(), Vec::new());
        send(&mut replies, &reply).unwrap();
        send(&mut requests, &request).unwrap();
        assert_eq!(receive(&mut replies.as_slice()).unwrap(), Some(reply));
        assert_eq!(receive(&mut requests.as_slice()).unwrap(), Some(request));
    }
}

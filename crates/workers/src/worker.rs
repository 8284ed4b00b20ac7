//! Main loop of a worker process: groups in, events out, until the dispatcher ends it or its device is lost.
//!
//! A worker never outlives its dispatcher: it exits when its standard input ends, even during a kernel. The dispatcher
//! settles the cases that the worker did not run.

use std::fmt;
use std::fs::File;
use std::io::{self, BufReader};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::Duration;

use rustix::process::Signal;

use super::capture::StdoutCapture;
use super::protocol::{self, PROTOCOL_VERSION, ProtocolError, Ready, Reply, Request};
use runner_backend::{Device, DeviceError};
use runner_types::{Activity, Case, Event, GroupJob, Survey, SurveyRequest};

/// How long a worker whose dispatcher is gone may keep running before it is killed.
const ORPHAN_LIMIT: Duration = Duration::from_secs(2);

/// Serves the dispatcher on standard input and output, which belong to the protocol from now on. When this returns, the
/// process should exit with success: device failures were sent as replies. Fails if there is no dispatcher.
pub fn serve<L: fmt::Display>(
    open: impl FnOnce() -> Result<Box<dyn Device>, DeviceError>,
    mut run_group: impl FnMut(&mut dyn Device, &GroupJob, &mut dyn FnMut(Event)) -> Result<(), L>,
    survey: impl Fn(&mut dyn Device, &SurveyRequest) -> Result<Survey, DeviceError>,
) -> Result<(), ProtocolError> {
    let (stdout, capture) = StdoutCapture::install()?;
    let stop = Arc::new(AtomicBool::new(false));
    let requests = listen(&stop);
    let mut connection = Connection { replies: File::from(stdout), capture, stop, checking: None, active: None };
    let Some(mut device) = handshake(&requests, &mut connection, open)? else { return Ok(()) };
    while let Ok(incoming) = requests.recv() {
        let end = match incoming {
            Incoming::Request(Request::Group { job }) => {
                match run_group(device.as_mut(), &job, &mut |event| connection.report(event)) {
                    Ok(()) => Reply::GroupDone { ordinal: job.ordinal },
                    Err(lost) => Reply::Lost { message: lost.to_string() },
                }
            }
            Incoming::Request(Request::Survey { wanted }) => match survey(device.as_mut(), &wanted) {
                Ok(survey) => Reply::Surveyed { found: Ok(Box::new(survey)) },
                Err(DeviceError::ContextLost(message)) => Reply::Lost { message },
                Err(refused) => Reply::Surveyed { found: Err(refused.to_string()) },
            },
            Incoming::Request(Request::Calibrate { nanoseconds }) => {
                if let Some(clock) = device.clock() {
                    clock.calibrate(nanoseconds);
                }
                continue;
            }
            Incoming::Request(Request::Quit) | Incoming::End => break,
            Incoming::Request(Request::Hello { .. }) => return connection.fail("the dispatcher sent `hello` twice"),
            Incoming::Malformed(why) => return connection.fail(why),
        };
        connection.reply(&end)?;
        if matches!(end, Reply::Lost { .. }) {
            break;
        }
    }
    Ok(())
}

/// Answers the dispatcher's first request; `None` if the worker must exit.
fn handshake(
    requests: &Receiver<Incoming>,
    connection: &mut Connection,
    open: impl FnOnce() -> Result<Box<dyn Device>, DeviceError>,
) -> Result<Option<Box<dyn Device>>, ProtocolError> {
    match requests.recv() {
        Ok(Incoming::Request(Request::Hello { version })) if version == PROTOCOL_VERSION => {
            match tracing::info_span!("open the device").in_scope(open) {
                Ok(mut device) => {
                    connection.reply(&Reply::Ready(Box::new(describe(device.as_mut()))))?;
                    return Ok(Some(device));
                }
                Err(e) => connection.fail(e.to_string()),
            }
        }
        Ok(Incoming::Request(Request::Hello { version })) => {
            connection.fail(protocol::version_refusal(PROTOCOL_VERSION, version))
        }
        Ok(Incoming::Request(_)) => connection.fail("the first request of the dispatcher is not `hello`"),
        Ok(Incoming::Malformed(why)) => connection.fail(why),
        Ok(Incoming::End) | Err(_) => Ok(()),
    }
    .map(|()| None)
}

fn describe(device: &mut dyn Device) -> Ready {
    let driver = device.driver();
    let monitor = device.monitor().ok();
    let (settings, other_processes) =
        (monitor.as_ref().map(|m| m.settings()), monitor.and_then(|m| m.other_processes()));
    let clock = device.clock();
    let (timing_method, excludes_host) = (clock.as_ref().map(|c| c.method()), clock.is_some_and(|c| c.excludes_host()));
    Ready {
        version: PROTOCOL_VERSION,
        process: std::process::id(),
        device: device.info().clone(),
        uuid: device.uuid(),
        settings,
        other_processes,
        driver_cuda: driver.as_ref().map(|d| d.cuda),
        driver: driver.and_then(|d| d.version),
        timing_method,
        excludes_host,
    }
}

#[derive(Debug)]
enum Incoming {
    Request(Request),
    /// A line that is not a valid request, and why.
    Malformed(String),
    /// End of the requests.
    End,
}

/// Reads requests on a thread, so that `Quit` and the end of the dispatcher are noticed while a group runs.
fn listen(stop: &Arc<AtomicBool>) -> Receiver<Incoming> {
    let (sender, requests) = mpsc::channel();
    let stop = Arc::clone(stop);
    thread::spawn(move || read_requests(&sender, &stop));
    requests
}

fn read_requests(sender: &Sender<Incoming>, stop: &AtomicBool) {
    let mut stdin = BufReader::new(io::stdin().lock());
    // Sending fails once the main loop has ended.
    loop {
        let incoming = match protocol::receive(&mut stdin) {
            Ok(Some(request)) => Incoming::Request(request),
            Ok(None) | Err(ProtocolError::Io(_)) => break,
            Err(e) => Incoming::Malformed(e.to_string()),
        };
        if matches!(incoming, Incoming::Request(Request::Quit)) {
            stop.store(true, Ordering::Relaxed);
        }
        let _ = sender.send(incoming);
    }
    stop.store(true, Ordering::Relaxed);
    let _ = sender.send(Incoming::End);
    // A hung kernel would otherwise keep the process and its device alive forever.
    thread::sleep(ORPHAN_LIMIT);
    let _ = rustix::process::kill_process(rustix::process::getpid(), Signal::KILL);
}

/// The worker's side of the protocol.
#[derive(Debug)]
struct Connection {
    replies: File,
    capture: StdoutCapture,
    stop: Arc<AtomicBool>,
    /// Case whose checked launch is active: text printed now belongs to it.
    checking: Option<Case>,
    /// Ordinal of the active case and its activity, as last logged.
    active: Option<(u64, Activity)>,
}

impl Connection {
    fn reply(&mut self, reply: &Reply) -> Result<(), ProtocolError> {
        protocol::send(&mut self.replies, reply)
    }

    /// Tells the dispatcher why the worker cannot continue.
    fn fail(&mut self, message: impl Into<String>) -> Result<(), ProtocolError> {
        self.reply(&Reply::Failed { message: message.into() })
    }

    /// Sends an event, preceded by text printed before it. Exits the process if the dispatcher is gone, or if it asked
    /// to stop and the device is between two steps.
    fn report(&mut self, event: Event) {
        match &event {
            Event::CaseActive { case, activity, .. } => {
                if self.active.replace((case.ordinal, *activity)) != Some((case.ordinal, *activity)) {
                    tracing::debug!(?activity, "{}", case.key);
                }
                if self.stop.load(Ordering::Relaxed) {
                    let _ = self.reply(&Reply::Stopped);
                    std::process::exit(0);
                }
                // A case may have several checking steps, any of which may contain the launch.
                self.report_printed();
                // Measured launches print the checked launch's output again, many times.
                let _ = self.capture.take();
                self.checking = (*activity == Activity::Checking).then(|| case.clone());
            }
            Event::CaseChecked { .. } | Event::CaseSettled { .. } => self.report_printed(),
            _ => {}
        }
        self.send_event(event);
    }

    fn report_printed(&mut self) {
        let Some(case) = self.checking.take() else { return };
        let text = match self.capture.take() {
            Ok(None) => return,
            Ok(Some(text)) => text,
            Err(e) => format!("(the printed text is lost: {e})"),
        };
        self.send_event(Event::CasePrinted { case, text });
    }

    fn send_event(&mut self, event: Event) {
        if self.reply(&Reply::Event { event: Box::new(event) }).is_err() {
            std::process::exit(0);
        }
    }
}

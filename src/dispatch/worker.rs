//! The loop of a worker process: groups in, events out, until it is told to quit or its device is lost.
//!
//! A worker never outlives its dispatcher: when its standard input ends, it ends, if need be in the middle of a kernel.
//! It does not settle what it did not run; that is the dispatcher's.

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
use crate::backend::{Device, DeviceError};
use crate::model::{Activity, Case, Event, GroupJob, Survey, SurveyRequest};

/// How long a worker without a dispatcher may take to end by itself.
const ORPHAN_GRACE: Duration = Duration::from_secs(2);

/// Serves the dispatcher on standard input and output, which belong to the protocol from here on. Returns when there is
/// nothing more to do; the process should end then, with success: what went wrong has been told as a reply.
///
/// Errors where standard input and output are not a dispatcher's.
pub fn serve<L: fmt::Display>(
    open: impl FnOnce() -> Result<Box<dyn Device>, DeviceError>,
    run_group: impl Fn(&mut dyn Device, &GroupJob, &mut dyn FnMut(Event)) -> Result<(), L>,
    survey: impl Fn(&mut dyn Device, &SurveyRequest) -> Result<Survey, DeviceError>,
) -> Result<(), ProtocolError> {
    let (stdout, capture) = StdoutCapture::install()?;
    let stop = Arc::new(AtomicBool::new(false));
    let requests = listen(&stop);
    let mut line = Line { replies: File::from(stdout), capture, stop, checking: None };
    let Some(mut device) = greet(&requests, &mut line, open)? else { return Ok(()) };
    while let Ok(said) = requests.recv() {
        let end = match said {
            Said::Request(Request::Group { job }) => {
                match run_group(device.as_mut(), &job, &mut |event| line.tell(event)) {
                    Ok(()) => Reply::GroupDone { ordinal: job.ordinal },
                    Err(lost) => Reply::Lost { message: lost.to_string() },
                }
            }
            Said::Request(Request::Survey { wanted }) => match survey(device.as_mut(), &wanted) {
                Ok(survey) => Reply::Surveyed { found: Ok(Box::new(survey)) },
                Err(DeviceError::ContextLost(message)) => Reply::Lost { message },
                Err(refused) => Reply::Surveyed { found: Err(refused.to_string()) },
            },
            Said::Request(Request::Calibrate { nanoseconds }) => {
                if let Some(clock) = device.clock() {
                    clock.calibrate(nanoseconds);
                }
                continue;
            }
            Said::Request(Request::Quit) | Said::Nothing => break,
            Said::Request(Request::Hello { .. }) => return line.fail("the dispatcher greets twice"),
            Said::Garble(why) => return line.fail(why),
        };
        line.reply(&end)?;
        if matches!(end, Reply::Lost { .. }) {
            break;
        }
    }
    Ok(())
}

/// Answers the dispatcher's greeting; `None` where there is nothing to serve with.
fn greet(
    requests: &Receiver<Said>,
    line: &mut Line,
    open: impl FnOnce() -> Result<Box<dyn Device>, DeviceError>,
) -> Result<Option<Box<dyn Device>>, ProtocolError> {
    match requests.recv() {
        Ok(Said::Request(Request::Hello { version })) if version == PROTOCOL_VERSION => match open() {
            Ok(mut device) => {
                line.reply(&Reply::Ready(Box::new(introduce(device.as_mut()))))?;
                return Ok(Some(device));
            }
            Err(e) => line.fail(e.to_string()),
        },
        Ok(Said::Request(Request::Hello { version })) => {
            line.fail(protocol::version_refusal(PROTOCOL_VERSION, version))
        }
        Ok(Said::Request(_)) => line.fail("the dispatcher does not greet first"),
        Ok(Said::Garble(why)) => line.fail(why),
        Ok(Said::Nothing) | Err(_) => Ok(()),
    }
    .map(|()| None)
}

fn introduce(device: &mut dyn Device) -> Ready {
    let driver = device.driver();
    let monitor = device.monitor().ok();
    let (settings, other_processes) =
        (monitor.as_ref().map(|m| m.settings()), monitor.and_then(|m| m.other_processes()));
    let clock = device.clock();
    let (timing_method, shuts_out_host) =
        (clock.as_ref().map(|c| c.method()), clock.is_some_and(|c| c.excludes_host()));
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
        shuts_out_host,
    }
}

/// What the dispatcher said.
#[derive(Debug)]
enum Said {
    Request(Request),
    /// Something that is no request, and why.
    Garble(String),
    /// It is gone.
    Nothing,
}

/// Reads requests on a thread of its own, so that `Quit` and the dispatcher's death are heard while a group runs.
fn listen(stop: &Arc<AtomicBool>) -> Receiver<Said> {
    let (hand_on, requests) = mpsc::channel();
    let stop = Arc::clone(stop);
    thread::spawn(move || read_requests(&hand_on, &stop));
    requests
}

fn read_requests(hand_on: &Sender<Said>, stop: &AtomicBool) {
    let mut stdin = BufReader::new(io::stdin().lock());
    // A main loop that has ended needs no requests: the sends may fail.
    loop {
        let said = match protocol::receive(&mut stdin) {
            Ok(Some(request)) => Said::Request(request),
            Ok(None) | Err(ProtocolError::Io(_)) => break,
            Err(e) => Said::Garble(e.to_string()),
        };
        if matches!(said, Said::Request(Request::Quit)) {
            stop.store(true, Ordering::Relaxed);
        }
        let _ = hand_on.send(said);
    }
    stop.store(true, Ordering::Relaxed);
    let _ = hand_on.send(Said::Nothing);
    // A hung kernel would keep the process, and with it the device, for ever.
    thread::sleep(ORPHAN_GRACE);
    let _ = rustix::process::kill_process(rustix::process::getpid(), Signal::KILL);
}

/// The worker's side of the conversation.
#[derive(Debug)]
struct Line {
    replies: File,
    capture: StdoutCapture,
    stop: Arc<AtomicBool>,
    /// The case whose checked launch is under way: what is printed now is its.
    checking: Option<Case>,
}

impl Line {
    fn reply(&mut self, reply: &Reply) -> Result<(), ProtocolError> {
        protocol::send(&mut self.replies, reply)
    }

    /// Says why there is nothing to serve with.
    fn fail(&mut self, message: impl Into<String>) -> Result<(), ProtocolError> {
        self.reply(&Reply::Failed { message: message.into() })
    }

    /// Passes an event on, with the text that was printed before it. Ends the process where the dispatcher wants it to
    /// stop and the device is between two steps, and where there is no dispatcher to tell.
    fn tell(&mut self, event: Event) {
        match &event {
            Event::CaseActive { case, activity, .. } => {
                if self.stop.load(Ordering::Relaxed) {
                    let _ = self.reply(&Reply::Stopped);
                    std::process::exit(0);
                }
                // A case may go through several checking steps; the launch was in one of them.
                self.tell_printed();
                // What measured launches print is what the checked one printed, many times over.
                let _ = self.capture.take();
                self.checking = (*activity == Activity::Checking).then(|| case.clone());
            }
            Event::CaseChecked { .. } | Event::CaseSettled { .. } => self.tell_printed(),
            _ => {}
        }
        self.tell_only(event);
    }

    fn tell_printed(&mut self) {
        let Some(case) = self.checking.take() else { return };
        let text = match self.capture.take() {
            Ok(None) => return,
            Ok(Some(text)) => text,
            Err(e) => format!("(what was printed is lost: {e})"),
        };
        self.tell_only(Event::CasePrinted { case, text });
    }

    fn tell_only(&mut self, event: Event) {
        if self.reply(&Reply::Event { event: Box::new(event) }).is_err() {
            std::process::exit(0);
        }
    }
}

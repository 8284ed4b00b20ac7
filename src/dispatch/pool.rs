//! Runs groups in a worker process that can hang, crash or lose its device without taking the run along.
//!
//! The pool watches the worker's steps against their limits. A worker that oversteps one is killed, one that dies is
//! buried, and either way the case at fault gets its outcome, another worker starts, and the group goes on without that
//! case. Every attempt must settle a case, or its group is given up; a worker that cannot be started again ends the
//! run. Either way no case is left without an outcome.

use std::time::{Duration, Instant};

use super::interrupt::{Interrupt, Urgency};
use super::ledger::{self, ActiveStep, Emit, Ledger};
use super::process::{Heard, Limits, StartError, WorkerProcess, WorkerSpec};
use super::protocol::{Ready, Reply, Request};
use super::source::GroupSource;
use super::{INTERRUPTED, RunEnd};
use crate::model::{Activity, Event, GroupJob, Outcome, Survey, SurveyRequest};

/// Attempts at a group that may break off in a row without settling a case.
const BARREN_ATTEMPTS: u32 = 2;
/// Groups that may be given up in a row before the run is.
const GROUPS_GIVEN_UP: u32 = 2;
/// No limit of a step is longer: the clock's arithmetic must not overflow.
const LONGEST_STEP: Duration = Duration::from_hours(24 * 365);
/// The first wait before a worker is started again after a failed try; it doubles up to the second.
const BACK_OFF: [Duration; 2] = [Duration::from_millis(250), Duration::from_secs(8)];

/// The workers of one device: one at a time, replaced when it dies.
#[derive(Debug)]
pub struct Pool {
    spec: WorkerSpec,
    /// The name of the device that the first worker opened.
    device: String,
    worker: Option<WorkerProcess>,
    /// What every worker takes off the intervals of its device's clock, nanoseconds.
    calibration: Option<f64>,
}

/// How an attempt at a group ended.
#[derive(Debug)]
enum Attempt {
    Done,
    /// By the user's wish: between two steps, or at once.
    Stopped,
    Broken(Fault),
}

/// What a worker did wrong.
#[derive(Debug)]
enum Fault {
    /// No sign of life within the limit of the step, or between steps.
    Hung,
    /// The device's context is gone; the worker's words.
    Lost(String),
    /// It said something that is no reply.
    Garbled(String),
    /// It cannot go on; its words.
    Refused(String),
    /// It died.
    Gone,
}

/// Why nothing is known of a device.
#[derive(Debug, thiserror::Error)]
pub enum SurveyError {
    #[error(transparent)]
    NoWorker(#[from] StartError),
    /// The device's words; the worker serves on.
    #[error("{0}")]
    Refused(String),
    #[error("{0}")]
    Failed(String),
}

/// How a group ended.
#[derive(Debug)]
enum GroupEnd {
    Done,
    Interrupted,
    GivenUp(String),
    NoWorker(StartError),
}

impl Pool {
    /// Starts the first worker and waits until its device is open.
    pub fn start(spec: WorkerSpec, interrupt: &Interrupt) -> Result<(Self, Ready), StartError> {
        let (worker, ready) = WorkerProcess::start(&spec, interrupt)?;
        let pool = Self { spec, device: ready.device.name.clone(), worker: Some(worker), calibration: None };
        Ok((pool, ready))
    }

    /// Has this worker, and every one after it, take `nanoseconds` off the intervals of its device's clock.
    pub fn calibrate(&mut self, nanoseconds: f64) {
        self.calibration = Some(nanoseconds);
        if let Some(worker) = &mut self.worker {
            instruct(worker, self.calibration);
        }
    }

    /// Has the idle worker measure its device, within `limit`. The next group gets another worker where this one dies.
    pub fn survey(
        &mut self,
        request: SurveyRequest,
        limit: Duration,
        interrupt: &Interrupt,
    ) -> Result<Survey, SurveyError> {
        let worker = self.ready_worker(interrupt)?;
        let found = survey(worker, request, limit, interrupt);
        if !matches!(found, Ok(_) | Err(SurveyError::Refused(_))) {
            self.worker = None;
        }
        found
    }

    /// Runs the groups one after the other. Every case of every group ends in exactly one `CaseSettled`.
    pub fn run(
        &mut self,
        groups: impl IntoIterator<Item = GroupJob>,
        emit: &mut dyn FnMut(Event),
        interrupt: &Interrupt,
    ) -> RunEnd {
        self.run_supplied(&mut groups.into_iter(), emit, interrupt)
    }

    /// As [`Self::run`], of groups that come when they may start.
    pub fn run_supplied(
        &mut self,
        groups: &mut impl GroupSource,
        emit: &mut dyn FnMut(Event),
        interrupt: &Interrupt,
    ) -> RunEnd {
        let mut end = RunEnd::Complete;
        let mut given_up = 0;
        while end == RunEnd::Complete
            && let Some(job) = groups.next()
        {
            match self.run_group(job, emit, interrupt) {
                GroupEnd::Done => given_up = 0,
                GroupEnd::Interrupted => end = RunEnd::Interrupted,
                GroupEnd::GivenUp(why) => {
                    given_up += 1;
                    if given_up == GROUPS_GIVEN_UP {
                        end = RunEnd::Environment(format!("the worker keeps dying outside any case: {why}"));
                    }
                }
                GroupEnd::NoWorker(why) => end = RunEnd::Environment(no_worker(&why)),
            }
        }
        let rest = groups.remaining();
        if end == RunEnd::Complete && !rest.is_empty() {
            end = RunEnd::Interrupted;
        }
        if let Some(why) = end.why_not_run() {
            let outcome = Outcome::NotRun { why };
            for job in rest {
                ledger::settle_unbegun(job, &outcome, emit);
            }
        }
        if let Some(worker) = self.worker.take() {
            worker.dismiss();
        }
        end
    }

    fn run_group(&mut self, job: GroupJob, emit: Emit, interrupt: &Interrupt) -> GroupEnd {
        if interrupt.urgency() > Urgency::None {
            ledger::settle_unbegun(job, &Outcome::NotRun { why: INTERRUPTED.into() }, emit);
            return GroupEnd::Interrupted;
        }
        let (ordinal, key) = (job.ordinal, job.key.clone());
        emit(Event::GroupStarted { ordinal, key: key.clone(), cases: job.cases.len() as u32 });
        let mut ledger = Ledger::new(job);
        let end = self.attempts(&mut ledger, emit, interrupt);
        let rest = match &end {
            GroupEnd::Done => {
                Outcome::Crashed { message: "the worker ended the group without an outcome for this case".into() }
            }
            GroupEnd::Interrupted => Outcome::NotRun { why: INTERRUPTED.into() },
            GroupEnd::GivenUp(message) => Outcome::Crashed { message: message.clone() },
            GroupEnd::NoWorker(why) => Outcome::NotRun { why: no_worker(why) },
        };
        ledger.finish(&rest, emit);
        if matches!(end, GroupEnd::Done | GroupEnd::GivenUp(_)) {
            emit(Event::GroupFinished { ordinal, key });
        }
        end
    }

    /// Repeats the group, each time without what failed, until an attempt reaches its end.
    fn attempts(&mut self, ledger: &mut Ledger, emit: Emit, interrupt: &Interrupt) -> GroupEnd {
        let limits = self.spec.limits;
        let mut barren = 0;
        while let Some(job) = ledger.next_attempt() {
            if interrupt.urgency() > Urgency::None {
                return GroupEnd::Interrupted;
            }
            let attempt = match self.ready_worker(interrupt) {
                Ok(worker) => attempt(worker, limits, job, ledger, emit, interrupt),
                Err(StartError::Interrupted) => return GroupEnd::Interrupted,
                Err(why) => return GroupEnd::NoWorker(why),
            };
            let what = match attempt {
                Attempt::Done => return GroupEnd::Done,
                Attempt::Stopped => {
                    self.worker = None;
                    return GroupEnd::Interrupted;
                }
                Attempt::Broken(fault) => self.settle_fault(&fault, ledger, emit),
            };
            barren = if ledger.settled_one() { 0 } else { barren + 1 };
            if barren == BARREN_ATTEMPTS {
                return GroupEnd::GivenUp(what);
            }
        }
        GroupEnd::Done
    }

    /// Buries the worker and gives the case at fault its outcome; says what happened.
    fn settle_fault(&mut self, fault: &Fault, ledger: &mut Ledger, emit: Emit) -> String {
        let step = ledger.active();
        let doing = step.map_or("outside any case", |step| gerund(step.activity));
        let death = self.worker.take().map(|mut worker| {
            if !matches!(fault, Fault::Gone) {
                worker.kill();
            }
            worker.bury()
        });
        let said = death.as_ref().map(|death| death.said.as_str()).unwrap_or_default();
        let what = match (fault, step) {
            (Fault::Hung, Some(step)) => {
                ledger.blame(Outcome::TimedOut { limit_seconds: step.limit, message: None }, emit);
                return format!("no sign of life {doing} within {} s", step.limit);
            }
            (Fault::Hung, None) => format!("said nothing for {} s", self.spec.limits.silence.as_secs_f64()),
            (Fault::Lost(message), _) => format!("lost its device ({message})"),
            (Fault::Garbled(why), _) => format!("cannot be understood ({why})"),
            (Fault::Refused(why), _) => format!("cannot go on ({why})"),
            (Fault::Gone, _) => death.as_ref().map_or_else(|| "is gone".into(), |death| death.how.clone()),
        };
        let message = format!("the worker {what} {doing}{said}");
        // The worker settles the case that cost it the device; the step after that is not at fault.
        if !(matches!(fault, Fault::Lost(_)) && ledger.settled_one()) {
            ledger.blame(Outcome::Crashed { message: message.clone() }, emit);
        }
        message
    }

    /// The worker at hand, or another: a device may need a moment after its last worker was killed.
    fn ready_worker(&mut self, interrupt: &Interrupt) -> Result<&mut WorkerProcess, StartError> {
        let worker = match self.worker.take() {
            Some(worker) => worker,
            None => self.restart(interrupt)?,
        };
        Ok(self.worker.insert(worker))
    }

    fn restart(&self, interrupt: &Interrupt) -> Result<WorkerProcess, StartError> {
        let deadline = Instant::now() + self.spec.limits.restart;
        let [mut pause, longest] = BACK_OFF;
        loop {
            match WorkerProcess::start(&self.spec, interrupt) {
                Ok((mut worker, ready)) if ready.device.name == self.device => {
                    instruct(&mut worker, self.calibration);
                    return Ok(worker);
                }
                Ok((_, ready)) => {
                    return Err(StartError::OtherDevice { before: self.device.clone(), now: ready.device.name });
                }
                Err(e) if !e.may_pass() || Instant::now() + pause > deadline => return Err(e),
                Err(_) => {
                    interrupt.sleep(pause);
                    pause = (pause * 2).min(longest);
                }
            }
            if interrupt.urgency() > Urgency::None {
                return Err(StartError::Interrupted);
            }
        }
    }
}

/// Sends one attempt at a group and follows it to its end.
fn attempt(
    worker: &mut WorkerProcess,
    limits: Limits,
    job: GroupJob,
    ledger: &mut Ledger,
    emit: Emit,
    interrupt: &Interrupt,
) -> Attempt {
    // A worker that died since the last group is heard as gone.
    let _ = worker.send(&Request::Group { job: Box::new(job) });
    let mut heeded = Urgency::None;
    let mut deadline = Instant::now() + limits.silence;
    loop {
        match worker.hear(deadline, interrupt, heeded) {
            Heard::Reply(Reply::Event { event }) => {
                ledger.observe(*event, emit);
                deadline = Instant::now() + patience(limits, ledger.active());
            }
            Heard::Reply(Reply::GroupDone { .. }) => return Attempt::Done,
            Heard::Reply(Reply::Stopped) | Heard::Interrupted(Urgency::Now) => return Attempt::Stopped,
            Heard::Reply(Reply::Lost { message }) => return Attempt::Broken(Fault::Lost(message)),
            Heard::Reply(Reply::Failed { message }) => return Attempt::Broken(Fault::Refused(message)),
            Heard::Reply(Reply::Ready(_) | Reply::Surveyed { .. }) => {
                return Attempt::Broken(Fault::Garbled(
                    "it answers what was not asked in the middle of a group".into(),
                ));
            }
            Heard::Garbled(why) => return Attempt::Broken(Fault::Garbled(why)),
            Heard::Gone => return Attempt::Broken(Fault::Gone),
            Heard::Silence => return Attempt::Broken(Fault::Hung),
            Heard::Interrupted(urgency) => {
                heeded = urgency;
                let _ = worker.send(&Request::Quit);
            }
        }
    }
}

/// Tells a worker what its clock is worth. One that died meanwhile is heard as gone when it is needed.
fn instruct(worker: &mut WorkerProcess, calibration: Option<f64>) {
    if let Some(nanoseconds) = calibration {
        let _ = worker.send(&Request::Calibrate { nanoseconds });
    }
}

fn survey(
    worker: &mut WorkerProcess,
    request: SurveyRequest,
    limit: Duration,
    interrupt: &Interrupt,
) -> Result<Survey, SurveyError> {
    let heeded = interrupt.urgency();
    // A worker that died meanwhile is heard as gone.
    let _ = worker.send(&Request::Survey { wanted: Box::new(request) });
    let how = match worker.hear(Instant::now() + limit, interrupt, heeded) {
        Heard::Reply(Reply::Surveyed { found }) => return found.map(|survey| *survey).map_err(SurveyError::Refused),
        Heard::Interrupted(_) => return Err(SurveyError::NoWorker(StartError::Interrupted)),
        Heard::Reply(Reply::Lost { message }) => format!("lost its device ({message})"),
        Heard::Reply(_) => "answered with something else".to_owned(),
        Heard::Garbled(why) => format!("cannot be understood ({why})"),
        Heard::Silence => format!("gave no answer within {} s", limit.as_secs_f64()),
        Heard::Gone => {
            let death = worker.bury();
            format!("{}{}", death.how, death.said)
        }
    };
    Err(SurveyError::Failed(format!("the worker {how} while it measured the device")))
}

/// How long the worker may be silent from here.
fn patience(limits: Limits, step: Option<ActiveStep>) -> Duration {
    step.and_then(|step| Duration::try_from_secs_f64(step.limit).ok())
        .map_or(limits.silence, |limit| limit.min(LONGEST_STEP) + limits.grace)
}

fn gerund(activity: Activity) -> &'static str {
    match activity {
        Activity::Preparing => "while preparing",
        Activity::Checking => "while checking",
        Activity::Measuring => "while measuring",
        Activity::Rechecking => "while checking after the last timed launch",
    }
}

fn no_worker(why: &StartError) -> String {
    format!("the worker could not be started again: {why}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_without_bound_or_sense_is_still_a_deadline() {
        let limits = Limits::default();
        let step = |limit| Some(ActiveStep { index: 0, activity: Activity::Checking, limit });
        assert_eq!(patience(limits, step(30.0)), Duration::from_secs(31));
        assert_eq!(patience(limits, step(1e300)), limits.silence);
        assert_eq!(patience(limits, step(-1.0)), limits.silence);
        assert!(Instant::now().checked_add(patience(limits, step(1e19))).is_some());
        assert_eq!(patience(limits, None), limits.silence);
    }
}

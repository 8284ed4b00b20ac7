//! Runs groups in a worker process, so that a kernel that hangs, crashes or loses its device does not end the run.
//!
//! Each step of a worker has a time limit, after which the worker is killed. If a worker dies, the active case gets its
//! outcome, another worker starts, and the group continues without that case. If something else killed the worker, the
//! case may not be the cause: it is repeated once before it gets its outcome. A group is abandoned after several
//! attempts that settle no case. A worker that cannot be restarted ends the run. Every case gets an outcome.
//!
//! A kernel's time differs slightly between processes, however many samples each takes. So several processes may
//! measure a group, one after another; their samples are reported together.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::case_table::{self, ActiveStep, CaseTable, Emit};
use super::interrupt::{Interrupt, Urgency};
use super::process::{Limits, Received, StartError, WorkerProcess, WorkerSpec};
use super::protocol::{ProtocolError, Ready, Reply, Request};
use super::source::GroupSource;
use super::{INTERRUPTED, RunEnd};
use runner_execute::{MOST_UNASKED, is_likely_spread};
use runner_types::{
    Activity, Compiled, Event, GroupJob, Outcome, ReferenceTimes, Sharing, Spread, Survey, SurveyRequest,
};

/// Number of consecutive attempts without a settled case after which a group is abandoned.
const FRUITLESS_ATTEMPTS: u32 = 2;
/// Number of consecutive abandoned groups after which the run ends.
const GROUPS_GIVEN_UP: u32 = 2;
/// Upper limit of a step's time limit, so that deadlines do not overflow.
const LONGEST_STEP: Duration = Duration::from_hours(24 * 365);
/// First and longest wait before a worker is restarted; each failed attempt doubles the wait.
const BACK_OFF: [Duration; 2] = [Duration::from_millis(250), Duration::from_secs(8)];

/// GPU memory of an open context in bytes; measured on an H100: 520 MiB.
const CONTEXT_BYTES: u64 = 600 << 20;
/// Contexts of idle workers may use this fraction (1/16) of GPU memory.
const RESTING_SHARE: u64 = 16;

/// The workers of one device: the one that runs groups, which is replaced if it dies, and idle ones.
#[derive(Debug)]
pub struct Pool {
    spec: WorkerSpec,
    /// Name of the device that the first worker opened.
    device: String,
    worker: Option<WorkerProcess>,
    /// Idle workers that have measured part of earlier groups, longest idle first. Starting a worker takes longer than
    /// its share of a group of short kernels, so they keep their contexts open for the next group.
    idle: VecDeque<WorkerProcess>,
    /// Maximum number of idle workers.
    most_resting: usize,
    /// Workers being started while the first group is prepared.
    early: Option<JoinHandle<Vec<WorkerProcess>>>,
    /// Calibration constant in nanoseconds: every worker subtracts it from device-clock intervals.
    calibration: Option<f64>,
    /// Data that a worker needs to measure that constant itself.
    own_calibration: Option<OwnCalibration>,
    /// Whether several processes may measure a group.
    is_spread: bool,
    /// Differences between processes on this device, if known.
    spread: Option<Spread>,
    /// See [`Self::end_when_killed`].
    ends_when_killed: bool,
}

/// Kernels and reference times with which a process calibrates its own clock.
#[derive(Debug, Clone)]
pub struct OwnCalibration {
    /// Survey kernels.
    pub code: Compiled,
    /// Times of the survey kernels by the reference clock.
    pub reference: ReferenceTimes,
    /// Time limit of the survey.
    pub limit: Duration,
}

/// How an attempt at a group ended.
#[derive(Debug)]
enum Attempt {
    Done,
    /// An interrupt ended the attempt, either between two steps or at once.
    Stopped,
    Broken(Fault),
}

/// How a worker failed.
#[derive(Debug)]
enum Fault {
    /// The worker sent nothing within the time limit.
    Hung,
    /// The device's context is lost; holds the worker's message.
    Lost(String),
    /// The worker sent a line that is not a valid reply.
    Malformed(String),
    /// The worker cannot continue; holds its message.
    Refused(String),
    Exited,
}

/// Why a survey has no result.
#[derive(Debug, thiserror::Error)]
pub enum SurveyError {
    #[error(transparent)]
    NoWorker(#[from] StartError),
    /// The device's error message; the worker remains usable.
    #[error("{0}")]
    Refused(String),
    /// How the worker died, or that it exceeded its time limit.
    #[error("{0}")]
    Failed(String),
}

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
        let pool = Self {
            spec,
            device: ready.device.name.clone(),
            worker: Some(worker),
            idle: VecDeque::new(),
            most_resting: most_resting(&ready),
            early: None,
            calibration: None,
            own_calibration: None,
            is_spread: false,
            spread: None,
            ends_when_killed: false,
        };
        Ok((pool, ready))
    }

    /// Ends the run if a worker is killed from outside twice during one case, instead of settling the case as crashed.
    /// If memory is limited, most other cases would end like that, too.
    pub fn end_when_killed(&mut self) {
        self.ends_when_killed = true;
    }

    /// Lets several processes measure a group: as many as its cases ask for, or as many as their precision needs, given
    /// the differences between processes.
    pub fn spread_samples(&mut self, spread: Option<Spread>) {
        (self.is_spread, self.spread) = (true, spread);
    }

    /// Makes each further measuring process calibrate its own clock.
    pub fn calibrate_each(&mut self, own: OwnCalibration) {
        self.own_calibration = Some(own);
    }

    /// Makes this and all later workers subtract `nanoseconds` from device-clock intervals.
    pub fn calibrate(&mut self, nanoseconds: f64) {
        self.calibration = Some(nanoseconds);
        if let Some(worker) = &self.worker {
            send_calibration(worker, self.calibration);
        }
    }

    /// Makes the idle worker survey its device, within `limit`. If the worker dies, the next group gets another one.
    pub fn survey(
        &mut self,
        request: SurveyRequest,
        limit: Duration,
        interrupt: &Interrupt,
    ) -> Result<Survey, SurveyError> {
        let worker = self.ready_worker(interrupt)?;
        let found = survey(worker, request, limit, interrupt);
        match (&found, &self.worker) {
            // The survey reset the calibration.
            (Ok(_) | Err(SurveyError::Refused(_)), Some(worker)) => send_calibration(worker, self.calibration),
            _ => self.worker = None,
        }
        found
    }

    /// Runs the groups in order. Every case of every group ends in exactly one `CaseSettled`.
    pub fn run(
        &mut self,
        groups: impl IntoIterator<Item = GroupJob>,
        emit: &mut dyn FnMut(Event),
        interrupt: &Interrupt,
    ) -> RunEnd {
        self.run_supplied(&mut groups.into_iter(), emit, interrupt)
    }

    /// Like [`Self::run`], but groups may become available while others run.
    pub fn run_supplied(
        &mut self,
        groups: &mut impl GroupSource,
        emit: &mut dyn FnMut(Event),
        interrupt: &Interrupt,
    ) -> RunEnd {
        let mut end = RunEnd::Complete;
        let mut given_up = 0;
        let not_run = RefCell::new(None);
        let mut watched = |event: Event| {
            if let Event::CaseSettled { outcome: Outcome::NotRun { why, environment: true }, .. } = &event {
                not_run.borrow_mut().get_or_insert_with(|| why.clone());
            }
            emit(event);
        };
        while end == RunEnd::Complete
            && let Some(job) = groups.next()
        {
            match self.run_group(job, &mut watched, interrupt) {
                GroupEnd::Done => {
                    given_up = 0;
                    // What kept the worker from running a case would keep it from running others.
                    end = not_run.take().map_or(RunEnd::Complete, RunEnd::Environment);
                }
                GroupEnd::Interrupted => end = RunEnd::Interrupted,
                GroupEnd::GivenUp(why) => {
                    given_up += 1;
                    if given_up == GROUPS_GIVEN_UP {
                        end = RunEnd::Environment(format!("the worker keeps failing outside of any case: {why}"));
                    }
                }
                GroupEnd::NoWorker(why) => end = RunEnd::Environment(no_worker(&why)),
            }
        }
        let rest = groups.remaining();
        if end == RunEnd::Complete && !rest.is_empty() {
            end = groups.fault().map_or(RunEnd::Interrupted, RunEnd::Environment);
        }
        if let Some(why) = end.why_not_run() {
            let outcome = Outcome::not_run(why);
            for job in rest {
                case_table::settle_all(job, &outcome, emit);
            }
        }
        let early = self.take_early();
        WorkerProcess::shut_down(self.worker.take().into_iter().chain(self.idle.drain(..)).chain(early));
        end
    }

    fn run_group(&mut self, job: GroupJob, emit: Emit, interrupt: &Interrupt) -> GroupEnd {
        if interrupt.urgency() > Urgency::None {
            case_table::settle_all(job, &Outcome::not_run(INTERRUPTED), emit);
            return GroupEnd::Interrupted;
        }
        let (ordinal, key) = (job.ordinal, job.key.clone());
        let _span = tracing::info_span!("run the group", ordinal, at = %key).entered();
        emit(Event::GroupStarted { ordinal, key: key.clone(), cases: job.cases.len() as u32 });
        let sharing = if self.is_spread { Sharing::First { spread: self.spread } } else { Sharing::Alone };
        let mut table = CaseTable::new(GroupJob { sharing, ..job });
        let end = self.measure(&mut table, emit, interrupt);
        let rest = match &end {
            GroupEnd::Done => {
                Outcome::Crashed { message: "the worker ended the group without an outcome for this case".into() }
            }
            GroupEnd::Interrupted => Outcome::not_run(INTERRUPTED),
            GroupEnd::GivenUp(message) => Outcome::Crashed { message: message.clone() },
            GroupEnd::NoWorker(why) => Outcome::not_run(no_worker(why)),
        };
        table.finish(&rest, emit);
        if matches!(end, GroupEnd::Done | GroupEnd::GivenUp(_)) {
            emit(Event::GroupFinished { ordinal, key });
        }
        end
    }

    /// Runs the group in as many processes as it needs.
    fn measure(&mut self, table: &mut CaseTable, emit: Emit, interrupt: &Interrupt) -> GroupEnd {
        let mut end = self.attempts(table, emit, interrupt);
        let processes = if self.is_spread { table.wanted_processes(self.spread.as_ref()) } else { 1 };
        for process in 1..processes {
            if !matches!(end, GroupEnd::Done) {
                break;
            }
            tracing::debug!(process, of = processes, "measure the group in another process");
            table.begin_process(processes);
            end = match self.replace_worker(processes, interrupt) {
                Ok(()) => self.attempts(table, emit, interrupt),
                Err(StartError::Interrupted) => GroupEnd::Interrupted,
                Err(why) => GroupEnd::NoWorker(why),
            };
        }
        end
    }

    /// Replaces the worker that has measured the group with one that has not: the longest idle one if there are enough,
    /// otherwise a new one. All workers that the group needs start at once, because opening the device takes longer
    /// than measuring a group of short kernels.
    fn replace_worker(&mut self, processes: u32, interrupt: &Interrupt) -> Result<(), StartError> {
        let processes = processes as usize;
        let may_idle = processes.saturating_sub(1) <= self.most_resting;
        if let Some(worker) = self.worker.take() {
            if may_idle {
                self.idle.push_back(worker);
            } else {
                WorkerProcess::shut_down([worker]);
            }
        }
        let needed = if may_idle { processes } else { 1 };
        let mut fresh = self.take_early();
        let missing = if may_idle { needed.saturating_sub(self.idle.len()) } else { needed };
        fresh.extend(start_several(&self.spec, &self.device, missing.saturating_sub(fresh.len()), interrupt));
        for worker in fresh {
            send_calibration(&worker, self.calibration);
            self.worker = Some(worker);
            self.calibrate_own(interrupt)?;
            // Empty if the worker died meanwhile.
            self.worker.take().into_iter().for_each(|worker| self.idle.push_front(worker));
        }
        if self.idle.len() >= needed {
            self.worker = self.idle.pop_front();
            return Ok(());
        }
        self.ready_worker(interrupt)?;
        self.calibrate_own(interrupt)
    }

    /// Starts the workers that later groups of short kernels need while the first group is prepared, unless the first
    /// group needs several workers itself. Each group comes with the estimated time of its shortest launch in
    /// nanoseconds.
    pub fn start_early<'j>(&mut self, mut groups: impl Iterator<Item = (&'j GroupJob, f64)>, interrupt: &Interrupt) {
        let count = MOST_UNASKED as usize - 1;
        let is_spread = |(job, nanoseconds): (&GroupJob, f64)| {
            job.cases.iter().any(|case| is_likely_spread(nanoseconds, case, self.spread.as_ref()))
        };
        if count <= self.most_resting && !groups.next().is_none_or(is_spread) && groups.any(is_spread) {
            let (spec, device, interrupt) = (self.spec.clone(), self.device.clone(), interrupt.clone());
            self.early = Some(thread::spawn(move || start_several(&spec, &device, count, &interrupt)));
        }
    }

    /// Waits for the workers that were started early.
    fn take_early(&mut self) -> Vec<WorkerProcess> {
        self.early.take().and_then(|started| started.join().ok()).unwrap_or_default()
    }

    /// Makes the worker calibrate its own clock.
    fn calibrate_own(&mut self, interrupt: &Interrupt) -> Result<(), StartError> {
        let Some(OwnCalibration { code, reference, limit }) = self.own_calibration.clone() else { return Ok(()) };
        match self.survey(SurveyRequest { code, spread: false, ceilings: false }, limit, interrupt) {
            Ok(survey) => {
                if let Some(constant) = runner_calibrate::constant(&survey, &reference) {
                    self.calibrate(constant);
                }
            }
            Err(SurveyError::NoWorker(why)) => return Err(why),
            Err(why) => tracing::info!("a worker uses the clock constant of another worker: {why}"),
        }
        Ok(())
    }

    /// Repeats the group, each time without the cases that failed, until an attempt completes.
    fn attempts(&mut self, table: &mut CaseTable, emit: Emit, interrupt: &Interrupt) -> GroupEnd {
        let limits = self.spec.limits;
        let mut fruitless = 0;
        while let Some(job) = table.next_attempt() {
            if interrupt.urgency() > Urgency::None {
                return GroupEnd::Interrupted;
            }
            let attempt = match self.ready_worker(interrupt) {
                Ok(worker) => attempt(worker, limits, job, table, emit, interrupt),
                Err(StartError::Interrupted) => return GroupEnd::Interrupted,
                Err(why) => return GroupEnd::NoWorker(why),
            };
            let what = match attempt {
                Attempt::Done => return GroupEnd::Done,
                Attempt::Stopped => {
                    self.worker = None;
                    return GroupEnd::Interrupted;
                }
                Attempt::Broken(fault) => match self.settle_fault(&fault, table, emit) {
                    Ok(what) => what,
                    Err(killed) => return GroupEnd::NoWorker(killed),
                },
            };
            fruitless = if table.settled_one() || table.repeats_one() { 0 } else { fruitless + 1 };
            if fruitless == FRUITLESS_ATTEMPTS {
                return GroupEnd::GivenUp(what);
            }
        }
        GroupEnd::Done
    }

    /// Reaps the worker and settles the case at fault; returns a description of what happened. Fails if kills from
    /// outside end the run.
    fn settle_fault(&mut self, fault: &Fault, table: &mut CaseTable, emit: Emit) -> Result<String, StartError> {
        let step = table.active();
        let doing = step.map_or("outside of any case", |step| during(step.activity));
        let exit = self.worker.take().map(|mut worker| {
            if !matches!(fault, Fault::Exited) {
                worker.kill();
            }
            worker.reap()
        });
        let stderr = exit.as_ref().map(|exit| exit.stderr.as_str()).unwrap_or_default();
        let what = match (fault, step) {
            (Fault::Hung, Some(step)) => {
                table.settle_active(Outcome::TimedOut { limit_seconds: step.limit, message: None }, emit);
                return Ok(format!("no reply {doing} within {} s", step.limit));
            }
            (Fault::Hung, None) => format!("sent nothing for {} s", self.spec.limits.silence.as_secs_f64()),
            (Fault::Lost(message), _) => format!("lost its device ({message})"),
            (Fault::Malformed(why), _) => format!("sent an invalid reply ({why})"),
            (Fault::Refused(why), _) => format!("cannot continue ({why})"),
            (Fault::Exited, _) => exit.as_ref().map_or_else(|| "exited".into(), |exit| exit.how.clone()),
        };
        let message = format!("the worker {what} {doing}{stderr}");
        let from_outside = matches!(fault, Fault::Exited) && exit.is_some_and(|exit| exit.from_outside);
        if from_outside && table.may_repeat_active() {
            return Ok(message);
        }
        if from_outside && self.ends_when_killed {
            return Err(StartError::Killed(message));
        }
        // The worker itself settled the case that lost the device; the next step is not at fault.
        if !(matches!(fault, Fault::Lost(_)) && table.settled_one()) {
            table.settle_active(Outcome::Crashed { message: message.clone() }, emit);
        }
        Ok(message)
    }

    /// The running worker, or else a new one.
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
                Ok((worker, ready)) if ready.device.name == self.device => {
                    send_calibration(&worker, self.calibration);
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

/// Starts workers concurrently. Drops those that fail to start or open a different device.
fn start_several(spec: &WorkerSpec, device: &str, count: usize, interrupt: &Interrupt) -> Vec<WorkerProcess> {
    let start = || WorkerProcess::start(spec, interrupt).ok();
    let started: Vec<_> = thread::scope(|scope| {
        let starts: Vec<_> = (0..count).map(|_| scope.spawn(start)).collect();
        starts.into_iter().filter_map(|start| start.join().ok().flatten()).collect()
    });
    started.into_iter().filter(|(_, ready)| ready.device.name == device).map(|(worker, _)| worker).collect()
}

/// Maximum number of idle workers, whose contexts may take a small part of the device's memory. Zero if the GPU admits
/// only one process at a time.
fn most_resting(ready: &Ready) -> usize {
    let mode = ready.settings.as_ref().and_then(|settings| settings.compute_mode.as_deref());
    if mode.is_some_and(|mode| mode != "default") {
        return 0;
    }
    usize::try_from(ready.device.memory_bytes.0 / RESTING_SHARE / CONTEXT_BYTES).unwrap_or(usize::MAX)
}

fn attempt(
    worker: &mut WorkerProcess,
    limits: Limits,
    job: GroupJob,
    table: &mut CaseTable,
    emit: Emit,
    interrupt: &Interrupt,
) -> Attempt {
    // If the worker died since the last group, the next receive returns `Closed`.
    if let Err(why @ ProtocolError::Unwritable(_)) = worker.send(&Request::Group { job: Box::new(job) }) {
        return Attempt::Broken(Fault::Refused(format!("the group was not sent: {why}")));
    }
    let mut handled = Urgency::None;
    let mut deadline = Instant::now() + limits.silence;
    loop {
        match worker.receive(deadline, interrupt, handled) {
            Received::Reply(Reply::Event { event }) => {
                table.observe(*event, emit);
                deadline = Instant::now() + time_limit(limits, table.active());
            }
            Received::Reply(Reply::GroupDone { .. }) => return Attempt::Done,
            Received::Reply(Reply::Stopped) | Received::Interrupted(Urgency::Now) => return Attempt::Stopped,
            Received::Reply(Reply::Lost { message }) => return Attempt::Broken(Fault::Lost(message)),
            Received::Reply(Reply::Failed { message }) => return Attempt::Broken(Fault::Refused(message)),
            Received::Reply(Reply::Ready(_) | Reply::Surveyed { .. }) => {
                return Attempt::Broken(Fault::Malformed("a reply without a request, during a group".into()));
            }
            Received::Malformed(why) => return Attempt::Broken(Fault::Malformed(why)),
            Received::Closed => return Attempt::Broken(Fault::Exited),
            Received::TimedOut => return Attempt::Broken(Fault::Hung),
            Received::Interrupted(urgency) => {
                handled = urgency;
                let _ = worker.send(&Request::Quit);
            }
        }
    }
}

/// If the worker died meanwhile, the next receive returns `Closed`.
fn send_calibration(worker: &WorkerProcess, calibration: Option<f64>) {
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
    let handled = interrupt.urgency();
    // If the worker died meanwhile, the next receive returns `Closed`.
    let _ = worker.send(&Request::Survey { wanted: Box::new(request) });
    let how = match worker.receive(Instant::now() + limit, interrupt, handled) {
        Received::Reply(Reply::Surveyed { found }) => return found.map(|survey| *survey).map_err(SurveyError::Refused),
        Received::Interrupted(_) => return Err(SurveyError::NoWorker(StartError::Interrupted)),
        Received::Reply(Reply::Lost { message }) => format!("lost its device ({message})"),
        Received::Reply(_) => "answered with another reply".to_owned(),
        Received::Malformed(why) => format!("sent an invalid reply ({why})"),
        Received::TimedOut => format!("sent no reply within {} s", limit.as_secs_f64()),
        Received::Closed => {
            let exit = worker.reap();
            format!("{}{}", exit.how, exit.stderr)
        }
    };
    Err(SurveyError::Failed(format!("the worker {how} while it measured the device")))
}

/// How long the worker may stay silent.
fn time_limit(limits: Limits, step: Option<ActiveStep>) -> Duration {
    step.and_then(|step| Duration::try_from_secs_f64(step.limit).ok())
        .map_or(limits.silence, |limit| limit.min(LONGEST_STEP) + limits.grace)
}

fn during(activity: Activity) -> &'static str {
    match activity {
        Activity::Preparing => "while preparing",
        Activity::Checking => "while checking",
        Activity::Measuring => "while measuring",
        Activity::Rechecking => "while checking a later launch",
    }
}

fn no_worker(why: &StartError) -> String {
    match why {
        StartError::Killed(message) => message.clone(),
        why => format!("the worker could not be restarted: {why}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_absurd_limit_of_a_step_still_gives_a_deadline() {
        let limits = Limits::default();
        let step = |limit| Some(ActiveStep { index: 0, activity: Activity::Checking, limit });
        assert_eq!(time_limit(limits, step(30.0)), Duration::from_secs(31));
        assert_eq!(time_limit(limits, step(1e300)), limits.silence);
        assert_eq!(time_limit(limits, step(-1.0)), limits.silence);
        assert!(Instant::now().checked_add(time_limit(limits, step(1e19))).is_some());
        assert_eq!(time_limit(limits, None), limits.silence);
    }
}

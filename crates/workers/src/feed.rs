//! Overlaps compiling with running: each group goes to the worker as soon as its code is compiled, while other cores
//! compile the rest.
//!
//! [`pending`](super::pending) decides which group may start. If a unit does not compile, its cases get the outcome
//! `CompileError`. An interrupt or an unusable worker also ends compilation; groups without code are then not run.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::pending::{Linked, Pending};
use super::{GroupSource, Interrupt, RunEnd, Urgency};
use runner_plan::ResolvedGroup;
use runner_results::journal::Held;
use runner_types::{
    Case, CaseJob, CompileFailure, CompileUnit, Compiled, Environment, Event, GroupJob, Outcome, Phase, WorkAmount,
};

/// How often to check for an interrupt while waiting for code.
const POLL: Duration = Duration::from_millis(50);

/// The code of a unit, or why it does not compile.
pub type UnitResult = Result<Compiled, CompileFailure>;

/// Called with each unit, its result and its compile time in seconds.
pub type OnCompiled<'a> = &'a mut dyn FnMut(&CompileUnit, &UnitResult, f64);

/// Compiles units in the given order.
pub type Compile<'a> = &'a (dyn Fn(&[CompileUnit], OnCompiled<'_>) + Sync);

#[derive(Debug)]
pub struct Work<'a> {
    /// Remaining groups in plan order.
    pub groups: Vec<ResolvedGroup>,
    /// Everything that the results depend on, besides the cases.
    pub environment: &'a Environment,
    /// Results of an earlier run.
    pub held: &'a Held,
    /// Whether a group may start only after everything is compiled.
    pub needs_quiet: fn(&GroupJob) -> bool,
    /// Set to stop compiling early.
    pub stop: &'a AtomicBool,
    /// Why nothing more can be compiled, once set.
    pub fault: &'a OnceLock<String>,
}

#[derive(Debug)]
pub struct Ran {
    pub end: RunEnd,
    /// Groups given to the worker.
    pub groups: Vec<GroupJob>,
    /// Groups in which every case has a stored result that still applies.
    pub held: Vec<GroupJob>,
}

/// Compiles in a thread while `consume` runs the groups that are ready. `emit` is called for every event, from two
/// threads but never concurrently.
pub fn run(
    work: Work<'_>,
    compile: Compile<'_>,
    consume: impl FnOnce(&mut Feed<'_>, &mut dyn FnMut(Event)) -> RunEnd,
    emit: &mut (dyn FnMut(Event) + Send),
    interrupt: &Interrupt,
) -> Ran {
    let emit = Mutex::new(emit);
    let emit = |event: Event| (emit.lock().unwrap_or_else(PoisonError::into_inner))(event);
    let (mut settled, mut jobs) = (Vec::new(), Vec::new());
    for group in work.groups {
        settled.extend(group.settled);
        jobs.push(group.job);
    }
    let is_known = |group: &GroupJob| group.cases.iter().any(|case| work.held.knows(&case.case.key));
    let pending = Pending::new(jobs, is_known, work.needs_quiet);
    let units = pending.units().to_vec();
    emit(Event::CompileStarted { units: units.len() as u32 });
    thread::scope(|scope| {
        let (sender, results) = mpsc::channel();
        let (emit, stop, environment) = (&emit, work.stop, work.environment);
        scope.spawn(move || compile_all(&units, compile, &sender, emit, stop));
        let (waited, given) = (Duration::ZERO, Vec::new());
        let fault = work.fault;
        let mut feed = Feed { pending, results, environment, interrupt, stop, fault, emit, waited, given };
        let held = feed.plan(settled, work.held);
        let end = consume(&mut feed, &mut |event| emit(event));
        // No group needs the units that are still compiling.
        stop.store(true, Ordering::Relaxed);
        emit(Event::PhaseSpent { phase: Phase::Compile, seconds: feed.waited.as_secs_f64() });
        Ran { end, groups: feed.given, held }
    })
}

/// Compiles all units, on a separate thread.
fn compile_all(
    units: &[CompileUnit],
    compile: Compile<'_>,
    sender: &Sender<(CompileUnit, UnitResult)>,
    emit: &dyn Fn(Event),
    stop: &AtomicBool,
) {
    let started = Instant::now();
    compile(units, &mut |unit, result, seconds| {
        // If compilation was stopped, the unit is not at fault.
        if result.is_err() && stop.load(Ordering::Relaxed) {
            return;
        }
        emit(Event::UnitCompiled {
            key: result.as_ref().map(|c| c.key.0.clone()).unwrap_or_default(),
            label: unit.kernels.join(", "),
            seconds,
            cached: result.as_ref().is_ok_and(|c| c.cached),
            failed: result.is_err(),
        });
        // Fails only if the feed is gone.
        let _ = sender.send((unit.clone(), result.clone()));
    });
    emit(Event::CompileFinished { seconds: started.elapsed().as_secs_f64() });
}

/// The running side: hands out groups once their code is compiled.
pub struct Feed<'a> {
    pending: Pending,
    results: Receiver<(CompileUnit, UnitResult)>,
    environment: &'a Environment,
    interrupt: &'a Interrupt,
    stop: &'a AtomicBool,
    fault: &'a OnceLock<String>,
    emit: &'a dyn Fn(Event),
    /// Time spent waiting for code while nothing ran.
    waited: Duration,
    given: Vec<GroupJob>,
}

impl std::fmt::Debug for Feed<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Feed").field("pending", &self.pending).finish_non_exhaustive()
    }
}

impl Feed<'_> {
    /// Decides which groups an earlier run has completed, announces the cases of this run, and settles those that need
    /// no device. A group is complete if every case with code has a stored result that still applies. Any other group
    /// runs as a whole, because ratios are formed within rounds.
    fn plan(&mut self, mut settled: Vec<(Case, Outcome)>, held: &Held) -> Vec<GroupJob> {
        let applies = |case: &CaseJob| {
            case.fingerprint.as_ref().is_some_and(|fingerprint| held.holds(&case.case.key, fingerprint))
        };
        let mut over = Vec::new();
        loop {
            if let Some(linked) = self.pending.take_held(self.environment, applies) {
                for Linked { job, failed } in linked {
                    settled.extend(failed);
                    over.push(job);
                }
                break;
            }
            if self.is_interrupted() || self.fault.get().is_some() {
                // Without their code it is unknown whether stored results still apply, so leave these groups to the
                // next run.
                over = self.pending.take_urgent();
                break;
            }
            self.receive();
        }
        let cases = settled.iter().map(|(case, _)| case).chain(self.pending.cases()).cloned();
        let held = over.iter().flat_map(|job| &job.cases).map(|case| case.case.clone());
        (self.emit)(Event::CasesPlanned { todo: cases.collect(), held: held.collect() });
        self.settle(settled);
        over
    }

    fn settle(&self, settled: Vec<(Case, Outcome)>) {
        for (case, outcome) in settled {
            let work = WorkAmount::default();
            (self.emit)(Event::CaseSettled { case, fingerprint: None, outcome, work });
        }
    }

    /// Whether the user interrupted the run. If so, also stops compiling.
    fn is_interrupted(&self) -> bool {
        let interrupted = self.interrupt.urgency() > Urgency::None;
        if interrupted {
            self.stop.store(true, Ordering::Relaxed);
        }
        interrupted
    }

    /// Waits at most [`POLL`] for a compiled unit.
    fn receive(&mut self) {
        let since = Instant::now();
        match self.results.recv_timeout(POLL) {
            Ok((unit, result)) => self.pending.arrive(&unit, result),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => self.give_up(),
        }
        self.waited += since.elapsed();
    }

    /// Fails every unit without a result, after the compiling thread has ended.
    fn give_up(&mut self) {
        for unit in self.pending.units().to_vec() {
            let summary = format!("`{}` was never compiled", unit.source.display());
            self.pending.arrive(&unit, Err(CompileFailure { summary, log: String::new() }));
        }
    }
}

impl GroupSource for Feed<'_> {
    fn next(&mut self) -> Option<GroupJob> {
        let mut waiting = None;
        while !self.is_interrupted() && self.fault.get().is_none() {
            // Take all results that have arrived, so that the first ready group in plan order comes first.
            while let Ok((unit, result)) = self.results.try_recv() {
                self.pending.arrive(&unit, result);
            }
            match self.pending.next(self.environment) {
                Some(Linked { job, failed }) => {
                    self.settle(failed);
                    if !job.cases.is_empty() {
                        self.given.push(job.clone());
                        return Some(job);
                    }
                }
                None if self.pending.is_empty() => return None,
                None => {
                    waiting.get_or_insert_with(|| tracing::info_span!("wait for the compiler").entered());
                    self.receive();
                }
            }
        }
        None
    }

    fn remaining(&mut self) -> Vec<GroupJob> {
        self.pending.remaining().into_iter().filter(|job| !job.cases.is_empty()).collect()
    }

    fn fault(&self) -> Option<String> {
        self.fault.get().cloned()
    }
}

#[cfg(test)]
mod fixture;
#[cfg(test)]
mod tests;

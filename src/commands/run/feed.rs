//! Compiling and running, side by side: each group goes to the worker as soon as its code is there, while other cores
//! compile the rest.
//!
//! Which group may start is the plan's to say; this module carries code to it and groups away from it. A unit that does
//! not compile is the row of its cases, as ever. An interrupt, and a worker that is beyond use, end the compiling too:
//! what has no code by then is not run.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::compile::UnitResult;
use crate::dispatch::{Interrupt, RunEnd, Supply, Urgency};
use crate::journal::Held;
use crate::model::{
    Case, CaseJob, CompileFailure, CompileUnit, Environment, Event, GroupJob, Outcome, Phase, WorkAmount,
};
use crate::plan::ResolvedGroup;
use crate::plan::waiting::{Linked, Waiting};

/// How often a feed that waits for code looks whether the user wants to stop.
const GLANCE: Duration = Duration::from_millis(50);

/// Hears of each unit: what became of it, and the seconds that it took.
pub type OnDone<'a> = &'a mut dyn FnMut(&CompileUnit, &UnitResult, f64);

/// Compiles units, in this order.
pub type Make<'a> = &'a (dyn Fn(&[CompileUnit], OnDone<'_>) + Sync);

/// What is to be done.
#[derive(Debug)]
pub struct Work<'a> {
    /// In the plan's order.
    pub groups: Vec<ResolvedGroup>,
    pub environment: &'a Environment,
    /// What an earlier run did.
    pub held: &'a Held,
    /// Which groups start only when nothing is left to compile.
    pub needs_quiet: fn(&GroupJob) -> bool,
    /// Ends the compiling.
    pub stop: &'a AtomicBool,
}

/// What was done.
#[derive(Debug)]
pub struct Ran {
    pub end: RunEnd,
    /// The groups that were handed to the worker.
    pub groups: Vec<GroupJob>,
    /// Those whose every case has a stored result that still holds.
    pub held: Vec<GroupJob>,
}

/// Compiles, and lets `consume` run what is ready. `heed` hears everything, from two threads, one at a time.
pub fn run(
    work: Work<'_>,
    make: Make<'_>,
    consume: impl FnOnce(&mut Feed<'_>, &mut dyn FnMut(Event)) -> RunEnd,
    heed: &mut (dyn FnMut(Event) + Send),
    interrupt: &Interrupt,
) -> Ran {
    let heed = Mutex::new(heed);
    let tell = |event: Event| (heed.lock().unwrap_or_else(PoisonError::into_inner))(event);
    let (mut settled, mut jobs) = (Vec::new(), Vec::new());
    for group in work.groups {
        settled.extend(group.settled);
        jobs.push(group.job);
    }
    let is_known = |group: &GroupJob| group.cases.iter().any(|case| work.held.knows(&case.case.key));
    let waiting = Waiting::new(jobs, is_known, work.needs_quiet);
    let units = waiting.units().to_vec();
    tell(Event::CompileStarted { units: units.len() as u32 });
    thread::scope(|scope| {
        let (sender, news) = mpsc::channel();
        let (tell, stop, environment) = (&tell, work.stop, work.environment);
        scope.spawn(move || compile(&units, make, &sender, tell, stop));
        let mut feed =
            Feed { waiting, news, environment, interrupt, stop, tell, waited: Duration::ZERO, given: Vec::new() };
        let held = feed.plan(settled, work.held);
        let end = consume(&mut feed, &mut |event| tell(event));
        // Whatever is still being compiled is for nobody.
        stop.store(true, Ordering::Relaxed);
        tell(Event::PhaseSpent { phase: Phase::Compile, seconds: feed.waited.as_secs_f64() });
        Ran { end, groups: feed.given, held }
    })
}

/// The compiling side.
fn compile(
    units: &[CompileUnit],
    make: Make<'_>,
    sender: &Sender<(CompileUnit, UnitResult)>,
    tell: &dyn Fn(Event),
    stop: &AtomicBool,
) {
    let started = Instant::now();
    make(units, &mut |unit, result, seconds| {
        // A compiler that was told to stop says nothing of its unit.
        if result.is_err() && stop.load(Ordering::Relaxed) {
            return;
        }
        tell(Event::UnitCompiled {
            key: result.as_ref().map(|c| c.key.0.clone()).unwrap_or_default(),
            label: unit.kernels.join(", "),
            seconds,
            cached: result.as_ref().is_ok_and(|c| c.cached),
            failed: result.is_err(),
        });
        // A feed that is gone needs no code.
        let _ = sender.send((unit.clone(), result.clone()));
    });
    tell(Event::CompileFinished { seconds: started.elapsed().as_secs_f64() });
}

/// The running side: gives groups when they have their code.
pub struct Feed<'a> {
    waiting: Waiting,
    news: Receiver<(CompileUnit, UnitResult)>,
    environment: &'a Environment,
    interrupt: &'a Interrupt,
    stop: &'a AtomicBool,
    tell: &'a dyn Fn(Event),
    /// For code, with nothing running.
    waited: Duration,
    given: Vec<GroupJob>,
}

impl Feed<'_> {
    /// Finds out what is held over, announces the cells of the run and settles those that never touch a device. A group
    /// is held over where every case with code has a stored result that still holds; any other is run whole, since its
    /// ratios are formed within rounds.
    fn plan(&mut self, mut settled: Vec<(Case, Outcome)>, held: &Held) -> Vec<GroupJob> {
        let stands = |case: &CaseJob| {
            case.fingerprint.as_ref().is_some_and(|fingerprint| held.holds(&case.case.key, fingerprint))
        };
        let mut over = Vec::new();
        loop {
            if let Some(linked) = self.waiting.take_held(self.environment, stands) {
                for Linked { job, failed } in linked {
                    settled.extend(failed);
                    over.push(job);
                }
                break;
            }
            if self.is_interrupted() {
                // Nobody knows whether they hold: they stay as they are, for the next run to find out.
                over = self.waiting.take_urgent();
                break;
            }
            self.hear();
        }
        let cases = settled.iter().map(|(case, _)| case).chain(self.waiting.cases()).cloned();
        let held = over.iter().flat_map(|job| &job.cases).map(|case| case.case.clone());
        (self.tell)(Event::CasesPlanned { todo: cases.collect(), held: held.collect() });
        self.settle(settled);
        over
    }

    fn settle(&self, settled: Vec<(Case, Outcome)>) {
        for (case, outcome) in settled {
            let work = WorkAmount::default();
            (self.tell)(Event::CaseSettled { case, fingerprint: None, outcome, work });
        }
    }

    /// Whether the user wants to stop; then the compilers are to, too.
    fn is_interrupted(&self) -> bool {
        let interrupted = self.interrupt.urgency() > Urgency::None;
        if interrupted {
            self.stop.store(true, Ordering::Relaxed);
        }
        interrupted
    }

    /// Waits for a unit, and for no longer than a glance.
    fn hear(&mut self) {
        let since = Instant::now();
        match self.news.recv_timeout(GLANCE) {
            Ok((unit, result)) => self.waiting.arrive(&unit, result),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => self.give_up(),
        }
        self.waited += since.elapsed();
    }

    /// Without a compiler, what has no code yet gets none.
    fn give_up(&mut self) {
        for unit in self.waiting.units().to_vec() {
            let summary = format!("`{}` was never compiled", unit.source.display());
            self.waiting.arrive(&unit, Err(CompileFailure { summary, log: String::new() }));
        }
    }
}

impl Supply for Feed<'_> {
    fn next(&mut self) -> Option<GroupJob> {
        while !self.is_interrupted() {
            // All that is there, so that the first in the plan's order goes first.
            while let Ok((unit, result)) = self.news.try_recv() {
                self.waiting.arrive(&unit, result);
            }
            match self.waiting.next(self.environment) {
                Some(Linked { job, failed }) => {
                    self.settle(failed);
                    if !job.cases.is_empty() {
                        self.given.push(job.clone());
                        return Some(job);
                    }
                }
                None if self.waiting.is_empty() => return None,
                None => self.hear(),
            }
        }
        None
    }

    fn rest(&mut self) -> Vec<GroupJob> {
        self.waiting.rest().into_iter().filter(|job| !job.cases.is_empty()).collect()
    }
}

#[cfg(test)]
mod fixture;
#[cfg(test)]
mod tests;

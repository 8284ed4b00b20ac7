//! Points in flight: proposed, compiled, linked, and given to the first device that asks.

use std::collections::{HashSet, VecDeque};
use std::sync::mpsc::Sender;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::{Duration, Instant};

use search::random::Random;
use search::strategy::Strategy;

use crate::evaluations::{Evaluations, RunningGroup};
use crate::search_context::{SearchContext, UnitResult};
use runner_plan::link::{CompiledUnits, link};
use runner_types::{CaseJob, CompileUnit, Event, GroupJob, Outcome};
use runner_workers::{GroupSource, Urgency};

/// How often a search that waits for code checks for an interrupt.
const POLL: Duration = Duration::from_millis(50);
/// Number of compiled cases that make up a group for a device, unless nothing more is being compiled. Small groups are
/// costly, since each group generates its inputs and expected values once.
const GROUP: usize = 8;
/// Maximum number of cases in such a group.
const LARGEST: usize = 32;

/// A compiled unit, and the compile time in seconds.
type Compiled = (CompileUnit, UnitResult, f64);

/// Units finished by the compiling threads.
#[derive(Debug, Default)]
pub struct Arrivals {
    list: Mutex<Vec<Compiled>>,
    changed: Condvar,
}

impl Arrivals {
    pub fn add(&self, unit: CompileUnit, result: UnitResult, seconds: f64) {
        lock(&self.list).push((unit, result, seconds));
        self.changed.notify_all();
    }

    fn take(&self) -> Vec<Compiled> {
        std::mem::take(&mut *lock(&self.list))
    }

    /// Waits briefly for a unit to arrive.
    fn wait(&self) {
        let list = lock(&self.list);
        if list.is_empty() {
            drop(self.changed.wait_timeout(list, POLL));
        }
    }
}

/// A configuration whose code is being compiled.
struct Waiting {
    point: u64,
    case: CaseJob,
    /// Units still being compiled.
    missing: HashSet<CompileUnit>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Turn {
    /// Waiting for a group, after this many groups.
    Waits(u32),
    Runs,
    Ended,
}

/// The points of a search that are in flight. Shared by all devices.
pub struct Proposals<'a> {
    context: SearchContext<'a>,
    strategy: Box<dyn Strategy>,
    random: Random,
    pub known: Evaluations<'a>,
    /// Sends units to the compiling threads; `None` after the end of the search.
    pub ask: Option<Sender<CompileUnit>>,
    units: Units,
    waiting: Vec<Waiting>,
    linked: VecDeque<CaseJob>,
    /// Points that a lost device did not evaluate.
    again: Vec<u64>,
    started: u64,
    is_exhausted: bool,
    window: usize,
    /// State of each device.
    turns: Vec<Turn>,
}

impl<'a> Proposals<'a> {
    /// Starts with the baseline and the points to evaluate first.
    pub fn new(
        context: SearchContext<'a>,
        strategy: Box<dyn Strategy>,
        random: Random,
        known: Evaluations<'a>,
        ask: Sender<CompileUnit>,
    ) -> Self {
        let started = known.history.len() as u64;
        let mut proposals = Self {
            context,
            strategy,
            random,
            known,
            ask: Some(ask),
            units: Units::default(),
            waiting: Vec::new(),
            linked: VecDeque::new(),
            again: Vec::new(),
            started,
            is_exhausted: false,
            // Large enough to keep every core compiling while a group runs.
            window: (if context.learns { 2 } else { 6 } * context.jobs()).max(GROUP * context.devices),
            turns: vec![Turn::Waits(0); context.devices],
        };
        for point in context.problem.baseline().into_iter().chain(context.first.iter().copied()) {
            if proposals.started < context.budget && !proposals.known.history.is_taken(point) {
                proposals.begin(point);
            }
        }
        proposals.known.history.put_last(&context.problem.late.last);
        proposals
    }

    /// Proposes configurations until enough are in flight.
    fn propose(&mut self) {
        self.known.read_others();
        while let Some(point) = self.again.pop() {
            self.begin(point);
        }
        while !self.is_exhausted
            && self.started < self.context.budget
            && self.waiting.len() + self.linked.len() < self.window
        {
            self.known.prepare_proposal(&mut self.random);
            let space = &self.context.problem.space;
            match self.strategy.propose(space, &self.known.history, &mut self.random) {
                Some(point) => self.begin(point),
                None => self.is_exhausted = !self.known.history.release_last(),
            }
        }
    }

    fn begin(&mut self, point: u64) {
        self.started += 1;
        self.known.history.start(point);
        let problem = self.context.problem;
        let case = match problem.resolve(point) {
            Ok(case) => case,
            Err(outcome) => return self.known.settle(&problem.case(point), &outcome, RunningGroup::new(None, 1)),
        };
        let units = case.body.units().into_iter();
        let missing: HashSet<CompileUnit> =
            units.filter(|unit| !self.units.compiled().contains_key(*unit)).cloned().collect();
        for unit in &missing {
            if self.units.request(unit)
                && let Some(ask) = &self.ask
            {
                // Fails only if all compiling threads have ended.
                let _ = ask.send(unit.clone());
            }
        }
        if missing.is_empty() { self.link(case) } else { self.waiting.push(Waiting { point, case, missing }) }
    }

    fn arrive(&mut self, (unit, result, seconds): Compiled) {
        for Waiting { point, missing, .. } in &mut self.waiting {
            if missing.remove(&unit) {
                *self.known.compiled.entry(*point).or_default() += seconds * 1e3;
            }
        }
        self.units.arrive(unit, result);
        let complete: Vec<Waiting> = self.waiting.extract_if(.., |waiting| waiting.missing.is_empty()).collect();
        for Waiting { case, .. } in complete {
            self.link(case);
        }
        self.units.release(&self.waiting.iter().flat_map(|waiting| waiting.case.body.units()).collect());
    }

    fn link(&mut self, case: CaseJob) {
        let job = self.context.problem.batch(vec![case], None);
        let (job, failed) = link(job, self.units.compiled(), self.context.environment);
        self.linked.extend(job.cases);
        for (case, outcome) in failed {
            self.known.settle(&case, &outcome, RunningGroup::new(None, 1));
        }
    }

    /// A group for a device, if enough configurations are compiled or no more are being compiled. Among waiting
    /// devices, the one with the fewest groups so far goes first.
    fn group(&mut self, device: usize) -> Option<GroupJob> {
        let groups = |turn: &Turn| if let Turn::Waits(groups) = turn { Some(*groups) } else { None };
        let fewest = self.turns.iter().filter_map(groups).min();
        if groups(&self.turns[device]) != fewest
            || self.linked.is_empty()
            || (self.linked.len() < GROUP && !self.waiting.is_empty())
        {
            return None;
        }
        // The last configurations are divided among the devices.
        let share = self.linked.len().div_ceil(self.context.devices).max(GROUP);
        let count = self.linked.len().min(share).min(LARGEST);
        let best = self.known.history.best().map(|(_, value)| value);
        Some(self.context.problem.batch(self.linked.drain(..count).collect(), best))
    }

    fn may_go_on(&self) -> bool {
        self.context.interrupt.urgency() == Urgency::None
            && self.known.failure.is_none()
            && self.context.compiler.fault().is_none()
    }

    /// Records events from a device. If a case was not run, another device runs it, unless the search is ending.
    pub fn observe(&mut self, event: &Event, group: &mut RunningGroup) {
        self.known.observe(event, group);
        if let Event::CaseSettled { case, outcome: Outcome::NotRun { .. }, .. } = event
            && self.may_go_on()
            && let Some(point) = self.context.problem.point(&case.key)
        {
            self.known.history.give_up(point);
            self.started -= 1;
            self.again.push(point);
        }
    }
}

/// Supplies one device with groups of compiled configurations.
pub struct Source<'s, 'a> {
    shared: &'s Mutex<Proposals<'a>>,
    arrivals: &'s Arrivals,
    /// Lock on the host, shared by all devices.
    host: &'s RwLock<()>,
    held: Option<Held<'s>>,
    device: usize,
    /// Number of groups given to the device so far.
    groups: u32,
}

/// Host lock held by the running group.
enum Held<'s> {
    WithOthers { _guard: RwLockReadGuard<'s, ()> },
    Alone { _guard: RwLockWriteGuard<'s, ()> },
}

impl<'s, 'a> Source<'s, 'a> {
    pub const fn new(
        shared: &'s Mutex<Proposals<'a>>,
        (arrivals, host): (&'s Arrivals, &'s RwLock<()>),
        device: usize,
    ) -> Self {
        Self { shared, arrivals, host, held: None, device, groups: 0 }
    }
}

/// Tells other devices not to wait for this one, which takes no more groups.
impl Drop for Source<'_, '_> {
    fn drop(&mut self) {
        lock(self.shared).turns[self.device] = Turn::Ended;
    }
}

impl GroupSource for Source<'_, '_> {
    fn next(&mut self) -> Option<GroupJob> {
        self.held = None;
        lock(self.shared).turns[self.device] = Turn::Waits(self.groups);
        loop {
            let found = {
                let mut shared = lock(self.shared);
                if !shared.may_go_on() {
                    return None;
                }
                self.arrivals.take().into_iter().for_each(|compiled| shared.arrive(compiled));
                shared.propose();
                let found = shared.group(self.device);
                if found.is_some() {
                    shared.turns[self.device] = Turn::Runs;
                } else if shared.waiting.is_empty() && shared.linked.is_empty() && !shared.turns.contains(&Turn::Runs) {
                    return None;
                }
                found
            };
            if let Some(job) = found {
                self.groups += 1;
                self.held = Some(if job.needs_host() {
                    Held::Alone { _guard: self.host.write().unwrap_or_else(PoisonError::into_inner) }
                } else {
                    Held::WithOthers { _guard: self.host.read().unwrap_or_else(PoisonError::into_inner) }
                });
                return Some(job);
            }
            let since = Instant::now();
            self.arrivals.wait();
            lock(self.shared).known.waited += since.elapsed();
        }
    }

    fn remaining(&mut self) -> Vec<GroupJob> {
        // Configurations that were proposed but not started are dropped. A resumed search may propose them again.
        Vec::new()
    }

    fn fault(&self) -> Option<String> {
        lock(self.shared).context.compiler.fault()
    }
}

/// Locks shared state, even after a thread panicked: no step leaves it inconsistent.
pub fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Number of results to keep although no waiting configuration needs them, since consecutive proposals often share a
/// unit. Older ones are read again from the disk cache.
const KEPT: usize = 64;

/// The code of configurations in flight: units being compiled, and recent results.
#[derive(Debug, Default)]
struct Units {
    requested: HashSet<CompileUnit>,
    compiled: CompiledUnits,
    /// Compiled units, oldest first.
    order: VecDeque<CompileUnit>,
}

impl Units {
    const fn compiled(&self) -> &CompiledUnits {
        &self.compiled
    }

    /// Whether a unit must be compiled, i.e. has no result and is not being compiled. If so, marks it as being
    /// compiled.
    fn request(&mut self, unit: &CompileUnit) -> bool {
        !self.compiled.contains_key(unit) && self.requested.insert(unit.clone())
    }

    /// Stores the result of a requested unit.
    fn arrive(&mut self, unit: CompileUnit, result: UnitResult) {
        self.requested.remove(&unit);
        self.order.push_back(unit.clone());
        self.compiled.insert(unit, result);
    }

    /// Drops the oldest unneeded results.
    fn release(&mut self, needed: &HashSet<&CompileUnit>) {
        let mut excess = self.order.len().saturating_sub(KEPT);
        self.order.retain(|unit| {
            let goes = excess > 0 && !needed.contains(unit);
            if goes {
                excess -= 1;
                self.compiled.remove(unit);
            }
            !goes
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use runner_types::CompileFailure;

    #[test]
    fn results_are_released_unless_a_waiting_configuration_needs_them() {
        let unit = |n: usize| CompileUnit::from_kernels("copy.cu", [format!("copy<{n}>")]);
        let mut units = Units::default();
        for n in 0..1000 {
            assert!(units.request(&unit(n)) && !units.request(&unit(n)));
            let failure = CompileFailure { summary: n.to_string(), log: String::new() };
            units.arrive(unit(n), Err(failure));
            assert!(!units.request(&unit(n)), "a unit with a result is not compiled again");
            units.release(&HashSet::from([&unit(3)]));
        }
        let kept: Vec<String> =
            units.compiled().values().filter_map(|result| Some(result.as_ref().err()?.summary.clone())).collect();
        assert_eq!(kept.len(), KEPT);
        assert!(kept.contains(&"3".to_owned()) && kept.contains(&"999".to_owned()) && !kept.contains(&"4".to_owned()));
        assert!(units.request(&unit(4)), "a unit that was released is compiled again");
    }
}

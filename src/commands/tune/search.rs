//! The search itself: proposes configurations, has them compiled on all cores, and gives those that are ready to the
//! worker, in groups that are measured briefly.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use search::format::t4::{Configuration, Entry, Measurement, Times};
use search::history::History;
use search::random::Random;
use search::strategy::Strategy;

use super::log::Log;
use super::problem::{Problem, values};
use super::units::Units;
use crate::commands::session::{Searchable, reason};
use crate::commands::{Console, Failure};
use crate::compile::UnitResult;
use crate::dispatch::{GroupSource, Interrupt, Pool, RunEnd, Urgency};
use crate::format;
use crate::model::{Case, CaseJob, CompileUnit, Event, GroupJob, Outcome, calendar_time};
use crate::plan::link::link;
use crate::stats::median;

/// How often a search that waits for code looks for an interrupt.
const POLL: Duration = Duration::from_millis(50);
/// A group is given to the worker when so many of its cases have their code, or when nothing is being compiled: its
/// inputs and expected values are made once.
const GROUP: usize = 8;
/// The largest group.
const LARGEST: usize = 32;
/// How often progress is shown.
const SHOW: Duration = Duration::from_secs(5);

/// What a search is about and where it runs.
#[derive(Clone, Copy)]
pub struct Seat<'a> {
    pub problem: &'a Problem<'a>,
    pub ready: &'a Searchable,
    pub interrupt: &'a Interrupt,
    /// How many configurations are evaluated, those of an earlier search included.
    pub budget: u64,
    /// Whether the strategy learns from results, so that few configurations should be on their way.
    pub learns: bool,
    /// The points that are evaluated first: those that are good elsewhere.
    pub first: &'a [u64],
}

/// What a search found.
#[derive(Debug)]
pub struct Searched {
    pub history: History,
    /// The file that has all evaluations.
    pub log: Log,
    pub interrupted: bool,
    /// The time of the search, and how much of it the device waited for code.
    pub wall: Duration,
    pub waited: Duration,
}

impl Searched {
    /// Returns the best points that are right, best first.
    pub fn best(&self, count: usize) -> Vec<u64> {
        self.history.ranked().take(count).map(|(point, _)| point).collect()
    }
}

/// Evaluates configurations until the budget is spent, the space is exhausted or the user interrupts.
pub fn run(
    seat: Seat<'_>,
    strategy: Box<dyn Strategy>,
    seed: u64,
    log: Log,
    pool: &mut Pool,
    console: &mut Console,
) -> Result<Searched, Failure> {
    let state = RefCell::new(State::new(seat, log, console));
    state.borrow_mut().remember()?;
    let (ask, asked) = mpsc::channel::<CompileUnit>();
    let asked = Mutex::new(asked);
    let (done, results) = mpsc::channel();
    let compiler = &seat.ready.planned;
    compiler.begin_compiling();
    let end = thread::scope(|scope| {
        for _ in 0..compiler.jobs() {
            let (asked, done) = (&asked, done.clone());
            scope.spawn(move || {
                loop {
                    let unit = asked.lock().unwrap_or_else(PoisonError::into_inner).recv();
                    let Ok(unit) = unit else { break };
                    let (result, seconds) = compiler.compile_one(&unit);
                    // Fails only after the search is over.
                    let _ = done.send((unit, result, seconds));
                }
            });
        }
        drop(done);
        let random = Random::new(seed);
        let mut source = Source::new(seat, strategy, random, &state, ask, results);
        let end = pool.run_supplied(&mut source, &mut |event| state.borrow_mut().observe(event), seat.interrupt);
        // What is still being compiled is not needed; without a sender the threads end.
        compiler.stop_compiling();
        end
    });
    let state = state.into_inner();
    if let Some(failure) = state.failure {
        return Err(failure);
    }
    let fault = compiler.fault();
    if let Some(why) = fault.or(if let RunEnd::Environment(why) = &end { Some(why.clone()) } else { None }) {
        return Err(Failure::environment(format!("{why}; --resume continues the search")));
    }
    let interrupted = end == RunEnd::Interrupted || seat.interrupt.urgency() > Urgency::None;
    let State { history, log, begun, waited, .. } = state;
    Ok(Searched { history, log, interrupted, wall: begun.elapsed(), waited })
}

/// What is known so far.
struct State<'a> {
    seat: Seat<'a>,
    history: History,
    log: Log,
    /// The objective of cases that are not settled yet.
    values: HashMap<u64, (f64, Vec<f64>)>,
    /// The milliseconds that compiling the code of a case took.
    compiled: HashMap<u64, f64>,
    /// When this search began, and after how many evaluations of earlier ones.
    begun: Instant,
    before: usize,
    /// How many seconds the earlier ones took.
    earlier: f64,
    /// How long the device has waited for code.
    waited: Duration,
    /// When the worker began the present group, and how many cases it has.
    group: (Instant, u32),
    console: &'a mut Console,
    shown: Instant,
    failure: Option<Failure>,
}

impl<'a> State<'a> {
    fn new(seat: Seat<'a>, log: Log, console: &'a mut Console) -> Self {
        let now = Instant::now();
        Self {
            seat,
            history: History::default(),
            log,
            values: HashMap::new(),
            compiled: HashMap::new(),
            begun: now,
            before: 0,
            earlier: 0.0,
            waited: Duration::ZERO,
            group: (now, 1),
            console,
            shown: now,
            failure: None,
        }
    }

    /// Takes over the evaluations of an earlier search.
    fn remember(&mut self) -> Result<(), Failure> {
        let problem = self.seat.problem;
        for entry in self.log.entries()? {
            let entry = entry?;
            let value = |name: &str| entry.configuration.0.iter().find(|(known, _)| known == name).map(|(_, v)| v);
            let parameters = problem.space.parameters().iter();
            let point: Option<Box<[u16]>> =
                parameters.map(|parameter| parameter.position(value(&parameter.name)?)).collect();
            if let Some(point) = point.and_then(|point| problem.space.number(&point)) {
                self.history.finish(point, entry.outcome(&problem.objective));
            }
            self.earlier = entry.elapsed.unwrap_or(self.earlier);
        }
        self.before = self.history.len();
        Ok(())
    }

    fn observe(&mut self, event: Event) {
        let problem = self.seat.problem;
        match event {
            Event::GroupStarted { cases, .. } => self.group = (Instant::now(), cases.max(1)),
            Event::CaseMeasured { case, measurement } if problem.objective == "time" => {
                let times: Vec<f64> = measurement.rounds.iter().map(|round| round.whole / 1e6).collect();
                let point = problem.point(&case.key);
                self.values.extend(point.zip(median(&times).map(|middle| (middle, times))));
            }
            Event::CaseCounted { case, counters, .. } if problem.objective != "time" => {
                let point = problem.point(&case.key);
                self.values.extend(point.zip(counters.get(&problem.objective).map(|count| (count, Vec::new()))));
            }
            // A case that an interrupt kept from running is not evaluated.
            Event::CaseSettled { outcome: Outcome::NotRun { .. }, .. } => {}
            Event::CaseSettled { case, outcome, .. } => self.settle(&case, &outcome),
            _ => {}
        }
    }

    fn settle(&mut self, case: &Case, outcome: &Outcome) {
        let problem = self.seat.problem;
        let Some(point) = problem.point(&case.key) else { return };
        let is_right = matches!(outcome, Outcome::Measured | Outcome::Unstable { .. });
        let measured = self.values.remove(&point).filter(|_| is_right);
        let missing = || format!("no counter `{}`; `runner run` lists those that there are", problem.objective);
        let why = match &measured {
            Some(_) => None,
            None if is_right => Some(missing()),
            None => Some(reason(outcome)),
        };
        let entry = Entry {
            timestamp: Some(humantime::format_rfc3339_seconds(calendar_time(SystemTime::now())).to_string()),
            configuration: Configuration(values(&case.key)),
            times: Times {
                compilation: self.compiled.remove(&point),
                benchmark: Some(self.group.0.elapsed().as_secs_f64() * 1e3 / f64::from(self.group.1)),
                runtimes: measured.iter().flat_map(|(_, times)| times.iter().copied().map(Some)).collect(),
                ..Times::default()
            },
            invalidity: invalidity(outcome).to_owned(),
            correctness: f64::from(u8::from(is_right)),
            measurements: measured
                .iter()
                .map(|(value, _)| {
                    Measurement::new(&problem.objective, *value, if problem.objective == "time" { "ms" } else { "" })
                })
                .collect(),
            objectives: vec![problem.objective.clone()],
            reason: why,
            elapsed: Some(self.earlier + self.begun.elapsed().as_secs_f64()),
        };
        let before = self.history.best();
        self.history.finish(point, entry.outcome(&problem.objective));
        if let Err(failure) = self.log.add(&entry) {
            self.failure.get_or_insert(failure);
        }
        if self.shown.elapsed() > SHOW || (self.history.best() != before && self.history.len() > 1) {
            self.show();
        }
    }

    fn show(&mut self) {
        self.shown = Instant::now();
        let best = self.history.best().map_or("none is right yet".to_owned(), |(point, value)| {
            format!("best {} at {}", format::rough(value), self.seat.problem.case(point).key)
        });
        let (done, took) = (self.history.len(), self.begun.elapsed().as_secs_f64());
        let rate = (done - self.before) as f64 / took;
        self.console.say(&format!(
            "{done} of {}: {best}; {} a second, {} left, the device waited for code {:.0} % of the time",
            self.seat.budget,
            format::rough(rate),
            format::about(self.seat.budget.saturating_sub(done as u64) as f64 / rate),
            self.waited.as_secs_f64() / took * 100.0,
        ));
    }
}

/// Returns the word of T4 for an outcome.
fn invalidity(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Measured | Outcome::Unstable { .. } => "correct",
        Outcome::CompileError { .. } => "compile",
        Outcome::Wrong { .. } | Outcome::Suspect { .. } => "correctness",
        Outcome::TimedOut { .. } => "timeout",
        Outcome::Excluded { .. } | Outcome::Unresolved { .. } => "constraints",
        _ => "runtime",
    }
}

/// A configuration whose code is being compiled.
struct Waiting {
    point: u64,
    case: CaseJob,
    /// The units that it misses.
    missing: HashSet<CompileUnit>,
}

/// Gives out groups of configurations that have their code.
struct Source<'s, 'a> {
    seat: Seat<'a>,
    strategy: Box<dyn Strategy>,
    random: Random,
    state: &'s RefCell<State<'a>>,
    ask: Sender<CompileUnit>,
    results: Receiver<(CompileUnit, UnitResult, f64)>,
    units: Units,
    waiting: Vec<Waiting>,
    linked: VecDeque<CaseJob>,
    started: u64,
    is_exhausted: bool,
    window: usize,
}

impl<'s, 'a> Source<'s, 'a> {
    fn new(
        seat: Seat<'a>,
        strategy: Box<dyn Strategy>,
        random: Random,
        state: &'s RefCell<State<'a>>,
        ask: Sender<CompileUnit>,
        results: Receiver<(CompileUnit, UnitResult, f64)>,
    ) -> Self {
        let started = state.borrow().history.len() as u64;
        let mut source = Self {
            seat,
            strategy,
            random,
            state,
            ask,
            results,
            units: Units::default(),
            waiting: Vec::new(),
            linked: VecDeque::new(),
            started,
            is_exhausted: false,
            // While a group runs, every core has units.
            window: (if seat.learns { 2 } else { 6 } * seat.ready.planned.jobs()).max(GROUP),
        };
        for point in seat.problem.baseline().into_iter().chain(seat.first.iter().copied()) {
            if source.started < seat.budget && !state.borrow().history.is_taken(point) {
                source.begin(point);
            }
        }
        source
    }

    /// Proposes configurations until enough of them are on their way.
    fn propose(&mut self) {
        while !self.is_exhausted
            && self.started < self.seat.budget
            && self.waiting.len() + self.linked.len() < self.window
        {
            let proposed =
                self.strategy.propose(&self.seat.problem.space, &self.state.borrow().history, &mut self.random);
            match proposed {
                Some(point) => self.begin(point),
                None => self.is_exhausted = true,
            }
        }
    }

    fn begin(&mut self, point: u64) {
        self.started += 1;
        self.state.borrow_mut().history.start(point);
        let case = match self.seat.problem.resolve(point) {
            Ok(case) => case,
            Err(outcome) => return self.state.borrow_mut().settle(&self.seat.problem.case(point), &outcome),
        };
        let units = case.body.units().into_iter();
        let missing: HashSet<CompileUnit> =
            units.filter(|unit| !self.units.compiled().contains_key(*unit)).cloned().collect();
        for unit in &missing {
            if self.units.request(unit) {
                // Fails only if every compiling thread is gone.
                let _ = self.ask.send(unit.clone());
            }
        }
        if missing.is_empty() { self.link(case) } else { self.waiting.push(Waiting { point, case, missing }) }
    }

    fn arrive(&mut self, unit: CompileUnit, result: UnitResult, seconds: f64) {
        for Waiting { point, missing, .. } in &mut self.waiting {
            if missing.remove(&unit) {
                *self.state.borrow_mut().compiled.entry(*point).or_default() += seconds * 1e3;
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
        let job = self.seat.problem.batch(vec![case], None);
        let (job, failed) = link(job, self.units.compiled(), &self.seat.ready.environment);
        self.linked.extend(job.cases);
        for (case, outcome) in failed {
            self.state.borrow_mut().settle(&case, &outcome);
        }
    }

    fn may_go_on(&self) -> bool {
        self.seat.interrupt.urgency() == Urgency::None
            && self.state.borrow().failure.is_none()
            && self.seat.ready.planned.fault().is_none()
    }
}

impl GroupSource for Source<'_, '_> {
    fn next(&mut self) -> Option<GroupJob> {
        while self.may_go_on() {
            while let Ok((unit, result, seconds)) = self.results.try_recv() {
                self.arrive(unit, result, seconds);
            }
            self.propose();
            if self.linked.len() >= GROUP || (self.waiting.is_empty() && !self.linked.is_empty()) {
                let count = self.linked.len().min(LARGEST);
                let best = self.state.borrow().history.best().map(|(_, value)| value);
                return Some(self.seat.problem.batch(self.linked.drain(..count).collect(), best));
            }
            if self.waiting.is_empty() {
                return None;
            }
            let since = Instant::now();
            match self.results.recv_timeout(POLL) {
                Ok((unit, result, seconds)) => self.arrive(unit, result, seconds),
                Err(RecvTimeoutError::Timeout) => {}
                // Every compiling thread is gone, which only a fault of this program explains.
                Err(RecvTimeoutError::Disconnected) => return None,
            }
            self.state.borrow_mut().waited += since.elapsed();
        }
        None
    }

    fn remaining(&mut self) -> Vec<GroupJob> {
        // What was proposed and not begun is not evaluated; a resumed search may propose it again.
        Vec::new()
    }

    fn fault(&self) -> Option<String> {
        self.seat.ready.planned.fault()
    }
}

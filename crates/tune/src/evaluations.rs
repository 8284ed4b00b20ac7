//! What a search knows: its evaluations, in memory and in its log, and the partial results of unfinished ones.

use std::collections::HashMap;
use std::time::{Duration, Instant, SystemTime};

use search::format::t4::{Configuration, Entry, Measurement, Times};
use search::history::{self, History};
use search::pareto::{Front, Joined, Objectives, draw_weights};
use search::random::Random;

use crate::candidates::reason;
use crate::error::TuneError;
use crate::log::Log;
use crate::objective::{Objective, names};
use crate::ranking::{Quantities, Ranking};
use crate::search_context::SearchContext;
use crate::shards::part_of;
use crate::values::values;
use runner_lang::format;
use runner_types::{Case, CounterInfo, Event, Outcome, calendar_time};

/// Interval between progress messages.
const SHOW: Duration = Duration::from_secs(5);

/// With several objectives, minimum number of points proposed per draw of weights. New weights change the value of every
/// evaluation.
const SAME_WEIGHTS: usize = 8;
/// The number of points per draw is also at least the number of known points divided by this.
const SHARE_OF_KNOWN: usize = 16;

/// Shows a line to the user.
pub type Say<'a> = &'a mut (dyn FnMut(&str) + Send);

/// The evaluations of a search, and the state needed to continue it.
pub struct Evaluations<'a> {
    context: SearchContext<'a>,
    /// Evaluations by the objective, or by all objectives combined with the current weights.
    pub history: History,
    pub log: Log,
    /// Quantities that currently rank the evaluations.
    pub ranking: Ranking,
    /// All values of each evaluation, kept only if the ranking can change.
    recorded: Vec<Option<Quantities>>,
    /// Objectives of each evaluation and the Pareto front; empty for a single objective.
    pub rows: Vec<Objectives>,
    pub front: Front,
    joined: Option<Joined>,
    /// Number of points still to propose with these weights.
    left: usize,
    /// Measured values of unfinished cases.
    measured: HashMap<u64, Measured>,
    /// Compile time of each case, in milliseconds.
    pub compiled: HashMap<u64, f64>,
    /// Start of this search, and the number of earlier evaluations.
    pub begun: Instant,
    before: usize,
    /// Number of evaluations by other shards.
    of_others: usize,
    /// Total duration of earlier searches, in seconds.
    earlier: f64,
    /// Total time that devices waited for code.
    pub waited: Duration,
    say: Say<'a>,
    shown: Instant,
    pub failure: Option<TuneError>,
}

/// Values measured for an unfinished case.
#[derive(Debug, Clone, Default)]
struct Measured {
    values: Quantities,
    /// Time samples.
    times: Vec<f64>,
}

/// A group running on a device.
#[derive(Debug, Clone, Copy)]
pub struct RunningGroup {
    /// Index of the device, if there are several.
    device: Option<u32>,
    begun: Instant,
    cases: u32,
}

impl RunningGroup {
    pub fn new(device: Option<u32>, cases: u32) -> Self {
        Self { device, begun: Instant::now(), cases: cases.max(1) }
    }

    fn milliseconds_each(self) -> f64 {
        self.begun.elapsed().as_secs_f64() * 1e3 / f64::from(self.cases)
    }
}

impl<'a> Evaluations<'a> {
    /// Starts from the evaluations of an earlier search in the log.
    pub fn new(context: SearchContext<'a>, log: Log, say: Say<'a>) -> Result<Self, TuneError> {
        let now = Instant::now();
        let mut known = Self {
            context,
            history: History::default(),
            log,
            ranking: Ranking::new(context.problem.objectives()),
            recorded: Vec::new(),
            rows: Vec::new(),
            front: Front::default(),
            joined: None,
            left: 0,
            measured: HashMap::new(),
            compiled: HashMap::new(),
            begun: now,
            before: 0,
            of_others: 0,
            earlier: 0.0,
            waited: Duration::ZERO,
            say,
            shown: now,
            failure: None,
        };
        for entry in known.log.entries()? {
            let entry = entry?;
            known.take_over(&entry);
            known.earlier = entry.elapsed.unwrap_or(known.earlier);
        }
        known.before = known.history.len();
        if let Some(shard) = context.shard {
            known.history.keep(part_of(shard));
        }
        Ok(known)
    }

    fn take_over(&mut self, entry: &Entry) {
        let problem = self.context.problem;
        let value = |name: &str| entry.configuration.0.iter().find(|(known, _)| known == name).map(|(_, v)| v);
        let parameters = problem.space.parameters().iter();
        let point: Option<Box<[u16]>> =
            parameters.map(|parameter| parameter.position(value(&parameter.name)?)).collect();
        if let Some(point) = point.and_then(|point| problem.space.number(&point)) {
            let values = self.ranking.quantities().iter().map(|quantity| entry.value(quantity.name())).collect();
            self.finish(point, Some(values));
        }
    }

    /// Adds what other shards have evaluated since the last call.
    pub fn read_others(&mut self) {
        let (before, standing) = (self.history.len(), self.standing());
        match self.log.read_others() {
            Ok(entries) => entries.iter().for_each(|entry| self.take_over(entry)),
            Err(failure) => drop(self.failure.get_or_insert(failure)),
        }
        self.of_others += self.history.len() - before;
        if self.standing() != standing {
            self.say(&format!("of other shards: {}", self.found()));
        }
    }

    /// Records the values of an evaluation; `None` if it failed.
    fn finish(&mut self, point: u64, values: Option<Quantities>) {
        if self.history.outcome(point).is_some() {
            return;
        }
        let given_up = values.as_ref().map_or_else(Vec::new, |values| self.ranking.admit(values));
        let levels = self.ranking.levels(values.as_ref());
        self.add(point, levels);
        if self.ranking.can_change() {
            self.recorded.push(values);
        }
        if !given_up.is_empty() {
            self.rank_anew();
            let used: Vec<Objective> = given_up.iter().filter_map(Objective::of_ptx).collect();
            self.say(&format!(
                "{} could not be derived from the machine code of {}: all configurations are ranked by PTX counts ({})",
                names(&given_up),
                self.context.problem.case(point).key,
                names(&used),
            ));
        }
    }

    /// Adds an evaluation with its levels (see [`Objective::level`]).
    fn add(&mut self, point: u64, levels: Objectives) {
        if let [_] = self.context.problem.objectives() {
            self.history.finish(point, history::Outcome::of_measured(levels.map(|levels| levels[0])));
            return;
        }
        let count = self.context.problem.objectives().len();
        let joined = self.joined.get_or_insert_with(|| Joined::new(&[], vec![1.0; count]));
        self.history.finish(point, joined.outcome(&levels));
        self.rows.push(levels);
        self.front.add_last(&self.rows);
    }

    /// Ranks all evaluations again, by the quantities now in use.
    fn rank_anew(&mut self) {
        let levels = self.recorded.iter().map(|values| self.ranking.levels(values.as_ref()));
        if let [_] = self.context.problem.objectives() {
            let outcomes: Vec<history::Outcome> =
                levels.map(|levels| history::Outcome::of_measured(levels.map(|levels| levels[0]))).collect();
            self.history.replace(&outcomes);
            return;
        }
        let levels: Vec<Objectives> = levels.collect();
        (self.rows, self.front) = (Vec::with_capacity(levels.len()), Front::default());
        for row in levels {
            self.rows.push(row);
            self.front.add_last(&self.rows);
        }
        self.joined = None;
        self.left = 0;
    }

    /// With several objectives, draws new weights from time to time.
    pub fn prepare_proposal(&mut self, random: &mut Random) {
        let count = self.context.problem.objectives().len();
        if count == 1 {
            return;
        }
        if self.left == 0 {
            let joined = Joined::new(&self.rows, draw_weights(count, random));
            let outcomes: Vec<history::Outcome> = self.rows.iter().map(|row| joined.outcome(row)).collect();
            self.history.replace(&outcomes);
            self.joined = Some(joined);
            self.left = SAME_WEIGHTS.max(self.rows.len() / SHARE_OF_KNOWN);
        }
        self.left -= 1;
    }

    /// Records events that a device reports about its cases.
    pub fn observe(&mut self, event: &Event, group: &mut RunningGroup) {
        let problem = self.context.problem;
        match event {
            Event::GroupStarted { cases, .. } => *group = RunningGroup::new(group.device, *cases),
            Event::EnergyMissing { why } => {
                self.failure.get_or_insert_with(|| TuneError::Environment(format!("cannot minimise energy: {why}")));
            }
            Event::CaseSettled { case, outcome: Outcome::NotRun { .. }, .. } => {
                if let Some(point) = problem.point(&case.key) {
                    self.measured.remove(&point);
                }
            }
            Event::CaseSettled { case, outcome, .. } => self.settle(case, outcome, *group),
            Event::CaseMeasured { case, .. }
            | Event::CaseMetered { case, .. }
            | Event::CaseErred { case, .. }
            | Event::CaseCounted { case, .. } => {
                let Some(point) = problem.point(&case.key) else { return };
                let measured = self.measured.entry(point).or_default();
                measured.values.resize(self.ranking.quantities().len(), None);
                for (value, quantity) in measured.values.iter_mut().zip(self.ranking.quantities()) {
                    *value = quantity.value_in(event).or(*value);
                }
                if let Event::CaseMeasured { measurement, .. } = event {
                    measured.times = measurement.rounds.iter().map(|round| round.whole / 1e6).collect();
                }
            }
            _ => {}
        }
    }

    /// Records the outcome of a case.
    pub fn settle(&mut self, case: &Case, outcome: &Outcome, group: RunningGroup) {
        let problem = self.context.problem;
        let Some(point) = problem.point(&case.key) else { return };
        let is_right = matches!(outcome, Outcome::Measured | Outcome::Unstable { .. });
        let Measured { values: measured, times } = self.measured.remove(&point).unwrap_or_default();
        let quantities = self.ranking.quantities();
        let asked = problem.objectives();
        let lacking = self.ranking.lacking(&measured);
        let found = Some(&measured).filter(|_| is_right && lacking.is_empty());
        let missing = || lacking.iter().map(|objective| lack(objective)).collect::<Vec<_>>().join("; ");
        let why = match &found {
            Some(_) => None,
            None if is_right => Some(missing()),
            None => Some(reason(outcome)),
        };
        let named = |(quantity, value): (&Objective, &Option<f64>)| {
            Some(Measurement::new(quantity.name(), (*value)?, quantity.unit()))
        };
        let measurements = found.iter().flat_map(|values| quantities.iter().zip(*values));
        let entry = Entry {
            timestamp: Some(humantime::format_rfc3339_seconds(calendar_time(SystemTime::now())).to_string()),
            configuration: Configuration(values(&case.key)),
            times: Times {
                compilation: self.compiled.remove(&point),
                benchmark: Some(group.milliseconds_each()),
                runtimes: found.iter().flat_map(|_| times.iter().copied().map(Some)).collect(),
                ..Times::default()
            },
            invalidity: invalidity(outcome).to_owned(),
            correctness: f64::from(u8::from(is_right)),
            measurements: measurements.filter_map(named).collect(),
            objectives: asked.iter().map(|objective| objective.name().to_owned()).collect(),
            reason: why,
            device: group.device,
            elapsed: Some(self.earlier + self.begun.elapsed().as_secs_f64()),
        };
        let before = self.standing();
        let found = found.is_some();
        self.finish(point, Some(measured).filter(|_| found));
        if let Err(failure) = self.log.add(&entry) {
            self.failure.get_or_insert(failure);
        }
        if self.shown.elapsed() > SHOW || (self.standing() != before && self.history.len() > 1) {
            self.show();
        }
    }

    /// A value that changes whenever the best point (or, with several objectives, the front) does.
    fn standing(&self) -> Option<(usize, u64)> {
        if self.rows.is_empty() {
            return self.history.best().map(|(point, value)| (0, point ^ value.to_bits()));
        }
        self.front.places().last().map(|&last| (self.front.places().len(), last as u64))
    }

    /// Describes the best points so far.
    fn found(&self) -> String {
        match (self.history.best(), self.front.places().len()) {
            (None, _) => "none gives right results yet".to_owned(),
            (Some(_), count @ 1..) => format!("Pareto front of {count}"),
            (Some((point, value)), 0) => {
                format!("best {} at {}", format::rough(value), self.context.problem.case(point).key)
            }
        }
    }

    pub fn say(&mut self, line: &str) {
        (self.say)(line);
    }

    fn show(&mut self) {
        self.shown = Instant::now();
        let best = self.found();
        let (done, took) = (self.history.len() - self.of_others, self.begun.elapsed().as_secs_f64());
        let rate = (done - self.before) as f64 / took;
        let waited = self.waited.as_secs_f64() / took / self.context.devices as f64;
        let line = format!(
            "{done} of {}: {best}; {} a second, {} left, the device waited for code {:.0} % of the time",
            self.context.budget,
            format::rough(rate),
            format::about(self.context.budget.saturating_sub(done as u64) as f64 / rate),
            waited * 100.0,
        );
        self.say(&line);
    }
}

/// Explains why a correct case has no value for an objective.
fn lack(objective: &Objective) -> String {
    match objective {
        Objective::Counter(name) if CounterInfo::named(name).is_some_and(CounterInfo::is_derived) => {
            format!("`{name}` could not be derived from the machine code")
        }
        Objective::Counter(name) => format!("no counter `{name}`; `runner run` lists the counters"),
        Objective::Error(_) => format!("no `{}`: no check compares floats", objective.name()),
        Objective::Energy => "no energy: the GPU's counter did not change often enough".to_owned(),
        Objective::Time => "no time".to_owned(),
    }
}

/// Name of the outcome in T4 files.
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

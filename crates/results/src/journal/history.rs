//! What the runs of a journal have done, folded from its lines.
//!
//! A journal may hold several runs (each resumption is one), and a group may start several times in a run (if a worker
//! died and was replaced). The last attempt at a case counts. Reports, merges, resumptions and the handling of damaged
//! lines all query a [`History`], so that they agree.
//!
//! A run counts once it has written its plan. A run that was killed before that, while compiling, has changed nothing:
//! the run before it is still the last one.
//!
//! A damaged line invalidates the groups that were running when it was written. Their results up to their next start
//! are omitted, so that a resumed run repeats only these groups.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use super::role::{Content, Part, Role};
use super::{Damaged, Spent};
use runner_types::{
    Case, CaseKey, Environment, Event, FormedRatios, GroupKey, Outcome, Phase, RunContext, RunHeader, Shard,
};

/// A run as described by its own lines.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    pub header: RunHeader,
    /// Device and software that results depend on.
    pub environment: Environment,
    /// Where, when and how it was started.
    pub context: RunContext,
    /// Number of cases in the whole plan.
    pub cases: u64,
    /// Number of groups in the whole plan.
    pub groups: u32,
    /// The `CountersMissing` and `EnergyMissing` events of the run.
    pub remarks: Vec<Event>,
    /// Whether it finished with every planned case run.
    pub is_complete: bool,
    /// Breakdown of its wall time.
    pub spent: Spent,
    /// Cases in the run's plan; `None` if it has not written one.
    planned: Option<Vec<Case>>,
    /// Cases mentioned by lines of a run without a plan.
    named: Vec<Case>,
}

/// A case of the last run, with the attempt that counts.
#[derive(Debug, Clone, PartialEq)]
pub struct CaseHistory<L = Event> {
    /// The case as planned by the last run. Its position may have changed since the attempt.
    pub case: Case,
    /// Index of the start of the run or group, counted over the whole journal. Only samples of the same session were
    /// interleaved.
    pub session: usize,
    /// Lines of the attempt, each with its index in the journal.
    pub lines: Vec<(usize, L)>,
    /// Whether the case was run and has an outcome.
    pub is_run: bool,
}

/// The last run, with the results of its planned cases from this run and earlier ones.
#[derive(Debug)]
pub struct LastRun<L = Event> {
    pub run: Run,
    /// Every planned case once, in the manifest's order.
    pub cases: Vec<CaseHistory<L>>,
    pub(super) groups: HashMap<Arc<GroupKey>, GroupHistory<L>>,
}

/// What has been done according to a journal's lines.
#[derive(Debug)]
pub struct History<L = Event> {
    /// The last run that counts.
    run: Option<Run>,
    /// A run that has not yet written its plan.
    begun: Option<Run>,
    pub(super) shards: BTreeSet<Shard>,
    /// Seconds of all runs in each phase.
    pub(super) phases: BTreeMap<Phase, f64>,
    /// Total seconds of all finished runs.
    pub(super) wall: f64,
    /// Number of starts of runs and groups so far.
    starts: usize,
    /// Session of the run's start, for groups without their own start.
    run_session: usize,
    groups: HashMap<Arc<GroupKey>, GroupHistory<L>>,
    /// Unfinished attempts.
    open: HashMap<CaseKey, Attempt<L>>,
    settled: HashMap<CaseKey, Attempt<L>>,
    /// Number of lines so far.
    lines: usize,
    /// Whether a group has started in the most recent run.
    has_groups: bool,
    /// Whether a line of the most recent run is damaged.
    is_damaged: bool,
}

/// A group's history, without its cases.
#[derive(Debug)]
pub(super) struct GroupHistory<L> {
    /// Start time of the run that last planned it.
    pub planned_at: String,
    /// Lines about the group but not about a case, each with its index in the journal.
    pub lines: Vec<(usize, L)>,
    /// Number of finished cases.
    settled: usize,
    /// Session of the group's start in this run.
    session: Option<usize>,
    is_running: bool,
    /// Whether it has started since the last damaged line.
    is_sound: bool,
    /// Whether its lines are omitted until it is started or planned again.
    is_void: bool,
}

/// What was done for a case since it was last planned.
#[derive(Debug)]
struct Attempt<L> {
    group: Arc<GroupKey>,
    session: usize,
    lines: Vec<(usize, L)>,
    is_run: bool,
}

impl<L> Default for GroupHistory<L> {
    fn default() -> Self {
        Self {
            planned_at: String::new(),
            lines: Vec::new(),
            settled: 0,
            session: None,
            is_running: false,
            is_sound: false,
            is_void: false,
        }
    }
}

impl<L> Default for History<L> {
    fn default() -> Self {
        Self {
            run: None,
            begun: None,
            shards: BTreeSet::new(),
            phases: BTreeMap::new(),
            wall: 0.0,
            starts: 0,
            run_session: 0,
            groups: HashMap::new(),
            open: HashMap::new(),
            settled: HashMap::new(),
            lines: 0,
            has_groups: false,
            is_damaged: false,
        }
    }
}

impl<L> History<L> {
    /// The last run that counts; `None` if none ever started.
    pub fn run(&self) -> Option<&Run> {
        self.run.as_ref().or(self.begun.as_ref())
    }

    /// The last run with its cases; `None` if none ever started.
    pub fn into_last_run(self) -> Option<LastRun<L>> {
        let Self { run, begun, groups, mut open, mut settled, .. } = self;
        let mut run = run.or(begun)?;
        let mut cases = run.planned.take().unwrap_or_else(|| std::mem::take(&mut run.named));
        // A run that plans group by group may repeat a group that it kept at first.
        cases.sort_by_key(|case| case.ordinal);
        cases.dedup_by(|a, b| a.key == b.key);
        let of_case = |case: Case| {
            let attempt = settled.remove(&case.key).or_else(|| open.remove(&case.key));
            let (session, lines, is_run) =
                attempt.map(|attempt| (attempt.session, attempt.lines, attempt.is_run)).unwrap_or_default();
            CaseHistory { case, session, lines, is_run }
        };
        let cases = cases.into_iter().map(of_case).collect();
        Some(LastRun { run, cases, groups })
    }
}

impl History {
    /// Folds the events of a journal, or of some of its groups.
    pub fn fold(events: impl IntoIterator<Item = Event>) -> Self {
        let mut history = Self::default();
        events.into_iter().for_each(|event| history.add(event));
        history
    }

    pub fn add(&mut self, event: Event) {
        self.take(event);
    }

    /// Adds groups that were folded separately.
    pub fn extend(&mut self, groups: Self) {
        self.groups.extend(groups.groups);
        self.open.extend(groups.open);
        self.settled.extend(groups.settled);
    }

    /// Outcome of a case, if finished.
    pub fn outcome(&self, key: &CaseKey) -> Option<&Outcome> {
        self.settled.get(key)?.lines.iter().rev().find_map(|(_, event)| match event {
            Event::CaseSettled { outcome, .. } => Some(outcome),
            _ => None,
        })
    }

    /// Number of cases that were run and have an outcome, whether or not the last run planned them.
    pub fn ran(&self) -> usize {
        self.settled.values().filter(|attempt| attempt.is_run).count()
    }

    /// Events of all finished cases, whether or not the last run planned them.
    pub fn settled(&self) -> impl Iterator<Item = (&CaseKey, impl DoubleEndedIterator<Item = &Event> + Clone)> {
        self.settled.iter().map(|(key, attempt)| (key, attempt.lines.iter().map(|(_, event)| event)))
    }
}

/// A group in the plan of the last run.
#[derive(Debug)]
pub(super) struct PlannedGroup<L> {
    pub key: Arc<GroupKey>,
    pub planned: Vec<Case>,
    /// Lines of the group and its cases, each with its index, in the order they were written.
    pub lines: Vec<(usize, L)>,
    /// Whether every planned case was run and has an outcome.
    pub is_complete: bool,
    /// Start time of the run that last planned it.
    pub planned_at: String,
}

impl<L> LastRun<L> {
    /// The groups, in plan order.
    pub(super) fn into_groups(self) -> Vec<PlannedGroup<L>> {
        let mut known = self.groups;
        let mut places: HashMap<Arc<GroupKey>, usize> = HashMap::new();
        let mut groups: Vec<PlannedGroup<L>> = Vec::new();
        for CaseHistory { case, lines, is_run, .. } in self.cases {
            let place = places.get(&case.group).copied().unwrap_or_else(|| {
                let key = Arc::new(case.group.clone());
                let GroupHistory { lines, planned_at, .. } = known.remove(&key).unwrap_or_default();
                places.insert(Arc::clone(&key), groups.len());
                groups.push(PlannedGroup { key, planned: Vec::new(), lines, is_complete: true, planned_at });
                groups.len() - 1
            });
            let group = &mut groups[place];
            group.planned.push(case);
            group.lines.extend(lines);
            group.is_complete &= is_run;
        }
        for group in &mut groups {
            group.lines.sort_by_key(|(number, _)| *number);
        }
        groups
    }
}

impl LastRun {
    /// Removes and returns the ratios computed from samples.
    pub fn take_ratios(&mut self) -> FormedRatios {
        let lines = self.groups.values_mut().flat_map(|group| std::mem::take(&mut group.lines));
        let ratios = lines.filter_map(|(_, event)| match event {
            Event::RatiosFormed { ratios, .. } => Some(ratios),
            _ => None,
        });
        ratios.flatten().collect()
    }
}

impl<L: Content> History<L> {
    /// Folds the lines of a journal, and returns the damaged ones. Fails if one of them may have been the start of a
    /// run or its plan.
    pub(super) fn of_lines(lines: impl Iterator<Item = Result<L, Damaged>>) -> Result<(Self, Vec<Damaged>), Damaged> {
        let (mut history, mut damaged) = (Self::default(), Vec::new());
        let mut before: Option<Damaged> = None;
        for line in lines {
            match line {
                Ok(line) => {
                    if let Some(damaged) = before.take().filter(|_| matches!(line.role(), Role::Plan)) {
                        return Err(damaged);
                    }
                    history.take(line);
                }
                Err(line) if !history.has_groups => return Err(line),
                Err(line) => {
                    history.miss_line();
                    before.get_or_insert_with(|| line.clone());
                    damaged.push(line);
                }
            }
        }
        Ok((history, damaged))
    }

    fn take(&mut self, line: L) {
        self.lines += 1;
        let number = self.lines;
        match line.role() {
            Role::Run | Role::Plan => {
                if let Some(event) = line.into_event() {
                    self.take_run(event);
                }
            }
            Role::GroupStarted(key) => {
                let key = self.known(key);
                self.start(&key).lines.push((number, line));
            }
            Role::GroupFinished(key) => {
                let key = self.known(key);
                self.has_groups = true;
                self.expect_start(&key);
                let group = self.groups.entry(key).or_default();
                group.is_running = false;
                group.lines.push((number, line));
            }
            Role::Ratios(key) => {
                let key = self.known(key);
                self.groups.entry(key).or_default().lines.push((number, line));
            }
            Role::Case(..) => self.take_case(line),
            Role::Other => {}
        }
    }

    fn take_run(&mut self, event: Event) {
        match event {
            Event::RunStarted { header, environment, context, cases, groups } => {
                self.shards.extend(context.shard);
                (self.has_groups, self.is_damaged) = (false, false);
                self.groups.values_mut().for_each(|group| group.is_running = false);
                self.begun = Some(Run {
                    header: *header,
                    environment: *environment,
                    context,
                    cases,
                    groups,
                    remarks: Vec::new(),
                    is_complete: false,
                    spent: Spent::default(),
                    planned: None,
                    named: Vec::new(),
                });
            }
            Event::CasesPlanned { todo, held } => self.plan(todo, held),
            Event::PhaseSpent { phase, seconds } => {
                *self.phases.entry(phase).or_default() += seconds;
                self.with_run(|run| *run.spent.phases.entry(phase).or_default() += seconds);
            }
            Event::CompileFinished { seconds } => self.with_run(|run| run.spent.compiling += seconds),
            Event::RunFinished { complete, wall_seconds } => {
                self.wall += wall_seconds;
                self.with_run(|run| (run.is_complete, run.spent.wall) = (complete, Some(wall_seconds)));
            }
            Event::CountersMissing { .. } | Event::EnergyMissing { .. } => self.with_run(|run| run.remarks.push(event)),
            _ => {}
        }
    }

    /// Modifies the most recent run.
    fn with_run(&mut self, change: impl FnOnce(&mut Run)) {
        if let Some(run) = self.begun.as_mut().or(self.run.as_mut()) {
            change(run);
        }
    }

    /// Makes the most recent run the one that counts.
    fn enter_run(&mut self) {
        let Some(run) = self.begun.take() else { return };
        self.run = Some(run);
        self.starts += 1;
        self.run_session = self.starts;
        self.groups.values_mut().for_each(|group| group.session = None);
        self.open.clear();
    }

    /// Records a plan. Earlier results of cases that will run again no longer count.
    fn plan(&mut self, todo: Vec<Case>, held: Vec<Case>) {
        self.enter_run();
        for case in &todo {
            self.open.remove(&case.key);
            if let Some(attempt) = self.settled.remove(&case.key)
                && let Some(group) = self.groups.get_mut(&attempt.group)
            {
                group.settled = group.settled.saturating_sub(1);
            }
        }
        let planned_at = self.run.as_ref().map(|run| run.context.started.clone()).unwrap_or_default();
        for case in &todo {
            let key = self.known(&case.group);
            let group = self.groups.entry(key).or_default();
            group.is_void = false;
            group.planned_at.clone_from(&planned_at);
            // Cases that never use the device are settled again even if the rest of the group is kept.
            if group.settled == 0 {
                group.lines.clear();
            }
        }
        if let Some(run) = &mut self.run {
            run.planned.get_or_insert_default().extend(todo.into_iter().chain(held));
        }
    }

    /// Starts a group. If it had already started, discards what the dead worker recorded for its unfinished cases.
    fn start(&mut self, key: &Arc<GroupKey>) -> &mut GroupHistory<L> {
        self.enter_run();
        self.starts += 1;
        self.has_groups = true;
        for attempt in self.open.values_mut().filter(|attempt| attempt.group == *key) {
            attempt.lines.retain(|(_, line)| matches!(line.role(), Role::Case(_, _, Part::Note)));
        }
        let group = self.groups.entry(Arc::clone(key)).or_default();
        group.session = Some(self.starts);
        (group.is_running, group.is_sound, group.is_void) = (true, true, false);
        group
    }

    fn take_case(&mut self, line: L) {
        self.enter_run();
        let Role::Case(group, key, part) = line.role() else { return };
        let group = self.known(group);
        if part == Part::Result {
            self.expect_start(&group);
        }
        let known = self.groups.entry(Arc::clone(&group)).or_default();
        if known.is_void {
            return;
        }
        if let Some(run) = self.run.as_mut().filter(|run| run.planned.is_none()) {
            run.named.extend(line.case());
        }
        let session = known.session.unwrap_or(self.run_session);
        let new = || Attempt { group, session, lines: Vec::new(), is_run: false };
        let is_added = matches!(part, Part::Counted | Part::Note) && !self.open.contains_key(key);
        if let Part::Settled { is_run } = part {
            // A memory check after timing reports the outcome of a case a second time.
            let open = self.open.remove_entry(key);
            known.settled += usize::from(!self.settled.contains_key(key));
            let ended = open.or_else(|| self.settled.remove_entry(key));
            let (key, mut attempt) = ended.unwrap_or_else(|| (key.clone(), new()));
            attempt.is_run = is_run;
            attempt.lines.push((self.lines, line));
            self.settled.insert(key, attempt);
        } else if let Some(attempt) = self.settled.get_mut(key).filter(|_| is_added) {
            // Lines from a profiler belong to the attempt before them.
            attempt.lines.push((self.lines, line));
        } else {
            let attempt = match self.open.get_mut(key) {
                Some(attempt) => attempt,
                None => self.open.entry(key.clone()).or_insert_with(new),
            };
            attempt.session = session;
            attempt.lines.push((self.lines, line));
        }
    }

    /// Records a lost line. It may have belonged to any running group, or have started another one.
    fn miss_line(&mut self) {
        self.is_damaged = true;
        self.groups.values_mut().for_each(|group| group.is_sound = false);
        let running = self.groups.iter().filter(|(_, group)| group.is_running);
        let running: Vec<Arc<GroupKey>> = running.map(|(key, _)| Arc::clone(key)).collect();
        for key in &running {
            self.void(key);
        }
    }

    /// Voids a group that continues after a damaged line without having started again.
    fn expect_start(&mut self, key: &Arc<GroupKey>) {
        if self.is_damaged && !self.groups.get(key).is_some_and(|group| group.is_sound) {
            self.void(key);
        }
    }

    fn void(&mut self, key: &Arc<GroupKey>) {
        self.open.retain(|_, attempt| attempt.group != *key);
        self.settled.retain(|_, attempt| attempt.group != *key);
        let group = self.groups.entry(Arc::clone(key)).or_default();
        (group.settled, group.is_void) = (0, true);
    }

    /// The shared copy of a group's key.
    fn known(&self, key: &GroupKey) -> Arc<GroupKey> {
        self.groups.get_key_value(key).map_or_else(|| Arc::new(key.clone()), |(key, _)| Arc::clone(key))
    }
}

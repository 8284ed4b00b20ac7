//! Many journals as one: those of the shards of a plan, of retries and of resumed runs.
//!
//! The last complete run of a group counts: one in which every planned case has an outcome, by the start of the run. A
//! group without a complete run keeps what its last run left. Nothing is averaged, and no group is put together from
//! parts, since its ratios are formed within rounds.
//!
//! Only journals of the same matrix on the same kind of machine are merged: [`merge`] returns one part for each device,
//! driver, compiler and clock setting.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::model::{Case, Environment, Event, GroupKey, Outcome, Phase, RunContext, RunHeader, Settings, Shard};

/// A journal to be merged.
#[derive(Debug, Clone)]
pub struct Part {
    /// Where it was read from, for messages.
    pub place: String,
    /// As [`read`](super::read) returns them.
    pub events: Vec<Event>,
}

/// The journals of one experiment on one kind of machine, as one.
#[derive(Debug, Clone, PartialEq)]
pub struct Merged {
    /// As one run would have written them.
    pub events: Vec<Event>,
    /// What the journals lack.
    pub missing: Missing,
}

impl Merged {
    /// The run that the events are of; `None` without any.
    pub fn run(&self) -> Option<(&RunHeader, &Environment)> {
        match self.events.first() {
            Some(Event::RunStarted { header, environment, .. }) => Some((header, environment)),
            _ => None,
        }
    }
}

/// What merged journals lack of the plan.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Missing {
    /// Shards without a journal.
    pub shards: Vec<Shard>,
    /// Cases that no journal mentions.
    pub cases: u64,
    /// Groups with cases that have no outcome.
    pub groups: Vec<GroupKey>,
}

impl Missing {
    /// Whether nothing is missing.
    pub const fn is_empty(&self) -> bool {
        self.shards.is_empty() && self.cases == 0 && self.groups.is_empty()
    }
}

/// Why journals cannot be merged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MergeError {
    /// A journal without a run.
    #[error("{place} has no run: it ends before the line that describes one")]
    NoRun {
        /// The journal.
        place: String,
    },
    /// Runs of different matrices.
    #[error("{first} and {second} differ in {what}: merge them apart, or run one of them again")]
    Differ {
        /// One journal.
        first: String,
        /// The other one.
        second: String,
        /// What they differ in.
        what: &'static str,
    },
}

/// Merges journals. Their order does not matter.
///
/// Returns one part for each experiment and kind of machine, in the order of the experiments' names.
pub fn merge(parts: Vec<Part>) -> Result<Vec<Merged>, MergeError> {
    let mut by_kind: BTreeMap<Kind, Vec<Run>> = BTreeMap::new();
    for part in parts {
        let run = Run::of(part)?;
        by_kind.entry(Kind::of(&run.header, &run.environment)).or_default().push(run);
    }
    by_kind.into_values().map(merge_runs).collect()
}

/// What runs must have in common for their times to be of one population.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Kind {
    experiment: String,
    device: String,
    driver: Option<String>,
    compilers: String,
    clocks: String,
}

impl Kind {
    fn of(header: &RunHeader, environment: &Environment) -> Self {
        let device = &environment.device;
        let clocks = |s: &Settings| {
            format!("{:?} {:?} {:?}", s.application_sm_clock_mhz, s.application_memory_clock_mhz, s.power_limit_watts)
        };
        Self {
            experiment: header.experiment.clone(),
            device: format!("{} {:?} {} {}", device.backend, device.compute_capability, device.name, device.sm_count),
            driver: environment.driver.clone(),
            compilers: format!("{:?} {:?} {}", environment.toolkit, environment.host_compiler, environment.runner),
            clocks: environment.machine.settings.as_ref().map(clocks).unwrap_or_default(),
        }
    }
}

/// A journal, group by group.
struct Run {
    place: String,
    header: RunHeader,
    environment: Environment,
    context: RunContext,
    cases: u64,
    groups: u32,
    by_group: HashMap<GroupKey, Group>,
    /// Of every run in the journal.
    shards: BTreeSet<Shard>,
    phases: BTreeMap<Phase, f64>,
    wall_seconds: f64,
    /// `CountersMissing` and `EnergyMissing`.
    remarks: Vec<Event>,
}

/// A group in one journal.
#[derive(Default)]
struct Group {
    planned: Vec<Case>,
    events: Vec<Event>,
    /// When the run began that last planned it.
    started: String,
}

impl Group {
    /// Whether every case has an outcome. A case that was not run has none.
    fn is_complete(&self) -> bool {
        let settled: BTreeSet<u64> = self.events.iter().filter_map(settled).collect();
        self.planned.iter().all(|case| settled.contains(&case.ordinal))
    }
}

/// The ordinal of a case that ended.
fn settled(event: &Event) -> Option<u64> {
    match event {
        Event::CaseSettled { case, outcome, .. } if !matches!(outcome, Outcome::NotRun { .. }) => Some(case.ordinal),
        _ => None,
    }
}

impl Run {
    fn of(part: Part) -> Result<Self, MergeError> {
        let Part { place, events } = part;
        let mut run: Option<Self> = None;
        for event in events {
            match (event, &mut run) {
                (Event::RunStarted { header, environment, context, cases, groups }, known) => {
                    let earlier = known.take();
                    let mut next = Self {
                        place: place.clone(),
                        header: *header,
                        environment: *environment,
                        context,
                        cases,
                        groups,
                        by_group: HashMap::new(),
                        shards: BTreeSet::new(),
                        phases: BTreeMap::new(),
                        wall_seconds: 0.0,
                        remarks: Vec::new(),
                    };
                    if let Some(earlier) = earlier {
                        next.by_group = earlier.by_group;
                        next.shards = earlier.shards;
                        next.phases = earlier.phases;
                        next.wall_seconds = earlier.wall_seconds;
                    }
                    next.shards.extend(next.context.shard);
                    *known = Some(next);
                }
                (event, Some(run)) => run.take(event),
                (_, None) => {}
            }
        }
        run.ok_or(MergeError::NoRun { place })
    }

    fn take(&mut self, event: Event) {
        match event {
            Event::CasesPlanned { todo, held } => self.plan(todo, held),
            Event::GroupStarted { ref key, .. } | Event::GroupFinished { ref key, .. } => {
                let key = key.clone();
                self.by_group.entry(key).or_default().events.push(event);
            }
            Event::PhaseSpent { phase, seconds } => *self.phases.entry(phase).or_default() += seconds,
            Event::RunFinished { wall_seconds, .. } => self.wall_seconds += wall_seconds,
            Event::CountersMissing { .. } | Event::EnergyMissing { .. } => self.remarks.push(event),
            event => {
                let Some(case) = event.case() else { return };
                // Without a copy of the key: most events are of a group that is known.
                if let Some(group) = self.by_group.get_mut(&case.group) {
                    group.events.push(event);
                } else {
                    let key = case.group.clone();
                    self.by_group.insert(key, Group { events: vec![event], ..Group::default() });
                }
            }
        }
    }

    /// Groups that are run again forget their earlier run. A held group has its events of an earlier run.
    fn plan(&mut self, todo: Vec<Case>, held: Vec<Case>) {
        let mut again: HashMap<GroupKey, Vec<Case>> = HashMap::new();
        for case in todo {
            again.entry(case.group.clone()).or_default().push(case);
        }
        let mut kept: HashMap<GroupKey, Vec<Case>> = HashMap::new();
        for case in held {
            kept.entry(case.group.clone()).or_default().push(case);
        }
        for (key, cases) in kept {
            self.by_group.entry(key).or_default().planned = cases;
        }
        for (key, mut planned) in again {
            // Cases that never use the device are settled anew even if the rest of the group is kept.
            let known = self.by_group.remove(&key).unwrap_or_default();
            let ordinals: BTreeSet<u64> = planned.iter().map(|case| case.ordinal).collect();
            let stays = |case: &Case| !ordinals.contains(&case.ordinal);
            let mut events = known.events;
            if known.planned.iter().any(stays) {
                events.retain(|event| event.case().is_none_or(stays));
            } else {
                events.clear();
            }
            planned.extend(known.planned.into_iter().filter(stays));
            self.by_group.insert(key, Group { planned, events, started: self.context.started.clone() });
        }
    }
}

/// Merges the runs of one kind.
fn merge_runs(mut runs: Vec<Run>) -> Result<Merged, MergeError> {
    runs.sort_by(|a, b| (&a.context.started, &a.place).cmp(&(&b.context.started, &b.place)));
    agree(&runs)?;
    let mut best: HashMap<GroupKey, Group> = HashMap::new();
    let (mut shards, mut phases, mut wall_seconds) = (BTreeSet::new(), BTreeMap::<Phase, f64>::new(), 0.0);
    let mut remarks: Vec<Event> = Vec::new();
    let mut newest = None;
    for run in runs {
        // Of runs that began at the same instant, the later place counts.
        for (key, group) in run.by_group {
            let rank = |group: &Group| (group.is_complete(), group.started.clone());
            if best.get(&key).is_none_or(|known| rank(known) <= rank(&group)) {
                best.insert(key, group);
            }
        }
        shards.extend(run.shards);
        for (phase, seconds) in run.phases {
            *phases.entry(phase).or_default() += seconds;
        }
        wall_seconds += run.wall_seconds;
        let new = run.remarks.into_iter().filter(|remark| !remarks.contains(remark)).collect::<Vec<_>>();
        remarks.extend(new);
        newest = Some((run.header, run.environment, run.context, run.cases, run.groups));
    }
    // Every kind has a run.
    let Some((header, environment, context, cases, groups)) = newest else {
        return Ok(Merged { events: Vec::new(), missing: Missing::default() });
    };
    let mut ordered: Vec<(GroupKey, Group)> = best.into_iter().collect();
    ordered.sort_by_key(|(_, group)| group.planned.iter().map(|case| case.ordinal).min());
    let incomplete = ordered.iter().filter(|(_, group)| !group.is_complete()).map(|(key, _)| key.clone()).collect();
    let (mut todo, mut of_groups) = (Vec::new(), Vec::new());
    for (_, group) in ordered {
        todo.extend(group.planned);
        of_groups.extend(group.events);
    }
    todo.sort_by_key(|case| case.ordinal);
    let missing =
        Missing { shards: lacking(&shards), cases: cases.saturating_sub(todo.len() as u64), groups: incomplete };
    let context = RunContext { shard: None, ..context };
    let header = RunHeader { complete: false, ..header };
    let started =
        Event::RunStarted { header: Box::new(header), environment: Box::new(environment), context, cases, groups };
    let mut events = vec![started, Event::CasesPlanned { todo, held: Vec::new() }];
    events.extend(of_groups);
    events.extend(remarks);
    events.extend(phases.into_iter().map(|(phase, seconds)| Event::PhaseSpent { phase, seconds }));
    events.push(Event::RunFinished { complete: missing.is_empty(), wall_seconds });
    Ok(Merged { events, missing })
}

/// Refuses runs of different matrices.
fn agree(runs: &[Run]) -> Result<(), MergeError> {
    let Some((first, others)) = runs.split_first() else { return Ok(()) };
    for other in others {
        let what = if first.header.manifest_hash != other.header.manifest_hash {
            "the manifest"
        } else if first.header.narrowed != other.header.narrowed {
            "how the matrix is narrowed"
        } else if first.header.command != other.header.command {
            "the options of the run"
        } else if first.cases != other.cases {
            "the matrix"
        } else {
            continue;
        };
        return Err(MergeError::Differ { first: first.place.clone(), second: other.place.clone(), what });
    }
    Ok(())
}

/// The shards of the largest division that have no journal. A run of the whole plan has every shard.
fn lacking(shards: &BTreeSet<Shard>) -> Vec<Shard> {
    let Some(of) = shards.iter().map(|shard| shard.of).max() else { return Vec::new() };
    (1..=of).map(|index| Shard { index, of }).filter(|shard| !shards.contains(shard)).collect()
}

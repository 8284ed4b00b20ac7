//! Many journals as one: those of the shards of a plan, of retries and of resumed runs.
//!
//! The last complete run of a group counts: one in which every planned case has an outcome, by the start of the run. A
//! group without a complete run keeps what its last run left. Nothing is averaged, and no group is put together from
//! parts, since its ratios are formed within rounds.
//!
//! Only journals of the same matrix on the same kind of machine are merged: [`merge`] returns one part for each device,
//! driver, compiler and clock setting.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rayon::prelude::*;

use super::Scan;
use super::merged::{Merged, MergedLine, Source};
use super::scan::{GroupLine, Kind, Scanned};
use crate::model::{Case, Environment, Event, GroupKey, Phase, RunContext, RunHeader, Settings, Shard};

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
pub fn merge(scans: Vec<Scan>) -> Result<Vec<Merged>, MergeError> {
    let mut by_machine: BTreeMap<MachineKind, Vec<Run>> = BTreeMap::new();
    let runs: Vec<Run> = scans.into_par_iter().map(Run::of).collect::<Result<_, _>>()?;
    for run in runs {
        by_machine.entry(MachineKind::of(&run.header, &run.environment)).or_default().push(run);
    }
    by_machine.into_values().map(merge_runs).collect()
}

/// What runs must have in common for their times to be of one population.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct MachineKind {
    experiment: String,
    device: String,
    driver: Option<String>,
    compilers: String,
    clocks: String,
}

impl MachineKind {
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
    place: PathBuf,
    header: RunHeader,
    environment: Environment,
    context: RunContext,
    cases: u64,
    groups: u32,
    by_group: HashMap<Arc<GroupKey>, Group>,
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
    lines: Vec<GroupLine>,
    /// When the run began that last planned it.
    started: Arc<str>,
}

impl Group {
    /// Whether every case has an outcome. A case that was not run has none.
    fn is_complete(&self) -> bool {
        let ends = self.lines.iter().filter(|line| line.kind == Kind::Settled);
        let settled: HashSet<u64> = ends.filter_map(|line| line.case).collect();
        self.planned.iter().all(|case| settled.contains(&case.ordinal))
    }
}

impl Run {
    fn of(scan: Scan) -> Result<Self, MergeError> {
        let Scan { path: place, steps, .. } = scan;
        let mut run: Option<Self> = None;
        let mut steps = steps.into_iter().peekable();
        while let Some(step) = steps.next() {
            let event = match (step, &mut run) {
                (Scanned::Run(event), _) => *event,
                (Scanned::Group(line), Some(run)) => {
                    // Lines of a group follow each other: it is looked up once.
                    let key = Arc::clone(&line.key);
                    let group = run.by_group.entry(Arc::clone(&key)).or_default();
                    group.lines.push(line);
                    let is_same =
                        |next: &Scanned| matches!(next, Scanned::Group(other) if Arc::ptr_eq(&other.key, &key));
                    while let Some(Scanned::Group(next)) = steps.next_if(is_same) {
                        group.lines.push(next);
                    }
                    continue;
                }
                (Scanned::Group(_), None) => continue,
            };
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
        run.ok_or_else(|| MergeError::NoRun { place: place.display().to_string() })
    }

    fn take(&mut self, event: Event) {
        match event {
            Event::CasesPlanned { todo, held } => self.plan(todo, held),
            Event::PhaseSpent { phase, seconds } => *self.phases.entry(phase).or_default() += seconds,
            Event::RunFinished { wall_seconds, .. } => self.wall_seconds += wall_seconds,
            Event::CountersMissing { .. } | Event::EnergyMissing { .. } => self.remarks.push(event),
            _ => {}
        }
    }

    /// Groups that are run again forget their earlier run. A held group has its events of an earlier run.
    fn plan(&mut self, todo: Vec<Case>, held: Vec<Case>) {
        for (key, cases) in by_group(held) {
            self.by_group.entry(Arc::new(key)).or_default().planned = cases;
        }
        let started: Arc<str> = Arc::from(self.context.started.as_str());
        for (key, mut planned) in by_group(todo) {
            // Cases that never use the device are settled anew even if the rest of the group is kept.
            let known = self.by_group.remove(&key).unwrap_or_default();
            let mut lines = known.lines;
            let ordinals: HashSet<u64> = planned.iter().map(|case| case.ordinal).collect();
            let stays = |case: u64| !ordinals.contains(&case);
            if known.planned.iter().any(|case| stays(case.ordinal)) {
                lines.retain(|line| line.case.is_none_or(stays));
            } else {
                lines.clear();
            }
            planned.extend(known.planned.into_iter().filter(|case| stays(case.ordinal)));
            self.by_group.insert(Arc::new(key), Group { planned, lines, started: Arc::clone(&started) });
        }
    }
}

fn by_group(cases: Vec<Case>) -> HashMap<GroupKey, Vec<Case>> {
    let mut groups: HashMap<GroupKey, Vec<Case>> = HashMap::new();
    for case in cases {
        // Without a copy of the key: most cases are of a group that is known.
        if let Some(group) = groups.get_mut(&case.group) {
            group.push(case);
        } else {
            groups.insert(case.group.clone(), vec![case]);
        }
    }
    groups
}

/// Merges the runs of one kind.
fn merge_runs(mut runs: Vec<Run>) -> Result<Merged, MergeError> {
    runs.sort_by(|a, b| (&a.context.started, &a.place).cmp(&(&b.context.started, &b.place)));
    agree(&runs)?;
    let mut best: HashMap<Arc<GroupKey>, Best> = HashMap::new();
    let (mut shards, mut phases, mut wall_seconds) = (BTreeSet::new(), BTreeMap::<Phase, f64>::new(), 0.0);
    let mut remarks: Vec<Event> = Vec::new();
    let mut sources = Vec::with_capacity(runs.len());
    let (mut newest, mut gpus) = (None, BTreeSet::new());
    for (source, run) in (0..).zip(runs) {
        // Of runs that began at the same instant, the later place counts.
        for (key, group) in run.by_group {
            let is_complete = group.is_complete();
            let rank = (is_complete, &group.started);
            if best.get(&key).is_none_or(|known| (known.is_complete, &known.group.started) <= rank) {
                best.insert(key, Best { source, is_complete, group });
            }
        }
        shards.extend(run.shards);
        for (phase, seconds) in run.phases {
            *phases.entry(phase).or_default() += seconds;
        }
        wall_seconds += run.wall_seconds;
        let new = run.remarks.into_iter().filter(|remark| !remarks.contains(remark)).collect::<Vec<_>>();
        remarks.extend(new);
        sources.push(Source::File(run.place));
        gpus.insert(run.environment.machine.gpu.clone());
        newest = Some((run.header, run.environment, run.context, run.cases, run.groups));
    }
    // Every kind has a run.
    let Some((header, mut environment, context, cases, groups)) = newest else { return Ok(Merged::default()) };
    environment.machine.gpu = environment.machine.gpu.filter(|_| gpus.len() == 1);
    let mut ordered: Vec<(Arc<GroupKey>, Best)> = best.into_iter().collect();
    ordered.sort_by_key(|(_, best)| best.group.planned.iter().map(|case| case.ordinal).min());
    let lacking_runs = ordered.iter().filter(|(_, best)| !best.is_complete);
    let incomplete = lacking_runs.map(|(key, _)| (**key).clone()).collect();
    let (mut todo, mut lines, mut ends) = (Vec::new(), Vec::new(), Vec::with_capacity(ordered.len()));
    for (_, Best { source, group, .. }) in ordered {
        todo.extend(group.planned);
        lines.extend(group.lines.into_iter().map(|line| MergedLine { source, text: line.text }));
        ends.push(lines.len());
    }
    todo.sort_by_key(|case| case.ordinal);
    let missing =
        Missing { shards: lacking(&shards), cases: cases.saturating_sub(todo.len() as u64), groups: incomplete };
    let context = RunContext { shard: None, ..context };
    let header = RunHeader { complete: false, ..header };
    let started =
        Event::RunStarted { header: Box::new(header), environment: Box::new(environment), context, cases, groups };
    let mut end = remarks;
    end.extend(phases.into_iter().map(|(phase, seconds)| Event::PhaseSpent { phase, seconds }));
    end.push(Event::RunFinished { complete: missing.is_empty(), wall_seconds });
    let head = vec![started, Event::CasesPlanned { todo, held: Vec::new() }];
    Ok(Merged { head, lines, ends, end, sources, missing })
}

/// The run of a group that counts.
struct Best {
    source: u32,
    is_complete: bool,
    group: Group,
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
        let [first, second] = [&first.place, &other.place].map(|place| Path::display(place).to_string());
        return Err(MergeError::Differ { first, second, what });
    }
    Ok(())
}

/// The shards of the largest division that have no journal. A run of the whole plan has every shard.
fn lacking(shards: &BTreeSet<Shard>) -> Vec<Shard> {
    let Some(of) = shards.iter().map(|shard| shard.of).max() else { return Vec::new() };
    (1..=of).map(|index| Shard { index, of }).filter(|shard| !shards.contains(shard)).collect()
}

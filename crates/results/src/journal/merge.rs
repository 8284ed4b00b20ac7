//! Merges several journals into one: those of a plan's shards, of retries and of resumed runs.
//!
//! For each group, the last complete run counts, by start time. A run is complete if every planned case has an outcome.
//! A group without a complete run keeps what its last run produced. Nothing is averaged, and no group is assembled from
//! several runs, since its ratios are formed within rounds.
//!
//! Only journals of the same matrix on the same kind of machine are merged: [`merge`] returns one part for each device,
//! driver, compiler and clock setting.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rayon::prelude::*;

use super::history::PlannedGroup;
use super::merged::{Merged, MergedLine, Missing, Source};
use super::scan::Scanned;
use super::{Run, Scan};
use runner_types::{Environment, Event, GroupKey, Phase, RunContext, RunHeader, Settings, Shard};

/// Why journals cannot be merged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MergeError {
    #[error("{place} has no run: it ends before the line that describes one")]
    NoRun { place: String },
    /// The runs have different matrices.
    #[error("{first} and {second} differ in {what}: merge them separately, or run one of them again")]
    Differ {
        first: String,
        /// Path of a journal that differs from the first.
        second: String,
        /// Description of the difference.
        what: String,
    },
}

/// Merges journals, in any order.
///
/// Returns one part per experiment and kind of machine, sorted by the experiments' names.
pub fn merge(scans: Vec<Scan>) -> Result<Vec<Merged>, MergeError> {
    let mut by_machine: BTreeMap<MachineKind, Vec<Part>> = BTreeMap::new();
    let parts: Vec<Part> = scans.into_par_iter().map(Part::from_scan).collect::<Result<_, _>>()?;
    for part in parts {
        by_machine.entry(MachineKind::new(&part.run.header, &part.run.environment)).or_default().push(part);
    }
    by_machine.into_values().map(merge_parts).collect()
}

/// What runs must have in common for their times to be comparable.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct MachineKind {
    experiment: String,
    device: String,
    driver: Option<String>,
    compilers: String,
    clocks: String,
}

impl MachineKind {
    fn new(header: &RunHeader, environment: &Environment) -> Self {
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

/// A journal, split into groups.
struct Part {
    place: PathBuf,
    run: Run,
    groups: Vec<PlannedGroup<Scanned>>,
    /// Shards, phases and total seconds of all runs in the journal.
    shards: BTreeSet<Shard>,
    phases: BTreeMap<Phase, f64>,
    wall: f64,
}

impl Part {
    fn from_scan(Scan { path: place, history, .. }: Scan) -> Result<Self, MergeError> {
        let (shards, phases, wall) = (history.shards.clone(), history.phases.clone(), history.wall);
        let last = history.into_last_run();
        let last = last.ok_or_else(|| MergeError::NoRun { place: place.display().to_string() })?;
        Ok(Self { place, run: last.run.clone(), groups: last.into_groups(), shards, phases, wall })
    }
}

/// Merges the journals of one kind of machine.
fn merge_parts(mut parts: Vec<Part>) -> Result<Merged, MergeError> {
    parts.sort_by(|a, b| (&a.run.context.started, &a.place).cmp(&(&b.run.context.started, &b.place)));
    agree(&parts)?;
    let mut best: HashMap<Arc<GroupKey>, Best> = HashMap::new();
    let (mut shards, mut phases, mut wall_seconds) = (BTreeSet::new(), BTreeMap::<Phase, f64>::new(), 0.0);
    let mut remarks: Vec<Event> = Vec::new();
    let mut sources = Vec::with_capacity(parts.len());
    let (mut newest, mut gpus) = (None, BTreeSet::new());
    for (source, Part { place, mut run, groups, shards: own, phases: spent, wall }) in (0..).zip(parts) {
        // If two runs start at the same time, the one with the later path counts.
        for group in groups {
            let is_older = |Best { group: known, .. }: &Best| {
                (known.is_complete, &known.planned_at) <= (group.is_complete, &group.planned_at)
            };
            if best.get(&group.key).is_none_or(is_older) {
                best.insert(Arc::clone(&group.key), Best { source, group });
            }
        }
        shards.extend(own);
        for (phase, seconds) in spent {
            *phases.entry(phase).or_default() += seconds;
        }
        wall_seconds += wall;
        let new = run.remarks.drain(..).filter(|remark| !remarks.contains(remark)).collect::<Vec<_>>();
        remarks.extend(new);
        sources.push(Source::File(place));
        gpus.insert(run.environment.machine.gpu.clone());
        newest = Some(run);
    }
    // There is at least one journal for every kind of machine.
    let Some(Run { header, mut environment, context, cases, groups, .. }) = newest else {
        return Ok(Merged::default());
    };
    environment.machine.gpu = environment.machine.gpu.filter(|_| gpus.len() == 1);
    let mut ordered: Vec<Best> = best.into_values().collect();
    ordered.sort_by_key(|best| best.group.planned.iter().map(|case| case.ordinal).min());
    agree_on_code(&ordered, &sources)?;
    let lacking_runs = ordered.iter().filter(|best| !best.group.is_complete);
    let incomplete = lacking_runs.map(|best| (*best.group.key).clone()).collect();
    let (mut todo, mut lines, mut ends) = (Vec::new(), Vec::new(), Vec::with_capacity(ordered.len()));
    for Best { source, group } in ordered {
        todo.extend(group.planned);
        lines.extend(group.lines.iter().filter_map(|(_, line)| line.text()).map(|text| MergedLine { source, text }));
        ends.push(lines.len());
    }
    todo.sort_by_key(|case| case.ordinal);
    let missing =
        Missing { shards: lacking(&shards), cases: cases.saturating_sub(todo.len() as u64), groups: incomplete };
    let context = RunContext { shard: None, files: None, ..context };
    let planned = (missing.cases > 0).then_some(cases);
    let header = RunHeader { complete: false, planned, ..header };
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
    group: PlannedGroup<Scanned>,
}

/// Rejects runs of different matrices.
fn agree(parts: &[Part]) -> Result<(), MergeError> {
    let Some((first, others)) = parts.split_first() else { return Ok(()) };
    for other in others {
        let [a, b] = [&first.run, &other.run];
        let what = if a.header.manifest_hash != b.header.manifest_hash {
            "the manifest"
        } else if a.header.narrowed != b.header.narrowed {
            "how the matrix is narrowed"
        } else if a.header.command != b.header.command {
            "the options of the run"
        } else if a.cases != b.cases {
            "the matrix"
        } else {
            continue;
        };
        let what = what.to_owned();
        let [first, second] = [&first.place, &other.place].map(|place| Path::display(place).to_string());
        return Err(MergeError::Differ { first, second, what });
    }
    Ok(())
}

/// Rejects results from two versions of a variant's source. Only cases with equal options are compared, since different
/// options can make a macro include different files.
fn agree_on_code(best: &[Best], sources: &[Source]) -> Result<(), MergeError> {
    let mut versions: HashMap<(&str, &str), BTreeMap<u32, BTreeSet<&str>>> = HashMap::new();
    for Best { source, group } in best {
        for (variant, code) in group.lines.iter().filter_map(|(_, line)| line.code()) {
            let of_variant = versions.entry((variant, &code.options)).or_default();
            of_variant.entry(*source).or_default().insert(&code.source);
        }
    }
    let place = |source: u32| sources.get(source as usize).map(|source| source.path().display().to_string());
    let differ = |((variant, _), of_variant): (&(&str, &str), &BTreeMap<u32, BTreeSet<&str>>)| {
        // Skip a variant that has several sources within one journal: they come from one version of the code.
        let (first, code) = of_variant.first_key_value().filter(|_| of_variant.values().all(|code| code.len() == 1))?;
        let (second, _) = of_variant.iter().find(|(_, other)| *other != code)?;
        Some((place(*first)?, place(*second)?, format!("the source of variant `{variant}`")))
    };
    // Take the minimum, so that the message does not depend on the map's order.
    match versions.iter().filter_map(differ).min() {
        Some((first, second, what)) => Err(MergeError::Differ { first, second, what }),
        None => Ok(()),
    }
}

/// Shards without a journal, for the largest number of shards that occurs. A run of the whole plan counts as all
/// shards.
fn lacking(shards: &BTreeSet<Shard>) -> Vec<Shard> {
    let Some(of) = shards.iter().map(|shard| shard.of).max() else { return Vec::new() };
    (1..=of).map(|index| Shard { index, of }).filter(|shard| !shards.contains(shard)).collect()
}

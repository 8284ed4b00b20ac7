//! Summary of a plan: how many cases run, why the others do not, and the costs of the run.
//!
//! `runner plan` prints it. Every group is resolved and then dropped, so that a large plan needs little memory.

use std::collections::BTreeMap;

use rayon::prelude::*;

use super::{GroupCost, Plan, PlannedOutcome, ResolvedGroup, resolve};
use runner_experiment::Manifest;
use runner_types::{Bytes, Outcome};

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// Text of the `exclude` rule.
    Rule(String),
    /// A `requires` is false.
    Requires {
        variant: String,
        text: String,
    },
    Host(String),
    Invalid(String),
    OutOfMemory {
        variant: String,
    },
    Unresolved(String),
    /// The case's check needs a variant that does not run.
    NotRun(String),
    /// The case uses attributes of an unknown device.
    Device(String),
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Summary {
    pub ready: u64,
    pub others: BTreeMap<Reason, u64>,
    /// Translation units to compile, including those in the cache.
    pub units: usize,
    pub largest: Option<(Bytes, usize)>,
    /// Estimated seconds of the whole run.
    pub seconds: f64,
    /// Groups whose baseline does not run although other cases do.
    pub without_baseline: u64,
}

/// Resolves every group, on all cores. The result does not depend on the number of cores.
pub fn summarise(manifest: &Manifest, plan: &Plan) -> Summary {
    let group = |index| Summary::of_group(plan, index, &resolve(manifest, plan, index));
    let mut summary = Summary::default();
    // Seconds are added in group order, since floating-point addition is not associative.
    let groups: Vec<(Summary, Vec<u64>)> = (0..plan.group_count()).into_par_iter().map(group).collect();
    let mut units = std::collections::BTreeSet::new();
    for (group, compiled) in groups {
        summary.add(group);
        units.extend(compiled);
    }
    summary.units = units.len();
    summary
}

impl Summary {
    /// Counts for one group, with a hash of each unit that it compiles.
    fn of_group(plan: &Plan, index: usize, group: &ResolvedGroup) -> (Self, Vec<u64>) {
        let cost = GroupCost::estimate(&group.job, plan.backend(), plan.device());
        let mut summary = Self {
            ready: group.job.cases.len() as u64,
            largest: (!group.job.cases.is_empty()).then_some((cost.memory, index)),
            seconds: cost.seconds,
            ..Self::default()
        };
        let lacks = plan.baseline().is_some() && group.job.baseline.is_none() && !group.job.cases.is_empty();
        summary.without_baseline = u64::from(lacks);
        let cells = plan.group(index);
        for (case, outcome) in &group.settled {
            let cell = cells.binary_search_by_key(&case.ordinal, |cell| u64::from(cell.ordinal));
            let by_rule = cell.is_ok_and(|index| matches!(cells[index].outcome, PlannedOutcome::Excluded(_)));
            *summary.others.entry(reason(&case.key.variant, by_rule, outcome)).or_default() += 1;
        }
        for undecided in &group.undecided {
            *summary.others.entry(Reason::Device(undecided.names.join(", "))).or_default() += 1;
        }
        (summary, units(group))
    }

    fn add(&mut self, group: Self) {
        self.ready += group.ready;
        for (reason, count) in group.others {
            *self.others.entry(reason).or_default() += count;
        }
        // Of equal groups the first is kept, so that the result is deterministic.
        if group.largest.map(|(bytes, _)| bytes) > self.largest.map(|(bytes, _)| bytes) {
            self.largest = group.largest;
        }
        self.seconds += group.seconds;
        self.without_baseline += group.without_baseline;
    }
}

fn reason(variant: &str, by_rule: bool, outcome: &Outcome) -> Reason {
    match outcome {
        Outcome::Excluded { why } if by_rule => Reason::Rule(why.clone()),
        Outcome::Excluded { why } => match why.strip_prefix("requires ") {
            Some(text) => Reason::Requires { variant: variant.to_owned(), text: text.to_owned() },
            None => Reason::Host(why.clone()),
        },
        Outcome::Invalid { limit } => Reason::Invalid(limit.clone()),
        Outcome::OutOfMemory { .. } => Reason::OutOfMemory { variant: variant.to_owned() },
        Outcome::NotRun { why, .. } => Reason::NotRun(why.clone()),
        Outcome::Unresolved { message } => Reason::Unresolved(message.clone()),
        other => Reason::NotRun(other.name().to_owned()),
    }
}

/// Hashes of the units that a group compiles; the caller only counts them.
fn units(group: &ResolvedGroup) -> Vec<u64> {
    use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
    let hasher = BuildHasherDefault::<DefaultHasher>::default();
    let mut hashes: Vec<u64> = group
        .job
        .cases
        .iter()
        // Variants never share a unit (see `CompileUnit`), but equal units are compiled once.
        .flat_map(|case| case.body.units())
        .map(|unit| hasher.hash_one(unit))
        .collect();
    hashes.sort_unstable();
    hashes.dedup();
    hashes
}

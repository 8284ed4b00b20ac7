//! Groups that wait for their code, and which of them may start, given what is compiled so far.
//!
//! A group may start when all of its units are there, however they turned out. Where the host's speed shows in its
//! times it also waits for every other unit: compilers would disturb it. Of those that may start, the first in the
//! plan's order is next. Nothing is compiled here, and nobody waits here.

use std::collections::{BTreeSet, HashMap};

use super::link::{CompiledUnits, link};
use crate::model::{
    BodyPlan, Case, CaseJob, CompileFailure, CompileUnit, Compiled, Environment, GroupJob, Outcome, Regime,
};

/// Launches of a body that certainly fit behind a gate, with the marks between them. Those of a longer one may wait for
/// the host.
const GATED_LAUNCHES: usize = 64;

/// See the module.
#[derive(Debug)]
pub struct Waiting {
    /// Distinct, in the order in which they are to be compiled.
    units: Vec<CompileUnit>,
    /// The groups that need each unit.
    users: HashMap<CompileUnit, Vec<usize>>,
    compiled: CompiledUnits,
    /// `None` for one that was handed on.
    groups: Vec<Option<Entry>>,
    /// Those that may start.
    ready: BTreeSet<usize>,
    /// Those that have their code and wait for quiet.
    resting: BTreeSet<usize>,
}

#[derive(Debug)]
struct Entry {
    job: GroupJob,
    /// Units that are not compiled yet.
    missing: usize,
    is_urgent: bool,
    needs_quiet: bool,
}

/// A group with its code, and what became of the cases without any.
#[derive(Debug)]
pub struct Linked {
    pub job: GroupJob,
    pub failed: Vec<(Case, Outcome)>,
}

impl Waiting {
    /// `groups` in the plan's order. Units of those that are `urgent` are compiled before the others; those that need
    /// quiet start when everything is compiled.
    pub fn new(
        groups: Vec<GroupJob>,
        urgent: impl Fn(&GroupJob) -> bool,
        needs_quiet: impl Fn(&GroupJob) -> bool,
    ) -> Self {
        let entry = |job| Entry { is_urgent: urgent(&job), needs_quiet: needs_quiet(&job), job, missing: 0 };
        let mut waiting = Self {
            units: Vec::new(),
            users: HashMap::new(),
            compiled: CompiledUnits::new(),
            groups: groups.into_iter().map(|job| Some(entry(job))).collect(),
            ready: BTreeSet::new(),
            resting: BTreeSet::new(),
        };
        let (urgent, others): (Vec<usize>, Vec<usize>) = (0..waiting.groups.len())
            .partition(|index| waiting.groups[*index].as_ref().is_some_and(|entry| entry.is_urgent));
        urgent.into_iter().chain(others).for_each(|index| waiting.enlist(index));
        (0..waiting.groups.len()).for_each(|index| waiting.advance(index));
        waiting
    }

    /// Notes which units a group needs.
    fn enlist(&mut self, index: usize) {
        let Some(entry) = &mut self.groups[index] else { return };
        let units: BTreeSet<&CompileUnit> = entry.job.cases.iter().flat_map(|case| case.body.units()).collect();
        for unit in &units {
            let users = self.users.entry((*unit).clone()).or_default();
            if users.is_empty() {
                self.units.push((*unit).clone());
            }
            users.push(index);
        }
        entry.missing = units.len();
    }

    /// What is to be compiled, each once, in the order in which it is needed.
    pub fn units(&self) -> &[CompileUnit] {
        &self.units
    }

    /// Takes in what became of a unit; only the first word on it counts.
    pub fn arrive(&mut self, unit: &CompileUnit, result: Result<Compiled, CompileFailure>) {
        if !self.users.contains_key(unit) || self.compiled.contains_key(unit) {
            return;
        }
        self.compiled.insert(unit.clone(), result);
        for index in self.users[unit].clone() {
            if let Some(entry) = &mut self.groups[index] {
                entry.missing -= 1;
            }
            self.advance(index);
        }
        if self.is_all_compiled() {
            self.ready.append(&mut self.resting);
        }
    }

    pub fn is_all_compiled(&self) -> bool {
        self.compiled.len() == self.units.len()
    }

    /// Lets a group start, or rest, that misses nothing.
    fn advance(&mut self, index: usize) {
        let Some(Entry { missing: 0, needs_quiet, .. }) = &self.groups[index] else { return };
        let may_start = !needs_quiet || self.is_all_compiled();
        if may_start {
            self.ready.insert(index)
        } else {
            self.resting.insert(index)
        };
    }

    /// The next group that may start, with its code.
    pub fn next(&mut self, environment: &Environment) -> Option<Linked> {
        let entry = self.ready.pop_first().and_then(|index| self.groups[index].take())?;
        let (job, failed) = link(entry.job, &self.compiled, environment);
        Some(Linked { job, failed })
    }

    /// Takes the groups away for which `holds` says, of their cases with code, that an earlier run has done them. Only
    /// urgent ones are asked about; `None` while any of these misses code.
    pub fn take_held(&mut self, environment: &Environment, holds: impl Fn(&CaseJob) -> bool) -> Option<Vec<Linked>> {
        let urgent = |entry: &Entry| entry.is_urgent;
        if self.groups.iter().flatten().any(|entry| urgent(entry) && entry.missing > 0) {
            return None;
        }
        let mut held = Vec::new();
        for (index, slot) in self.groups.iter_mut().enumerate() {
            let Some(entry) = slot.as_ref().filter(|entry| urgent(entry)) else { continue };
            let (job, failed) = link(entry.job.clone(), &self.compiled, environment);
            if !job.cases.is_empty() && job.cases.iter().all(&holds) {
                *slot = None;
                self.ready.remove(&index);
                self.resting.remove(&index);
                held.push(Linked { job, failed });
            }
        }
        Some(held)
    }

    /// Takes the urgent groups away, without their code: for a run that ends before they have it.
    pub fn take_urgent(&mut self) -> Vec<GroupJob> {
        let is_urgent = |slot: &mut Option<Entry>| slot.take_if(|entry| entry.is_urgent);
        let taken = self.groups.iter_mut().filter_map(is_urgent).map(|entry| entry.job).collect();
        let groups = &self.groups;
        self.ready.retain(|index| groups[*index].is_some());
        self.resting.retain(|index| groups[*index].is_some());
        taken
    }

    /// Every group that was not handed on, without code: for a run that ends early.
    pub fn rest(&mut self) -> Vec<GroupJob> {
        self.ready.clear();
        self.resting.clear();
        self.groups.iter_mut().filter_map(Option::take).map(|entry| entry.job).collect()
    }

    /// Whether every group was handed on.
    pub fn is_empty(&self) -> bool {
        self.groups.iter().all(Option::is_none)
    }

    /// The cases of all groups that are here yet.
    pub fn cases(&self) -> impl Iterator<Item = &Case> {
        self.groups.iter().flatten().flat_map(|entry| &entry.job.cases).map(|case| &case.case)
    }
}

/// Whether the host's speed shows in the times of a group: its clock takes them, or what is queued may wait for it. Of a
/// host function nobody knows that before it has run.
pub fn hears_host(group: &GroupJob) -> bool {
    group.cases.iter().any(|case| {
        case.measure.regimes.contains(&Regime::Host)
            || match &case.body {
                BodyPlan::Cpu(_) | BodyPlan::Host(_) => true,
                BodyPlan::Launches(launches) => launches.len() > GATED_LAUNCHES,
                BodyPlan::Memcpy(copies) => copies.len() > GATED_LAUNCHES,
            }
    })
}

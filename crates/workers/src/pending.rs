//! Groups that wait for their code, and which of them may start.
//!
//! A group may start once all of its units have compiled or failed. If its times depend on the speed of the host, it
//! also waits for every other unit, because compilers would disturb it. Of the groups that may start, the first in plan
//! order is next. No function here compiles or blocks.

use std::collections::{BTreeSet, HashMap};

use runner_plan::link::{CompiledUnits, link};
use runner_types::{Case, CaseJob, CompileFailure, CompileUnit, Compiled, Environment, GroupJob, Outcome};

#[derive(Debug)]
pub struct Pending {
    /// Distinct units, in compilation order.
    units: Vec<CompileUnit>,
    /// Groups that need each unit.
    users: HashMap<CompileUnit, Vec<usize>>,
    compiled: CompiledUnits,
    /// Groups in plan order; `None` for those already handed out.
    groups: Vec<Option<Entry>>,
    /// Groups that may start.
    ready: BTreeSet<usize>,
    /// Groups that have their code but wait until everything is compiled.
    waiting_for_quiet: BTreeSet<usize>,
}

#[derive(Debug)]
struct Entry {
    job: GroupJob,
    /// Number of units that are not compiled yet.
    missing: usize,
    is_urgent: bool,
    needs_quiet: bool,
}

/// A group with its code, and the outcomes of the cases that did not compile.
#[derive(Debug)]
pub struct Linked {
    /// The cases that compiled.
    pub job: GroupJob,
    /// Cases that cannot run, each with its outcome.
    pub failed: Vec<(Case, Outcome)>,
}

impl Pending {
    /// `groups` are in plan order. Units of `urgent` groups are compiled first; groups that need quiet start after
    /// everything is compiled.
    pub fn new(
        groups: Vec<GroupJob>,
        urgent: impl Fn(&GroupJob) -> bool,
        needs_quiet: impl Fn(&GroupJob) -> bool,
    ) -> Self {
        let entry = |job| Entry { is_urgent: urgent(&job), needs_quiet: needs_quiet(&job), job, missing: 0 };
        let mut pending = Self {
            units: Vec::new(),
            users: HashMap::new(),
            compiled: CompiledUnits::new(),
            groups: groups.into_iter().map(|job| Some(entry(job))).collect(),
            ready: BTreeSet::new(),
            waiting_for_quiet: BTreeSet::new(),
        };
        let (urgent, others): (Vec<usize>, Vec<usize>) = (0..pending.groups.len())
            .partition(|index| pending.groups[*index].as_ref().is_some_and(|entry| entry.is_urgent));
        urgent.into_iter().chain(others).for_each(|index| pending.note_units(index));
        (0..pending.groups.len()).for_each(|index| pending.advance(index));
        pending
    }

    /// Records the units that a group needs.
    fn note_units(&mut self, index: usize) {
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

    /// Distinct units, in the order in which groups need them.
    pub fn units(&self) -> &[CompileUnit] {
        &self.units
    }

    /// Stores a unit's result; only the first one counts.
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
            self.ready.append(&mut self.waiting_for_quiet);
        }
    }

    fn is_all_compiled(&self) -> bool {
        self.compiled.len() == self.units.len()
    }

    /// If all units of a group are compiled, marks it as ready or as waiting for a quiet host.
    fn advance(&mut self, index: usize) {
        let Some(Entry { missing: 0, needs_quiet, .. }) = &self.groups[index] else { return };
        let may_start = !needs_quiet || self.is_all_compiled();
        if may_start {
            self.ready.insert(index)
        } else {
            self.waiting_for_quiet.insert(index)
        };
    }

    /// Next group that may start, with its code.
    pub fn next(&mut self, environment: &Environment) -> Option<Linked> {
        let entry = self.ready.pop_first().and_then(|index| self.groups[index].take())?;
        let (job, failed) = link(entry.job, &self.compiled, environment);
        Some(Linked { job, failed })
    }

    /// Removes and returns the urgent groups that an earlier run has completed: `holds` is true for every case with
    /// code. Returns `None` while an urgent group lacks code.
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
                self.waiting_for_quiet.remove(&index);
                held.push(Linked { job, failed });
            }
        }
        Some(held)
    }

    /// Removes and returns the urgent groups without their code, for a run that ends early.
    pub fn take_urgent(&mut self) -> Vec<GroupJob> {
        let is_urgent = |slot: &mut Option<Entry>| slot.take_if(|entry| entry.is_urgent);
        let taken = self.groups.iter_mut().filter_map(is_urgent).map(|entry| entry.job).collect();
        let groups = &self.groups;
        self.ready.retain(|index| groups[*index].is_some());
        self.waiting_for_quiet.retain(|index| groups[*index].is_some());
        taken
    }

    /// Removes and returns every group not yet handed out, without code, for a run that ends early.
    pub fn remaining(&mut self) -> Vec<GroupJob> {
        self.ready.clear();
        self.waiting_for_quiet.clear();
        self.groups.iter_mut().filter_map(Option::take).map(|entry| entry.job).collect()
    }

    pub fn is_empty(&self) -> bool {
        self.groups.iter().all(Option::is_none)
    }

    /// Cases of all groups not yet handed out.
    pub fn cases(&self) -> impl Iterator<Item = &Case> {
        self.groups.iter().flatten().flat_map(|entry| &entry.job.cases).map(|case| &case.case)
    }
}

/// Whether compiling on the host would disturb the group's times.
pub fn needs_quiet(group: &GroupJob) -> bool {
    group.needs_host() || group.times_host()
}

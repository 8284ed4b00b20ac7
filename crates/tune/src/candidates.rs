//! The cells of a plan that a search may choose from, and those that are measured after it.

use std::collections::HashSet;

use runner_plan::{Cell, Plan};
use runner_types::{CaseJob, CaseKey, Outcome};

use crate::objective::{Objective, measure_by};
use crate::values::{Values, configuration};

/// The cells of one group, which form the space of one search.
#[derive(Debug)]
pub struct Candidates {
    /// Index of the group in the plan.
    pub group: usize,
    /// Cells that can run.
    pub cells: Vec<Cell>,
    /// Reasons why other cells cannot run, each with the number of cells.
    pub excluded: Vec<(String, usize)>,
}

impl Candidates {
    #[must_use]
    pub const fn new(group: usize) -> Self {
        Self { group, cells: Vec::new(), excluded: Vec::new() }
    }

    pub fn exclude(&mut self, outcome: &Outcome) {
        let reason = reason(outcome);
        match self.excluded.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, count)) => *count += 1,
            None => self.excluded.push((reason, 1)),
        }
    }
}

pub fn reason(outcome: &Outcome) -> String {
    let name = outcome.name().replace('_', " ");
    outcome.words().map_or(name.clone(), |words| format!("{name}: {}", words.lines().next().unwrap_or_default()))
}

/// The cases that are measured after a search.
#[derive(Debug)]
pub struct Finalists<'a> {
    pub keys: HashSet<CaseKey>,
    objectives: &'a [Objective],
}

impl<'a> Finalists<'a> {
    /// Selects the cases of all groups that have one of the chosen configurations or are the baseline.
    #[must_use]
    pub fn choose(plan: &Plan, groups: &[Candidates], chosen: &HashSet<Values>, objectives: &'a [Objective]) -> Self {
        let cells = groups.iter().flat_map(|candidates| &candidates.cells);
        let cases = cells.map(|&cell| (plan.is_baseline(cell.ordinal), plan.case(cell)));
        let keys = cases
            .filter(|(is_baseline, case)| *is_baseline || chosen.contains(&configuration(case)))
            .map(|(_, case)| case.key);
        Self { keys: keys.collect(), objectives }
    }

    /// Sets up a case to measure every objective of the search.
    pub fn prepare(&self, case: &mut CaseJob) {
        measure_by(self.objectives, case);
    }
}

use std::collections::HashSet;

use crate::candidates::Candidates;
use crate::objective::{Objective, measure_by};
use crate::values::{Values, configuration};
use runner_plan::Plan;
use runner_types::{CaseJob, CaseKey};

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

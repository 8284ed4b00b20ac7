//! The cells of a plan that a search may choose from.

use runner_plan::Cell;
use runner_types::Outcome;

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

//! The cells of a plan that a search may choose.

use crate::model::Outcome;
use crate::plan::Cell;

/// The cells of one group, which are the space of one search.
#[derive(Debug)]
pub struct Candidates {
    /// The place of the group in the plan.
    pub group: usize,
    /// The cells that can run.
    pub cells: Vec<Cell>,
    /// Why the others cannot, with how many there are.
    pub excluded: Vec<(String, usize)>,
}

impl Candidates {
    /// Returns a group without cells.
    #[must_use]
    pub const fn new(group: usize) -> Self {
        Self { group, cells: Vec::new(), excluded: Vec::new() }
    }

    /// Counts a cell that cannot run.
    pub fn exclude(&mut self, outcome: &Outcome) {
        let reason = reason(outcome);
        match self.excluded.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, count)) => *count += 1,
            None => self.excluded.push((reason, 1)),
        }
    }
}

/// Returns why a case has no objective.
pub fn reason(outcome: &Outcome) -> String {
    let name = outcome.name().replace('_', " ");
    outcome.words().map_or(name.clone(), |words| format!("{name}: {}", words.lines().next().unwrap_or_default()))
}

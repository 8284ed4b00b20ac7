//! How a search is made.

use search::Budget;

use crate::objective::Objective;

/// How a search is made.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The name of the strategy.
    pub strategy: String,
    /// How many configurations are evaluated.
    pub budget: Budget,
    /// Seed of the strategy.
    pub seed: u64,
    /// What is minimised, at least one.
    pub objectives: Vec<Objective>,
    /// How many of the best are measured at the end.
    pub finalists: usize,
    /// The most samples of a configuration before the end.
    pub samples: u32,
    /// A configuration has no more samples once all are longer than the best time by this factor.
    pub drop_above: f64,
}

impl Settings {
    /// Returns the names of the objectives between commas.
    #[must_use]
    pub fn objective_names(&self) -> String {
        self.objectives.iter().map(Objective::name).collect::<Vec<_>>().join(", ")
    }
}

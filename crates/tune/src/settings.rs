//! Settings of a search: the user's choices, with defaults that depend on the backend.

use search::Budget;
use search::strategy::NAMES;

use crate::error::TuneError;
use crate::objective::{Objective, names};
use runner_experiment::SearchSpec;
use runner_types::BackendKind;

/// Default number of best configurations to measure at the end.
const FINALISTS: usize = 5;
/// Default maximum number of samples per configuration during the search.
const SAMPLES: u32 = 7;
/// Default factor over the best time. Sampling of a configuration stops once all its samples exceed that. Large enough
/// to cover the error of a single sample.
const DROPPED: f64 = 1.25;

#[derive(Debug, Clone)]
pub struct Settings {
    pub strategy: String,
    /// Number of configurations to evaluate.
    pub budget: Budget,
    pub seed: u64,
    /// Quantities to minimise; at least one.
    pub objectives: Vec<Objective>,
    /// Number of best configurations to measure at the end.
    pub finalists: usize,
    /// Maximum number of samples per configuration during the search.
    pub samples: u32,
    /// Factor over the best time. Sampling of a configuration stops once all its samples exceed that.
    pub drop_above: f64,
}

impl Settings {
    /// Combines the user's choices with the defaults of the backend.
    pub fn resolve(asked: &SearchSpec, backend: BackendKind) -> Result<Self, TuneError> {
        let budget = asked.budget.as_ref().map(|text| text.parse()).transpose().map_err(TuneError::Usage)?;
        Ok(Self {
            strategy: strategy_of(asked)?.to_owned(),
            budget: budget.unwrap_or_default(),
            seed: asked.seed.unwrap_or(1),
            objectives: Objective::resolve(&asked.objectives, backend).map_err(TuneError::Usage)?,
            finalists: asked.finalists.map_or(FINALISTS, |count| count as usize).max(1),
            samples: asked.samples.unwrap_or(SAMPLES),
            drop_above: asked.drop_above.unwrap_or(DROPPED),
        })
    }

    #[must_use]
    pub fn objective_names(&self) -> String {
        names(&self.objectives)
    }
}

/// The requested strategy, or the default.
pub fn strategy_of(asked: &SearchSpec) -> Result<&str, TuneError> {
    let name = asked.strategy.as_deref().unwrap_or(NAMES[0].0);
    if NAMES.iter().any(|(known, _)| *known == name) { Ok(name) } else { Err(unknown_strategy(name)) }
}

#[must_use]
pub fn unknown_strategy(name: &str) -> TuneError {
    let names: Vec<&str> = NAMES.iter().map(|(name, _)| *name).collect();
    TuneError::Usage(format!("--strategy {name}: use one of {}", names.join(", ")))
}

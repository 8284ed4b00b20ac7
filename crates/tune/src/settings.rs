//! How a search is made.

use search::Budget;
use search::strategy::NAMES;

use crate::error::TuneError;
use crate::experiment::SearchSpec;
use crate::model::BackendKind;
use crate::objective::Objective;

/// How many of the best configurations are measured at the end.
const FINALISTS: usize = 5;
/// How many samples a configuration has at most before the end.
const SAMPLES: u32 = 7;
/// A configuration has no more samples once all are longer than the best time by this factor: as much as a single sample
/// may be off.
const DROPPED: f64 = 1.25;

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
    /// Returns how a space is searched on a device of this backend: as it is asked for, or else by the defaults.
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

    /// Returns the names of the objectives between commas.
    #[must_use]
    pub fn objective_names(&self) -> String {
        self.objectives.iter().map(Objective::name).collect::<Vec<_>>().join(", ")
    }
}

/// Returns the name of the strategy that is asked for, or of the default.
pub fn strategy_of(asked: &SearchSpec) -> Result<&str, TuneError> {
    let name = asked.strategy.as_deref().unwrap_or(NAMES[0].0);
    if NAMES.iter().any(|(known, _)| *known == name) { Ok(name) } else { Err(unknown_strategy(name)) }
}

/// Says which strategies there are.
#[must_use]
pub fn unknown_strategy(name: &str) -> TuneError {
    let names: Vec<&str> = NAMES.iter().map(|(name, _)| *name).collect();
    TuneError::Usage(format!("--strategy {name}: use one of {}", names.join(", ")))
}

//! How a search is made: what the command line says, or else the manifest, or else the defaults.

use search::Budget;
use search::strategy::NAMES;

use crate::commands::Failure;
use crate::commands::cli::TuneArgs;
use crate::experiment::SearchSpec;

/// How many of the best configurations are measured at the end.
const FINALISTS: usize = 5;
/// How many samples a configuration has at most before the end.
const SAMPLES: u32 = 7;
/// A configuration has no more samples once all are longer than the best time by this factor: as much as a single sample
/// may be off.
const DROPPED: f64 = 1.25;

/// How a search is made.
#[derive(Debug)]
pub struct Settings {
    /// The names of strategies; several only to compare them.
    pub strategies: Vec<String>,
    pub budget: Budget,
    pub seed: u64,
    pub objective: Option<String>,
    pub finalists: usize,
    pub samples: u32,
    pub drop_above: f64,
}

impl Settings {
    /// Returns the counter that is minimised where there is no clock.
    pub fn counter(&self) -> &str {
        self.objective.as_deref().unwrap_or("inst_executed")
    }

    /// Joins options with the `[search]` of a manifest.
    pub fn resolve(args: &TuneArgs, spec: &SearchSpec) -> Result<Self, Failure> {
        let named =
            if args.strategy.is_empty() { spec.strategy.iter().cloned().collect() } else { args.strategy.clone() };
        let budget = spec.budget.as_ref().map(|text| text.parse()).transpose().map_err(Failure::usage)?;
        Ok(Self {
            strategies: if named.is_empty() { vec![NAMES[0].0.to_owned()] } else { named },
            budget: args.budget.or(budget).unwrap_or_default(),
            seed: args.seed.or(spec.seed).unwrap_or(1),
            objective: args.objective.clone().or_else(|| spec.objective.clone()),
            finalists: args.finalists.or(spec.finalists.map(|count| count as usize)).unwrap_or(FINALISTS).max(1),
            samples: spec.samples.unwrap_or(SAMPLES),
            drop_above: spec.drop_above.unwrap_or(DROPPED),
        })
    }
}

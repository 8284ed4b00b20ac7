//! Joins what the command line says of a search with what the manifest says, or else with the defaults.

use search::strategy::NAMES;

use crate::commands::Failure;
use crate::commands::cli::TuneArgs;
use crate::experiment::SearchSpec;
use crate::model::BackendKind;
use crate::tune::{Objective, Settings};

/// How many of the best configurations are measured at the end.
const FINALISTS: usize = 5;
/// How many samples a configuration has at most before the end.
const SAMPLES: u32 = 7;
/// A configuration has no more samples once all are longer than the best time by this factor: as much as a single sample
/// may be off.
const DROPPED: f64 = 1.25;

/// Returns how a manifest is searched on a device of this backend.
pub fn resolve(args: &TuneArgs, spec: &SearchSpec, backend: BackendKind) -> Result<Settings, Failure> {
    let budget = spec.budget.as_ref().map(|text| text.parse()).transpose().map_err(Failure::usage)?;
    let names = if args.objective.is_empty() { &spec.objectives } else { &args.objective };
    Ok(Settings {
        strategy: strategy(args, spec)?,
        budget: args.budget.or(budget).unwrap_or_default(),
        seed: args.seed.or(spec.seed).unwrap_or(1),
        objectives: Objective::resolve(names, backend).map_err(Failure::usage)?,
        finalists: args.finalists.or(spec.finalists.map(|count| count as usize)).unwrap_or(FINALISTS).max(1),
        samples: spec.samples.unwrap_or(SAMPLES),
        drop_above: spec.drop_above.unwrap_or(DROPPED),
    })
}

/// Returns the name of the strategy.
pub fn strategy(args: &TuneArgs, spec: &SearchSpec) -> Result<String, Failure> {
    let name = match args.strategy.as_slice() {
        [] => spec.strategy.clone().unwrap_or_else(|| NAMES[0].0.to_owned()),
        [name] => name.clone(),
        _ => return Err(Failure::usage("several strategies can be compared with --simulate; a search has one")),
    };
    if NAMES.iter().any(|(known, _)| *known == name) { Ok(name) } else { Err(unknown(&name)) }
}

/// Says which strategies there are.
pub fn unknown(name: &str) -> Failure {
    let names: Vec<&str> = NAMES.iter().map(|(name, _)| *name).collect();
    Failure::usage(format!("--strategy {name}: use one of {}", names.join(", ")))
}

//! Compares strategies on a measured space.

use std::fmt::Write as _;
use std::path::Path;

use search::format::read_measured;
use search::history::History;
use search::replay::Measured;
use search::score::{Baseline, mean};
use search::strategy::{NAMES, named};

use super::settings::unknown;
use crate::commands::cli::TuneArgs;
use crate::commands::{Console, Exit, Failure};

/// A configuration is as good as the best one if it is worse by this factor at most.
const NEAR: f64 = 1.01;

/// Prints a row of a table for each strategy.
pub fn run(args: &TuneArgs, file: &Path, console: &mut Console) -> Result<Exit, Failure> {
    let objective = match args.objective.as_slice() {
        [] => None,
        [name] => Some(name.as_str()),
        _ => return Err(Failure::usage("--objective: with --simulate there is one")),
    };
    let measured = read_measured(file, objective)
        .map_err(|error| Failure::usage(format!("--simulate {}: {error}", file.display())))?;
    let all = || NAMES.iter().map(|(name, _)| (*name).to_owned()).collect();
    let names: Vec<String> = match args.strategy.as_slice() {
        [] => vec![NAMES[0].0.to_owned()],
        [name] if name == "all" => all(),
        names => names.to_vec(),
    };
    if let Some(name) = names.iter().find(|name| named(name).is_none()) {
        return Err(unknown(name));
    }
    let baseline = Baseline::new(&measured)
        .ok_or_else(|| Failure::usage(format!("--simulate {}: every configuration failed", file.display())))?;
    let budget = args.budget.unwrap_or_default().resolve(measured.space.len()) as usize;
    let sorted = measured.sorted();
    let near = sorted.iter().filter(|value| **value <= sorted[0] * NEAR).count();
    let mut text = format!(
        "{} configurations, {} of them failed; best {}, median {}; {near} within 1 % of the best.\n\
         {} searches of {budget} evaluations, {} at once. Random search needs {} evaluations to come near (score).\n\n\
         | strategy | within 1 % | evaluations, half of the searches | worst result | score |\n\
         |---|---:|---:|---:|---:|\n",
        measured.space.len(),
        measured.space.len() - sorted.len() as u64,
        sorted[0],
        sorted[sorted.len() / 2],
        args.searches,
        args.parallel,
        baseline.evaluations(),
    );
    for name in &names {
        let _ = writeln!(text, "{}", row(name, &measured, &baseline, budget, args.seed.unwrap_or(1), args));
    }
    console.print(&text)?;
    Ok(Exit::Success)
}

fn row(name: &str, measured: &Measured, baseline: &Baseline, budget: usize, seed: u64, args: &TuneArgs) -> String {
    let searches: Vec<History> = (0..args.searches.max(1))
        .filter_map(|place| {
            let mut strategy = named(name)?;
            let evaluations = budget.max(baseline.evaluations());
            Some(measured.search(&mut *strategy, evaluations, args.parallel.max(1), seed + place))
        })
        .collect();
    let within = |search: &History| {
        let goal = baseline.optimum() * NEAR;
        let evaluations = &search.evaluations()[..budget.min(search.len())];
        evaluations.iter().position(|evaluation| evaluation.outcome.value().is_some_and(|value| value <= goal))
    };
    let best = |search: &History| {
        let evaluations = &search.evaluations()[..budget.min(search.len())];
        evaluations.iter().filter_map(|evaluation| evaluation.outcome.value()).fold(f64::INFINITY, f64::min)
    };
    let mut found: Vec<usize> = searches.iter().filter_map(within).collect();
    found.sort_unstable();
    let half = found.get(searches.len() / 2).map_or_else(|| "–".to_owned(), |place| (place + 1).to_string());
    let worst = searches.iter().map(best).fold(0.0, f64::max) / baseline.optimum();
    let score = mean(&[baseline.scores(measured, &searches)]);
    format!("| {name} | {} of {} | {half} | {worst:.3} × | {score:.3} |", found.len(), searches.len())
}

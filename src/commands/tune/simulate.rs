//! Compares search strategies on an already measured space, without a device.

use std::fmt::Write as _;
use std::path::Path;

use search::compare::Comparison;
use search::format::read_measured;
use search::strategy::{NAMES, named};

use crate::cli::TuneArgs;
use crate::console::Console;
use crate::failure::Exit;
use crate::failure::Failure;
use runner_tune::unknown_strategy;

/// Prints a table with one row per strategy.
pub fn run(args: &TuneArgs, file: &Path, console: &mut Console) -> Result<Exit, Failure> {
    let refused = |why: &dyn std::fmt::Display| Failure::usage(format!("--simulate {}: {why}", file.display()));
    let objective = match args.objective.as_slice() {
        [] => None,
        [name] => Some(name.as_str()),
        _ => return Err(Failure::usage("--objective: --simulate takes only one")),
    };
    let measured = read_measured(file, objective).map_err(|error| refused(&error))?;
    let all = || NAMES.iter().map(|(name, _)| (*name).to_owned()).collect();
    let names: Vec<String> = match args.strategy.as_slice() {
        [] => vec![NAMES[0].0.to_owned()],
        [name] if name == "all" => all(),
        names => names.to_vec(),
    };
    if let Some(name) = names.iter().find(|name| named(name).is_none()) {
        return Err(unknown_strategy(name).into());
    }
    let (budget, searches) = (args.budget.unwrap_or_default().resolve(measured.space.len()), args.searches.max(1));
    let comparison = Comparison::new(&measured, budget, args.parallel, true)
        .ok_or_else(|| refused(&"every configuration failed"))?;
    let mut text = comparison.describe(searches)
        + "\n| strategy | within 1 % | evaluations, half of the searches | worst result | score |\n\
           |---|---:|---:|---:|---:|\n";
    let first = args.seed.unwrap_or(1);
    for (name, row) in names.iter().filter_map(|name| Some((name, comparison.run(name, first..first + searches)?))) {
        let half = row.half().map_or_else(|| "–".to_owned(), |half| half.to_string());
        let near = format!("{} of {}", row.near.len(), row.searches);
        let _ = writeln!(text, "| {name} | {near} | {half} | {:.3} × | {:.3} |", row.worst, row.score);
    }
    console.print(&text)?;
    Ok(Exit::Success)
}

//! What is known from another size, device or revision: its best configurations are evaluated first.

use std::path::Path;

use search::format::read_measured;

use super::problem::{Values, values};
use crate::commands::Failure;
use crate::commands::cli::TuneArgs;
use crate::journal::read_records;
use crate::model::Outcome;

/// How many configurations are taken over. A prior that misleads costs no more evaluations than that.
const TAKEN: usize = 8;

/// Reads the best configurations of the file that `--prior` names, best first: records of a report, T4 or a table.
pub fn read_prior(args: &TuneArgs) -> Result<Vec<Values>, Failure> {
    let Some(path) = &args.prior else { return Ok(Vec::new()) };
    let refused = |why: String| Failure::usage(format!("--prior {}: {why}", path.display()));
    let mut known = if path.extension().is_some_and(|end| end == "jsonl") {
        from_records(path, args.objective.as_deref()).map_err(refused)?
    } else {
        let measured = read_measured(path, args.objective.as_deref()).map_err(|error| refused(error.to_string()))?;
        let names: Vec<String> = measured.space.parameters().iter().map(|parameter| parameter.name.clone()).collect();
        let named = |point| names.iter().cloned().zip(measured.space.values(point)).collect();
        let points = 0..measured.space.len();
        points.filter_map(|point| Some((measured.outcome(point).value()?, named(point)))).collect()
    };
    known.sort_by(|a, b| a.0.total_cmp(&b.0));
    Ok(known.into_iter().take(TAKEN).map(|(_, values)| values).collect())
}

/// Reads the times of records, or the counts if they have no times.
fn from_records(path: &Path, counter: Option<&str>) -> Result<Vec<(f64, Values)>, String> {
    let records = read_records(path).map_err(|error| error.to_string())?;
    let right = |outcome: &Outcome| matches!(outcome, Outcome::Measured | Outcome::Unstable { .. });
    let known: Vec<(f64, Values)> = records
        .cases
        .iter()
        .filter(|record| right(&record.outcome))
        .filter_map(|record| {
            let time = record.result.as_ref().map(|result| result.time.point);
            let count = || record.counters.as_ref()?.get(counter.unwrap_or("inst_executed"));
            Some((time.or_else(count)?, values(&record.case.key)))
        })
        .collect();
    if known.is_empty() { Err("no case has a time or this counter".to_owned()) } else { Ok(known) }
}

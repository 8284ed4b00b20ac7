//! Prior knowledge from another size, device or revision: its best configurations are evaluated first.

use std::path::Path;

use search::format::read_measured;

use crate::error::TuneError;
use crate::objective::Objective;
use crate::values::{Values, values};
use runner_results::journal::read_records;

/// Number of configurations to use, which limits the cost of a misleading prior.
const TAKEN: usize = 8;

/// Reads the best configurations from a `--prior` file, best first: records of a report, T4 or a table. If the file
/// lacks the objective, its own objective is used.
pub fn read_prior(path: &Path, objective: &Objective) -> Result<Vec<Values>, TuneError> {
    let refused = |why: String| TuneError::Usage(format!("--prior {}: {why}", path.display()));
    let mut known = if path.extension().is_some_and(|end| end == "jsonl") {
        from_records(path, objective).map_err(refused)?
    } else {
        let measured = read_measured(path, Some(objective.name())).or_else(|_| read_measured(path, None));
        let measured = measured.map_err(|error| refused(error.to_string()))?;
        let names: Vec<String> = measured.space.parameters().iter().map(|parameter| parameter.name.clone()).collect();
        let named = |point| names.iter().cloned().zip(measured.space.values(point)).collect();
        let points = 0..measured.space.len();
        points.filter_map(|point| Some((measured.outcome(point).value()?, named(point)))).collect()
    };
    known.sort_by(|a, b| a.0.total_cmp(&b.0));
    Ok(known.into_iter().take(TAKEN).map(|(_, values)| values).collect())
}

/// Values of the objective or, if there are none, times or instruction counts, in this order.
fn from_records(path: &Path, objective: &Objective) -> Result<Vec<(f64, Values)>, String> {
    let records = read_records(path).map_err(|error| error.to_string())?;
    let others = [Objective::Time, Objective::Counter("inst_executed".to_owned())];
    let known = [objective].into_iter().chain(&others).map(|objective| -> Vec<(f64, Values)> {
        let objective = objective.common_to(&records.cases);
        let cases = records.cases.iter();
        cases.filter_map(|record| Some((objective.value_of(record)?, values(&record.case.key)))).collect()
    });
    known.into_iter().find(|known| !known.is_empty()).ok_or_else(|| "no case has a time or a count".to_owned())
}

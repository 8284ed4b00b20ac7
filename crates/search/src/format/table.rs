//! Measured spaces as CSV: one column per parameter, followed by one or more columns with objectives.

use std::io::Read;

use super::FormatError;
use crate::history::Outcome;
use crate::replay::{Measured, Row};
use crate::space::Value;

/// Suffixes that mark a column as an objective.
const UNITS: [&str; 4] = ["_ns", "_us", "_ms", "_s"];

/// Reads a table with one of its objectives. An empty cell means that the point failed.
pub fn read(source: impl Read, objective: Option<&str>) -> Result<Measured, FormatError> {
    let mut reader = csv::Reader::from_reader(source);
    let header = reader.headers()?.clone();
    let is_objective = |name: &str| UNITS.iter().any(|unit| name.ends_with(unit)) || Some(name) == objective;
    let objectives: Vec<&str> = header.iter().filter(|name| is_objective(name)).collect();
    let known = || if objectives.is_empty() { "none".to_owned() } else { objectives.join(", ") };
    let column = match objective {
        Some(name) => header.iter().position(|column| column == name),
        None if objectives.len() == 1 => header.iter().position(is_objective),
        None => return Err(FormatError::Meaning(format!("the table has several objectives: {}; name one", known()))),
    };
    let column = column.ok_or_else(|| {
        FormatError::Meaning(format!("no column `{}`; the objectives are: {}", objective.unwrap_or_default(), known()))
    })?;
    let places: Vec<usize> = (0..header.len()).filter(|&place| !is_objective(&header[place])).collect();
    let names = places.iter().map(|&place| header[place].to_owned()).collect();
    let mut rows = Vec::new();
    for record in reader.records() {
        let record = record?;
        rows.push(Row {
            values: places.iter().map(|&place| Value::parse(&record[place])).collect(),
            outcome: Outcome::of_measured(record[column].parse().ok()),
            seconds: None,
        });
    }
    Ok(Measured::of_rows(names, &rows)?)
}

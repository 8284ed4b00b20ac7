//! Reads what `ncu --csv --page raw` writes: one row a profiled launch, one column a metric, units in the second row.
//!
//! Lines of ncu's own (`==PROF==`, `==ERROR==`) stand before, between and behind the table and are kept apart. A value
//! that is no number (`n/a`, or nothing) is left out; a table without the columns that name a launch is refused.

use std::collections::BTreeMap;

use crate::model::{Dim3, MarkedLaunch};

use super::ProfilerError;

/// One launch that was profiled.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    pub process: u32,
    pub launch: MarkedLaunch,
    /// Values by the profiler's names, in base units.
    pub values: BTreeMap<String, f64>,
}

/// A whole output.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Table {
    /// In the order of profiling.
    pub rows: Vec<Row>,
    /// Errors and warnings, without their marks.
    pub complaints: Vec<String>,
}

/// The columns that name a launch, in the order of [`row`]'s reading.
const IDENTITY: [&str; 4] = ["Process ID", "Kernel Name", "Grid Size", "Block Size"];

/// Columns that are no metrics, besides those of [`IDENTITY`].
const OTHERS: [&str; 7] = ["ID", "Process Name", "Host Name", "Context", "Stream", "Device", "CC"];

pub fn read(text: &str) -> Result<Table, ProfilerError> {
    let mut table = Table::default();
    let mut csv = String::new();
    for line in text.lines() {
        if line.starts_with("==") {
            table.complaints.extend(complaint(line));
        } else if line.starts_with('"') || !csv.is_empty() {
            csv.push_str(line);
            csv.push('\n');
        }
    }
    let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(csv.as_bytes());
    let headers: Vec<String> = reader.headers().map_err(unreadable)?.iter().map(str::to_owned).collect();
    if csv.is_empty() {
        return Ok(table);
    }
    let mut identity = [0; 4];
    for (place, name) in identity.iter_mut().zip(IDENTITY) {
        *place = headers.iter().position(|header| header == name).ok_or_else(|| missing_column(name, &headers))?;
    }
    for record in reader.records() {
        let record = record.map_err(unreadable)?;
        // The row of units names no process.
        let process = record.get(identity[0]).unwrap_or_default().trim();
        if process.is_empty() {
            continue;
        }
        table.rows.push(row(&headers, &identity, process, &record)?);
    }
    Ok(table)
}

fn row(
    headers: &[String],
    identity: &[usize; 4],
    process: &str,
    record: &csv::StringRecord,
) -> Result<Row, ProfilerError> {
    let cell = |place: usize| record.get(place).unwrap_or_default().trim();
    let wrong = |name: &str, text: &str| ProfilerError::Unreadable(format!("`{text}` in the column {name}"));
    let [_, kernel, grid, block] = *identity;
    let extent = |place: usize, name: &str| dimensions(cell(place)).ok_or_else(|| wrong(name, cell(place)));
    let is_metric = |name: &str| !IDENTITY.contains(&name) && !OTHERS.contains(&name);
    let values = headers.iter().enumerate().filter(|(_, name)| is_metric(name));
    Ok(Row {
        process: process.parse().map_err(|_| wrong(IDENTITY[0], process))?,
        launch: MarkedLaunch {
            kernel: cell(kernel).to_owned(),
            grid: extent(grid, IDENTITY[2])?,
            block: extent(block, IDENTITY[3])?,
        },
        values: values.filter_map(|(place, name)| Some((name.clone(), number(cell(place))?))).collect(),
    })
}

/// `(65536, 1, 1)`.
fn dimensions(text: &str) -> Option<Dim3> {
    let inner = text.strip_prefix('(')?.strip_suffix(')')?;
    let extents: Vec<u32> = inner.split(',').map(|part| part.trim().parse().ok()).collect::<Option<_>>()?;
    match extents[..] {
        [x, y, z] => Some(Dim3::new(x, y, z)),
        _ => None,
    }
}

/// `16,744,448`, `25.02`; instances of a metric, in brackets behind it, are not read.
fn number(text: &str) -> Option<f64> {
    let first = text.split_whitespace().next()?;
    let value: f64 = first.replace(',', "").parse().ok()?;
    value.is_finite().then_some(value)
}

/// The words of an error or a warning; what the profiler says of its progress is none.
fn complaint(line: &str) -> Option<String> {
    let line = line.trim();
    let words = line.strip_prefix("==ERROR==").or_else(|| line.strip_prefix("==WARNING=="))?;
    Some(words.trim().to_owned())
}

#[expect(clippy::needless_pass_by_value, reason = "the shape that `map_err` wants")]
fn unreadable(error: csv::Error) -> ProfilerError {
    ProfilerError::Unreadable(error.to_string())
}

fn missing_column(name: &str, headers: &[String]) -> ProfilerError {
    let first: Vec<&str> = headers.iter().take(12).map(String::as_str).collect();
    ProfilerError::Unreadable(format!("no column `{name}`; there are {} …", first.join(", ")))
}

//! Writes `results.csv` as tidy data in full precision.
//!
//! One row per case and regime; a sequence of launches has one more row per launch, marked in the column `row`. Line
//! endings follow RFC 4180. A cell without a value is empty.

use rayon::prelude::*;

use super::RenderError;
use super::column;
use super::columns::{
    CASE, ENERGY, ERROR, LAUNCH, NOTES, OPERATIONS, OUTCOME, RATIOS, ROOF, SAMPLES, TIME, WORK, full,
};
use super::escape;
use super::row::{Context, Row};
use super::units;
use runner_types::{CaseRecord, Records};

/// Number of records that one core turns into rows at a time.
const ROWS_AT_ONCE: usize = 1024;

/// Columns between the axes and the counters.
const AFTER_AXES: [&[column::Column]; 8] = [OUTCOME, LAUNCH, TIME, SAMPLES, WORK, OPERATIONS, ROOF, RATIOS];
const AFTER_COUNTERS: [&[column::Column]; 3] = [ERROR, ENERGY, NOTES];

/// Name of a column, and the function that computes its cell.
type Column<'a> = (String, Box<dyn Fn(&Row<'_>) -> String + Send + Sync + 'a>);

pub fn csv(records: &Records) -> Result<String, RenderError> {
    let context = &Context::of_all(records);
    let fixed = |columns: &'static [column::Column]| {
        let known = columns.iter().filter(|column| !column.name.is_empty() && (column.is_known)(records));
        known.map(move |column| -> Column<'_> {
            (column.name.to_owned(), Box::new(move |row| (column.exact)(context, row)))
        })
    };
    let axes = records.header.axes.iter().map(|axis| axis_column(&axis.name));
    let counters = records.counter_names().into_iter().map(counter_column);
    let before = fixed(CASE).chain(axes).chain(AFTER_AXES.into_iter().flat_map(fixed));
    let columns: Vec<Column<'_>> = before.chain(counters).chain(AFTER_COUNTERS.into_iter().flat_map(fixed)).collect();
    let mut text = table([columns.iter().map(|(name, _)| name.clone())])?;
    let parts: Vec<Result<String, RenderError>> =
        records.cases.par_chunks(ROWS_AT_ONCE).map(|cases| rows(records, cases, &columns)).collect();
    for part in parts {
        text += &part?;
    }
    Ok(text)
}

/// Every column that the file may have, in order: its name, its description, and its key in `report.html`.
pub fn described_columns() -> Vec<(&'static str, &'static str, Option<&'static str>)> {
    let describe = |columns: &'static [column::Column]| {
        let named = columns.iter().filter(|column| !column.name.is_empty());
        named.map(|column| (column.name, column.about, column.page.as_ref().map(|page| page.key)))
    };
    let axis = ("axis.NAME", "value of each shared axis", Some("NAME"));
    let counts = "counts, if any: from the simulator if `backend` is `sim`, otherwise from the hardware; see \
                  [metrics](metrics.md)";
    let counter = ("counter.NAME", counts, Some("NAME"));
    let after_axes = AFTER_AXES.into_iter().flat_map(describe).chain([counter]);
    describe(CASE).chain([axis]).chain(after_axes).chain(AFTER_COUNTERS.into_iter().flat_map(describe)).collect()
}

fn rows(records: &Records, cases: &[CaseRecord], columns: &[Column<'_>]) -> Result<String, RenderError> {
    let rows = cases.iter().flat_map(|record| {
        let whole = Row::from_case(records, record);
        let launches = whole.launches().filter(|_| record.launches.len() > 1);
        std::iter::once(whole).chain(launches)
    });
    table(rows.map(|row| columns.iter().map(move |(_, cell)| cell(&row))))
}

/// Formats rows of strings as CSV.
pub(super) fn table<C: IntoIterator<Item = String>>(rows: impl IntoIterator<Item = C>) -> Result<String, RenderError> {
    let mut writer = ::csv::WriterBuilder::new().terminator(::csv::Terminator::CRLF).from_writer(Vec::new());
    for row in rows {
        for text in row {
            writer.write_field(escape::cell(&text).as_bytes())?;
        }
        writer.write_record(None::<&[u8]>)?;
    }
    let bytes = writer.into_inner().map_err(|e| RenderError::Csv(e.into_error().into()))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn axis_column(name: &str) -> Column<'_> {
    let value = move |row: &Row<'_>| units::axis(&row.record.case, name).map(ToString::to_string).unwrap_or_default();
    (format!("axis.{name}"), Box::new(value))
}

/// A column of counts: of the launch in a launch's row, of the whole body in a case's row.
fn counter_column(name: &str) -> Column<'_> {
    let count = move |row: &Row<'_>| {
        let counters = match row.part {
            None => row.record.counters.as_ref(),
            Some(part) => row.record.each_counters.get(part),
        };
        full(counters.and_then(|counters| counters.get(name)))
    };
    (format!("counter.{name}"), Box::new(count))
}

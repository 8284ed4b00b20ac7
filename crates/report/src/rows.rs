//! The table of one group.
//!
//! It has one row per case and regime that was run. A case with several different launches is followed by one row for
//! each.

use super::column::Column;
use super::columns::{CASE, ENERGY, ERROR, LAUNCH, OPERATIONS, OUTCOME, RATIOS, ROOF, SAMPLES, TIME, WORK};
use super::row::{Context, Row};
use super::table::{self, Cell, Folding, Table, number as number_column};
use super::units;
use runner_results::analyse::GroupSummary;
use runner_types::{Outcome, Records};

/// Columns after those that name a row, most important first.
const AFTER_AXES: [&[Column]; 10] = [OUTCOME, TIME, RATIOS, WORK, ROOF, OPERATIONS, ERROR, ENERGY, LAUNCH, SAMPLES];

type Filled<'a> = (table::Column, Box<dyn Fn(&Row<'a>) -> Cell + 'a>);

/// Builds the table; [`Table::fold`] removes columns without information.
pub fn group_table<'a>(records: &'a Records, group: &'a GroupSummary) -> Table {
    let context = &Context::of_group(records, group);
    let fixed = |columns: &'static [Column]| {
        let tables = columns.iter().filter_map(|column| column.table.as_ref());
        tables.map(move |column| -> Filled<'_> {
            ((column.head)(context), Box::new(move |row| (column.cell)(context, row)))
        })
    };
    let axes = records.header.axes.iter().filter(|axis| axis.compared).map(|axis| axis_column(&axis.name));
    let after = AFTER_AXES.into_iter().flat_map(fixed);
    let columns: Vec<Filled<'_>> = fixed(CASE).chain(axes).chain(after).collect();
    let cells = |row: &Row<'a>| -> Vec<Cell> {
        let is_absent = is_partial(row);
        columns.iter().map(|(_, fill)| Cell { is_absent, ..fill(row) }).collect()
    };
    let rows = rows(records, group).iter().map(cells).collect();
    Table { columns: columns.into_iter().map(|(column, _)| column).collect(), rows }
}

fn axis_column(name: &str) -> Filled<'_> {
    let cell = |row: &Row<'_>| {
        let value = row.case().and_then(|record| units::axis(&record.case, name));
        Cell::maybe(value.map(units::axis_value)).strong_if(row.is_best)
    };
    (number_column(name, Folding::Keep), Box::new(cell))
}

/// Whether this row's missing values are in other rows or undefined: a launch of a sequence, a sequence as a whole, a
/// case that was not run.
fn is_partial(row: &Row<'_>) -> bool {
    let Row { record, part, .. } = row;
    part.is_some() || record.launches.len() > 1 || (record.launches.is_empty() && record.result.is_none())
}

/// Whether a case was not meant to run. The reasons below a table list these cases.
pub const fn is_left_out(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Excluded { .. } | Outcome::Invalid { .. } | Outcome::NotRun { .. })
}

fn rows<'a>(records: &'a Records, group: &GroupSummary) -> Vec<Row<'a>> {
    let mut rows = Vec::new();
    for i in &group.members {
        let record = &records.cases[*i];
        if is_left_out(&record.outcome) {
            continue;
        }
        let is_best = group.best.iter().any(|best| best.index == *i);
        let row = Row { is_best, ..Row::from_case(records, record) };
        rows.push(row);
        if record.launches.len() > 1 && record.repeated().is_none() {
            rows.extend(row.launches());
        }
    }
    rows
}

//! Two compared axes as a grid with one value per cell: the time, or the rate if cells do different work.

use super::number;
use super::quantities::{bandwidth, gflops, time_unit};
use super::table::{Cell, Folding, Table, number as number_column};
use super::units::{self, TimeUnit};
use super::wording;
use runner_results::analyse::{Basis, GroupSummary};
use runner_types::{CaseRecord, Records, Regime, RegimeResult, Value};

/// Times of one variant in one regime, as a grid.
#[derive(Debug, Clone, PartialEq)]
pub struct Grid<'a> {
    pub variant: &'a str,
    pub regime: Regime,
    /// Names of the horizontal and the vertical axis.
    pub axes: (&'a str, &'a str),
    pub across: Vec<&'a Value>,
    pub down: Vec<&'a Value>,
    /// Indices into the records, row by row; `None` if the matrix has no such cell.
    pub cells: Vec<Vec<Option<usize>>>,
}

/// Grids of a group; empty unless exactly two axes are compared and both have several values.
pub fn grids<'a>(records: &'a Records, group: &GroupSummary) -> Vec<Grid<'a>> {
    let compared: Vec<&'a str> =
        records.header.axes.iter().filter(|axis| axis.compared).map(|axis| axis.name.as_str()).collect();
    let [x, y] = compared[..] else { return Vec::new() };
    let axis = |i: usize, name: &str| units::axis(&records.cases[i].case, name);
    let mut grids = Vec::new();
    for best in &group.best {
        for variant in &records.header.variants {
            let of_variant = |i: &&usize| records.cases[**i].case.key.variant == *variant;
            let fits = |i: &&usize| records.cases[**i].result.as_ref().is_none_or(|r| r.regime == best.regime);
            let members: Vec<usize> = group.members.iter().filter(of_variant).filter(fits).copied().collect();
            let across = distinct(members.iter().filter_map(|i| axis(*i, x)));
            let down = distinct(members.iter().filter_map(|i| axis(*i, y)));
            if across.len() < 2 || down.len() < 2 {
                continue;
            }
            let find = |a: &Value, d: &Value| {
                let is_cell = |i: &&usize| axis(**i, x) == Some(a) && axis(**i, y) == Some(d);
                members.iter().find(is_cell).copied()
            };
            let cells = down.iter().map(|d| across.iter().map(|a| find(a, d)).collect()).collect();
            grids.push(Grid { variant, regime: best.regime, axes: (x, y), across, down, cells });
        }
    }
    grids
}

fn distinct<'a>(values: impl Iterator<Item = &'a Value>) -> Vec<&'a Value> {
    let mut seen: Vec<&Value> = Vec::new();
    for value in values {
        if !seen.contains(&value) {
            seen.push(value);
        }
    }
    seen
}

/// Time of a cell, or its rate if cells do different work.
pub fn cell_text(basis: Basis, record: &CaseRecord, result: &RegimeResult, unit: TimeUnit) -> String {
    let rate = match basis {
        Basis::Time => None,
        Basis::Bandwidth => bandwidth(record, Some(result)),
        Basis::Arithmetic => gflops(record, Some(result)),
    };
    rate.unwrap_or_else(|| number::point(&result.time, unit.nanoseconds()))
}

/// The grid as a table: times in the group's unit or rates, outcomes for cells without a time, the best in bold.
pub fn grid_table(records: &Records, group: &GroupSummary, grid: &Grid<'_>) -> Table {
    let unit = time_unit(records, &group.members);
    let corner = format!("{} ↓  {} →", grid.axes.1, grid.axes.0);
    let mut table = Table::new(vec![number_column(corner, Folding::Keep)]);
    table.columns.extend(grid.across.iter().map(|a| number_column(units::axis_value(a), Folding::Keep)));
    for (value, cells) in grid.down.iter().zip(&grid.cells) {
        let mut row = vec![Cell::plain(units::axis_value(value)).strong_if(true)];
        row.extend(cells.iter().map(|cell| {
            let Some(i) = cell else { return Cell::default() };
            let record = &records.cases[*i];
            let is_best = group.best.iter().any(|b| b.index == *i);
            match &record.result {
                Some(result) => Cell::plain(cell_text(group.basis, record, result, unit)).strong_if(is_best),
                None => Cell::plain(wording::name(&record.outcome)),
            }
        }));
        table.rows.push(row);
    }
    table
}

//! A column of a report, with its name and cell in each of the three forms of a report.
//!
//! Describing a column once keeps `results.csv`, `report.md` and `report.html` in agreement.

use super::row::{Context, Row};
use super::table::{self, Cell};
use runner_types::Records;

/// Computes the content of a cell from a row.
type CellOf<T> = fn(&Context<'_>, &Row<'_>) -> T;

/// A column of the results tables.
pub struct Column {
    /// Name in `results.csv`; empty if the column is not in it.
    pub name: &'static str,
    /// Description for the manual.
    pub about: &'static str,
    /// Cell in `results.csv`: a number in full precision, or a string.
    pub exact: CellOf<String>,
    /// Whether `results.csv` has the column.
    pub is_known: fn(&Records) -> bool,
    /// Column in `report.md`, if shown there.
    pub table: Option<InTable>,
    /// Column in `report.html`, if shown there, under the same title as in `report.md`.
    pub page: Option<InPage>,
}

/// A column in the tables of `report.md`.
pub struct InTable {
    pub head: fn(&Context<'_>) -> table::Column,
    pub cell: CellOf<Cell>,
}

/// A column in the table of `report.html`.
pub struct InPage {
    /// Name of the column in URLs of the page.
    pub key: &'static str,
    /// Size of the unit that filters use, in units of the values.
    pub unit: fn(&Context<'_>) -> Option<f64>,
    pub cell: InPageCell,
}

/// Cells of a column in `report.html`, whose rows are cases only.
pub enum InPageCell {
    /// A string with few distinct values.
    Text(CellOf<String>),
    /// Sort key and its text.
    Number(CellOf<Option<(f64, String)>>),
}

impl Column {
    /// A column of `results.csv`.
    pub const fn new(name: &'static str, about: &'static str, exact: CellOf<String>) -> Self {
        Self { name, about, exact, is_known: |_| true, table: None, page: None }
    }

    /// Omits the column from `results.csv` unless `is_known`.
    pub const fn if_known(self, is_known: fn(&Records) -> bool) -> Self {
        Self { is_known, ..self }
    }

    /// Shows the column in `report.md` too.
    pub const fn in_table(self, head: fn(&Context<'_>) -> table::Column, cell: CellOf<Cell>) -> Self {
        Self { table: Some(InTable { head, cell }), ..self }
    }

    /// Shows the column in `report.html` too, as a number.
    pub const fn in_page(
        self,
        key: &'static str,
        unit: fn(&Context<'_>) -> Option<f64>,
        cell: CellOf<Option<(f64, String)>>,
    ) -> Self {
        Self { page: Some(InPage { key, unit, cell: InPageCell::Number(cell) }), ..self }
    }

    /// Shows the column in `report.html` too, as a string with few distinct values.
    pub const fn in_page_as_text(self, key: &'static str, cell: CellOf<String>) -> Self {
        Self { page: Some(InPage { key, unit: |_| None, cell: InPageCell::Text(cell) }), ..self }
    }
}

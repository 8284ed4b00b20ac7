//! What a column of a report is: its name and cell in each of the three forms of a report.

use super::row::{Context, Row};
use super::table::{self, Cell};
use crate::model::Records;

/// The function that makes the content of a cell from a row.
type CellOf<T> = fn(&Context<'_>, &Row<'_>) -> T;

/// A column of the tables of results.
pub struct Column {
    /// The name that the column has in `results.csv`; empty if it is not there.
    pub name: &'static str,
    /// What the column has, for the manual.
    pub about: &'static str,
    /// Makes the column's cell in `results.csv`: a number in full precision, or a text.
    pub exact: CellOf<String>,
    /// Whether `results.csv` has the column.
    pub is_known: fn(&Records) -> bool,
    /// How `report.md` shows the column, if it does.
    pub table: Option<InTable>,
    /// How `report.html` shows the column, if it does; its title there is that of `report.md`.
    pub page: Option<InPage>,
}

/// A column in the tables of `report.md`.
pub struct InTable {
    pub head: fn(&Context<'_>) -> table::Column,
    pub cell: CellOf<Cell>,
}

/// A column in the table of `report.html`.
pub struct InPage {
    /// The name that links to the page give the column.
    pub key: &'static str,
    /// How large the unit that filters use is, in the unit of the values.
    pub unit: fn(&Context<'_>) -> Option<f64>,
    pub cell: InPageCell,
}

/// The cells of a column in `report.html`, which has rows of cases alone.
pub enum InPageCell {
    /// The cell shows one of few texts.
    Text(CellOf<String>),
    /// The cell has a value to sort by, and the text that is shown.
    Number(CellOf<Option<(f64, String)>>),
}

impl Column {
    /// Returns a column of `results.csv`.
    pub const fn new(name: &'static str, about: &'static str, exact: CellOf<String>) -> Self {
        Self { name, about, exact, is_known: |_| true, table: None, page: None }
    }

    /// Leaves it out of `results.csv` unless this is so.
    pub const fn if_known(self, is_known: fn(&Records) -> bool) -> Self {
        Self { is_known, ..self }
    }

    /// Shows the column in `report.md`, too.
    pub const fn in_table(self, head: fn(&Context<'_>) -> table::Column, cell: CellOf<Cell>) -> Self {
        Self { table: Some(InTable { head, cell }), ..self }
    }

    /// Shows the column in `report.html`, too, as numbers.
    pub const fn in_page(
        self,
        key: &'static str,
        unit: fn(&Context<'_>) -> Option<f64>,
        cell: CellOf<Option<(f64, String)>>,
    ) -> Self {
        Self { page: Some(InPage { key, unit, cell: InPageCell::Number(cell) }), ..self }
    }

    /// Shows the column in `report.html`, too, as a few texts.
    pub const fn in_page_as_text(self, key: &'static str, cell: CellOf<String>) -> Self {
        Self { page: Some(InPage { key, unit: |_| None, cell: InPageCell::Text(cell) }), ..self }
    }
}

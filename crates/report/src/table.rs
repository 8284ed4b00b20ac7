//! Tables before they become Markdown or terminal text.
//!
//! Columns without information are removed here, and common values are stated once above the table.

use std::fmt;

use serde::Serialize;

/// A table of cells. Every row has one cell per column.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Table {
    pub columns: Vec<Column>,
    pub rows: Vec<Vec<Cell>>,
}

/// Head of a column.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Column {
    pub title: String,
    /// Whether the column holds numbers, which are right-aligned.
    pub is_number: bool,
    #[serde(skip)]
    pub folding: Folding,
    /// Whether a column in which every cell is zero counts as empty.
    #[serde(skip)]
    pub folds_zeros: bool,
    /// Priority of removal from a table that is too wide. The highest rank goes first; rank 0 stays.
    #[serde(skip)]
    pub rank: u8,
}

impl Column {
    pub fn ranked(self, rank: u8) -> Self {
        Self { rank, ..self }
    }
}

/// Maximum table width, in characters: what fits GitHub's page without a scroll bar, and a terminal of 100 columns.
pub const WIDEST: usize = 100;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Folding {
    Keep,
    /// If every cell is empty.
    WhenEmpty,
    /// If every cell is empty, or if all filled cells are equal. A common value is then stated once above the table.
    WhenCommon,
}

/// A cell of unescaped text.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Cell {
    pub text: String,
    pub is_strong: bool,
    pub is_code: bool,
    /// Whether the row cannot have such a value: a launch of a sequence has no verdict, and a case that was not run has
    /// no registers. An absent value is not a zero.
    #[serde(skip)]
    pub is_absent: bool,
}

/// A value that the rows of a table share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Common {
    pub title: String,
    pub text: String,
    /// Names of the rows that do not have the value.
    pub but: Vec<String>,
}

impl fmt::Display for Common {
    /// Formats the value like `block 512`, or `block 512 (all but cpu)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.title, self.text)?;
        if self.but.is_empty() { Ok(()) } else { write!(f, " (all but {})", self.but.join(", ")) }
    }
}

/// Lists what rows have in common: `All rows: regime cold · bound memory; all but cpu: block 512`.
pub fn in_common(common: &[Common]) -> String {
    let mut parts: Vec<(&[String], Vec<String>)> = Vec::new();
    for Common { title, text, but } in common {
        let value = format!("{title} {text}");
        match parts.iter_mut().find(|(others, _)| *others == but.as_slice()) {
            Some((_, values)) => values.push(value),
            None => parts.push((but, vec![value])),
        }
    }
    // Values common to all rows come first.
    parts.sort_by_key(|(but, _)| !but.is_empty());
    let each = parts.into_iter().enumerate().map(|(i, (but, values))| {
        let all = if i == 0 { "All" } else { "all" };
        let rows = if but.is_empty() { "rows".to_owned() } else { format!("but {}", but.join(", ")) };
        format!("{all} {rows}: {}", values.join(" · "))
    });
    each.collect::<Vec<_>>().join("; ")
}

/// A column is folded only if at most this many rows lack the common value.
const MOST_EXCEPTIONS: usize = 2;

impl Cell {
    pub fn plain(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    pub fn code(text: impl Into<String>) -> Self {
        Self { text: text.into(), is_code: true, ..Self::default() }
    }

    /// A cell that is empty for `None`.
    pub fn maybe(text: Option<String>) -> Self {
        Self::plain(text.unwrap_or_default())
    }

    pub fn strong_if(mut self, strong: bool) -> Self {
        self.is_strong = strong && !self.text.is_empty();
        self
    }
}

impl Table {
    pub fn new(columns: Vec<Column>) -> Self {
        Self { columns, rows: Vec::new() }
    }

    /// Removes columns without information from the table, and returns the values that the rows share.
    ///
    /// A column of empty cells and zeros is removed. A value is shared only if every row has it, except for named rows
    /// without a value; a zero is a value. A table with one row loses only its empty columns.
    pub fn fold(&mut self) -> Vec<Common> {
        let mut common = Vec::new();
        let mut keep = vec![true; self.columns.len()];
        for (i, column) in self.columns.iter().enumerate() {
            let (filled, empty): (Vec<_>, Vec<_>) = self.rows.iter().partition(|row| !row[i].text.is_empty());
            let first = filled.first().map(|row| row[i].text.as_str());
            let agree = filled.iter().all(|row| Some(row[i].text.as_str()) == first);
            let present = || empty.iter().filter(|row| !row[i].is_absent);
            match (column.folding, first) {
                (Folding::Keep, _) => {}
                (_, None) => keep[i] = false,
                (_, Some("0")) if agree && column.folds_zeros => keep[i] = false,
                (Folding::WhenCommon, Some(first))
                    if agree && self.rows.len() > 1 && present().count() <= MOST_EXCEPTIONS.min(filled.len() - 1) =>
                {
                    let but = present().filter_map(|row| row.first()).map(|cell| cell.text.clone()).collect();
                    common.push(Common { title: column.title.clone(), text: first.to_owned(), but });
                    keep[i] = false;
                }
                _ => {}
            }
        }
        self.retain(&keep);
        common
    }

    fn retain(&mut self, keep: &[bool]) {
        let mut kept = keep.iter();
        self.columns.retain(|_| *kept.next().unwrap_or(&true));
        for row in &mut self.rows {
            let mut kept = keep.iter();
            row.retain(|_| *kept.next().unwrap_or(&true));
        }
    }

    /// Removes the least important columns until the table is at most `widest` characters wide, and returns their
    /// titles.
    pub fn fit(&mut self, widest: usize) -> Vec<String> {
        let widths: Vec<usize> = (0..self.columns.len()).map(|i| self.width_of(i)).collect();
        let mut keep = vec![true; widths.len()];
        let total =
            |keep: &[bool]| 1 + widths.iter().zip(keep).filter(|(_, keep)| **keep).map(|(w, _)| w + 3).sum::<usize>();
        while total(&keep) > widest {
            let droppable = (0..keep.len()).filter(|i| keep[*i] && self.columns[*i].rank > 0);
            let Some(least) = droppable.max_by_key(|i| (self.columns[*i].rank, *i)) else { break };
            keep[least] = false;
        }
        let dropped = self.columns.iter().zip(&keep).filter(|(_, keep)| !**keep);
        let titles = dropped.map(|(column, _)| column.title.clone()).collect();
        self.retain(&keep);
        titles
    }

    /// Keeps the first `most` rows, and returns the number of removed ones.
    pub fn shorten(&mut self, most: usize) -> usize {
        let more = self.rows.len().saturating_sub(most);
        self.rows.truncate(most);
        more
    }

    /// Approximate size of the table in Markdown.
    pub fn bytes(&self) -> usize {
        self.rows.iter().flatten().map(|cell| cell.text.len() + 8).sum()
    }

    fn width_of(&self, column: usize) -> usize {
        let cells = self.rows.iter().map(|row| row[column].text.chars().count());
        cells.max().unwrap_or(0).max(self.columns[column].title.chars().count())
    }
}

pub fn text(title: impl Into<String>, folding: Folding) -> Column {
    Column { title: title.into(), is_number: false, folding, folds_zeros: false, rank: 0 }
}

pub fn number(title: impl Into<String>, folding: Folding) -> Column {
    Column { title: title.into(), is_number: true, folding, folds_zeros: false, rank: 0 }
}

/// A column of byte sizes, which are often zero.
pub fn size(title: impl Into<String>, folding: Folding) -> Column {
    Column { folds_zeros: true, ..number(title, folding) }
}

#[cfg(test)]
mod tests {
    use super::{Cell, Common, Folding, Table, in_common, number, text};

    fn table(rows: &[[&str; 3]]) -> Table {
        let columns = vec![
            text("variant", Folding::Keep),
            number("block", Folding::WhenCommon),
            number("local", Folding::WhenEmpty),
        ];
        let rows = rows.iter().map(|row| row.iter().map(|cell| Cell::plain(*cell)).collect()).collect();
        Table { columns, rows }
    }

    #[test]
    fn what_all_rows_share_is_said_once() {
        let mut t = table(&[["a", "512", ""], ["b", "512", ""], ["cpu", "", ""]]);
        let common: Vec<String> = t.fold().iter().map(ToString::to_string).collect();
        assert_eq!(common, ["block 512 (all but cpu)"]);
        let common = |title: &str, but: &[&str]| Common {
            title: title.to_owned(),
            text: "1".to_owned(),
            but: but.iter().map(ToString::to_string).collect(),
        };
        let common = [common("a", &["cpu"]), common("b", &[]), common("c", &["cpu"])];
        assert_eq!(in_common(&common), "All rows: b 1; all but cpu: a 1 · c 1");
        assert_eq!(t.columns.len(), 1);
        assert_eq!(t.rows[1], [Cell::plain("b")]);
    }

    #[test]
    fn what_differs_stays() {
        let mut t = table(&[["a", "512", ""], ["b", "256", "8"]]);
        assert!(t.fold().is_empty());
        assert_eq!(t.columns.len(), 3);
    }

    #[test]
    fn a_value_that_other_rows_have_as_zero_is_not_common() {
        let mut t = table(&[["a", "3084", ""], ["b", "0", ""], ["c", "3084", ""]]);
        assert!(t.fold().is_empty());
        assert_eq!(t.rows[1], [Cell::plain("b"), Cell::plain("0")]);
        // A column that is empty in most rows is removed too.
        let mut t = table(&[["a", "3084", ""], ["b", "", ""], ["c", "", ""]]);
        assert!(t.fold().is_empty());
        // Rows that cannot have a value are not exceptions.
        let mut t = table(&[["a", "3084", ""], ["b", "3084", ""], ["↳ c", "", ""]]);
        t.rows[2][1].is_absent = true;
        assert_eq!(t.fold().iter().map(ToString::to_string).collect::<Vec<_>>(), ["block 3084"]);
    }

    #[test]
    fn sizes_that_are_zero_throughout_are_left_out() {
        let mut t = table(&[["a", "0", ""], ["b", "0", ""]]);
        t.columns[1] = super::size("shared (B)", Folding::WhenCommon);
        assert!(t.fold().is_empty());
        assert_eq!(t.columns.len(), 1);
    }

    #[test]
    fn a_table_that_is_too_wide_loses_what_matters_least() {
        let columns = vec![
            text("variant", Folding::Keep),
            number("grid", Folding::Keep).ranked(6),
            number("rate", Folding::Keep).ranked(2),
            number("block", Folding::Keep).ranked(6),
        ];
        let cell = |width: usize| Cell::plain("x".repeat(width));
        // 30 + 20 + 20 + 17, plus 3 for each and 1, is 100.
        let row = vec![cell(30), cell(20), cell(20), cell(17)];
        let mut fits = Table { columns: columns.clone(), rows: vec![row.clone()] };
        assert!(fits.fit(100).is_empty());
        let mut wide = Table { columns, rows: vec![row, vec![cell(31), cell(1), cell(1), cell(1)]] };
        assert_eq!(wide.fit(100), ["block"]);
        assert_eq!(wide.rows[1].len(), 3);
    }

    #[test]
    fn a_single_row_keeps_its_columns() {
        let mut t = table(&[["a", "512", ""]]);
        assert!(t.fold().is_empty());
        assert_eq!(t.columns.len(), 2);
    }
}

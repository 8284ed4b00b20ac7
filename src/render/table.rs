//! Tables before they become Markdown or terminal text.

use serde::Serialize;

/// A table of texts. Every row has a cell a column.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Table {
    pub columns: Vec<Column>,
    pub rows: Vec<Vec<Cell>>,
}

/// A column's head.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Column {
    pub title: String,
    /// Numbers are flush right.
    pub is_number: bool,
    /// What becomes of the column where its cells say little.
    #[serde(skip)]
    pub folding: Folding,
}

/// When a column gives way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Folding {
    /// Never.
    Keep,
    /// Dropped where every cell is empty.
    WhenEmpty,
    /// Dropped where every cell is empty; where all filled cells agree, said once above the table.
    WhenCommon,
}

/// One cell: text as it is, not yet escaped for anything.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Cell {
    pub text: String,
    pub is_strong: bool,
    pub is_code: bool,
}

impl Cell {
    pub fn plain(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    pub fn code(text: impl Into<String>) -> Self {
        Self { text: text.into(), is_code: true, ..Self::default() }
    }

    /// Empty where there is nothing to say.
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

    /// Takes the columns that say little out of the table, and gives what all rows have in common: `(title, text)`.
    ///
    /// A table of one row keeps its columns, but for the empty ones.
    pub fn fold(&mut self) -> Vec<(String, String)> {
        let mut common = Vec::new();
        let mut keep = vec![true; self.columns.len()];
        for (i, column) in self.columns.iter().enumerate() {
            let mut filled = self.rows.iter().map(|row| row[i].text.as_str()).filter(|text| !text.is_empty());
            let first = filled.next();
            let agree = first.is_some_and(|first| filled.all(|text| text == first));
            match (column.folding, first) {
                (Folding::Keep, _) => {}
                (_, None) => keep[i] = false,
                (Folding::WhenCommon, Some(first)) if agree && self.rows.len() > 1 => {
                    common.push((column.title.clone(), first.to_owned()));
                    keep[i] = false;
                }
                _ => {}
            }
        }
        let mut kept = keep.iter();
        self.columns.retain(|_| *kept.next().unwrap_or(&true));
        for row in &mut self.rows {
            let mut kept = keep.iter();
            row.retain(|_| *kept.next().unwrap_or(&true));
        }
        common
    }
}

/// A column of text.
pub fn text(title: impl Into<String>, folding: Folding) -> Column {
    Column { title: title.into(), is_number: false, folding }
}

/// A column of numbers.
pub fn number(title: impl Into<String>, folding: Folding) -> Column {
    Column { title: title.into(), is_number: true, folding }
}

#[cfg(test)]
mod tests {
    use super::{Cell, Folding, Table, number, text};

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
        assert_eq!(t.fold(), [("block".to_owned(), "512".to_owned())]);
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
    fn a_single_row_keeps_its_columns() {
        let mut t = table(&[["a", "512", ""]]);
        assert!(t.fold().is_empty());
        assert_eq!(t.columns.len(), 2);
    }
}

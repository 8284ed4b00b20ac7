//! Table columns of a page, which its script sorts and filters.

use std::collections::HashMap;

use serde::Serialize;

use crate::units::{self, TimeUnit};
use runner_types::{Case, Regime, Value};

/// Unit in which to show times that are given in nanoseconds.
#[derive(Debug, Serialize)]
pub(crate) struct PageUnit {
    pub name: &'static str,
    pub scale: f64,
}

impl From<TimeUnit> for PageUnit {
    fn from(unit: TimeUnit) -> Self {
        Self { name: unit.symbol(), scale: unit.nanoseconds() }
    }
}

/// A column for the page. Cells are strings, or indices into `texts` if that is present; `values` are sort keys.
#[derive(Debug, Serialize)]
pub(crate) struct Column {
    pub key: String,
    pub title: String,
    pub cells: Cells,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub texts: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub values: Option<Vec<Option<f64>>>,
    /// Unit that filters use, relative to that of the values.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scale: Option<f64>,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum Cells {
    Texts(Vec<String>),
    Places(Vec<usize>),
}

/// Sort key and its text.
pub(crate) type Number = Option<(f64, String)>;

/// Column of strings with few distinct values.
pub(crate) fn texts<T>(name: &str, rows: &[T], text: impl Fn(&T) -> String) -> Column {
    let mut texts: Vec<String> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    let place = |row: &T| {
        let text = text(row);
        *places.entry(text).or_insert_with_key(|text| {
            texts.push(text.clone());
            texts.len() - 1
        })
    };
    let cells = Cells::Places(rows.iter().map(place).collect());
    Column { key: name.to_owned(), title: name.to_owned(), cells, texts: Some(texts), values: None, scale: None }
}

/// Column of numbers, each with its text.
pub(crate) fn numbers<T>(key: &str, title: impl Into<String>, rows: &[T], number: impl Fn(&T) -> Number) -> Column {
    let each = rows.iter().map(|row| match number(row) {
        Some((value, text)) => (text, Some(six_digits(value))),
        None => (String::new(), None),
    });
    let (texts, values): (Vec<String>, Vec<Option<f64>>) = each.unzip();
    let cells = Cells::Texts(texts);
    Column { key: key.to_owned(), title: title.into(), cells, texts: None, values: Some(values), scale: None }
}

/// Column of an axis, whose values are shown as text and sorted as numbers.
pub(crate) fn axis<T>(name: &str, rows: &[T], value: impl Fn(&T) -> Option<&Value>) -> Column {
    let shown = |row: &T| value(row).map(units::axis_value).unwrap_or_default();
    let numbers: Vec<Option<f64>> = rows.iter().map(|row| value(row).and_then(number_of)).collect();
    Column { values: numbers.iter().any(Option::is_some).then_some(numbers), ..texts(name, rows, shown) }
}

/// Columns that identify a case and its regime. The regime is omitted if all rows share it.
pub(crate) fn cases<T>(rows: &[T], case: impl Fn(&T) -> (&Case, Option<Regime>)) -> Vec<Column> {
    let mut columns = vec![texts("variant", rows, |row| case(row).0.key.variant.clone())];
    let mut axes: Vec<&str> = Vec::new();
    for (name, _) in rows.iter().flat_map(|row| &case(row).0.key.axes) {
        if !axes.contains(&name.as_str()) {
            axes.push(name);
        }
    }
    columns.extend(axes.into_iter().map(|name| axis(name, rows, |row| units::axis(case(row).0, name))));
    let regime = texts("regime", rows, |row| case(row).1.map(|regime| regime.to_string()).unwrap_or_default());
    columns.extend(Some(regime).filter(|column| column.texts.as_ref().is_some_and(|texts| texts.len() > 1)));
    columns
}

fn number_of(value: &Value) -> Option<f64> {
    match value {
        Value::Int(n) => Some(*n as f64),
        Value::Float(x) if x.is_finite() => Some(*x),
        _ => None,
    }
}

/// Rounds to six digits, enough for sorting; `results.csv` has full precision.
pub(super) fn six_digits(value: f64) -> f64 {
    format!("{value:.5e}").parse().unwrap_or(value)
}

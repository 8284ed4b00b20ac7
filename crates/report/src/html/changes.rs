//! HTML page of a comparison or a history: sentences and short tables, and one table of all rows to sort and filter,
//! each with the distribution of its times.

use std::collections::HashMap;

use serde::Serialize;

use super::pool::Pool;
use super::table::{Column, PageUnit, six_digits};
use super::{SCRIPT, STYLE, embedded};
use crate::table::{Cell, Table};
use crate::{RenderError, Templates};
use runner_types::{CaseKey, Estimate, Regime, Round};

/// Samples of each case and regime of a run.
pub type Samples = HashMap<(CaseKey, Regime), Vec<Round>>;

/// Relative tolerance for equal medians. A journal of another run has different medians.
const SAME: f64 = 1e-9;

/// Samples of a case, if `time` is their median.
pub(crate) fn samples_of<'a>(
    samples: &'a Samples,
    key: &CaseKey,
    regime: Regime,
    time: &Estimate,
) -> Option<&'a [Round]> {
    let rounds = samples.get(&(key.clone(), regime))?;
    let times: Vec<f64> = rounds.iter().map(|round| round.whole).collect();
    let median = runner_stats::median(&times)?;
    ((median / time.point - 1.0).abs() <= SAME).then_some(rounds.as_slice())
}

/// Input of the page's template.
#[derive(Debug, Serialize)]
pub(crate) struct Page {
    pub title: String,
    pub facts: Vec<String>,
    pub warnings: Vec<String>,
    pub parts: Vec<Part>,
    /// SVG charts, the most informative first.
    pub charts: Vec<String>,
    pub rows_title: &'static str,
    /// Filter example that fits this page.
    pub example: &'static str,
    pub method: Vec<String>,
    pub places: Vec<String>,
    /// Table of all rows, as JSON.
    pub data: String,
    pub style: &'static str,
    pub script: String,
}

#[derive(Debug, Default, Serialize)]
pub(crate) struct Part {
    pub title: String,
    /// Whether the part is initially open.
    pub is_open: bool,
    pub note: String,
    pub lines: Vec<Line>,
    pub table: Option<Table>,
}

#[derive(Debug, Default, Serialize)]
pub(crate) struct Line {
    pub is_bad: bool,
    pub cells: Vec<Cell>,
}

#[derive(Debug)]
pub(crate) struct Rows {
    pub columns: Vec<Column>,
    pub unit: PageUnit,
    pub details: Vec<Details>,
}

/// Details below an open row.
#[derive(Debug, Default)]
pub(crate) struct Details {
    pub pairs: Vec<(&'static str, String)>,
    pub lanes: Vec<Lane>,
    /// Counter name, base count and new count.
    pub counts: Vec<[String; 3]>,
}

/// Times of one side or of one revision. The lanes of a row share an axis.
#[derive(Debug, Serialize)]
pub(crate) struct Lane {
    pub name: String,
    /// Median and both ends of its interval, in nanoseconds.
    pub interval: [f64; 3],
    /// Text after the lane; may be empty.
    pub note: String,
    /// Nanoseconds, in the order of rounds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub samples: Option<Vec<f64>>,
}

impl Lane {
    pub fn new(name: String, time: &Estimate, samples: Option<&[Round]>) -> Self {
        let samples = samples.map(|rounds| rounds.iter().map(|round| six_digits(round.whole)).collect());
        Self { name, interval: [time.point, time.low, time.high].map(six_digits), note: String::new(), samples }
    }
}

/// Data for the script.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Data {
    rows: usize,
    columns: Vec<Column>,
    best: [usize; 0],
    unit: PageUnit,
    facts: Vec<Facts>,
    names: Vec<String>,
    strings: Vec<String>,
}

#[derive(Serialize)]
struct Facts {
    /// Indices of the facts, alternately a name and its text.
    pairs: Vec<usize>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    lanes: Vec<Lane>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    counts: Vec<[String; 3]>,
}

impl Page {
    /// Creates a page with a title and a table; the caller adds the rest.
    pub fn new(title: String, rows: Rows) -> Result<Self, RenderError> {
        Ok(Self {
            title,
            facts: Vec::new(),
            warnings: Vec::new(),
            parts: Vec::new(),
            charts: Vec::new(),
            rows_title: "All rows",
            example: "",
            method: Vec::new(),
            places: Vec::new(),
            data: embedded(&data(rows))?,
            style: STYLE,
            script: SCRIPT.concat(),
        })
    }

    pub fn render(&self) -> Result<String, RenderError> {
        Templates::new()?.changes(self)
    }
}

fn data(Rows { columns, unit, details }: Rows) -> Data {
    let (mut names, mut strings) = (Pool::new(), Pool::new());
    let rows = details.len();
    let facts = details.into_iter().map(|Details { pairs, lanes, counts }| {
        let pairs = pairs.into_iter().flat_map(|(name, text)| [names.place(name.to_owned()), strings.place(text)]);
        Facts { pairs: pairs.collect(), lanes, counts }
    });
    let facts = facts.collect();
    Data { rows, columns, best: [], unit, facts, names: names.list, strings: strings.list }
}

//! The table of all cases, column by column, for the page's script.
//!
//! Columns with equal values are dropped, and repeated strings are stored once, so that the page of a large report
//! stays small.

use std::collections::BTreeSet;

use serde::Serialize;

use super::facts::{Facts, Tables};
use super::table::{self, Cells, Column, PageUnit, numbers, texts};
use super::{Companions, SourceFile};
use crate::column::{self, InPageCell};
use crate::columns::{CASE, LAUNCH, OPERATIONS, OUTCOME, RATIOS, ROOF, TIME, WORK};
use crate::row::{Context, Row};
use crate::{bound, units};
use runner_lang::format;
use runner_results::analyse;
use runner_types::{CaseRecord, Records};

/// Maximum number of counters with a column. Others are among the facts of a case.
const MOST_COUNTERS: usize = 8;

/// Maximum number of counters with a column if times have columns too.
const MOST_BESIDE_TIMES: usize = 3;

/// Counters that explain most differences.
const EXPLANATORY: [&str; 10] = [
    "inst_executed",
    "gld_sectors",
    "gst_sectors",
    "shared_ld_bank_conflicts",
    "shared_st_bank_conflicts",
    "divergent_branch",
    "ptx_divergent_branch",
    "warp_execution_efficiency",
    "ptx_warp_execution_efficiency",
    "barriers",
];

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Data {
    rows: usize,
    columns: Vec<Column>,
    /// Indices of the rows that are the fastest of their group.
    best: Vec<usize>,
    unit: PageUnit,
    facts: Vec<Facts>,
    /// Distinct names of facts.
    names: Vec<String>,
    /// Distinct texts of facts.
    strings: Vec<String>,
    launch_titles: Vec<&'static str>,
    /// Tables of launches, each of which several cases can share.
    launches: Vec<Vec<Vec<String>>>,
    /// Names of counters, in the order of a case's counts.
    counters: Vec<String>,
    sources: Vec<Vec<SourceFile>>,
    no_samples: &'static str,
    no_source: &'static str,
}

pub(super) fn data(records: &Records, beside: &Companions) -> Data {
    let summary = analyse::summary(records);
    let mut best: Vec<usize> = summary.groups.iter().flat_map(|group| &group.best).map(|best| best.index).collect();
    best.sort_unstable();
    let context = Context::of_all(records);
    let mut tables = Tables::new(records, beside);
    let facts = records.cases.iter().map(|record| tables.facts(record)).collect();
    let Tables { names, strings, launches, counters, sources, .. } = tables;
    Data {
        rows: records.cases.len(),
        columns: columns(&context),
        best,
        unit: context.time.into(),
        facts,
        names: names.list,
        strings: strings.list,
        launch_titles: super::facts::LAUNCH_TITLES.to_vec(),
        launches: launches.list,
        counters,
        sources,
        no_samples: "No samples: the journal of this run is not next to the records.",
        no_source: "No source: no file matches the hash in the records.",
    }
}

fn columns(context: &Context<'_>) -> Vec<Column> {
    let records = context.records;
    let rows: Vec<Row<'_>> = records.cases.iter().map(|record| Row::from_case(records, record)).collect();
    let fixed = |columns: &'static [column::Column]| columns.iter().filter_map(|column| filled(column, context, &rows));
    let mut columns: Vec<Column> = fixed(CASE).collect();
    let axes = records.header.axes.iter();
    columns.extend(axes.map(|axis| table::axis(&axis.name, &rows, |row| units::axis(&row.record.case, &axis.name))));
    columns.extend(fixed(OUTCOME));
    // A column with equal values becomes a fact of every case instead.
    columns.retain(|column| column.key == "variant" || column.key == "check" || differs(column));
    columns.extend([TIME, RATIOS, WORK, ROOF, OPERATIONS, LAUNCH].into_iter().flat_map(fixed));
    // As in `report.md`: bytes are more informative for a memory-bound job.
    let has_operations = records.cases.iter().any(|record| is_arithmetic(records, record));
    columns.retain(|column| is_filled(column) && (column.key != "arithmetic" || has_operations));
    columns.extend(counted(records, &rows));
    columns
}

/// A column of the page; `None` if the page does not show it.
fn filled(column: &column::Column, context: &Context<'_>, rows: &[Row<'_>]) -> Option<Column> {
    let (table, page) = (column.table.as_ref()?, column.page.as_ref()?);
    Some(match page.cell {
        InPageCell::Text(cell) => texts(page.key, rows, |row| cell(context, row)),
        InPageCell::Number(cell) => {
            let title = (table.head)(context).title;
            Column { scale: (page.unit)(context), ..numbers(page.key, title, rows, |row| cell(context, row)) }
        }
    })
}

/// Whether a job has no bytes to move, or is bound by arithmetic.
fn is_arithmetic(records: &Records, record: &CaseRecord) -> bool {
    record.work.bytes.is_none() || bound::is_arithmetic(records, record)
}

fn differs(column: &Column) -> bool {
    column.texts.as_ref().is_some_and(|texts| texts.len() > 1)
}

/// Counters that differ between cases, most explanatory first.
fn counted(records: &Records, rows: &[Row<'_>]) -> Vec<Column> {
    let counters = || records.cases.iter().filter_map(|record| record.counters.as_ref()).flat_map(|c| c.0.keys());
    let mut names: Vec<&str> = counters().map(AsRef::as_ref).collect::<BTreeSet<&str>>().into_iter().collect();
    names.sort_by_key(|name| EXPLANATORY.iter().position(|telling| telling == name).unwrap_or(EXPLANATORY.len()));
    let column = |name: &str| {
        let count = |row: &Row<'_>| row.record.counters.as_ref()?.get(name).map(|value| (value, format::count(value)));
        numbers(name, name, rows, count)
    };
    let distinct = |column: &Column| match &column.cells {
        Cells::Texts(texts) => texts.windows(2).any(|pair| pair[0] != pair[1]),
        Cells::Places(_) => false,
    };
    let is_timed = records.cases.iter().any(|record| record.result.is_some());
    let most = if is_timed { MOST_BESIDE_TIMES } else { MOST_COUNTERS };
    names.into_iter().map(column).filter(distinct).take(most).collect()
}

/// Whether the column has strings or at least one number.
fn is_filled(column: &Column) -> bool {
    column.texts.is_some() || column.values.as_ref().is_some_and(|values| values.iter().any(Option::is_some))
}

//! One group of a report: its table, its counters, and the reasons for missing values.

use serde::Serialize;

use super::counters::{self, Counted};
use super::grid::{grid_table, grids};
use super::limits::Limits;
use super::overview;
use super::reasons::{Reason, gather, no_speedups, notes_on};
use super::rows::group_table;
use super::table::{Table, in_common};
use super::{units, wording};
use runner_lang::format::plural;
use runner_results::analyse::{self, GroupSummary};
use runner_types::{GroupKey, Outcome, Records, Value};

/// Maximum number of rows of an open table; longer ones are folded, so that what follows is not too far down.
const MOST_OPEN_ROWS: usize = 30;

/// Content of a report about one group.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Section {
    pub heading: String,
    pub headline: String,
    /// Whether the section is initially reduced to its summary line.
    pub is_folded: bool,
    /// Values that all rows share.
    pub common: String,
    pub table: Table,
    /// Summary line of a table that is folded because it is long; otherwise empty.
    pub fold: String,
    /// Number of rows that did not fit on the page.
    pub more_rows: usize,
    /// Columns that did not fit.
    pub left_out: Vec<String>,
    pub grids: Vec<GridView>,
    pub counters: Vec<Counted>,
    /// Why rows have no time or speedup; then the notes.
    pub reasons: Vec<Reason>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GridView {
    pub caption: String,
    pub table: Table,
}

/// How to show the groups of a report.
#[derive(Debug, Clone, Copy)]
pub struct Layout<'a> {
    /// Axes with only one value, which headings omit.
    pub constant: &'a [(String, Value)],
    /// Whether the list of failures is far up in the report, in which case their reasons are repeated here.
    pub repeats_failures: bool,
    pub is_folded: bool,
    /// Whether grids are shown as tables, because they have no charts.
    pub has_grids: bool,
    pub limits: &'a Limits,
}

impl Section {
    pub fn bytes(&self) -> usize {
        let grids = self.grids.iter().map(|grid| grid.table.bytes());
        let counters = self.counters.iter().map(|counted| 100 + counted.common.len() + counted.table.bytes());
        let reasons =
            self.reasons.iter().map(|r| 40 + r.text.len() + r.cases.iter().map(|c| c.len() + 4).sum::<usize>());
        let own = 200 + self.heading.len() + self.headline.len() + self.common.len() + self.table.bytes();
        own + grids.chain(counters).chain(reasons).sum::<usize>()
    }
}

pub fn section(records: &Records, group: &GroupSummary, layout: Layout<'_>) -> Section {
    let mut table = group_table(records, group);
    let common = in_common(&table.fold());
    let left_out = table.fit(layout.limits.width);
    let more_rows = table.shorten(layout.limits.rows);
    let fold = if table.rows.len() > MOST_OPEN_ROWS && !layout.is_folded {
        format!("{} by {}", plural(table.rows.len() as u64, "row"), titles(&table))
    } else {
        String::new()
    };
    let grid = |grid: &super::grid::Grid<'_>| GridView {
        caption: overview::grid_caption(records, group, grid),
        table: grid_table(records, group, grid),
    };
    Section {
        heading: heading(&group.key, layout.constant),
        headline: overview::headline(records, group),
        is_folded: layout.is_folded,
        common,
        table,
        fold,
        more_rows,
        left_out,
        grids: if layout.has_grids { grids(records, group).iter().map(grid).collect() } else { Vec::new() },
        counters: if layout.limits.counters {
            counters::counted(records, group, layout.limits.width)
        } else {
            Vec::new()
        },
        reasons: reasons(records, group, layout),
    }
}

fn heading(key: &GroupKey, constant: &[(String, Value)]) -> String {
    let own: Vec<&(String, Value)> = key.0.iter().filter(|axis| !constant.contains(axis)).collect();
    if own.is_empty() { "All cases".to_owned() } else { units::axes_text(own) }
}

/// The columns that name a row: `variant, bx, by`.
fn titles(table: &Table) -> String {
    let named = table.columns.iter().take_while(|column| column.title != "check");
    named.map(|column| column.title.as_str()).collect::<Vec<_>>().join(", ")
}

/// Reasons and notes of a group. Failures are listed at the top of the report; their reasons are repeated only if that
/// is far away.
fn reasons(records: &Records, group: &GroupSummary, layout: Layout<'_>) -> Vec<Reason> {
    let header = &records.header;
    let members = || group.members.iter().map(|i| &records.cases[*i]);
    let is_above = |outcome: &Outcome| outcome.is_failure() && !matches!(outcome, Outcome::NotRun { .. });
    let here = members().filter(|r| layout.repeats_failures || !is_above(&r.outcome));
    let outcomes = here.filter_map(|record| {
        let text = match &record.outcome {
            // The intervals are in the table, so one reason covers all of them.
            Outcome::Unstable { .. } => "the requested precision was not reached".to_owned(),
            outcome => wording::reason(outcome)?,
        };
        Some((analyse::contender(header, &record.case), wording::name(&record.outcome), text, None))
    });
    let notes = members().flat_map(|record| {
        let name = analyse::contender(header, &record.case);
        notes_on(record, &records.environment).map(move |note| (name.clone(), "note".to_owned(), note, None))
    });
    let mut reasons = gather(outcomes, layout.limits);
    reasons.extend(no_speedups(records, group));
    reasons.extend(gather(notes, layout.limits));
    reasons
}

//! The short table at the end of a run.

use comfy_table::{Attribute, Cell as TermCell, CellAlignment, Table as TermTable, presets};

use super::files::REPORT_FILE;
use super::report::{Reason, Report, report};
use super::table::{Cell, Table};
use crate::model::Records;

/// From how many groups on the terminal shows the fastest of each, and not every row.
const MOST_GROUPS: usize = 3;

/// A longer table is cut: the page has all of it.
const MOST_ROWS: usize = 40;

/// The text for a terminal: a table, what was found, and what failed. `styled` allows bold; nothing else is used.
pub fn terminal(records: &Records, styled: bool) -> String {
    let Report { warnings, findings, failures, fastest, counts, sections, .. } = report(records);
    let mut lines = Vec::new();
    match fastest.or(counts) {
        Some(fastest) if sections.len() > MOST_GROUPS => lines.extend(draw(&fastest, styled)),
        _ => {
            for section in &sections {
                if sections.len() > 1 {
                    lines.push(section.heading.clone());
                }
                if !section.common.is_empty() {
                    lines.push(format!("all rows: {}", section.common));
                }
                lines.extend(draw(&section.table, styled));
                let tables = section.counters.iter().map(|counted| &counted.table);
                lines.extend(tables.filter(|table| !table.columns.is_empty()).flat_map(|table| draw(table, styled)));
                lines.push(String::new());
            }
        }
    }
    lines.extend(findings.iter().map(|finding| finding.iter().map(|cell| cell.text.as_str()).collect()));
    for Reason { cases, more, what, text: why, .. } in &failures {
        let others = if *more > 0 { format!(" and {more} more") } else { String::new() };
        lines.push(format!("✗ {what}, {}{others}: {why}", cases.join(", ")));
    }
    lines.extend(warnings);
    lines.join("\n") + "\n"
}

fn draw(table: &Table, styled: bool) -> Vec<String> {
    let mut drawn = TermTable::new();
    drawn.load_style(presets::NOTHING);
    if styled {
        drawn.enforce_styling();
    } else {
        drawn.force_no_tty();
    }
    let bold = |cell: TermCell, strong: bool| if strong && styled { cell.add_attribute(Attribute::Bold) } else { cell };
    drawn.set_header(table.columns.iter().map(|c| bold(TermCell::new(&c.title), true)));
    for row in table.rows.iter().take(MOST_ROWS) {
        drawn.add_row(row.iter().map(|Cell { text, is_strong, .. }| bold(TermCell::new(text), *is_strong)));
    }
    for (i, column) in table.columns.iter().enumerate() {
        if let Some(drawn) = drawn.column_mut(i)
            && column.is_number
        {
            drawn.set_cell_alignment(CellAlignment::Right);
        }
    }
    let mut lines: Vec<String> = drawn.lines().map(|line| line.trim_end().to_owned()).collect();
    if table.rows.len() > MOST_ROWS {
        lines.push(format!(" … and {} rows more in {REPORT_FILE}", table.rows.len() - MOST_ROWS));
    }
    lines
}

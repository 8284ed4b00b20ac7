//! The short table at the end of a run.

use comfy_table::{Attribute, Cell as TermCell, CellAlignment, Table as TermTable, presets};

use super::report::{Reason, Report, report};
use super::table::{Cell, Table};
use crate::model::Records;

/// From how many groups on the terminal shows the fastest of each, and not every row.
const MOST_GROUPS: usize = 3;

/// The text for a terminal: what was found, a table, and what failed. `styled` allows bold; nothing else is used.
pub fn terminal(records: &Records, styled: bool) -> String {
    let Report { warnings, findings, failures, fastest, sections, .. } = report(records);
    let mut text = String::new();
    for warning in &warnings {
        text += &format!("{warning}\n");
    }
    match fastest {
        Some(fastest) if sections.len() > MOST_GROUPS => text += &draw(&fastest, styled),
        _ => {
            for section in &sections {
                if sections.len() > 1 {
                    text += &format!("\n{}\n", section.heading);
                }
                if !section.common.is_empty() {
                    text += &format!("all rows: {}\n", section.common);
                }
                text += &draw(&section.table, styled);
                if let Some(counters) = &section.counters {
                    text += &draw(counters, styled);
                }
            }
        }
    }
    for finding in &findings {
        let sentence: String = finding.iter().map(|cell| cell.text.as_str()).collect();
        text += &format!("{sentence}\n");
    }
    for Reason { cases, what, text: why, .. } in &failures {
        text += &format!("✗ {what}, {}: {why}\n", cases.join(", "));
    }
    text
}

fn draw(table: &Table, styled: bool) -> String {
    let mut drawn = TermTable::new();
    drawn.load_style(presets::NOTHING);
    if styled {
        drawn.enforce_styling();
    } else {
        drawn.force_no_tty();
    }
    let bold = |cell: TermCell, strong: bool| if strong && styled { cell.add_attribute(Attribute::Bold) } else { cell };
    drawn.set_header(table.columns.iter().map(|c| bold(TermCell::new(&c.title), true)));
    for row in &table.rows {
        drawn.add_row(row.iter().map(|Cell { text, is_strong, .. }| bold(TermCell::new(text), *is_strong)));
    }
    for (i, column) in table.columns.iter().enumerate() {
        if let Some(drawn) = drawn.column_mut(i)
            && column.is_number
        {
            drawn.set_cell_alignment(CellAlignment::Right);
        }
    }
    let lines: Vec<String> = drawn.lines().map(|line| line.trim_end().to_owned()).collect();
    lines.join("\n") + "\n"
}

//! The short table at the end of a run, in the width of the terminal.
//!
//! A terminal shows what fits: the first columns of a wide table, the first rows of a long one. Whatever is omitted is
//! named, with the file that has it. Other outputs are not shortened, since their width is unknown.

use comfy_table::{Cell as TermCell, CellAlignment, Table as TermTable, presets};

use super::claims::{ClaimLine, Claims};
use super::counters::Counted;
use super::files::REPORT_FILE;
use super::limits::Limits;
use super::prose::prose;
use super::reasons::Reason;
use super::report::{Report, report_within};
use super::table::{Cell, Column, Table};
use runner_lang::format::{plural, visible};
use runner_results::analyse;
use runner_types::Records;

/// Maximum number of groups to show in full; with more, only the fastest of each is shown.
const MOST_GROUPS: usize = 3;

const MOST_ROWS: usize = 40;

/// Maximum number of rows of counter tables, one table per theme; with more, only the report shows them.
const MOST_COUNTED: usize = 16;

/// Notes shown before deferring to the report.
const MOST_NOTES: usize = 3;

/// Cases shown per note before deferring to the report.
const MOST_NAMES: usize = 3;

/// Titles of tables over many groups.
const FASTEST: &str = "The fastest of each group";
const COUNTS: &str = "Counts relative to the baseline, geometric mean over all groups";

const INDENT: &str = "  ";

/// Outcome of cases that an interrupted run left out.
const NOT_RUN: &str = "not run";

/// Marks bold text during layout. It has zero width, and `visible` removes it from any text.
const BOLD: char = '\u{200e}';
const PLAIN: char = '\u{200f}';

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Screen {
    /// Whether bold and colours may be used.
    pub styled: bool,
    /// Width of the terminal in columns; `None` for other outputs.
    pub width: Option<usize>,
}

/// Formats tables, findings and failures for a terminal.
pub fn terminal(records: &Records, screen: Screen) -> String {
    let Report { warnings, findings, claims, failures, notes, limits, fastest, counts, sections, .. } =
        report_within(records, &analyse::summary(records), &Limits::TERMINAL);
    let mut lines = Vec::new();
    let of_all = fastest.map(|of_all| (FASTEST, of_all.table)).or(counts.map(|of_all| (COUNTS, of_all.table)));
    match of_all {
        Some((title, table)) if sections.len() > MOST_GROUPS => {
            lines.push(prose(title, screen.width, INDENT));
            lines.extend(draw(&table, screen, REPORT_FILE));
            lines.push(String::new());
        }
        _ => {
            for section in &sections {
                if sections.len() > 1 {
                    lines.push(prose(&section.heading, screen.width, INDENT));
                }
                if !section.common.is_empty() {
                    lines.push(prose(&section.common, screen.width, INDENT));
                }
                lines.extend(draw(&section.table, screen, REPORT_FILE));
                lines.extend(counters(&section.counters, screen));
                lines.push(String::new());
            }
        }
    }
    // The answer comes last, since the last line is read first.
    let mut findings = findings.iter().map(|finding| finding.iter().map(|cell| cell.text.as_str()).collect());
    let answer: Option<String> = findings.next();
    let limits = limits.iter().map(|reason| case_line("–", reason));
    // A warning already mentions cases that an interrupted run left out.
    let left_out = |reason: &&Reason| !records.header.complete && reason.what == NOT_RUN;
    let failures = failures.iter().filter(|reason| !left_out(reason)).map(|reason| case_line("✗", reason));
    let claims = claims.iter().flat_map(claimed);
    let sentences = findings.chain(claims).chain(limits).chain(failures).chain(notes_of(&notes)).chain(warnings);
    let gap = answer.is_some().then(String::new);
    let sentences = sentences.chain(gap).chain(answer);
    lines.extend(sentences.map(|sentence: String| paint(prose(&sentence, screen.width, INDENT), screen)));
    lines.join("\n") + "\n"
}

/// One line per claim that is not held.
pub fn open_claims(records: &Records) -> Vec<String> {
    let report = report_within(records, &analyse::summary(records), &Limits::TERMINAL);
    report.claims.iter().flat_map(|claims| claimed(claims).into_iter().skip(1)).collect()
}

/// Claim counts, and every claim that is not held.
fn claimed(claims: &Claims) -> Vec<String> {
    let open = claims.lines.iter().filter(|line| line.state != "held");
    let line = |line: &ClaimLine| {
        let condition = Some(&line.condition).filter(|c| !c.is_empty()).map(|c| format!(" where {c}"));
        let detail: String = line.detail.iter().map(|cell| cell.text.as_str()).collect();
        format!("{} claim {}: {}{}: {detail}", line.mark, line.state, line.claim, condition.unwrap_or_default())
    };
    std::iter::once(format!("Claims: {}.", claims.counts)).chain(open.map(line)).collect()
}

/// The number of notes (`5 notes; all of them are in report.md:`), and the first ones, each with its first cases.
fn notes_of(notes: &[Reason]) -> Vec<String> {
    let place = if notes.len() > MOST_NOTES { format!("; all of them are in {REPORT_FILE}") } else { String::new() };
    let heading = match notes.len() {
        0 => return Vec::new(),
        count => format!("{}{place}:", plural(count as u64, "note")),
    };
    let line = |Reason { cases, more, text, .. }: &Reason| {
        let (shown, rest) = cases.split_at(cases.len().min(MOST_NAMES));
        let others = match rest.len() + more {
            0 => String::new(),
            others => format!(" and {others} more"),
        };
        format!("{INDENT}{}{others}: {text}", shown.join(", "))
    };
    std::iter::once(heading).chain(notes.iter().take(MOST_NOTES).map(line)).collect()
}

/// Formats a line such as `✗ wrong, a, b and 3 more: sum(partial): element 0 is 4, expected 3`.
fn case_line(mark: &str, Reason { cases, more, what, text, .. }: &Reason) -> String {
    let others = if *more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{mark} {what}, {}{others}: {text}", cases.join(", "))
}

/// Counter tables, each titled with its theme.
fn counters(themes: &[Counted], screen: Screen) -> Vec<String> {
    if themes.iter().any(|counted| counted.table.rows.len() > MOST_COUNTED) {
        let titles: Vec<String> = themes.iter().map(|counted| counted.title.clone()).collect();
        return left_out("table", &titles, screen, REPORT_FILE).into_iter().collect();
    }
    let mut lines = Vec::new();
    for counted in themes {
        let common = if counted.common.is_empty() { String::new() } else { format!(", all rows: {}", counted.common) };
        lines.extend([String::new(), prose(&format!("{}{common}", counted.title), screen.width, INDENT)]);
        if !counted.table.columns.is_empty() {
            lines.extend(draw(&counted.table, screen, REPORT_FILE));
        }
    }
    lines
}

/// Colours the mark at the beginning of a line, and the verdict up to the first comma or colon.
pub(super) fn paint(line: String, screen: Screen) -> String {
    let colour = match line.chars().next() {
        Some('✗' | '▲') if screen.styled => 31,
        Some('✓' | '▼') if screen.styled => 32,
        Some('≠' | '?' | '!') if screen.styled => 33,
        _ => return line,
    };
    let (verdict, rest) = line.split_at(line.find([',', ':', '\n']).unwrap_or(line.len()));
    format!("\u{1b}[{colour}m{verdict}\u{1b}[0m{rest}")
}

/// Draws the columns and rows that fit, and names the others.
///
/// `elsewhere` says where to find those.
pub(super) fn draw(table: &Table, screen: Screen, elsewhere: &str) -> Vec<String> {
    draw_at_least(1, table, screen, elsewhere)
}

/// Draws a table with at least `least` columns, even if they do not fit.
pub(super) fn draw_at_least(least: usize, table: &Table, screen: Screen, elsewhere: &str) -> Vec<String> {
    let whole = drawn(&table.columns, table, screen.styled);
    let shown = columns_within(&whole, screen.width).max(least);
    let (columns, others) = table.columns.split_at(shown.min(table.columns.len()));
    let fitting = if others.is_empty() { whole } else { drawn(columns, table, screen.styled) };
    let mut lines: Vec<String> = fitting.lines().map(|line| with_escapes(line.trim_end())).collect();
    if table.rows.len() > MOST_ROWS {
        let more = plural((table.rows.len() - MOST_ROWS) as u64, "more row");
        lines.push(format!(" … and {more} in {elsewhere}"));
    }
    let others: Vec<String> = others.iter().map(|column| column.title.clone()).collect();
    lines.extend(left_out("column", &others, screen, elsewhere));
    lines
}

pub(super) fn is_narrow(table: &Table, screen: Screen) -> bool {
    let columns = table.columns.len();
    columns_within(&drawn(&table.columns, table, screen.styled), screen.width) >= columns
}

/// Replaces bold marks with escape sequences.
fn with_escapes(line: &str) -> String {
    line.replace(BOLD, "\u{1b}[1m").replace(PLAIN, "\u{1b}[0m")
}

/// The first rows of a table, in its first columns.
fn drawn(columns: &[Column], table: &Table, styled: bool) -> TermTable {
    let mut drawn = TermTable::new();
    drawn.load_style(presets::NOTHING);
    let bold = |text: &str, strong: bool| match (visible(text), strong && styled) {
        (text, true) => TermCell::new(format!("{BOLD}{text}{PLAIN}")),
        (text, false) => TermCell::new(text),
    };
    drawn.set_header(columns.iter().map(|column| bold(&column.title, true)));
    for row in table.rows.iter().take(MOST_ROWS) {
        let cells = row.iter().take(columns.len());
        drawn.add_row(cells.map(|Cell { text, is_strong, .. }| bold(text, *is_strong)));
    }
    for (i, column) in columns.iter().enumerate() {
        if let Some(drawn) = drawn.column_mut(i)
            && column.is_number
        {
            drawn.set_cell_alignment(CellAlignment::Right);
        }
    }
    drawn
}

/// Number of leading columns that fit a line; at least one.
fn columns_within(table: &TermTable, width: Option<usize>) -> usize {
    let widths = table.column_max_content_widths();
    let Some(width) = width else { return widths.len() };
    // Each column has a space before and after; the last trailing space is not needed.
    let ends = widths.iter().scan(0, |end, width| {
        *end += usize::from(*width) + 2;
        Some(*end - 1)
    });
    ends.take_while(|end| *end <= width).count().max(1)
}

/// Says what is omitted (` … and 3 columns more in report.md: a, b, c`), wrapped to the screen's width.
fn left_out(what: &str, names: &[String], screen: Screen, elsewhere: &str) -> Option<String> {
    let count = names.len();
    let line = format!(" … and {} more in {elsewhere}: {}", plural(count as u64, what), names.join(", "));
    (count > 0).then(|| prose(&line, screen.width, "   "))
}

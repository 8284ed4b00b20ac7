//! A comparison for a terminal: the verdict, then what changed, and why.

use super::claims::{self, Claims};
use super::rollup::Line;
use super::sources::Source;
use super::view::{Section, view};
use super::{Compared, headline};
use crate::Screen;
use crate::prose::prose;
use crate::table::Table;
use crate::terminal::{draw, draw_at_least, is_narrow, paint};
use runner_lang::format::visible;
use runner_results::analyse::compare::Kind;

/// Maximum number of rows to show; the page has the others.
const MOST_ROWS: usize = 200;

/// Maximum number of rows to show of a kind that does not fail the gate.
const MOST_HARMLESS: usize = 10;

/// Where to find what the terminal omits.
const ELSEWHERE: &str = "the --format markdown page";

const INDENT: &str = "  ";

/// Kinds that the terminal lists; the others are counted.
const LISTED: [Kind; 13] = [
    Kind::NewlyWrong,
    Kind::Slower,
    Kind::MoreWork,
    Kind::Incomparable,
    Kind::NewlyUnstable,
    Kind::Faster,
    Kind::LessWork,
    Kind::Mixed,
    Kind::Undecided,
    Kind::Fixed,
    Kind::New,
    Kind::OtherValues,
    Kind::Gone,
];

/// The comparison as text, wrapped to the terminal's width.
pub fn terminal(compared: Compared<'_>, screen: Screen) -> String {
    let view = view(compared, MOST_ROWS);
    let mut lines = vec![paint(prose(&headline(compared), screen.width, INDENT), screen)];
    let sentences = view.changed.iter().chain(&view.facts);
    lines.extend(sentences.map(|sentence| prose(sentence, screen.width, INDENT)));
    for Source { title, lines: changed } in &view.sources {
        lines.push(prose(&format!("Source: {title}"), screen.width, INDENT));
        lines.extend(changed.iter().map(|line| format!("{INDENT}{}", visible(line))));
    }
    let claims = view.claims.iter().flat_map(claimed);
    lines.extend(claims.map(|sentence| paint(prose(&sentence, screen.width, INDENT), screen)));
    for section in view.sections.iter().filter(|section| LISTED.contains(&section.kind)) {
        lines.push(String::new());
        lines.extend(of_section(section, screen));
    }
    if view.unaffected_reports > 0 {
        lines.push(String::new());
        lines.push(format!("Unaffected: {}", view.unaffected_reports));
        let shown = view.unaffected.iter().take(MOST_HARMLESS);
        lines.extend(shown.map(|line| prose(&format!(" {line}"), screen.width, "   ")));
        let hidden = view.unaffected.len().saturating_sub(MOST_HARMLESS);
        lines.extend((hidden > 0).then(|| format!(" … and {hidden} more in {ELSEWHERE}")));
    }
    if !view.warnings.is_empty() {
        lines.push(String::new());
        lines.extend(view.warnings.iter().map(|sentence| prose(&format!("Note: {sentence}"), screen.width, INDENT)));
    }
    lines.join("\n") + "\n"
}

/// Every claim that needs attention.
fn claimed(claims: &Claims) -> Vec<String> {
    let line = |line: &claims::Line| {
        let report = if line.report.is_empty() { String::new() } else { format!("{}: ", line.report) };
        let condition = if line.condition.is_empty() { String::new() } else { format!(" where {}", line.condition) };
        let claims::Line { mark, state, claim, new, before, .. } = line;
        format!("{mark} claim {state}: {report}{claim}{condition}: {new}{before}")
    };
    let more = (claims.left_out > 0).then(|| format!("{} more claims are in {ELSEWHERE}.", claims.left_out));
    claims.lines.iter().map(line).chain(more).collect()
}

fn of_section(section: &Section, screen: Screen) -> Vec<String> {
    let mut lines = vec![paint(prose(&section.title, screen.width, INDENT), screen)];
    if !section.common.is_empty() {
        lines.push(prose(&format!("{}.", section.common), screen.width, INDENT));
    }
    lines.extend(section.rollup.lines.iter().map(|Line { report, variant, text }| {
        let report = if report.is_empty() { String::new() } else { format!("{report}: ") };
        let text = if text.is_empty() { String::new() } else { format!(": {text}") };
        prose(&format!(" {report}{variant}{text}"), screen.width, "   ")
    }));
    if section.rollup.left_out > 0 {
        lines.push(format!(" … and {} more variants", section.rollup.left_out));
    }
    let mut table = section.table.clone();
    // The lines per variant already state the reasons.
    if table.columns.last().is_some_and(|column| column.title == "why") {
        table.columns.pop();
        for row in &mut table.rows {
            row.pop();
        }
    }
    let most = if section.is_gating { table.rows.len() } else { MOST_HARMLESS };
    let hidden = table.rows.len().saturating_sub(most);
    table.rows.truncate(most);
    lines.extend(draw_change(table, screen));
    if hidden > 0 {
        lines.push(format!(" … and {hidden} more in {ELSEWHERE}"));
    }
    lines
}

/// Draws a table. If it is too wide, the case and its change move to the front and are always kept.
fn draw_change(mut table: Table, screen: Screen) -> Vec<String> {
    if is_narrow(&table, screen) {
        return draw(&table, screen, ELSEWHERE);
    }
    let mut first = 0;
    for title in ["case", "change"] {
        if let Some(place) = table.columns.iter().position(|column| column.title == title) {
            table.columns[first..=place].rotate_right(1);
            table.rows.iter_mut().for_each(|row| row[first..=place].rotate_right(1));
            first += 1;
        }
    }
    draw_at_least(first.max(1), &table, screen, ELSEWHERE)
}

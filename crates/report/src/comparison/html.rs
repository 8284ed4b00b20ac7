//! The comparison as one HTML file: the page for a pull request, plus all rows with their time distributions.

use super::sources::Source;
use super::view::{self, Section, View, point, unit_of, view};
use super::{Compared, claims, rollup, words};
use crate::RenderError;
use crate::html::Samples;
use crate::html::changes::{Details, Lane, Line, Page, Part, Rows, samples_of};
use crate::html::table::{Column, Number, cases, numbers, texts};
use crate::table::Cell;
use crate::units::TimeUnit;
use crate::wording;
use runner_lang::format::{count, rough};
use runner_results::analyse::compare::{CauseKind, Change, CounterChange, Fact, Kind, ReportComparison};
use runner_types::{CaseKey, Estimate};

/// A change with its report and the samples of base and new.
struct Row<'a> {
    report: &'a ReportComparison,
    change: &'a Change,
    samples: Option<&'a [Samples; 2]>,
}

/// Renders the page. `samples` has those of base and new for each pair of reports; empty without a journal.
pub fn html(compared: Compared<'_>, samples: &[[Samples; 2]]) -> Result<String, RenderError> {
    let View {
        headline,
        changed,
        facts,
        sources,
        warnings,
        claims,
        sections,
        unaffected,
        unaffected_reports,
        places,
        method,
    } = view(compared, usize::MAX);
    // Most important rows first, as in the sections.
    let rows: Vec<Row<'_>> = Kind::ALL
        .iter()
        .flat_map(|kind| view::rows(compared, *kind))
        .map(|(report, change)| {
            let place = compared.comparison.reports.iter().position(|other| std::ptr::eq(other, report));
            Row { report, change, samples: place.and_then(|place| samples.get(place)) }
        })
        .collect();
    let unit = unit_of(rows.iter().map(|row| row.change));
    let details = rows.iter().map(|row| details(row, compared.labels)).collect();
    let table = Rows { columns: columns(compared, &rows, unit), unit: unit.into(), details };
    let unaffected = (!unaffected.is_empty()).then(|| Part {
        title: format!("Unaffected: {unaffected_reports}"),
        lines: unaffected.into_iter().map(|line| Line { is_bad: false, cells: vec![Cell::plain(line)] }).collect(),
        ..Part::default()
    });
    let source_parts = sources.into_iter().map(changed_source);
    let page = Page {
        facts: changed.into_iter().chain(facts).collect(),
        warnings,
        parts: source_parts
            .chain(claims.iter().map(claimed))
            .chain(sections.into_iter().map(part))
            .chain(unaffected)
            .collect(),
        rows_title: "All cases",
        example: "slower change > 2 n >= 2^24",
        method,
        places,
        ..Page::new(headline, table)?
    };
    page.render()
}

fn changed_source(Source { title, lines }: Source) -> Part {
    let line = |line: String| Line { is_bad: false, cells: vec![Cell::code(line)] };
    Part {
        title: format!("Source: {}", title.replace('`', "")),
        is_open: true,
        lines: lines.into_iter().map(line).collect(),
        ..Part::default()
    }
}

fn claimed(claims: &claims::Claims) -> Part {
    let line = |line: &claims::Line| {
        let place = if line.report.is_empty() { String::new() } else { format!("{}: ", line.report) };
        let mut cells = vec![
            Cell::plain(format!("{} ", line.mark)),
            Cell::plain(line.state).strong_if(line.fails),
            Cell::plain(format!(": {place}")),
            Cell::code(line.claim.clone()),
        ];
        if !line.condition.is_empty() {
            cells.extend([Cell::plain(" where "), Cell::code(line.condition.clone())]);
        }
        cells.push(Cell::plain(format!(": {}{}", line.new, line.before)));
        Line { is_bad: line.fails, cells }
    };
    Part {
        title: format!("Claims: {}", claims.counts),
        is_open: true,
        lines: claims.lines.iter().map(line).collect(),
        ..Part::default()
    }
}

/// Summary of each variant. The individual cases are in the table of all cases.
fn part(section: Section) -> Part {
    let line = |rollup::Line { report, variant, text }: &rollup::Line| {
        let place = if report.is_empty() { String::new() } else { format!("{report}: ") };
        let text = if text.is_empty() { String::new() } else { format!(": {}", text.replace('`', "")) };
        Line {
            is_bad: section.is_gating,
            cells: vec![Cell::plain(place), Cell::code(variant.clone()), Cell::plain(text)],
        }
    };
    let lines = section.rollup.lines.iter().map(line);
    let more = (section.rollup.left_out > 0).then(|| Line {
        is_bad: false,
        cells: vec![Cell::plain(format!("{} more variants", section.rollup.left_out))],
    });
    Part {
        title: section.title,
        is_open: section.is_open,
        note: if section.common.is_empty() {
            section.explanation.to_owned()
        } else {
            format!("{} {}.", section.explanation, section.common)
        },
        lines: lines.chain(more).collect(),
        table: (section.kind == Kind::Incomparable).then_some(section.table),
    }
}

fn columns(compared: Compared<'_>, rows: &[Row<'_>], unit: TimeUnit) -> Vec<Column> {
    let mut columns = Vec::new();
    if compared.comparison.reports.len() > 1 {
        columns.push(texts("report", rows, |row| format!("{}, {}", row.report.experiment, row.report.device)));
    }
    if compared.comparison.reports.len() > 1 {
        // The axes of many experiments would fill the width of the page.
        columns.push(texts("case", rows, |row| wording::case_name(&row.change.case)));
        columns.push(texts("regime", rows, |row| row.change.regime.map_or("", |regime| regime.name()).to_owned()));
    } else {
        columns.extend(cases(rows, |row| (&row.change.case, row.change.regime)));
    }
    columns.push(texts("verdict", rows, |row| {
        format!("{} {}", words::mark(row.change.kind), words::heading(row.change.kind).to_lowercase())
    }));
    columns.push(numbers("change", "change", rows, |row| changed(row.change)));
    let times = [("before", 0), ("after", 1)].map(|(key, side)| Column {
        scale: Some(unit.nanoseconds()),
        ..numbers(key, format!("{key} ({})", unit.symbol()), rows, |row| {
            time(row.change, side).map(|time| (time.point, point(&time, unit)))
        })
    });
    columns.extend(times);
    columns.push(texts("why", rows, |row| words::why(row.change, row.report)));
    columns.retain(|column| match (&column.texts, &column.values) {
        (Some(texts), _) => texts.iter().any(|text| !text.is_empty()),
        (None, values) => values.iter().flatten().any(Option::is_some),
    });
    columns
}

fn time(change: &Change, side: usize) -> Option<Estimate> {
    let newcomer = || change.newcomer.as_ref().filter(|_| side == 1)?.time;
    change.time.as_ref().map(|time| [time.base, time.new][side]).or_else(newcomer)
}

/// Change in percent: of the time, or of the deciding counter.
fn changed(change: &Change) -> Number {
    let percent = |ratio: f64| (ratio - 1.0) * 100.0;
    if let Some(time) = &change.time {
        return Some((percent(time.ratio), words::time_change(time)));
    }
    let count = words::leading_count(change)?;
    Some((percent(count.new / count.base), words::count_change(change)?))
}

fn details(row: &Row<'_>, labels: &[String; 2]) -> Details {
    let Row { report, change, samples } = row;
    let mut pairs = vec![("verdict", words::explanation(change.kind).to_owned())];
    for (name, outcome) in ["before", "after"].into_iter().zip(&change.outcomes) {
        pairs.extend(outcome.as_ref().map(|outcome| (name, wording::name(outcome))));
    }
    pairs.extend(Some(words::why(change, report)).filter(|why| !why.is_empty()).map(|why| ("why", why)));
    if let Some(time) = &change.time {
        pairs.extend(time.threshold.map(|threshold| ("threshold", format!("{} %", rough(100.0 * threshold)))));
    }
    let lanes = (0..2).filter_map(|side| {
        let time = time(change, side)?;
        let keys = renamed(change).filter(|_| side == 0).into_iter().chain([change.case.key.clone()]);
        let rounds = samples.zip(change.regime).and_then(|(samples, regime)| {
            keys.into_iter().find_map(|key| samples_of(&samples[side], &key, regime, &time))
        });
        Some(Lane::new(format!("{}, {}", ["before", "after"][side], labels[side]), &time, rounds))
    });
    let counts =
        change.counters.iter().map(|CounterChange { name, base, new, .. }| [name.clone(), count(*base), count(*new)]);
    Details { pairs, lanes: lanes.collect(), counts: counts.collect() }
}

/// The base's key for a case whose variant was renamed.
fn renamed(change: &Change) -> Option<CaseKey> {
    let cause = change.causes.iter().find(|cause| cause.what == CauseKind::Variant)?;
    match &cause.base {
        Fact::Text(variant) => Some(CaseKey { variant: variant.clone(), ..change.case.key.clone() }),
        _ => None,
    }
}

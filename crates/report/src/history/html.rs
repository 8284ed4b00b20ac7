//! The history as one HTML file: its page, its charts, and all cases with their times at every revision.

use super::view::{Section, View, comparable_ends, view};
use super::{ReportHistory, charts, words};
use crate::RenderError;
use crate::comparison::words as comparison;
use crate::html::Samples;
use crate::html::changes::{Details, Lane, Page, Part, Rows, samples_of};
use crate::html::table::{Column, cases, numbers, texts};
use crate::number;
use crate::units::TimeUnit;
use runner_results::analyse::history::Series;

/// Maximum number of revisions of a case to show; the oldest are omitted.
const MOST_LANES: usize = 40;

/// A case in one regime.
struct Row<'a> {
    report: &'a ReportHistory<'a>,
    series: &'a Series<'a>,
    samples: Option<&'a Samples>,
}

/// Renders the page. `samples` has those of each report's newest run; empty without a journal.
pub fn html(reports: &[ReportHistory<'_>], least: f64, samples: &[Samples]) -> Result<String, RenderError> {
    let View { headline, notes, break_note, reports: sections, method, .. } = view(reports, least, Vec::new());
    let rows: Vec<Row<'_>> = reports
        .iter()
        .enumerate()
        .flat_map(|(i, report)| report.series.iter().map(move |series| (i, report, series)))
        .map(|(i, report, series)| Row { report, series, samples: samples.get(i) })
        .collect();
    let newest = rows.iter().filter_map(|row| row.series.points.last());
    let unit = TimeUnit::choose(newest.map(|point| point.time.point));
    let table = Rows {
        columns: columns(reports.len() > 1, &rows, unit),
        unit: unit.into(),
        details: rows.iter().map(details).collect(),
    };
    let several = reports.len() > 1;
    let facts = sections.iter().flat_map(|section| {
        let place = if several { format!("{}: ", section.title) } else { String::new() };
        section.facts.iter().map(move |fact| format!("{place}{fact}"))
    });
    let page = Page {
        facts: facts.collect(),
        warnings: notes,
        charts: charts::drawn(reports)?,
        rows_title: "All cases",
        example: "difference > 2 n >= 2^24",
        method,
        places: reports.iter().map(|report| report.place.to_owned()).collect(),
        ..Page::new(headline, table)?
    };
    let parts = sections.into_iter().flat_map(|section| parts(section, break_note, several)).collect();
    Page { parts, ..page }.render()
}

fn parts(section: Section, break_note: &str, several: bool) -> Vec<Part> {
    let Section { title, changes, breaks, revisions_title, revisions, .. } = section;
    let named = |what: &str| if several { format!("{what}, {title}") } else { what.to_owned() };
    let tables = [
        (named("Changes"), true, "", changes),
        (named("Breaks"), true, break_note, breaks),
        (named(&revisions_title), false, "", revisions),
    ];
    let filled = tables.into_iter().filter(|(.., table)| !table.rows.is_empty());
    filled
        .map(|(title, is_open, note, table)| Part {
            title,
            is_open,
            note: note.to_owned(),
            table: Some(table),
            ..Part::default()
        })
        .collect()
}

fn columns(several: bool, rows: &[Row<'_>], unit: TimeUnit) -> Vec<Column> {
    let mut columns = Vec::new();
    if several {
        columns.push(texts("report", rows, |row| row.report.place.to_owned()));
    }
    columns.extend(cases(rows, |row| (row.series.case, Some(row.series.regime))));
    columns.push(texts("times", rows, |row| words::sparkline(row.series)));
    columns.push(numbers("measured", "measured", rows, |row| {
        let count = row.series.points.len();
        Some((count as f64, count.to_string()))
    }));
    let ends = [("oldest", false), ("newest", true)].map(|(key, is_newest)| Column {
        scale: Some(unit.nanoseconds()),
        ..numbers(key, format!("{key} ({})", unit.symbol()), rows, |row| {
            let (first, last) = comparable_ends(row.series)?;
            let time = if is_newest { last.time } else { first.time };
            Some((time.point, number::plus_minus(&time, unit.nanoseconds())))
        })
    });
    columns.extend(ends);
    columns.push(numbers("difference", "difference", rows, |row| {
        let (first, last) = comparable_ends(row.series)?;
        let ratio = last.time.point / first.time.point;
        (first.revision != last.revision).then(|| ((ratio - 1.0) * 100.0, comparison::plain_change(ratio)))
    }));
    columns.push(texts("changed at", rows, |row| {
        let commits = row.series.changes.iter().map(|change| {
            let commit = &row.report.commits[row.series.points[change.point].revision];
            format!("{} ({})", commit.short(), words::change(change))
        });
        commits.collect::<Vec<_>>().join(", ")
    }));
    columns.retain(|column| column.texts.as_ref().is_none_or(|texts| texts.iter().any(|text| !text.is_empty())));
    columns
}

fn details(row: &Row<'_>) -> Details {
    let Row { report, series, samples } = row;
    let last = series.points.len() - 1;
    let lanes =
        series.points.iter().enumerate().skip(series.points.len().saturating_sub(MOST_LANES)).map(|(i, point)| {
            let commit = &report.commits[point.revision];
            let rounds = samples
                .filter(|_| i == last)
                .and_then(|samples| samples_of(samples, &series.case.key, series.regime, &point.time));
            let changes = series.changes.iter().filter(|change| change.point == i);
            let breaks = series.breaks.iter().filter(|found| found.point == i);
            let notes = changes
                .map(words::change)
                .chain(breaks.map(|found| format!("break: {}", words::names(found).join(", "))));
            let name = format!("{} {}", commit.short(), commit.date);
            Lane { note: notes.collect::<Vec<_>>().join("; "), ..Lane::new(name, &point.time, rounds) }
        });
    let causes = series.changes.iter().map(|change| {
        let commit = &report.commits[series.points[change.point].revision];
        let causes = words::causes(change);
        let with = if causes.is_empty() { String::new() } else { format!("; {causes}") };
        ("change", format!("{} at {} ({}){with}", words::change(change), commit.short(), commit.subject))
    });
    let breaks = series.breaks.iter().map(|found| {
        let commit = &report.commits[series.points[found.point].revision];
        ("break", format!("{}: {}", commit.short(), words::reasons(found)))
    });
    Details { pairs: causes.chain(breaks).collect(), lanes: lanes.collect(), ..Details::default() }
}

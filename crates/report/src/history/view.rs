//! View model of a history, and how the terminal and Markdown show it.

use serde::Serialize;

use super::{Link, ReportHistory, words};
use crate::comparison::words as comparison;
use crate::prose::prose;
use crate::stale;
use crate::table::{Cell, Folding, Table, number as number_column, text};
use crate::terminal::draw;
use crate::units::TimeUnit;
use crate::{RenderError, Screen, Templates, number, wording};
use runner_lang::format::{plural, plural_of, rough};
use runner_results::analyse::history::{Break, Change, LEVEL, Point, Series};
use runner_results::analyse::stale::Staleness;
use runner_stats::FEWEST_READINGS;
use runner_types::Estimate;

const INDENT: &str = "  ";

/// Unexplained scatter of times that is worth a mention, as a fraction.
const WIDE: f64 = 0.05;

/// Where to find what the terminal omits.
const ELSEWHERE: &str = "the --format markdown page";

/// Maximum number of unreadable revisions to list; further ones are only counted.
const MOST_UNREAD: usize = 5;

const BREAK_NOTE: &str = "Times before and after are not comparable.";

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct View {
    pub headline: String,
    /// What the verdict does not cover.
    pub notes: Vec<String>,
    pub break_note: &'static str,
    pub reports: Vec<Section>,
    charts: Vec<Link>,
    pub method: Vec<String>,
}

/// The page's content about one report.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Section {
    pub title: String,
    pub facts: Vec<String>,
    pub changes: Table,
    pub breaks: Table,
    cases_title: String,
    cases: Table,
    pub revisions_title: String,
    pub revisions: Table,
}

pub fn markdown(reports: &[ReportHistory<'_>], least: f64, charts: Vec<Link>) -> Result<String, RenderError> {
    Templates::new()?.history(&view(reports, least, charts))
}

/// Formats the page in the terminal's width, without the revisions.
pub fn terminal(reports: &[ReportHistory<'_>], least: f64, screen: Screen) -> String {
    let view = view(reports, least, Vec::new());
    let mut lines = vec![view.headline];
    lines.extend(view.notes.iter().map(|note| prose(note, screen.width, INDENT)));
    for report in view.reports {
        lines.extend([String::new(), prose(&report.title, screen.width, INDENT)]);
        lines.extend(report.facts.iter().map(|fact| prose(fact, screen.width, INDENT)));
        let breaks = format!("Breaks: {BREAK_NOTE}");
        for (title, table) in
            [("Changes", report.changes), (breaks.as_str(), report.breaks), (report.cases_title.as_str(), report.cases)]
        {
            if !table.rows.is_empty() {
                lines.extend([String::new(), prose(title, screen.width, INDENT)]);
                lines.extend(draw(&table, screen, ELSEWHERE));
            }
        }
    }
    lines.join("\n") + "\n"
}

pub fn view(reports: &[ReportHistory<'_>], least: f64, charts: Vec<Link>) -> View {
    let stale = stale_reports(reports);
    View {
        headline: headline(reports),
        notes: [unread(reports), stale::sentences(&stale), stale::unknown(&stale)].concat(),
        break_note: BREAK_NOTE,
        reports: reports.iter().map(section).collect(),
        charts,
        method: method(least),
    }
}

/// Says which revisions are missing from the rest of the page.
fn unread(reports: &[ReportHistory<'_>]) -> Vec<String> {
    let all = reports.iter().flat_map(|report| report.unread);
    let mut sentences: Vec<String> =
        all.clone().take(MOST_UNREAD).map(|unread| format!("Not read: {}.", unread.why)).collect();
    let more = all.count().saturating_sub(MOST_UNREAD);
    if more > 0 {
        sentences.push(format!("Not read: {more} more."));
    }
    sentences
}

fn stale_reports(reports: &[ReportHistory<'_>]) -> Vec<Staleness> {
    reports.iter().filter_map(|report| report.stale.clone()).collect()
}

/// Sums up the changes: `2 slower, 1 faster in 420 cases`.
fn headline(reports: &[ReportHistory<'_>]) -> String {
    let changes = || reports.iter().flat_map(|report| &report.series).flat_map(|series| &series.changes);
    let cases: usize = reports.iter().map(|report| report.series.len()).sum();
    let slower = changes().filter(|change| change.ratio > 1.0).count();
    let faster = changes().count() - slower;
    let counted = [(slower, "slower"), (faster, "faster")];
    let named: Vec<String> =
        counted.iter().filter(|(count, _)| *count > 0).map(|(count, name)| format!("{count} {name}")).collect();
    let found = if named.is_empty() { "No change".to_owned() } else { format!("Changes: {}", named.join(", ")) };
    let spans: Vec<f64> = reports.iter().flat_map(|report| &report.series).map(unexplained_span).collect();
    let wide = spans.iter().filter(|span| **span >= WIDE);
    let scattered = wide.clone().copied().reduce(f64::max).map(|most| {
        let noisy = plural_of(wide.count() as u64, "case is noisy", "cases are noisy");
        format!("; {noisy} (up to {} %): outliers, or too few revisions", rough(100.0 * most))
    });
    let stale = stale::tally(&stale_reports(reports)).map(|tally| format!("; {tally}")).unwrap_or_default();
    let all: usize = reports.iter().map(|report| report.commits.len() + report.unread.len()).sum();
    let unread = match reports.iter().map(|report| report.unread.len()).sum::<usize>() {
        0 => String::new(),
        count => format!("; {count} of {} could not be read", plural(all as u64, "revision")),
    };
    format!(
        "{found} in the history of {}{unread}{}{stale}",
        plural(cases as u64, "case"),
        scattered.unwrap_or_default()
    )
}

/// Fraction by which the largest time exceeds the smallest without a change or a break between them.
fn unexplained_span(series: &Series<'_>) -> f64 {
    let spans = series.levels().into_iter().map(|(start, end)| {
        let times = || series.points[start..end].iter().map(|point| point.time.point);
        times().fold(0.0, f64::max) / times().fold(f64::INFINITY, f64::min) - 1.0
    });
    spans.fold(0.0, f64::max)
}

fn section(report: &ReportHistory<'_>) -> Section {
    let timed = plural(report.series.len() as u64, "case");
    Section {
        title: report.place.to_owned(),
        facts: facts(report),
        changes: changes(report),
        breaks: breaks(report),
        cases_title: format!("All cases ({timed})"),
        cases: cases(report),
        revisions_title: plural(report.commits.len() as u64, "revision"),
        revisions: revisions(report),
    }
}

fn facts(report: &ReportHistory<'_>) -> Vec<String> {
    let revisions = plural(report.commits.len() as u64, "measured revision");
    let span = match (report.commits.first(), report.commits.last()) {
        (Some(first), Some(last)) => {
            format!(", {} ({}) to {} ({})", first.short(), first.date, last.short(), last.date)
        }
        _ => String::new(),
    };
    let mut facts = vec![format!("{revisions}{span}.")];
    let short = report.series.iter().filter(|series| series.longest_stretch() < FEWEST_READINGS).count();
    if short > 0 {
        let cases = plural_of(short as u64, "case has", "cases have");
        facts.push(format!(
            "{cases} fewer than {FEWEST_READINGS} measurements between breaks, too few to find a change; runner \
             compare compares two revisions."
        ));
    }
    facts
}

/// Table of changes, the largest first.
fn changes(report: &ReportHistory<'_>) -> Table {
    let mut rows: Vec<(&Series<'_>, &Change)> =
        report.series.iter().flat_map(|series| series.changes.iter().map(move |change| (series, change))).collect();
    rows.sort_by(|(_, a), (_, b)| b.ratio.ln().abs().total_cmp(&a.ratio.ln().abs()));
    let columns =
        [text("case", Folding::Keep), text("regime", Folding::WhenEmpty), number_column("change", Folding::Keep)];
    let more = [text("since", Folding::Keep), text("date", Folding::Keep), text("commit", Folding::Keep)];
    let why = text("changed with it", Folding::WhenEmpty);
    let mut table = Table::new(columns.into_iter().chain(more).chain([why]).collect());
    for (series, change) in rows {
        let commit = &report.commits[series.points[change.point].revision];
        table.rows.push(vec![
            Cell::code(wording::case_name(series.case)),
            Cell::plain(series.regime.name()),
            Cell::plain(words::change(change)),
            Cell::code(commit.short()),
            Cell::plain(&commit.date),
            Cell::plain(&commit.subject),
            Cell::plain(words::causes(change)),
        ]);
    }
    table.fold();
    table
}

/// Table of breaks. Cases that break at the same revision for the same reason share a row.
fn breaks(report: &ReportHistory<'_>) -> Table {
    let mut found: Vec<(usize, String, usize)> = Vec::new();
    for series in &report.series {
        for at in &series.breaks {
            let (revision, why) = (series.points[at.point].revision, words::reasons(at));
            match found.iter_mut().find(|(known, reason, _)| *known == revision && *reason == why) {
                Some((.., count)) => *count += 1,
                None => found.push((revision, why, 1)),
            }
        }
    }
    found.sort_by_key(|(revision, ..)| *revision);
    let columns = [text("at", Folding::Keep), text("date", Folding::Keep), number_column("cases", Folding::Keep)];
    let mut table = Table::new(columns.into_iter().chain([text("differs", Folding::Keep)]).collect());
    for (revision, why, count) in found {
        let commit = &report.commits[revision];
        let cells = [Cell::code(commit.short()), Cell::plain(&commit.date), Cell::plain(count.to_string())];
        table.rows.push(cells.into_iter().chain([Cell::plain(why)]).collect());
    }
    table
}

/// Table with one row per series: the newest time, and the oldest that it can be compared with.
fn cases(report: &ReportHistory<'_>) -> Table {
    let newest = |series: &Series<'_>| series.points.last().map_or(0.0, |point| point.time.point);
    let unit = TimeUnit::choose(report.series.iter().map(newest));
    let time = |estimate: &Estimate| number::plus_minus(estimate, unit.nanoseconds());
    let has_breaks = report.series.iter().any(|series| !series.breaks.is_empty());
    let oldest = if has_breaks { "after the last break" } else { "oldest" };
    let mut table = Table::new(vec![
        text("case", Folding::Keep),
        text("regime", Folding::WhenEmpty),
        text("times", Folding::Keep),
        number_column("measured", Folding::Keep),
        number_column(format!("{oldest} ({})", unit.symbol()), Folding::Keep),
        number_column(format!("newest ({})", unit.symbol()), Folding::Keep),
        number_column("difference", Folding::WhenEmpty),
    ]);
    for series in &report.series {
        let Some((first, last)) = comparable_ends(series) else { continue };
        let is_one = first.revision == last.revision;
        table.rows.push(vec![
            Cell::code(wording::case_name(series.case)),
            Cell::plain(series.regime.name()),
            Cell::plain(words::sparkline(series)),
            Cell::plain(series.points.len().to_string()),
            Cell::plain(time(&first.time)),
            Cell::plain(time(&last.time)),
            Cell::maybe((!is_one).then(|| comparison::plain_change(last.time.point / first.time.point))),
        ]);
    }
    table.fold();
    table
}

/// The oldest point that the newest can be compared with, and the newest.
pub fn comparable_ends<'a>(series: &'a Series<'_>) -> Option<(&'a Point, &'a Point)> {
    let start = series.breaks.last().map_or(0, |at: &Break| at.point);
    series.points.get(start).zip(series.points.last())
}

/// Table of revisions, newest first.
fn revisions(report: &ReportHistory<'_>) -> Table {
    let columns = ["commit", "date", "subject"].map(|title| text(title, Folding::Keep));
    let mut table = Table::new(columns.into());
    for commit in report.commits.iter().rev() {
        table.rows.push(vec![Cell::code(commit.short()), Cell::plain(&commit.date), Cell::plain(&commit.subject)]);
    }
    table
}

fn method(least: f64) -> Vec<String> {
    vec![
        "Change points are found by E-divisive on the logarithms of the times, weighted by their intervals, and \
         tested with Student's t; a change that rests on a single measurement does not count."
            .to_owned(),
        format!(
            "If nothing changed, fewer than {:.0} of 100 reports show a change. Changes below {} % are left out.",
            LEVEL * 100.0,
            rough(least * 100.0)
        ),
        "In a series of times, ┊ marks a break. Times that agree to the last digit count as one measurement."
            .to_owned(),
    ]
}

//! `runner history`: the times of a report's cases over committed revisions, and where they changed. Needs no device.

use std::path::Path;

use super::compare::{read_failure, samples_in};
use super::stale::{self, Placed, Tree};
use crate::cli::{HistoryArgs, HistoryFormat};
use crate::console::Console;
use crate::failure::Exit;
use crate::failure::Failure;
use crate::files::write_file;
use runner_lang::format::plural;
use runner_lang::{Program, Scope};
use runner_process::programs::Programs;
use runner_report::history::{self as page, Chart, ReportHistory};
use runner_report::html::Samples;
use runner_report::{RenderError, Screen};
use runner_results::analyse::history::{self, LEAST_SHIFT};
use runner_results::analyse::stale::Staleness;
use runner_results::stored::{self, History, Span};
use runner_revision::Files;
use runner_types::{CaseKey, Records, Value};

pub fn run(args: &HistoryArgs, console: &mut Console) -> Result<Exit, Failure> {
    let filter = Filter::from_args(args)?;
    let histories = stored::histories(&args.dir, &span(args), Path::new("."), &Programs::of_this_machine());
    let histories = histories.map_err(|error| read_failure(&error))?;
    filter.check(&histories)?;
    let least = args.threshold.unwrap_or(LEAST_SHIFT);
    let versions = |history: &History| history.versions.iter().map(|version| version.commit.clone()).collect();
    let mut stale = stale(&histories, args);
    let reports: Vec<ReportHistory<'_>> = histories
        .iter()
        .map(|history| {
            let records: Vec<&Records> = history.versions.iter().map(|version| &version.records).collect();
            let series = history::history(&records, |key| filter.keeps(key), least);
            let stale = stale.iter().position(|found| found.place == history.place).map(|at| stale.swap_remove(at));
            ReportHistory { place: &history.place, commits: versions(history), series, unread: &history.unread, stale }
        })
        .collect();
    if reports.iter().all(|report| report.series.is_empty()) {
        return Err(nothing_timed(args, &histories));
    }
    let charts = charts(&reports, args, console)?;
    let samples = match args.format {
        HistoryFormat::Html => histories.iter().map(|history| newest_samples(history, console)).collect(),
        _ => Vec::new(),
    };
    write(&reports, (&charts, &samples), least, args, console)?;
    Ok(Exit::Success)
}

/// Reports whose newest records do not match the last revision of the range.
fn stale(histories: &[History], args: &HistoryArgs) -> Vec<Staleness> {
    let span = span(args);
    let newest = histories
        .iter()
        .filter_map(|history| Some(Placed { place: &history.place, records: &history.versions.last()?.records }));
    let files = Files::open(Path::new("."), &span.until, &Programs::of_this_machine());
    // An unreadable revision has already been reported.
    files.map(|files| stale::find(newest, Tree::Revision(&files))).unwrap_or_default()
}

fn span(args: &HistoryArgs) -> Span {
    Span::parse(args.range.as_deref().unwrap_or("HEAD"))
}

/// Samples of the report's newest run, from the journal in this checkout.
fn newest_samples(history: &History, console: &mut Console) -> Samples {
    let here = Path::new(".").canonicalize().unwrap_or_default();
    let found = here.ancestors().map(|above| above.join(&history.place)).find(|dir| dir.is_dir());
    found.map(|dir| samples_in(&dir, console)).unwrap_or_default()
}

/// Selects cases with the options of `runner plan`.
struct Filter<'a> {
    condition: Option<Program>,
    variants: &'a [String],
}

impl<'a> Filter<'a> {
    fn from_args(args: &'a HistoryArgs) -> Result<Self, Failure> {
        let condition = args.filter.as_deref().map(Program::parse).transpose();
        let condition = condition.map_err(|error| refused(args.filter.as_deref(), &error.message))?;
        Ok(Self { condition, variants: &args.variant })
    }

    /// Checks that the condition has a value for every case.
    fn check(&self, histories: &[History]) -> Result<(), Failure> {
        let Some(condition) = &self.condition else { return Ok(()) };
        let versions = histories.iter().flat_map(|history| &history.versions);
        let keys = versions.flat_map(|version| &version.records.cases).map(|record| &record.case.key);
        let checked = keys.map(|key| condition.evaluate_bool(&scope(key)));
        match checked.collect::<Result<Vec<bool>, _>>() {
            Ok(_) => Ok(()),
            Err(error) => Err(refused(Some(condition.text()), &error.message)),
        }
    }

    fn keeps(&self, key: &CaseKey) -> bool {
        let is_named = self.variants.is_empty() || self.variants.contains(&key.variant);
        let holds = |condition: &Program| condition.evaluate_bool(&scope(key)).unwrap_or(false);
        is_named && self.condition.as_ref().is_none_or(holds)
    }
}

fn refused(filter: Option<&str>, message: &str) -> Failure {
    Failure::usage(format!(
        "--filter '{}': {message}; only the axes of the report have values",
        filter.unwrap_or_default()
    ))
}

/// Axes and variant of a case, as a scope for conditions.
fn scope(key: &CaseKey) -> Scope {
    let mut scope = Scope::new();
    scope.set("variant", Value::Str(key.variant.clone()));
    for (name, value) in &key.axes {
        scope.set(name.as_str(), value.clone());
    }
    scope
}

fn nothing_timed(args: &HistoryArgs, histories: &[History]) -> Failure {
    let dir = args.dir.display();
    let unread: usize = histories.iter().map(|history| history.unread.len()).sum();
    if let Some(first) = histories.iter().find_map(|history| history.unread.first()) {
        let revisions = plural(unread as u64, "revision");
        return Failure::environment(format!("{dir} has no times, and {revisions} could not be read: {}", first.why));
    }
    if args.filter.is_some() || !args.variant.is_empty() {
        return Failure::usage(format!("no timed case of {dir} matches --filter and --variant"));
    }
    Failure::usage(format!(
        "{dir} has no times in this range, only outcomes and counts; `runner compare REV:{dir} {dir}` compares counts"
    ))
}

fn charts(reports: &[ReportHistory<'_>], args: &HistoryArgs, console: &mut Console) -> Result<Vec<Chart>, Failure> {
    let Some(dir) = &args.charts else { return Ok(Vec::new()) };
    let charts = page::charts(reports).map_err(Failure::environment)?;
    for chart in &charts {
        write_file("--charts", &dir.join(&chart.file), &chart.svg)?;
    }
    let timed: usize = reports.iter().map(|report| report.series.len()).sum();
    console.say(&format!("wrote {} of {timed} charts to {}, changes first", charts.len(), dir.display()));
    Ok(charts)
}

fn write(
    reports: &[ReportHistory<'_>],
    (charts, samples): (&[Chart], &[Samples]),
    least: f64,
    args: &HistoryArgs,
    console: &mut Console,
) -> Result<(), Failure> {
    let screen = if args.out.is_some() { Screen { styled: false, width: None } } else { console.screen() };
    let links = args.charts.as_deref().map(|dir| page::links(charts, dir, args.out.as_deref())).unwrap_or_default();
    let text: Result<String, RenderError> = match args.format {
        HistoryFormat::Text => Ok(page::terminal(reports, least, screen)),
        HistoryFormat::Markdown => page::markdown(reports, least, links),
        HistoryFormat::Html => page::html(reports, least, samples),
        HistoryFormat::Json => page::json(reports),
        HistoryFormat::Csv => page::csv(reports),
    };
    let text = text.map_err(Failure::environment)?;
    let Some(path) = &args.out else { return console.print(&text) };
    write_file("--out", path, &text)?;
    console.say(&format!("wrote {}", path.display()));
    Ok(())
}

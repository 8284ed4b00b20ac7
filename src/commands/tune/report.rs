//! What a search leaves: all evaluations as T4 and CSV, and a page.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::io;
use std::path::Path;

use search::analysis::{Importance, convergence, importance, pairs};
use search::format::t4::{self, Entry};

use super::log::Log;
use super::page;
use super::problem::Problem;
use super::search::Searched;
use super::settings::Settings;
use crate::commands::session::Candidates;
use crate::commands::{Console, Failure, write_file};
use crate::render::configurations::{self, Configuration};
use crate::{atomic, format};

/// The page shows the pairs of so many of the most important parameters.
const PAIRS: usize = 3;

/// The page lists so many reasons of failures; what `search.csv` has is only counted beyond them.
const REASONS: usize = 20;

/// The file of the chart.
const CHART: &str = "search.svg";

/// Writes `search.json`, `search.csv`, `search.md`, `search.html` and `search.svg`.
pub fn write(
    folder: &Path,
    candidates: &Candidates,
    problem: &Problem<'_>,
    searched: &Searched,
    settings: &Settings,
    console: &mut Console,
) -> Result<(), Failure> {
    let log = &searched.log;
    let written = |error: atomic::WriteError| Failure::environment(error.to_string());
    atomic::write_pieces(&folder.join("search.json"), &|file| t4::write(file, entries(log))).map_err(written)?;
    atomic::write_pieces(&folder.join("search.csv"), &|file| write_table(file, problem, log)).map_err(written)?;
    let digest = Digest::read(log, candidates)?;
    let chart = chart(problem, searched)?;
    let path = folder.join("search.md");
    let text = page_of(problem, searched, &digest, settings, chart.is_some());
    write_file("--out", &path, &text)?;
    let title = format!("Search: {}", problem.name());
    write_file("--out", &folder.join("search.html"), &page::render(&title, &text, chart.as_deref()))?;
    if let Some(chart) = &chart {
        write_file("--out", &folder.join(CHART), chart)?;
    }
    console.say(&format!("search: {}", path.display()));
    Ok(())
}

/// Returns all evaluations for a file that is written.
fn entries(log: &Log) -> impl Iterator<Item = io::Result<Entry>> {
    let (entries, failed) = match log.entries() {
        Ok(entries) => (Some(entries), None),
        Err(failure) => (None, Some(Err(failure))),
    };
    let all = failed.into_iter().chain(entries.into_iter().flatten());
    all.map(|entry| entry.map_err(|failure| io::Error::other(failure.to_string())))
}

/// What the page says of the evaluations besides their objectives.
#[derive(Debug, Default)]
struct Digest {
    /// The seconds of searching at the end of each evaluation.
    seconds: Vec<f32>,
    failed: usize,
    /// How many failed for each reason, the most frequent first.
    reasons: Vec<(String, usize)>,
    /// How many cells of the matrix are no configurations, by reason.
    excluded: Vec<(String, usize)>,
}

impl Digest {
    fn read(log: &Log, candidates: &Candidates) -> Result<Self, Failure> {
        let (mut seconds, mut reasons) = (Vec::new(), HashMap::<String, usize>::new());
        for entry in log.entries()? {
            let entry = entry?;
            seconds.push(entry.elapsed.unwrap_or_default() as f32);
            if let Some(reason) = entry.reason {
                *reasons.entry(reason).or_default() += 1;
            }
        }
        let mut reasons: Vec<(String, usize)> = reasons.into_iter().collect();
        reasons.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        let failed = reasons.iter().map(|(_, count)| count).sum();
        Ok(Self { seconds, failed, reasons, excluded: candidates.excluded.clone() })
    }
}

/// Returns all right configurations over parallel axes, one for each parameter with several values.
fn chart(problem: &Problem<'_>, searched: &Searched) -> Result<Option<String>, Failure> {
    let Some((_, least)) = searched.history.best() else { return Ok(None) };
    let parameters = problem.space.parameters().iter().enumerate().filter(|(_, parameter)| parameter.values.len() > 1);
    let (places, axes): (Vec<usize>, Vec<configurations::Parameter>) = parameters
        .map(|(place, parameter)| {
            let values = parameter.values.iter().map(ToString::to_string).collect();
            (place, configurations::Parameter { name: parameter.name.clone(), values })
        })
        .unzip();
    if axes.len() < 2 {
        return Ok(None);
    }
    let evaluations = searched.history.evaluations().iter();
    let lines: Vec<Configuration> = evaluations
        .filter_map(|evaluation| {
            let point = problem.space.point(evaluation.point);
            let places = places.iter().map(|&place| usize::from(point[place])).collect();
            Some(Configuration { places, ratio: evaluation.outcome.value()? / least })
        })
        .collect();
    let title = format!("Configurations by {}", problem.objective);
    configurations::parallel(&title, &axes, &lines).map(Some).map_err(|error| Failure::environment(error.to_string()))
}

/// Returns an objective with as many digits as tell good configurations apart.
fn shown(value: f64) -> String {
    if value.fract() == 0.0 { format::count(value) } else { format::at_place(value, format::magnitude(value) - 4) }
}

fn unit(problem: &Problem<'_>) -> &'static str {
    if problem.objective == "time" { " ms" } else { "" }
}

/// Writes all evaluations, in their order.
fn write_table(file: &mut dyn io::Write, problem: &Problem<'_>, log: &Log) -> io::Result<()> {
    let parameters = problem.space.parameters();
    let names: Vec<String> = parameters.iter().map(|parameter| field(&parameter.name)).collect();
    let column = if problem.objective == "time" { "time_ms" } else { problem.objective.as_str() };
    writeln!(file, "{},{column},reason", names.join(","))?;
    for entry in entries(log) {
        let entry = entry?;
        let values: Vec<String> = parameters
            .iter()
            .map(|parameter| {
                let value = entry.configuration.0.iter().find(|(name, _)| *name == parameter.name);
                field(&value.map(|(_, value)| value.to_string()).unwrap_or_default())
            })
            .collect();
        let objective = entry.outcome(&problem.objective).value().map(|value| value.to_string()).unwrap_or_default();
        let reason = field(entry.reason.as_deref().unwrap_or_default());
        writeln!(file, "{},{objective},{reason}", values.join(","))?;
    }
    Ok(())
}

fn field(text: &str) -> String {
    if text.contains([',', '"', '\n']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_owned() }
}

fn page_of(
    problem: &Problem<'_>,
    searched: &Searched,
    digest: &Digest,
    settings: &Settings,
    has_chart: bool,
) -> String {
    let (space, unit) = (&problem.space, unit(problem));
    let seconds = |duration: std::time::Duration| format::seconds(duration.as_secs_f64());
    let mut text = format!(
        "# Search\n\n{} of {} configurations were evaluated by {} (strategy {}, seed {}), {} of them failed. The \
         search took {}, in which the device waited for code for {}.{}\n\n\
         Single short timings choose candidates. The best {}{} are measured in the same rounds after the search: \
         [report.md](report.md).\n",
        searched.history.len(),
        space.len(),
        problem.objective,
        settings.strategies.join(","),
        settings.seed,
        digest.failed,
        seconds(searched.wall),
        seconds(searched.waited),
        if searched.interrupted { " It was interrupted." } else { "" },
        settings.finalists,
        if problem.baseline().is_some() { " and the baseline" } else { "" },
    );
    let _ = writeln!(text, "\n## Best\n\n| configuration | {}{} | × best |\n|---|---:|---:|", problem.objective, unit);
    let best = searched.best(10);
    let value = |point: u64| searched.history.outcome(point).and_then(::search::history::Outcome::value);
    let least = best.first().and_then(|&point| value(point));
    for &point in &best {
        if let (Some(value), Some(least)) = (value(point), least) {
            let key = problem.case(point).key;
            let _ = writeln!(text, "| `{key}` | {} | {:.3} |", shown(value), value / least);
        }
    }
    if has_chart {
        let _ = writeln!(text, "\n![Each evaluated configuration as a line over its parameters]({CHART})");
    }
    text += "\n## Convergence\n\n| evaluations | time of the search | best so far |\n|---:|---:|---:|\n";
    for (evaluations, best) in convergence(&searched.history) {
        let at = digest.seconds.get(evaluations - 1).map_or(String::new(), |&at| format::seconds(f64::from(at)));
        let _ = writeln!(text, "| {evaluations} | {at} | {}{unit} |", shown(best));
    }
    let ranked = importance(space, &searched.history, settings.seed);
    if !ranked.is_empty() {
        text += "\n## Importance\n\nHow much worse a model of the evaluations predicts the logarithm of the objective \
                 when a parameter is shuffled, as a share of twice its variance, with the standard deviation over shuffles. It \
                 is of the configurations that were evaluated, which are not a random sample.\n\n\
                 | parameter | importance |\n|---|---:|\n";
        for Importance { parameter, share, error } in &ranked {
            let name = &space.parameters()[*parameter].name;
            let _ = writeln!(text, "| `{name}` | {:.0} % ± {:.0} % |", share * 100.0, error * 100.0);
        }
        let first: Vec<usize> = ranked.iter().take(PAIRS).map(|importance| importance.parameter).collect();
        for (place, &one) in first.iter().enumerate() {
            for &other in &first[place + 1..] {
                text += &heat_map(problem, searched, (one, other));
            }
        }
    }
    for (title, list) in [("Failures", &digest.reasons), ("Not in the space", &digest.excluded)] {
        if !list.is_empty() {
            let _ = writeln!(text, "\n## {title}\n\n| reason | configurations |\n|---|---:|");
            for (reason, count) in list.iter().take(REASONS) {
                let _ = writeln!(text, "| {} | {count} |", reason.replace('|', "\\|"));
            }
            let others: usize = list.iter().skip(REASONS).map(|(_, count)| count).sum();
            if others > 0 {
                let _ = writeln!(text, "| {} other reasons | {others} |", list.len() - REASONS);
            }
        }
    }
    text
}

/// Returns the best objective for each pair of values of two parameters, as multiples of the best of all.
fn heat_map(problem: &Problem<'_>, searched: &Searched, (one, other): (usize, usize)) -> String {
    let (row, column) = (&problem.space.parameters()[one], &problem.space.parameters()[other]);
    let Some((_, least)) = searched.history.best() else { return String::new() };
    let cells = pairs(&problem.space, &searched.history, (one, other));
    let head: Vec<String> = column.values.iter().map(ToString::to_string).collect();
    let mut text = format!(
        "\n### `{}` and `{}`\n\nThe best configuration that was evaluated with both values, as a multiple of the best of all.\n\n\
         | {} \\ {} | {} |\n|---|{}\n",
        row.name,
        column.name,
        row.name,
        column.name,
        head.join(" | "),
        "---:|".repeat(head.len())
    );
    for (value, cells) in row.values.iter().zip(cells) {
        let cells: Vec<String> =
            cells.into_iter().map(|cell| cell.map_or(String::new(), |cell| format!("{:.2}", cell / least))).collect();
        let _ = writeln!(text, "| {value} | {} |", cells.join(" | "));
    }
    text
}

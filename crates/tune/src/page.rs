//! Output files of a search: all evaluations as T4 and CSV, and a page.

use std::fmt::Write as _;
use std::io;
use std::path::Path;

use search::analysis::{Importance, convergence, importance, pairs};
use search::format::t4::{self, Entry};

use crate::candidates::Candidates;
use crate::error::TuneError;
use crate::html;
use crate::kinds::{Kind, Kinds};
use crate::objective::{Objective, names};
use crate::problem::Problem;
use crate::search::Searched;
use runner_files::atomic;
use runner_lang::format;
use runner_report::configurations::{self, Configuration};

/// Number of parameters, most important first, for which the page shows pairs of values.
const PAIRS: usize = 3;

/// Maximum number of kinds of failures on the page. Others are only counted, since `search.csv` lists them.
const REASONS: usize = 20;

/// Maximum number of best configurations on the page.
const LISTED: usize = 10;
/// Maximum number of members of the Pareto front on the page.
const FRONT: usize = 50;

const CHART: &str = "search.svg";

/// Writes `search.json`, `search.csv`, `search.md`, `search.html` and `search.svg` with their checksums, and tells the
/// user.
pub fn write(
    folder: &Path,
    candidates: &Candidates,
    problem: &Problem<'_>,
    searched: &Searched,
    say: &mut dyn FnMut(&str),
) -> Result<(), TuneError> {
    let failed = |error: atomic::WriteError| TuneError::Environment(error.to_string());
    let write = |name: &str, text: &str| atomic::write(&folder.join(name), text.as_bytes()).map_err(failed);
    atomic::write_pieces(&folder.join("search.json"), &|file| t4::write(file, entries(searched))).map_err(failed)?;
    atomic::write_pieces(&folder.join("search.csv"), &|file| write_table(file, problem, searched)).map_err(failed)?;
    let digest = Digest::read(searched, problem.objectives(), candidates)?;
    let chart = chart(problem, searched)?;
    let text = page_of(problem, searched, &digest, chart.is_some());
    write("search.md", &text)?;
    let title = format!("Search: {}", problem.name());
    write("search.html", &html::render(&title, &text, chart.as_deref()))?;
    if let Some(chart) = &chart {
        write(CHART, chart)?;
    } else {
        // Remove the chart of an earlier search.
        let _ = std::fs::remove_file(folder.join(CHART));
    }
    runner_report::write_search_sums(folder).map_err(failed)?;
    say(&format!("search: {}", folder.join("search.md").display()));
    Ok(())
}

/// All evaluations, with the objectives that ranked them.
fn entries(searched: &Searched) -> impl Iterator<Item = io::Result<Entry>> {
    let (entries, failed) = match searched.log.entries() {
        Ok(entries) => (Some(entries), None),
        Err(error) => (None, Some(Err(error))),
    };
    let all = failed.into_iter().chain(entries.into_iter().flatten());
    let objectives: Vec<String> = searched.objectives.iter().map(|objective| objective.name().to_owned()).collect();
    all.map(move |entry| match entry {
        Ok(entry) => Ok(Entry { objectives: objectives.clone(), ..entry }),
        Err(error) => Err(io::Error::other(error.to_string())),
    })
}

/// What the page shows about the evaluations in addition to their objectives.
#[derive(Debug, Default)]
struct Digest {
    /// Search time at the end of each evaluation, in seconds.
    seconds: Vec<f32>,
    failed: usize,
    /// Number of correct configurations without the machine code counts that the user asked for.
    underived: usize,
    /// Kinds of failures, most frequent first.
    failures: Vec<Kind>,
    /// Kinds of reasons why cells of the matrix are not configurations.
    excluded: Vec<Kind>,
}

impl Digest {
    fn read(searched: &Searched, asked: &[Objective], candidates: &Candidates) -> Result<Self, TuneError> {
        let (mut seconds, mut failures, mut excluded) = (Vec::new(), Kinds::default(), Kinds::default());
        let mut underived = 0;
        let is_lacking = |entry: &Entry| {
            let mut each = asked.iter().zip(&searched.objectives);
            each.any(|(asked, used)| entry.value(asked.name()).is_none() && entry.value(used.name()).is_some())
        };
        for entry in searched.log.entries()? {
            let entry = entry?;
            underived += usize::from(is_lacking(&entry));
            seconds.push(entry.elapsed.unwrap_or_default() as f32);
            if let Some(reason) = &entry.reason {
                failures.add(reason, 1);
            }
        }
        candidates.excluded.iter().for_each(|(reason, count)| excluded.add(reason, *count));
        let failures = failures.sorted();
        let failed = failures.iter().map(|kind| kind.count).sum();
        Ok(Self { seconds, failed, underived, failures, excluded: excluded.sorted() })
    }
}

/// Parallel coordinates chart of all correct configurations, with an axis for each parameter that has several values.
fn chart(problem: &Problem<'_>, searched: &Searched) -> Result<Option<String>, TuneError> {
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
    let title = format!("Configurations by {}", names(&searched.objectives));
    configurations::parallel(&title, &axes, &lines).map(Some).map_err(|error| TuneError::Environment(error.to_string()))
}

/// Formats a value with enough digits to distinguish good configurations.
fn shown(value: f64) -> String {
    if value.fract() == 0.0 { format::count(value) } else { format::at_place(value, format::magnitude(value) - 4) }
}

/// Formats the original value of a `level` from [`Objective::level`].
fn shown_level(objective: &Objective, level: f64) -> String {
    shown(if level <= objective.level(0.0) { 0.0 } else { level })
}

/// A level as a multiple of the minimum; empty if the minimum is 0.
fn multiple(objective: &Objective, level: f64, least: f64) -> String {
    if least <= objective.level(0.0) { String::new() } else { format!("{:.3}", level / least) }
}

/// Unit of an objective with a space before it; empty if there is none.
fn unit(objective: &Objective) -> String {
    if objective.unit().is_empty() { String::new() } else { format!(" {}", objective.unit()) }
}

fn write_table(file: &mut dyn io::Write, problem: &Problem<'_>, searched: &Searched) -> io::Result<()> {
    let parameters = problem.space.parameters();
    let names: Vec<String> = parameters.iter().map(|parameter| field(&parameter.name)).collect();
    let columns: Vec<String> = searched.objectives.iter().map(|objective| field(&objective.column())).collect();
    writeln!(file, "{},{},reason", names.join(","), columns.join(","))?;
    for entry in entries(searched) {
        let entry = entry?;
        let values: Vec<String> = parameters
            .iter()
            .map(|parameter| {
                let value = entry.configuration.0.iter().find(|(name, _)| *name == parameter.name);
                field(&value.map(|(_, value)| value.to_string()).unwrap_or_default())
            })
            .collect();
        let measured: Vec<String> = searched
            .objectives
            .iter()
            .map(|objective| entry.value(objective.name()).map(|value| value.to_string()).unwrap_or_default())
            .collect();
        let reason = field(entry.reason.as_deref().unwrap_or_default());
        writeln!(file, "{},{},{reason}", values.join(","), measured.join(","))?;
    }
    Ok(())
}

fn field(text: &str) -> String {
    if text.contains([',', '"', '\n']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_owned() }
}

fn page_of(problem: &Problem<'_>, searched: &Searched, digest: &Digest, has_chart: bool) -> String {
    let (space, settings) = (&problem.space, problem.settings);
    let seconds = |duration: std::time::Duration| format::seconds(duration.as_secs_f64());
    let is_one = searched.objectives.len() == 1;
    let mut text = format!(
        "# Search\n\n{} evaluated by {} (strategy {}, seed {}); {} failed. The \
         search took {}, including {} in which the device waited for code.{}\n\n\
         Single short timings choose candidates. {} {}{} are measured in the same rounds after the search: \
         [report.md](report.md).\n",
        format::part_of(searched.history.len() as u64, space.len(), "configuration", ["was", "were"]),
        names(&searched.objectives),
        settings.strategy,
        settings.seed,
        digest.failed,
        seconds(searched.wall),
        seconds(searched.waited),
        if searched.interrupted { " It was interrupted." } else { "" },
        if is_one { "The best" } else { "Of the Pareto front, up to" },
        settings.finalists,
        if problem.baseline().is_some() { " and the baseline" } else { "" },
    );
    if digest.underived > 0 {
        let asked = problem.objectives().iter().filter(|objective| !searched.objectives.contains(objective));
        let asked: Vec<Objective> = asked.cloned().collect();
        let used: Vec<Objective> = asked.iter().filter_map(Objective::of_ptx).collect();
        let _ = writeln!(
            text,
            "\nFor {} of them, {} could not be derived from the machine code, so all are ranked by PTX counts ({}).",
            digest.underived,
            names(&asked),
            names(&used),
        );
    }
    text += &if is_one { best(problem, searched) } else { front(problem, searched) };
    if has_chart {
        let _ = writeln!(text, "\n![Each evaluated configuration as a line over its parameters]({CHART})");
    }
    text += "\n## Convergence\n\n| evaluations | time of the search | best so far |\n|---:|---:|---:|\n";
    let unit = if is_one { unit(&searched.objectives[0]) } else { " × best".to_owned() };
    for (evaluations, best) in convergence(&searched.history) {
        let at = digest.seconds.get(evaluations - 1).map_or(String::new(), |&at| format::seconds(f64::from(at)));
        let best = if is_one { shown_level(&searched.objectives[0], best) } else { format!("{best:.3}") };
        let _ = writeln!(text, "| {evaluations} | {at} | {best}{unit} |");
    }
    let ranked = importance(space, &searched.history, settings.seed);
    if !ranked.is_empty() {
        text += "\n## Importance\n\nPermutation importance, normalised: how much worse a model of the evaluations \
                 predicts the logarithm of the objective when a parameter is shuffled (± standard deviation over \
                 shuffles). The evaluated configurations are not a random sample of the space.\n\n\
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
    text += &problem.late.describe(&searched.history);
    for (title, list) in [("Failures", &digest.failures), ("Not in the space", &digest.excluded)] {
        if !list.is_empty() {
            text += &kinds(title, list);
        }
    }
    text
}

/// Table of the best configurations by one objective.
fn best(problem: &Problem<'_>, searched: &Searched) -> String {
    let objective = &searched.objectives[0];
    let mut text =
        format!("\n## Best\n\n| configuration | {}{} | × best |\n|---|---:|---:|\n", objective.name(), unit(objective));
    let least = searched.history.best().map_or(1.0, |(_, least)| least);
    for (point, value) in searched.history.ranked().take(LISTED) {
        let key = problem.case(point).key;
        let (value, multiple) = (shown_level(objective, value), multiple(objective, value, least));
        let _ = writeln!(text, "| `{key}` | {value} | {multiple} |");
    }
    text
}

/// Table of the Pareto front, sorted by the first objective.
fn front(problem: &Problem<'_>, searched: &Searched) -> String {
    let heads: Vec<String> = searched
        .objectives
        .iter()
        .map(|objective| format!("{}{} | × best", objective.name(), unit(objective)))
        .collect();
    let mut text = format!(
        "\n## Front\n\nNo other evaluated configuration is at least as good as one of these in all objectives and \
         better in one. Below, each configuration is judged by its worst objective, the largest `× best`. A count of \
         0 is treated as one half.\n\n| configuration | {} | largest × best |\n|---|{}\n",
        heads.join(" | "),
        "---:|".repeat(2 * heads.len() + 1)
    );
    let mut rows: Vec<(u64, &[f64])> = searched
        .front
        .places()
        .iter()
        .filter_map(|&place| Some((searched.history.evaluations()[place].point, searched.rows[place].as_deref()?)))
        .collect();
    rows.sort_by(|a, b| a.1[0].total_cmp(&b.1[0]));
    let least: Vec<f64> =
        (0..heads.len()).map(|place| rows.iter().map(|(_, row)| row[place]).fold(f64::INFINITY, f64::min)).collect();
    for (point, row) in rows.iter().take(FRONT) {
        let each = searched.objectives.iter().zip(row.iter().zip(&least));
        let cells: Vec<String> = each
            .map(|(objective, (&level, &least))| {
                format!("{} | {}", shown_level(objective, level), multiple(objective, level, least))
            })
            .collect();
        let largest = row.iter().zip(&least).map(|(value, least)| value / least).fold(1.0, f64::max);
        let _ = writeln!(text, "| `{}` | {} | {largest:.3} |", problem.case(*point).key, cells.join(" | "));
    }
    if rows.len() > FRONT {
        let _ = writeln!(text, "\n{} more in `search.csv`.", rows.len() - FRONT);
    }
    text
}

fn kinds(title: &str, list: &[Kind]) -> String {
    let cell = |text: &str| text.replace('|', "\\|");
    let mut text = format!("\n## {title}\n\n| reason | configurations | example |\n|---|---:|---|\n");
    for Kind { reason, count, example } in list.iter().take(REASONS) {
        let _ = writeln!(text, "| {} | {count} | {} |", cell(reason), cell(example.as_deref().unwrap_or_default()));
    }
    let others: usize = list.iter().skip(REASONS).map(|kind| kind.count).sum();
    if others > 0 {
        let _ = writeln!(text, "| {} other reasons | {others} | |", list.len() - REASONS);
    }
    text
}

/// Best objective for each pair of values of two parameters, as multiples of the overall best.
fn heat_map(problem: &Problem<'_>, searched: &Searched, (one, other): (usize, usize)) -> String {
    let (row, column) = (&problem.space.parameters()[one], &problem.space.parameters()[other]);
    let Some((_, least)) = searched.history.best() else { return String::new() };
    let cells = pairs(&problem.space, &searched.history, (one, other));
    let head: Vec<String> = column.values.iter().map(ToString::to_string).collect();
    let mut text = format!(
        "\n### `{}` and `{}`\n\nThe best configuration that was evaluated with both values, as a multiple of the best \
         of all.\n\n\
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

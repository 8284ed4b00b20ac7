//! View model of a report: the whole content, in order, without markup.
//!
//! Templates and the terminal use it unchanged. User templates depend on its fields, so `VIEW_VERSION` rises when they
//! change.

use std::collections::BTreeSet;

use serde::Serialize;

use super::chart::Chart;
use super::claims::{self, Claims};
use super::findings::{self, Finding};
use super::grid::grids;
use super::limits::Limits;
use super::plots::{self, Plot};
use super::reasons::{self, Reason};
use super::section::{Layout, Section, section};
use super::table::Table;
use super::{counters, method, overview, units, wording};
use runner_lang::format::{part_of, plural, plural_of};
use runner_results::analyse::{self, Summary};
use runner_types::{BackendKind, Records, WeakCheck};

/// Minimum number of groups at which they are folded.
const FOLD_FROM: usize = 5;

/// Maximum number of rows of an open table over all groups; longer ones are folded.
const MOST_OPEN_ROWS: usize = 30;

/// Content of a report. Cells and texts are unescaped: the template escapes them.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Report {
    pub experiment: String,
    /// Title, which says what is missing if the report has no times.
    pub title: String,
    /// The manifest's question, in Markdown.
    pub question: Option<String>,
    /// What limits the validity of the report, most important first.
    pub warnings: Vec<String>,
    /// Main results, in a few sentences.
    pub findings: Vec<Finding>,
    /// Claims of the manifest; `None` if it has none.
    pub claims: Option<Claims>,
    pub failures: Vec<Reason>,
    /// Notes, each with its cases.
    pub notes: Vec<Reason>,
    /// Launches that exceed a device limit.
    pub limits: Vec<Reason>,
    pub plots: Vec<Plot>,
    /// Whether some charts are folded.
    pub more_charts: bool,
    /// Contenders over all groups; `None` for a single group, and without speedups.
    pub standings: Option<Overall>,
    /// Whether some variants have speedups in fewer groups than others.
    pub uneven: bool,
    /// Counts divided by the baseline's, over all groups; `None` without counters.
    pub counts: Option<Overall>,
    pub fastest: Option<Overall>,
    /// Axes with only one value.
    pub common: String,
    pub sections: Vec<Section>,
    /// Columns omitted from some group's table because they did not fit.
    pub left_out: Vec<String>,
    /// Sentences on what did not fit on the page.
    pub omitted: Vec<String>,
    /// Machine and versions.
    pub environment: Vec<String>,
    /// Sentences on the meaning of the numbers and the machine settings; may be empty.
    pub method: Vec<String>,
    pub manifest_path: String,
    pub manifest_text: String,
    pub manifest_hash: String,
    pub command: String,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Overall {
    pub table: Table,
    pub is_folded: bool,
    /// Number of rows that did not fit on the page.
    pub more_rows: usize,
}

impl Overall {
    fn new(mut table: Table, limits: &Limits) -> Self {
        table.fit(limits.width);
        let more_rows = table.shorten(limits.rows);
        Self { is_folded: table.rows.len() > MOST_OPEN_ROWS, table, more_rows }
    }
}

/// Maximum number of weak checks to warn about; further ones are only counted. Each case also has a note of its own.
const MOST_WEAK: usize = 3;

/// Builds the view of `records` with the widest limits.
pub fn report(records: &Records) -> Report {
    report_within(records, &analyse::summary(records), &Limits::WIDEST)
}

/// Builds the view of `records` within limits. The same records always yield the same view.
pub fn report_within(records: &Records, summary: &Summary, limits: &Limits) -> Report {
    let header = &records.header;
    let constant = overview::constant_axes(records, summary);
    let has_times = records.cases.iter().any(|r| r.result.is_some());
    let several = summary.groups.len() > 1;
    let over_all = |table: Option<Table>| table.filter(|_| several).map(|table| Overall::new(table, limits));
    let (plots, more_plots) = plots::plots(records, summary);
    let layout = Layout {
        constant: &constant,
        repeats_failures: several,
        is_folded: summary.groups.len() >= FOLD_FROM,
        has_grids: has_unmapped_grids(records, summary, &plots),
        limits,
    };
    let sections = sections(records, summary, layout);
    let left_out: BTreeSet<&String> = sections.iter().flat_map(|section| &section.left_out).collect();
    let left_out: Vec<String> = left_out.into_iter().cloned().collect();
    let manifest = header.manifest_text.trim_end();
    Report {
        experiment: header.experiment.clone(),
        title: title(records, has_times),
        question: header.question.clone(),
        warnings: warnings(records, summary),
        findings: findings::findings(records, summary, &constant),
        claims: claims::claims(records),
        failures: reasons::failures(records, summary, limits),
        notes: reasons::notes(records, limits),
        limits: reasons::invalid(records, limits),
        more_charts: plots.iter().any(|plot| !plot.is_open),
        plots,
        standings: over_all(overview::standings_table(summary)),
        uneven: overview::is_uneven(summary),
        counts: over_all(counters::overall(records, summary)),
        fastest: over_all(overview::fastest_table(records, summary, &constant)),
        common: units::axes_text(&constant),
        omitted: omitted(records, summary, (sections.len(), more_plots), limits),
        sections,
        left_out,
        environment: wording::environment(&records.environment),
        method: method::method(records, has_times),
        manifest_path: header.manifest_path.clone(),
        manifest_text: if manifest.len() > limits.manifest_bytes { String::new() } else { manifest.to_owned() },
        manifest_hash: header.manifest_hash.clone(),
        command: command(records),
    }
}

/// The title, which says what a report without times contains.
fn title(records: &Records, has_times: bool) -> String {
    let title = &records.header.title;
    let has_counters = counters::has_counters(records);
    match records.header.backend {
        BackendKind::Sim => format!("{title}: simulated counts"),
        BackendKind::Cuda | BackendKind::Fake if has_counters && !has_times => format!("{title}: hardware counters"),
        BackendKind::Cuda | BackendKind::Fake => title.clone(),
    }
}

/// Whether some grid has no chart.
fn has_unmapped_grids(records: &Records, summary: &Summary, plots: &[Plot]) -> bool {
    let maps = plots.iter().filter(|plot| matches!(plot.chart, Chart::Map(_))).count();
    // One group more than there are maps is enough to decide.
    let grids = summary.groups.iter().take(maps + 1).map(|group| grids(records, group).len()).sum::<usize>();
    maps < grids
}

/// Sections of the first groups, as many as fit.
fn sections(records: &Records, summary: &Summary, layout: Layout<'_>) -> Vec<Section> {
    let mut room = layout.limits.section_bytes;
    let mut sections = Vec::new();
    for group in &summary.groups {
        let section = section(records, group, layout);
        let Some(rest) = room.checked_sub(section.bytes()) else { break };
        room = rest;
        sections.push(section);
    }
    sections
}

/// Sentences on what did not fit on the page, given the number of groups with tables and of omitted charts.
fn omitted(records: &Records, summary: &Summary, (shown, charts): (usize, usize), limits: &Limits) -> Vec<String> {
    let mut omitted = Vec::new();
    if charts > 0 {
        let are = if charts == 1 { "is" } else { "are" };
        omitted.push(format!("{} {are} left out: the tables have their numbers.", plural(charts as u64, "more chart")));
    }
    let left = summary.groups.len() - shown;
    if left > 0 {
        let of = plural(summary.groups.len() as u64, "group");
        omitted.push(format!(
            "The tables of {left} of {of} are left out to keep this page small: results.csv has every row."
        ));
    }
    if !limits.counters && counters::has_counters(records) {
        omitted.push("Counters are left out to keep this page small: results.csv has them.".to_owned());
    }
    omitted
}

fn command(records: &Records) -> String {
    let header = &records.header;
    if let Some(command) = &header.command {
        return command.clone();
    }
    let narrowed = header.narrowed.as_ref().map(|n| format!(" {n}")).unwrap_or_default();
    format!("runner run {}{narrowed} --backend {}", header.manifest_path, header.backend)
}

/// Number of cases that an interrupted run left out, in words; `None` for a complete run.
pub fn incomplete(records: &Records) -> Option<String> {
    incomplete_line(records, &analyse::summary(records))
}

fn incomplete_line(records: &Records, summary: &Summary) -> Option<String> {
    let not_run = summary.outcomes.get("not_run").copied().unwrap_or(0);
    let text = match (records.header.planned, not_run) {
        (Some(planned), _) => {
            let lacking = planned.saturating_sub((summary.cases - not_run) as u64);
            let lacking = part_of(lacking, planned, "planned case", ["was", "were"]);
            format!("{lacking} not run. Run what is missing and merge again.")
        }
        (None, 0) => format!("the run did not finish.{}", resume(records)),
        (None, _) => {
            let lacking = part_of(not_run as u64, summary.cases as u64, "case", ["was", "were"]);
            format!("{lacking} not run.{}", resume(records))
        }
    };
    (!records.header.complete).then(|| format!("Incomplete: {text}"))
}

/// How to run the missing cases; empty for `runner try`, which keeps no journal.
fn resume(records: &Records) -> &'static str {
    let is_trial = records.header.command.as_ref().is_some_and(|command| command.split(' ').any(|word| word == "try"));
    if is_trial { "" } else { " Add --resume to run what is missing." }
}

fn warnings(records: &Records, summary: &Summary) -> Vec<String> {
    let mut warnings: Vec<String> = incomplete_line(records, summary).into_iter().collect();
    if let Some(options) = &records.header.narrowed {
        warnings.push(format!("Partial: only the cases selected by {options}."));
    }
    warnings.extend(weak_checks(records));
    warnings.extend(wording::doubts(&records.environment.machine).into_iter().map(|doubt| sentence(&doubt)));
    if records.header.backend == BackendKind::Sim {
        warnings.push("Simulated: counts from a model of the machine, no times.".to_owned());
    }
    if let Some(why) = &records.header.counters_missing {
        warnings.push(format!("Hardware counters are missing: {why}."));
    }
    if let Some(why) = &records.header.energy_missing {
        warnings.push(format!("Energy is missing: {why}."));
    }
    warnings
}

/// A warning for each check that accepts wrong results, with the numbers of its first case.
fn weak_checks(records: &Records) -> Vec<String> {
    let mut checks: Vec<(&WeakCheck, u64)> = Vec::new();
    for weak in records.cases.iter().flat_map(wording::weak_checks) {
        match checks.iter_mut().find(|(known, _)| known.check == weak.check) {
            Some((_, cases)) => *cases += 1,
            None => checks.push((weak, 1)),
        }
    }
    let more = checks.len().saturating_sub(MOST_WEAK);
    let shown = checks.iter().take(MOST_WEAK).map(|(weak, cases)| {
        // Warnings are plain text.
        let text = wording::weak_check(weak).replace('`', "");
        format!("Weak check in {}: {text}.", plural(*cases, "case"))
    });
    let more = (more > 0).then(|| format!("{} weak, too.", plural_of(more as u64, "more check is", "more checks are")));
    shown.chain(more).collect()
}

/// Capitalises the text and adds a full stop.
fn sentence(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| format!("{}{}.", first.to_uppercase(), chars.as_str()))
}

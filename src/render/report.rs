//! The view model of a report: its whole content, in order, without markup.

use std::collections::HashMap;

use serde::Serialize;

use super::claims::{self, Claims};
use super::counters::{self, Counted};
use super::grid::{grid_table, grids};
use super::overview;
use super::plots::{self, Plot};
use super::rows::group_table;
use super::table::{Table, in_common};
use super::{units, wording};
use crate::analyse::{self, BaselineState, GroupSummary, Summary};
use crate::model::{BackendKind, CaseRecord, DeviceInfo, Outcome, Records, Verdict};

/// With this many groups or more, their tables are folded.
const FOLD_FROM: usize = 5;

/// More cases than this with the same reason are counted and not named: the tables have all of them.
const MOST_NAMES: usize = 12;

/// A report.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    pub experiment: String,
    pub title: String,
    /// Markdown from the manifest.
    pub question: Option<String>,
    /// What limits the validity of the report, most important first.
    pub warnings: Vec<String>,
    pub environment: Vec<String>,
    /// The meaning of the numbers and the settings of the machine; may be empty.
    pub method: Vec<String>,
    /// The main results, in a few sentences.
    pub findings: Vec<overview::Finding>,
    /// What the manifest claims; `None` where it claims nothing.
    pub claims: Option<Claims>,
    pub failures: Vec<Reason>,
    /// Every note, with its cases.
    pub notes: Vec<Reason>,
    /// Launches that the device does not allow.
    pub limits: Vec<Reason>,
    pub standings: Option<Table>,
    /// Whether some variants have speedups in fewer groups than others.
    pub uneven: bool,
    /// Counts over the baseline's, over all groups; `None` without counters.
    pub counts: Option<Table>,
    pub fastest: Option<Table>,
    /// Axes with one value throughout.
    pub common: String,
    pub plots: Vec<Plot>,
    pub sections: Vec<Section>,
    pub fold: bool,
    pub manifest_path: String,
    pub manifest_text: String,
    pub manifest_hash: String,
    pub command: String,
}

/// One group.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Section {
    pub heading: String,
    /// The summary line of the folded group.
    pub headline: String,
    /// The values that all rows share.
    pub common: String,
    pub table: Table,
    pub grids: Vec<GridView>,
    pub counters: Vec<Counted>,
    /// Why rows have no time or speedup; then the notes.
    pub reasons: Vec<Reason>,
}

/// A grid with its caption.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GridView {
    pub caption: String,
    pub table: Table,
}

/// Cases, and a statement about them.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Reason {
    /// The first of the cases.
    pub cases: Vec<String>,
    /// How many are not named.
    pub more: usize,
    pub what: String,
    pub text: String,
    /// The compiler's output.
    pub log: Option<String>,
}

/// Builds the view of `records`. The same records give the same view.
pub fn report(records: &Records) -> Report {
    let summary = analyse::summary(records);
    let header = &records.header;
    let constant = overview::constant_axes(records, &summary);
    let has_times = records.cases.iter().any(|r| r.result.is_some());
    let several = summary.groups.len() > 1;
    Report {
        experiment: header.experiment.clone(),
        title: header.title.clone(),
        question: header.question.clone(),
        warnings: warnings(records, &summary),
        environment: wording::environment(&records.environment),
        method: method(records, has_times),
        findings: overview::findings(records, &summary),
        claims: claims::claims(records),
        failures: failures(records, &summary),
        notes: gather(records.cases.iter().flat_map(|record| {
            notes(record, &records.environment.device)
                .map(|note| (wording::case_name(&record.case), "note".to_owned(), note, None))
        })),
        limits: limits(records),
        standings: several.then(|| overview::standings_table(&summary)).flatten(),
        uneven: overview::is_uneven(&summary),
        counts: several.then(|| counters::overall(records, &summary)).flatten(),
        fastest: several.then(|| overview::fastest_table(records, &summary, &constant)).flatten(),
        common: units::axes_text(&constant),
        plots: plots::plots(records, &summary),
        sections: summary.groups.iter().map(|group| section(records, group, &constant, several)).collect(),
        fold: summary.groups.len() >= FOLD_FROM,
        manifest_path: header.manifest_path.clone(),
        manifest_text: header.manifest_text.trim_end().to_owned(),
        manifest_hash: header.manifest_hash.clone(),
        command: command(records),
    }
}

fn command(records: &Records) -> String {
    let header = &records.header;
    if let Some(command) = &header.command {
        return command.clone();
    }
    let narrowed = header.narrowed.as_ref().map(|n| format!(" {n}")).unwrap_or_default();
    format!("runner run {}{narrowed} --backend {}", header.manifest_path, header.backend)
}

/// How many cases an interrupted run left out; `None` for a complete one.
pub fn incomplete(records: &Records) -> Option<String> {
    incomplete_line(records, &analyse::summary(records))
}

fn incomplete_line(records: &Records, summary: &Summary) -> Option<String> {
    let text = match summary.outcomes.get("not_run").copied().unwrap_or(0) {
        0 => "the run did not finish".to_owned(),
        not_run => format!("{not_run} of {} cases were not run", summary.cases),
    };
    (!records.header.complete).then(|| format!("Incomplete: {text}. Add --resume to run what is missing."))
}

fn warnings(records: &Records, summary: &Summary) -> Vec<String> {
    let mut warnings: Vec<String> = incomplete_line(records, summary).into_iter().collect();
    if let Some(options) = &records.header.narrowed {
        warnings.push(format!("Narrowed: part of the matrix, selected by {options}."));
    }
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

fn method(records: &Records, has_times: bool) -> Vec<String> {
    let machine = wording::conditions(&records.environment.machine).into_iter().map(|line| line + ".");
    let mut lines: Vec<String> = machine.collect();
    if has_times {
        lines.extend(timing(records));
    }
    if records.cases.iter().any(|r| r.energy.is_some()) {
        lines.push(
            "Energy is the whole board's by NVML, idle power included, from a separate pass of back-to-back runs; \
             ± is one step of the counter."
                .to_owned(),
        );
    }
    let counted = records.cases.iter().any(|r| r.counters.is_some());
    if let Some(method) = records.environment.counting_method.as_ref().filter(|_| counted) {
        lines.push(format!("Hardware counters are from {method}."));
        if has_times {
            lines.push("Timed launches are not profiled, and profiled launches are not timed.".to_owned());
        }
    }
    lines
}

fn timing(records: &Records) -> Vec<String> {
    let mut lines =
        vec!["Times are medians; ± is the wider half of the 95 % confidence interval (order statistics).".to_owned()];
    if records.header.baseline.is_some() {
        lines.push(
            "A speedup is the trimmed mean of the ratios of single rounds, each of which runs every variant once in \
             random order; its interval is a bootstrap over rounds."
                .to_owned(),
        );
    }
    lines.extend(records.header.noise.iter().map(|floor| wording::noise(floor, records.header.noise.len() > 1)));
    lines.extend(wording::samples(records));
    let host = |r: &&CaseRecord| r.result.as_ref().is_some_and(|r| r.unit != r.regime.unit());
    if records.cases.iter().any(|r| host(&r)) {
        lines.push("Times marked (host) are of the CPU's clock: their speedups are ratios of medians.".to_owned());
    }
    lines.extend(records.environment.timing_method.clone());
    if records.cases.iter().any(|r| r.work.bytes.is_some()) {
        lines.push("GB/s are computed from the fewest bytes the job must move; 1 GB is 10⁹ bytes.".to_owned());
    }
    if records.environment.machine.ceilings.is_some() {
        lines.push(
            "% of ceiling: the least time that the measured ceilings allow for the stated work (memory by the higher of \
             read and copied, arithmetic by f32 multiply-adds), over the median; bound says which of the two is greater."
                .to_owned(),
        );
    }
    lines
}

/// The launches that the device does not allow, by limit.
fn limits(records: &Records) -> Vec<Reason> {
    gather(records.cases.iter().filter_map(|record| match &record.outcome {
        Outcome::Invalid { limit } => {
            Some((wording::case_name(&record.case), wording::name(&record.outcome), limit.clone(), None))
        }
        _ => None,
    }))
}

fn failures(records: &Records, summary: &Summary) -> Vec<Reason> {
    gather(summary.failures.iter().map(|i| {
        let record = &records.cases[*i];
        let log = match &record.outcome {
            Outcome::CompileError { log, .. } => Some(log.trim_end().to_owned()).filter(|log| !log.is_empty()),
            _ => None,
        };
        let text = wording::reason(&record.outcome).unwrap_or_default();
        (wording::case_name(&record.case), wording::name(&record.outcome), text, log)
    }))
}

/// The notes on a case.
fn notes<'r>(record: &'r CaseRecord, device: &DeviceInfo) -> impl Iterator<Item = String> + use<'r> {
    record.notes.iter().map(wording::note).chain(wording::cached_traffic(record, device))
}

/// Groups cases with the same statement, in order of first appearance.
fn gather(each: impl Iterator<Item = (String, String, String, Option<String>)>) -> Vec<Reason> {
    let mut reasons: Vec<Reason> = Vec::new();
    let mut places: HashMap<(String, String, Option<String>), usize> = HashMap::new();
    for (case, what, text, log) in each {
        let place = *places.entry((what.clone(), text.clone(), log.clone())).or_insert_with(|| {
            reasons.push(Reason { cases: Vec::new(), more: 0, what, text, log });
            reasons.len() - 1
        });
        let reason = &mut reasons[place];
        // A case in several regimes has one record for each.
        if reason.cases.last() == Some(&case) {
            continue;
        }
        if reason.cases.len() < MOST_NAMES {
            reason.cases.push(case);
        } else {
            reason.more += 1;
        }
    }
    reasons
}

/// One group. Failures are listed at the top of the report; their reasons are repeated if that is far away.
fn section(
    records: &Records,
    group: &GroupSummary,
    constant: &[(String, crate::model::Value)],
    repeat_failures: bool,
) -> Section {
    let header = &records.header;
    let mut table = group_table(records, group);
    let common = in_common(&table.fold());
    let members = || group.members.iter().map(|i| &records.cases[*i]);
    let told_above = |outcome: &Outcome| outcome.is_failure() && !matches!(outcome, Outcome::NotRun { .. });
    let here = members().filter(|r| repeat_failures || !told_above(&r.outcome));
    let reasons = here.filter_map(|record| {
        let text = match &record.outcome {
            // Its interval is in the table, so that one reason is enough for all of them.
            Outcome::Unstable { .. } => "the requested precision was not reached".to_owned(),
            outcome => wording::reason(outcome)?,
        };
        Some((analyse::contender(header, &record.case), wording::name(&record.outcome), text, None))
    });
    let notes = members().flat_map(|record| {
        let name = analyse::contender(header, &record.case);
        notes(record, &records.environment.device).map(move |note| (name.clone(), "note".to_owned(), note, None))
    });
    let mut reasons = gather(reasons);
    reasons.extend(no_speedups(records, group));
    reasons.extend(gather(notes));
    let several =
        |g: &crate::model::GroupKey| g.0.iter().filter(|axis| !constant.contains(axis)).cloned().collect::<Vec<_>>();
    let heading = match several(&group.key).as_slice() {
        [] => "All cases".to_owned(),
        axes => units::axes_text(axes),
    };
    Section {
        headline: overview::headline(records, group),
        common,
        table,
        grids: grids(records, group)
            .iter()
            .map(|grid| GridView {
                caption: overview::grid_caption(records, group, grid),
                table: grid_table(records, group, grid),
            })
            .collect(),
        counters: counters::counted(records, group),
        reasons,
        heading,
    }
}

/// Why a group whose baseline has no time has no speedups.
fn no_speedups(records: &Records, group: &GroupSummary) -> Option<Reason> {
    if group.best.is_empty() {
        return None;
    }
    let text = match &group.baseline {
        BaselineState::Unnamed | BaselineState::Measured => return None,
        BaselineState::Absent => "the baseline is not among the cases of this group".to_owned(),
        BaselineState::Failed(i) => match &records.cases[*i].verdict {
            Verdict::Mismatch(_) => "the baseline is wrong".to_owned(),
            _ => format!("the baseline is {}", wording::name(&records.cases[*i].outcome)),
        },
    };
    Some(Reason { cases: Vec::new(), more: 0, what: "no speedups".to_owned(), text, log: None })
}

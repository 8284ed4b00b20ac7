//! View model of a comparison: the content of its page, in order, before any markup.
//!
//! The Markdown page, the HTML page and the terminal output are rendered from it.

use std::collections::{BTreeSet, HashMap, HashSet};

use serde::Serialize;

use super::claims::{Claims, claims};
use super::rollup::{Rollup, Row, Totals, totals};
use super::sources::{self, Source};
use super::summary::{self, Summary};
use super::{Compared, headline, manifests, notation, rollup, words};
use crate::number;
use crate::stale;
use crate::table::{Cell, Folding, Table, in_common, number as number_column, text};
use crate::units::TimeUnit;
use crate::wording;
use runner_lang::format::{plural, plural_of};
use runner_results::analyse::compare::{
    BETWEEN_GPUS, CauseKind, Change, ClockOffset, DifferenceKind, Kind, LEAST_THRESHOLD, LEVEL, Limits,
    ReportComparison,
};
use runner_types::{Estimate, ManifestComparison, ManifestPart};

/// Kinds whose tables are never folded: they fail the gate, or need a closer look.
const OPEN: [Kind; 6] =
    [Kind::NewlyWrong, Kind::Slower, Kind::MoreWork, Kind::Incomparable, Kind::NewlyUnstable, Kind::Mixed];

/// With more pairs of reports than this, only their parent folders are named.
const MOST_PLACES: usize = 6;

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct View {
    pub headline: String,
    /// What changed in the manifests.
    pub changed: Vec<String>,
    /// What was compared, and the outcome.
    pub facts: Vec<String>,
    /// Changed lines of the sources.
    pub sources: Vec<Source>,
    /// Caveats of the comparison.
    pub warnings: Vec<String>,
    /// Claims of the new reports; `None` if they claim nothing.
    pub claims: Option<Claims>,
    pub sections: Vec<Section>,
    /// One line per kind of result of reports without known changes, if there are several reports.
    pub unaffected: Vec<String>,
    /// Number of reports without known changes.
    pub unaffected_reports: usize,
    pub places: Vec<String>,
    pub method: Vec<String>,
}

/// Cases with the same kind of change.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Section {
    pub title: String,
    pub explanation: &'static str,
    pub is_open: bool,
    /// What all rows have in common.
    pub common: String,
    /// Summary per variant; empty if rows are grouped otherwise.
    pub rollup: Rollup,
    pub table: Table,
    /// Number of rows that do not fit on the page.
    pub left_out: usize,
    #[serde(skip)]
    pub kind: Kind,
    /// Whether its cases fail a gate.
    #[serde(skip)]
    pub is_gating: bool,
}

/// The view with the `most` most important rows.
pub fn view(compared: Compared<'_>, most: usize) -> View {
    let comparison = compared.comparison;
    let mut left = most;
    let totals = totals(compared);
    let summary = Summary::new(compared, &totals);
    let several = comparison.reports.len() > 1;
    // With several reports, each one without changes gets a single line.
    let kinds = Kind::ALL.iter().copied().filter(|kind| !several || *kind != Kind::Same);
    let sections = kinds.filter_map(|kind| {
        let rows = rows(compared, kind);
        let section = (!rows.is_empty()).then(|| section(compared, kind, &rows, left, (&totals, &summary)))?;
        left -= section.table.rows.len();
        Some(section)
    });
    let sections = sections.collect();
    let [base_stale, new_stale] = &comparison.stale;
    let of_base = stale::sentences(base_stale).into_iter().map(|sentence| format!("Before the change: {sentence}"));
    let facts = informed(compared).into_iter().chain(stale::sentences(new_stale));
    let facts = facts.chain(summary.sentences).chain(facts_of_reports(compared)).chain(of_base).collect();
    View {
        headline: headline(compared),
        changed: manifests::sentences(comparison),
        facts,
        sources: sources::sources(compared),
        warnings: warnings(compared).into_iter().chain(stale::unknown(new_stale)).collect(),
        claims: claims(compared),
        sections,
        unaffected: if several { unaffected(compared) } else { Vec::new() },
        unaffected_reports: comparison
            .reports
            .iter()
            .filter(|report| several && headline::is_unaffected(report))
            .count(),
        places: places(compared),
        method: method(compared),
    }
}

/// Rows of a kind: largest changes of time or counts first, otherwise in the order of the reports.
pub fn rows(compared: Compared<'_>, kind: Kind) -> Vec<Row<'_>> {
    let all = compared.comparison.reports.iter().flat_map(|report| report.changes.iter().map(move |c| (report, c)));
    let mut rows: Vec<Row<'_>> = all.filter(|(_, change)| change.kind == kind).collect();
    if matches!(kind, Kind::Slower | Kind::Faster) {
        let size = |(_, change): &Row<'_>| change.time.as_ref().map_or(0.0, |time| time.ratio.ln().abs());
        rows.sort_by(|a, b| size(b).total_cmp(&size(a)));
    } else if matches!(kind, Kind::MoreWork | Kind::LessWork | Kind::Mixed) {
        let size = |(_, change): &Row<'_>| words::leading_count(change).map_or(0.0, words::size);
        rows.sort_by(|a, b| size(b).total_cmp(&size(a)));
    }
    rows
}

/// Section for all cases of a kind, with at most `most` rows. It does not repeat reasons that the summary states.
fn section(
    compared: Compared<'_>,
    kind: Kind,
    all: &[Row<'_>],
    most: usize,
    (totals, summary): (&Totals<'_>, &Summary<'_>),
) -> Section {
    let variants = rollup::by_variant(all);
    let is_single = variants.iter().all(|rows| rows.len() == 1);
    let is_timed = all.iter().any(|(_, change)| change.time.is_some() || newcomer(change).is_some());
    let is_told = |report: &ReportComparison, reason: &str| summary.tells(kind, report, reason);
    let no_table = Table::new(Vec::new());
    let is_named = all.iter().all(|(report, _)| summary::has_changes(compared.comparison, report));
    let (rollup, mut table, left_out) = if kind == Kind::Incomparable && is_named {
        // The manifest's changes say what differs.
        (Rollup::default(), no_table, 0)
    } else if kind == Kind::Incomparable {
        let mut table = by_reason(all);
        let left_out = table.rows.len().saturating_sub(most);
        table.rows.truncate(most);
        (Rollup::default(), table, left_out)
    } else if kind == Kind::Same || (is_single && !is_timed) {
        // A row per case would repeat the line of its variant.
        (rollup::rollup(compared, totals, all, is_told), no_table, 0)
    } else {
        let rollup = if is_single { Rollup::default() } else { rollup::rollup(compared, totals, all, is_told) };
        let shared: Vec<Vec<String>> =
            variants.iter().filter(|_| !is_single).map(|rows| rollup::reasons(rows)).collect();
        let is_shared = |report: &ReportComparison, reason: &String| {
            is_told(report, reason) || shared.iter().flatten().any(|shared| shared == reason)
        };
        let shown = &all[..all.len().min(most)];
        (rollup, table(compared, shown, is_shared), all.len() - shown.len())
    };
    let mut rollup = rollup;
    let of_each = rollup.fold();
    let common = of_each.into_iter().chain(Some(in_common(&table.fold())).filter(|common| !common.is_empty()));
    let common = common.collect::<Vec<_>>().join(". ");
    let cases: HashSet<_> =
        all.iter().map(|(report, change)| (std::ptr::from_ref(*report), &change.case.key)).collect();
    let measured = if all.len() > cases.len() { format!(" ({} measurements)", all.len()) } else { String::new() };
    let cases = plural(cases.len() as u64, "case");
    Section {
        title: format!("{} {}: {cases}{measured}", words::mark(kind), words::heading(kind)),
        explanation: match kind {
            Kind::Incomparable if is_paired(compared) => words::REFUSED,
            _ => words::explanation(kind),
        },
        is_open: OPEN.contains(&kind),
        common,
        rollup,
        table,
        left_out,
        kind,
        is_gating: words::GATING.contains(&kind),
    }
}

/// Whether one run measured base and new.
fn is_paired(compared: Compared<'_>) -> bool {
    compared.comparison.reports.iter().all(|report| report.is_paired)
}

fn newcomer(change: &Change) -> Option<Estimate> {
    change.newcomer.as_ref()?.time
}

/// Unit for the times of some changes.
pub fn unit_of<'a>(changes: impl Iterator<Item = &'a Change>) -> TimeUnit {
    let times = changes.filter_map(|change| change.time.as_ref().map(|time| time.base).or(newcomer(change)));
    TimeUnit::choose(times.map(|time| time.point))
}

pub fn point(time: &Estimate, unit: TimeUnit) -> String {
    number::grouped(&number::point(time, unit.nanoseconds()))
}

fn table(compared: Compared<'_>, rows: &[Row<'_>], is_told: impl Fn(&ReportComparison, &String) -> bool) -> Table {
    let unit = unit_of(rows.iter().map(|(_, change)| *change));
    let title = |side: &str| format!("{side} ({})", unit.symbol());
    let mut columns = vec![
        text("case", Folding::Keep),
        number_column(title("before"), Folding::WhenEmpty),
        number_column(title("after"), Folding::WhenEmpty),
        number_column("change", Folding::WhenEmpty),
        text("regime", Folding::WhenCommon),
        text("why", Folding::WhenEmpty),
    ];
    let several = compared.comparison.reports.len() > 1;
    if several {
        columns.insert(0, text("report", Folding::WhenCommon));
    }
    let mut table = Table::new(columns);
    for (report, change) in rows {
        let time = change.time.as_ref();
        let reasons = words::reasons(change, report).into_iter().filter(|reason| !is_told(report, reason));
        let reasons: Vec<String> = reasons.collect();
        let mut cells = vec![
            Cell::code(wording::case_name(&change.case)),
            Cell::maybe(time.map(|time| point(&time.base, unit))),
            Cell::maybe(time.map(|time| time.new).or(newcomer(change)).map(|time| point(&time, unit))),
            Cell::maybe(time.map_or_else(|| words::count_change(change), |time| Some(words::time_change(time)))),
            Cell::maybe(change.regime.map(|regime| regime.name().to_owned())),
            Cell::plain(reasons.join("; ").replace('`', "")),
        ];
        if several {
            cells.insert(0, Cell::plain(format!("{}, {}", report.experiment, report.device)));
        }
        table.rows.push(cells);
    }
    table
}

/// Groups the cases that cannot be compared, by report and reason.
fn by_reason(rows: &[Row<'_>]) -> Table {
    let mut found: Vec<(String, String, Vec<&Change>)> = Vec::new();
    let mut places: HashMap<(String, String), usize> = HashMap::new();
    for (report, change) in rows {
        let differences = report.differences.iter().chain(&change.differences);
        let reason = differences.map(words::difference).collect::<Vec<_>>().join("; ").replace('`', "");
        let place = format!("{}, {}", report.experiment, report.device);
        let at = *places.entry((place.clone(), reason.clone())).or_insert_with(|| {
            found.push((place, reason, Vec::new()));
            found.len() - 1
        });
        found[at].2.push(change);
    }
    let columns = [text("report", Folding::Keep), text("differs", Folding::Keep)];
    let more = [
        number_column("cases", Folding::Keep),
        number_column("time change", Folding::WhenEmpty),
        text("first", Folding::Keep),
    ];
    let mut table = Table::new(columns.into_iter().chain(more).collect());
    for (place, reason, changes) in found {
        let cases = changes.iter().map(|change| &change.case.key).collect::<HashSet<_>>().len();
        table.rows.push(vec![
            Cell::plain(place),
            Cell::plain(reason),
            Cell::plain(number::grouped(&cases.to_string())),
            Cell::maybe(rollup::times(changes.iter().copied())),
            Cell::code(wording::case_name(&changes[0].case)),
        ]);
    }
    table
}

/// Says which difference keeps slowdowns from failing the gate, if the caller asked for that.
fn informed(compared: Compared<'_>) -> Option<String> {
    let reports = compared.comparison.reports.iter();
    let informing = reports.filter(|report| report.changes.iter().any(|change| change.informs));
    let found: BTreeSet<String> = informing
        .flat_map(|report| {
            report.differences.iter().chain(report.changes.iter().flat_map(|change| &change.differences))
        })
        .map(words::difference)
        .collect();
    let found: Vec<String> = found.into_iter().collect();
    (!found.is_empty()).then(|| {
        format!(
            "{} (`--inform`): a slowdown may come from it, so it is shown and does not fail the job.",
            notation::capitalised(&found.join(", "))
        )
    })
}

fn facts_of_reports(compared: Compared<'_>) -> Vec<String> {
    let comparison = compared.comparison;
    let mut facts = Vec::new();
    for report in &comparison.reports {
        let subject = format!("{}, {}: ", report.experiment, report.device);
        if let ([_], Some(geomean)) = (&comparison.reports[..], report.geomean) {
            facts.push(format!("Average time change: {}.", words::geomean(geomean)));
        }
        let causes = words::of_all_rows(report);
        // A single report's causes are already in the sentences above.
        if !causes.is_empty() && comparison.reports.len() > 1 {
            facts.push(format!("{subject}{} in all cases.", causes.join("; ")));
        }
        let named = |variant: &str| {
            let manifests = comparison.manifests.iter().filter(|manifest| manifest.experiment == report.experiment);
            let mut changes = manifests.flat_map(ManifestComparison::changes);
            changes.any(|change| change.part == ManifestPart::Variant && change.new.as_deref() == Some(variant))
        };
        let renamed: BTreeSet<(&str, String)> = report
            .changes
            .iter()
            .flat_map(|change| change.causes.iter().map(move |cause| (change.case.key.variant.as_str(), cause)))
            .filter(|(variant, cause)| cause.what == CauseKind::Variant && !named(variant))
            .map(|(variant, cause)| (variant, words::cause(cause)))
            .collect();
        let renamed: Vec<String> =
            renamed.into_iter().map(|(variant, from)| format!("{} is {from}", notation::code(variant))).collect();
        if !renamed.is_empty() {
            facts.push(format!("{}: source, options and launches are the same.", renamed.join(", ")));
        }
    }
    facts
}

fn warnings(compared: Compared<'_>) -> Vec<String> {
    let mut warnings = compared.faults.to_vec();
    if is_paired(compared) {
        return warnings;
    }
    // A caveat that applies to several reports is stated once and names all of them.
    let mut partial: Vec<(String, Vec<String>)> = Vec::new();
    let mut add = |caveat: String, subject: &str| match partial.iter_mut().find(|(known, _)| *known == caveat) {
        Some((_, subjects)) => subjects.push(subject.to_owned()),
        None => partial.push((caveat, vec![subject.to_owned()])),
    };
    for report in &compared.comparison.reports {
        let subject = format!("{}, {}", report.experiment, report.device);
        let sides = [("The report before is", &report.limits[0]), ("The report after is", &report.limits[1])];
        let [base, new] = &report.limits;
        // State what is missing once if it applies to both sides.
        let sides = if (base.is_incomplete, &base.narrowed) == (new.is_incomplete, &new.narrowed) {
            vec![("Both reports are", new)]
        } else {
            sides.to_vec()
        };
        for (lead, limits) in sides {
            if limits.is_incomplete {
                add(format!("{lead} incomplete (the run did not finish)"), &subject);
            }
            if let Some(options) = &limits.narrowed {
                add(format!("{lead} partial: {options} only"), &subject);
            }
        }
    }
    warnings.extend(partial.into_iter().map(|(caveat, subjects)| {
        let more = subjects.len().saturating_sub(MOST_PLACES);
        let shown = subjects.iter().take(MOST_PLACES).map(String::as_str).collect::<Vec<_>>().join("; ");
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        format!("{caveat}: {shown}{more}.")
    }));
    let sides = |lacks: fn(&Limits) -> bool| {
        let lacking = |side: usize| compared.comparison.reports.iter().any(|report| lacks(&report.limits[side]));
        match (lacking(0), lacking(1)) {
            (true, true) => Some("both reports"),
            (true, false) => Some("the report before"),
            (false, true) => Some("the report after"),
            (false, false) => None,
        }
    };
    if let Some(which) = sides(|limits| limits.without_hashes > 0) {
        warnings.push(format!(
            "Records of {which} were written by an older version without hashes, so it is unknown whether source, \
             options, inputs and check differ."
        ));
    }
    if let Some(which) = sides(|limits| limits.lacks_spread) {
        warnings.push(format!(
            "The variation between processes is unknown for {which} (clock not calibrated, or calibrated by an older \
             version); 200 ns and 0.3 % are assumed."
        ));
    }
    // A report compared with its own copy does not involve a second GPU.
    let is_between = |report: &ReportComparison| {
        report.may_be_two_gpus
            && report.changes.iter().filter_map(|change| change.time.as_ref()).any(|time| time.base != time.new)
    };
    if compared.comparison.reports.iter().any(is_between) {
        warnings.push(format!(
            "The reports may come from two GPUs of this model, so only time changes above {} % count (--allow gpu also \
             counts smaller ones).",
            100.0 * BETWEEN_GPUS
        ));
    }
    warnings.extend(clock_offsets(compared));
    warnings.extend(paces(compared));
    // Refused times are shown, but not judged.
    let refused = |report: &&ReportComparison| {
        report.changes.iter().any(|change| change.kind == Kind::Incomparable && change.time.is_some())
    };
    let drivers = compared.comparison.reports.iter().filter(refused).flat_map(|report| &report.differences);
    let drivers: BTreeSet<String> =
        drivers.filter(|found| found.what == DifferenceKind::Driver).map(words::difference).collect();
    if !drivers.is_empty() {
        warnings.push(format!(
            "Times from two drivers ({}) are shown but not judged. Pass --inform driver to judge them without failing \
             because of them, or --allow driver to let them fail too.",
            drivers.into_iter().collect::<Vec<_>>().join(", ")
        ));
    }
    warnings
}

/// Describes the clock offsets that ratios are corrected for.
fn clock_offsets(compared: Compared<'_>) -> Option<String> {
    let (mut found, mut groups) = (Vec::new(), Vec::new());
    for report in &compared.comparison.reports {
        for ClockOffset { group, nanoseconds, .. } in &report.clock_offsets {
            let size = nanoseconds.abs();
            let less_or_more = if *nanoseconds < 0.0 { "less" } else { "more" };
            match group {
                Some(_) => groups.push(size),
                None => found.push(format!("{size:.0} ns {less_or_more} in {}", report.experiment)),
            }
        }
    }
    if let Some(largest) = groups.iter().copied().reduce(f64::max) {
        let and = if found.is_empty() { "" } else { "and " };
        found.push(format!("{and}up to {largest:.0} ns more or less in {}", plural(groups.len() as u64, "group")));
    }
    (!found.is_empty()).then(|| {
        format!(
            "The clocks of the two runs differ: in the new run, short kernels with unchanged code measure {}. Ratios \
             are corrected for this.",
            found.join(", ")
        )
    })
}

/// Describes the device's pace, if ratios are corrected for it.
fn paces(compared: Compared<'_>) -> Option<String> {
    let found: Vec<(&str, f64)> = compared
        .comparison
        .reports
        .iter()
        .filter_map(|report| Some((report.experiment.as_str(), 100.0 * report.pace?.slower)))
        .collect();
    let largest = found.iter().map(|(_, percent)| percent.abs()).reduce(f64::max)?;
    let of_report = |(experiment, percent): &(&str, f64)| {
        let longer = if *percent < 0.0 { "less" } else { "longer" };
        format!("{:.1} % {longer} in {experiment}", percent.abs())
    };
    Some(format!(
        "The device ran at a different pace during the new run: unchanged code took {}. The ratios there are corrected \
         for this, and no change below {largest:.1} % is reported in any experiment.",
        found.iter().map(of_report).collect::<Vec<_>>().join(", ")
    ))
}

/// `copy, scan (Simulated H100): 22 same`.
fn unaffected(compared: Compared<'_>) -> Vec<String> {
    let result = |report: &ReportComparison| {
        let count = |kind: Kind| report.changes.iter().filter(|change| change.kind == kind).count();
        let counts = Kind::ALL.iter().filter_map(|&kind| words::tally(kind, count(kind)));
        let counts: Vec<String> = counts.chain(report.geomean.map(words::geomean)).collect();
        format!("{}: {}", report.device, counts.join(", "))
    };
    let mut found: Vec<(String, Vec<&str>)> = Vec::new();
    for report in compared.comparison.reports.iter().filter(|report| headline::is_unaffected(report)) {
        let result = result(report);
        match found.iter_mut().find(|(known, _)| *known == result) {
            Some((_, experiments)) => experiments.push(&report.experiment),
            None => found.push((result, vec![&report.experiment])),
        }
    }
    let each = |experiments: &[&str]| if experiments.len() > 1 { " each" } else { "" };
    found.iter().map(|(result, names)| format!("{}, {result}{}", names.join(", "), each(names))).collect()
}

fn places(compared: Compared<'_>) -> Vec<String> {
    if compared.places.len() > MOST_PLACES {
        let [base, new] = compared.names;
        return vec![format!("{base} → {new}")];
    }
    compared.places.iter().map(|[base, new]| format!("{base} → {new}")).collect()
}

fn method(compared: Compared<'_>) -> Vec<String> {
    let tests = compared.comparison.tests;
    if tests == 0 {
        return Vec::new();
    }
    let may_be_two_gpus = compared.comparison.reports.iter().any(|report| report.may_be_two_gpus);
    let threshold = 100.0 * if may_be_two_gpus { BETWEEN_GPUS } else { LEAST_THRESHOLD };
    let calls = LEVEL * 100.0;
    let change = if is_paired(compared) {
        "A change of +8 % ± 2 means that the new time is 8 % longer, and that 6 to 10 % fit the measurements. Both \
         sides were measured in the rounds of one run."
    } else {
        "A change of +8 % ± 2 means that the new time is 8 % longer, and that 6 to 10 % fit the measurements. The range \
         includes how much times vary between processes on such a device."
    };
    vec![
        "The average is the geometric mean over all measurements by the device's clock.".to_owned(),
        change.to_owned(),
        format!(
            "{} tested together: if none of them had changed, {calls:.0} of 100 such comparisons would still report a \
             change.",
            plural_of(tests as u64, "time was", "times were"),
        ),
        format!(
            "The smallest change that matters is {threshold} %, or the noise of the measurement if that is larger, \
             unless --threshold sets it. A time counts as the same if it changed by less and a change of twice that size \
             is ruled out."
        ),
    ]
}

//! The headline of a comparison of several experiments: which of them changed, the worst first, and how.

use std::collections::BTreeSet;

use runner_lang::format::plural;
use runner_results::analyse::compare::{Change, Comparison, Kind, ReportComparison};

use super::{lines, rollup, words};

/// More experiments are counted.
const MOST_EXPERIMENTS: usize = 4;

/// Kinds that leave an experiment unaffected.
const UNAFFECTED: [Kind; 3] = [Kind::Ambiguous, Kind::StillWrong, Kind::Same];

/// Whether nothing is known to have changed in a report.
pub fn is_unaffected(report: &ReportComparison) -> bool {
    report.changes.iter().all(|change| UNAFFECTED.contains(&change.kind)) && !report.claims.iter().any(|c| c.fails())
}

/// Names of all experiments, and of those that are not unaffected.
pub fn experiments(comparison: &Comparison) -> (BTreeSet<&str>, BTreeSet<&str>) {
    let all = comparison.reports.iter().map(|report| report.experiment.as_str()).collect();
    let changed = comparison.reports.iter().filter(|report| !is_unaffected(report));
    (all, changed.map(|report| report.experiment.as_str()).collect())
}

/// `2 of 26 experiments changed: `reduce` 95 cases do more work (barriers +87.5 %, all at reduce.cu:58), `unrolling` wrong
/// in 19 cases`; `None` for a single experiment.
pub fn experiments_changed(comparison: &Comparison) -> Option<String> {
    let (all, changed) = experiments(comparison);
    let of = all.len() + comparison.failed.len();
    if of < 2 {
        return None;
    }
    if changed.is_empty() {
        return Some(format!("0 of {of} experiments changed"));
    }
    let mut found: Vec<(Kind, &str, String)> = changed
        .iter()
        .map(|experiment| {
            let reports = || comparison.reports.iter().filter(|report| report.experiment == **experiment);
            let changes: Vec<&Change> = reports().flat_map(|report| &report.changes).collect();
            let (worst, text) = phrases(&changes);
            (worst, *experiment, text)
        })
        .collect();
    found.sort_by_key(|(worst, experiment, _)| (*worst, *experiment));
    let more = found.len().saturating_sub(MOST_EXPERIMENTS);
    let shown = found.iter().take(MOST_EXPERIMENTS).map(|(_, experiment, text)| format!("`{experiment}` {text}"));
    let mut parts: Vec<String> = shown.collect();
    parts.extend((more > 0).then(|| format!("{more} more")));
    Some(format!("{} of {} changed: {}", found.len(), plural(of as u64, "experiment"), parts.join(", ")))
}

/// The worst kind of change, and what is said of each kind that fails, or of the worst alone.
fn phrases(changes: &[&Change]) -> (Kind, String) {
    let of_kind = |kind: Kind| changes.iter().copied().filter(|change| change.kind == kind).collect::<Vec<_>>();
    let kinds = Kind::ALL.iter().copied().filter(|kind| !UNAFFECTED.contains(kind) && !of_kind(*kind).is_empty());
    let kinds: Vec<Kind> = kinds.collect();
    // Without any, a claim is broken.
    let Some(worst) = kinds.first().copied() else { return (Kind::NewlyWrong, "breaks a claim".to_owned()) };
    let gating = kinds.iter().copied().filter(|kind| words::GATING.contains(kind));
    let said: Vec<Kind> = if words::GATING.contains(&worst) { gating.collect() } else { vec![worst] };
    let texts: Vec<String> = said.into_iter().map(|kind| phrase(kind, &of_kind(kind))).collect();
    (worst, texts.join(" and "))
}

fn phrase(kind: Kind, changes: &[&Change]) -> String {
    let keys: BTreeSet<String> = changes.iter().map(|change| change.case.key.to_string()).collect();
    let cases = plural(keys.len() as u64, "case");
    let does = |one: &str, many: &str| format!("{cases} {}", if keys.len() == 1 { one } else { many });
    let times = || rollup::times(changes.iter().copied()).map(|range| format!(" ({range})")).unwrap_or_default();
    match kind {
        Kind::NewlyWrong => format!("wrong in {cases}"),
        Kind::Slower => format!("{cases} slower{}", times()),
        Kind::Faster => format!("{cases} faster{}", times()),
        Kind::MoreWork => does("does more work", "do more work") + &cause(changes),
        Kind::LessWork => does("does less work", "do less work") + &cause(changes),
        Kind::Mixed => does("does more of one work and less of another", "do more of one work and less of another"),
        Kind::Incomparable => format!("{cases} not comparable"),
        Kind::NewlyUnstable => format!("{cases} newly unstable"),
        Kind::Fixed => format!("fixed in {cases}"),
        Kind::Gone => format!("{cases} gone"),
        Kind::New => format!("{cases} new"),
        Kind::Undecided | Kind::Ambiguous => format!("{cases} undecided"),
        Kind::StillWrong | Kind::Same => cases,
    }
}

/// The count that changed most, and where: ` (barriers +87.5 %, all at reduce.cu:58)`.
fn cause(changes: &[&Change]) -> String {
    let leading = changes.iter().filter_map(|change| Some((*change, words::leading_count(change)?)));
    let most = leading.max_by(|(_, a), (_, b)| words::size(a).total_cmp(&words::size(b)));
    let Some((change, counter)) = most else { return String::new() };
    let count = words::count_change(change).unwrap_or_default();
    let place = lines::place(change, counter).map(|place| format!(", {place}")).unwrap_or_default();
    format!(" ({count}{place})")
}

//! The headline of a comparison: the verdict and, with several experiments, which of them changed and how, worst first.

use std::collections::{BTreeMap, BTreeSet};

use super::{Compared, lines, manifests, rollup, words};
use crate::stale;
use runner_lang::format::plural;
use runner_results::analyse::compare::{Change, ClaimKind, Comparison, Gate, Kind, ReportComparison};
use runner_types::BackendKind;

/// Maximum number of experiments to name; further ones are counted.
const MOST_EXPERIMENTS: usize = 4;

/// Kinds that leave an experiment unaffected.
const UNAFFECTED: [Kind; 3] = [Kind::Ambiguous, Kind::StillWrong, Kind::Same];

/// The verdict and its subject: `✗ 12 slower (reduce on NVIDIA H100 80GB HBM3, measured, 1a2b3c4d → 5e6f7a8b)`.
pub fn headline(compared: Compared<'_>) -> String {
    format!("{} ({})", verdict(compared.comparison), subject(compared))
}

/// What is compared: experiments, devices, whether times were measured, and both sides.
fn subject(compared: Compared<'_>) -> String {
    let reports = &compared.comparison.reports;
    let only = |all: BTreeSet<&str>, many: &str| match all.first() {
        Some(one) if all.len() == 1 => (*one).to_owned(),
        _ => format!("{} {many}", all.len()),
    };
    let experiments = only(reports.iter().map(|report| report.experiment.as_str()).collect(), "experiments");
    let devices = only(reports.iter().map(|report| report.device.as_str()).collect(), "devices");
    let kind = |report: &ReportComparison| match report.backend {
        BackendKind::Sim => "simulated",
        BackendKind::Cuda | BackendKind::Fake => "measured",
    };
    let kinds: BTreeSet<&str> = reports.iter().map(kind).collect();
    let [base, new] = compared.labels;
    let kinds = kinds.into_iter().filter(|kind| !devices.to_lowercase().contains(kind)).collect::<Vec<_>>();
    let parts: Vec<&str> = std::iter::once(devices.as_str()).chain(kinds).collect();
    format!("{experiments} on {}, {base} → {new}", parts.join(", "))
}

/// Counts the kinds that fail the gate, such as `3 newly wrong, 12 slower`, or says `no regression`. Then come
/// improvements, new cases, and what is no longer proved.
fn verdict(comparison: &Comparison) -> String {
    let counted = |is_excused: bool| {
        let mut counts: BTreeMap<Kind, usize> = BTreeMap::new();
        for change in comparison.changes().filter(|change| change.is_excused() == is_excused) {
            *counts.entry(change.kind).or_default() += 1;
        }
        counts
    };
    let counts = counted(false);
    let failing = comparison.claims().filter(|claim| claim.fails()).map(|claim| claim.kind);
    let claims = words::claim_tallies(failing).into_iter().map(|(count, state)| {
        let claims = plural(count as u64, "claim");
        format!("{claims} {state}")
    });
    let tallies = |kinds: &[Kind]| -> Vec<String> {
        kinds.iter().filter_map(|kind| words::tally(*kind, *counts.get(kind)?)).collect()
    };
    let mut named = tallies(&words::GATING);
    // Broken claims come right after newly wrong cases, as in the order of the exit codes.
    let place = usize::from(counts.contains_key(&Kind::NewlyWrong));
    let claims: Vec<String> = claims.collect();
    named.splice(place..place, claims.clone());
    let kinds_less = tallies(&[Kind::Mixed, Kind::Undecided, Kind::Gone]);
    let mut less = kinds_less.clone();
    let removed = comparison.claims().filter(|claim| claim.kind == ClaimKind::Removed).count();
    if removed > 0 {
        less.push(plural(removed as u64, "claim") + " removed");
    }
    less.extend(manifests::tallies(comparison));
    let checks = comparison.changed_checks();
    if checks > 0 && !comparison.manifests.iter().any(|manifest| !manifest.changes().is_empty()) {
        less.push(format!("{checks} with a different check"));
    }
    let weak = comparison.weak_checks();
    if weak > 0 {
        less.push(format!("{weak} with a weak check"));
    }
    let failed = comparison.failed.len();
    let failed = (failed > 0).then(|| format!("{} not compared", plural(failed as u64, "experiment")));
    let of_experiments = experiments_changed(comparison);
    let stale = stale::tally(&comparison.stale[1]);
    let gate = comparison.gate();
    let is_compared = |change: &Change| !matches!(change.kind, Kind::New | Kind::Gone);
    let mark = match gate {
        _ if failed.is_some() => "✗",
        Gate::Pass if stale.is_some() => "?",
        Gate::Pass if !comparison.changes().any(is_compared) && of_experiments.is_none() => "?",
        Gate::Pass => "✓",
        Gate::Incomparable => "≠",
        Gate::NewlyWrong | Gate::BrokenClaim | Gate::Regression => "✗",
    };
    if gate == Gate::Pass {
        let lead = if comparison.changes().any(is_compared) { "No regression" } else { "Nothing compared" };
        named.insert(0, lead.to_owned());
        named.extend(tallies(&[Kind::Faster, Kind::LessWork, Kind::New]));
    }
    if let Some(changed) = of_experiments {
        named = std::iter::once(changed).chain(claims).collect();
        less.retain(|tally| !kinds_less.contains(tally));
    }
    named.splice(0..0, failed);
    named.extend(less);
    named.extend(stale);
    let informing = counted(true);
    let informing: Vec<String> = Kind::ALL
        .iter()
        .filter(|kind| **kind != Kind::Same)
        .filter_map(|kind| words::tally(*kind, *informing.get(kind)?))
        .collect();
    if !informing.is_empty() {
        named.push(format!("without failing {}", informing.join(", ")));
    }
    format!("{mark} {}", named.join(", "))
}

/// Whether a report has no known change.
pub fn is_unaffected(report: &ReportComparison) -> bool {
    report.changes.iter().all(|change| UNAFFECTED.contains(&change.kind))
        && !report.claims.iter().any(runner_results::analyse::compare::ClaimChange::fails)
}

/// Names of all experiments, and of the affected ones.
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

/// The worst kind of change, and a phrase for each kind that fails the gate, or for the worst kind if none does.
fn phrases(changes: &[&Change]) -> (Kind, String) {
    let of_kind = |kind: Kind| changes.iter().copied().filter(|change| change.kind == kind).collect::<Vec<_>>();
    let kinds = Kind::ALL.iter().copied().filter(|kind| !UNAFFECTED.contains(kind) && !of_kind(*kind).is_empty());
    let kinds: Vec<Kind> = kinds.collect();
    // A report without changed cases is listed because it breaks a claim.
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
        Kind::Mixed => {
            does("does more of one kind of work and less of another", "do more of one kind of work and less of another")
        }
        Kind::Incomparable => format!("{cases} not comparable"),
        Kind::NewlyUnstable => format!("{cases} newly unstable"),
        Kind::Fixed => format!("fixed in {cases}"),
        Kind::Gone => format!("{cases} gone"),
        Kind::New => format!("{cases} new"),
        Kind::Undecided | Kind::Ambiguous => format!("{cases} undecided"),
        Kind::StillWrong | Kind::Same => cases,
    }
}

/// The counter that changed most, and where: ` (barriers +87.5 %, all at reduce.cu:58)`.
fn cause(changes: &[&Change]) -> String {
    let leading = changes.iter().filter_map(|change| Some((*change, words::leading_count(change)?)));
    let most = leading.max_by(|(_, a), (_, b)| words::size(a).total_cmp(&words::size(b)));
    let Some((change, counter)) = most else { return String::new() };
    let count = words::count_change(change).unwrap_or_default();
    // Not every counter is attributed to lines; another deciding counter may tell where.
    let elsewhere = |counter| Some(lines::place(change, counter)?.strip_prefix("all at ")?.to_owned());
    let others = || change.counters.iter().filter(|counter| counter.decides).find_map(elsewhere);
    let place = lines::place(change, counter).or_else(others);
    let place = place.map(|place| format!(", {place}")).unwrap_or_default();
    format!(" ({count}{place})")
}

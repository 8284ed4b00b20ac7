//! The headline of a comparison: the verdict and, with several experiments, which of them changed and how, worst first.

use std::collections::{BTreeMap, BTreeSet};

use super::{Compared, manifests, notation, rollup, summary, words};
use crate::stale;
use runner_lang::format::plural;
use runner_results::analyse::ClaimState;
use runner_results::analyse::compare::{Change, ClaimChange, ClaimKind, Comparison, Gate, Kind, ReportComparison};
use runner_types::BackendKind;

/// Maximum number of experiments to name; further ones are only counted.
const MOST_EXPERIMENTS: usize = 4;

/// Kinds that leave an experiment unaffected.
const UNAFFECTED: [Kind; 3] = [Kind::Ambiguous, Kind::StillWrong, Kind::Same];

/// The verdict and its subject: ``✗ Fails: 12 cases slower (`reduce` on NVIDIA H100 80GB HBM3, measured, 1a2b3c4d →
/// 5e6f7a8b)``.
pub fn headline(compared: Compared<'_>) -> String {
    format!("{} ({})", verdict(compared.comparison), subject(compared))
}

/// What is compared: experiments, devices, whether times were measured, and both sides.
fn subject(compared: Compared<'_>) -> String {
    let reports = &compared.comparison.reports;
    let experiments: BTreeSet<&str> = reports.iter().map(|report| report.experiment.as_str()).collect();
    // If there are several experiments, the verdict already counts them.
    let experiment = match experiments.first() {
        Some(one) if experiments.len() == 1 => format!("{} on ", notation::code(one)),
        _ => String::new(),
    };
    let devices: BTreeSet<&str> = reports.iter().map(|report| report.device.as_str()).collect();
    let devices = match devices.first() {
        Some(one) if devices.len() == 1 => (*one).to_owned(),
        _ => plural(devices.len() as u64, "device"),
    };
    let kind = |report: &ReportComparison| match report.backend {
        BackendKind::Sim => "simulated",
        BackendKind::Cuda | BackendKind::Fake => "measured",
    };
    let kinds: BTreeSet<&str> = reports.iter().map(kind).collect();
    let [base, new] = compared.labels;
    let kinds = kinds.into_iter().filter(|kind| !devices.to_lowercase().contains(kind)).collect::<Vec<_>>();
    let parts: Vec<&str> = std::iter::once(devices.as_str()).chain(kinds).collect();
    if reports.is_empty() {
        return format!("{base} → {new}");
    }
    format!("{experiment}{}, {base} → {new}", parts.join(", "))
}

/// Says whether the job passes, and why not or what a reviewer must agree to: `✗ Fails: 3 cases newly wrong, 12 cases
/// slower`, `! Passes, needs a reviewer: 1 claim removed`, `✓ Passes: no regression, 1 case new`.
fn verdict(comparison: &Comparison) -> String {
    let counted = |is_excused: bool| {
        words::kinds_of_cases(words::rows(comparison).filter(|(_, change)| change.is_excused() == is_excused))
    };
    let counts = counted(false);
    let tallies = |kinds: &[Kind]| -> Vec<String> {
        let named = |kind: &Kind| Some(words::cases(*kind, *counts.get(kind)?)? + &detail(comparison, *kind, false));
        kinds.iter().filter_map(named).collect()
    };
    let claims = failing_claims(comparison);
    let mut named = tallies(&words::GATING);
    // Broken claims come right after newly wrong cases, as in the order of the exit codes.
    let place = usize::from(counts.contains_key(&Kind::NewlyWrong));
    named.splice(place..place, claims.clone());
    let improved = tallies(&[Kind::Fixed, Kind::Faster, Kind::LessWork]);
    let neutral = tallies(&[Kind::OtherValues, Kind::Undecided, Kind::New]);
    let of_experiments = experiments_changed(comparison);
    let is_of_one = of_experiments.is_none();
    let gone = tallies(&[Kind::Gone]);
    // With several experiments, their list names the cases that are gone.
    let less = weakened(comparison).into_iter().chain(gone.into_iter().filter(|_| is_of_one));
    let is_mixed = counts.contains_key(&Kind::Mixed);
    let less: Vec<String> =
        less.chain(mixed(comparison).filter(|_| is_of_one)).chain(halved_occupancy(comparison)).collect();
    let informing = excused(comparison, &counted(true));
    let is_compared = |change: &Change| !matches!(change.kind, Kind::New | Kind::Gone);
    let is_compared_at_all = comparison.changes().any(is_compared);
    // A deleted experiment is named by itself.
    let nothing = !is_compared_at_all && is_of_one && !comparison.reports.is_empty();
    let failed = comparison.failed.len();
    let failed = (failed > 0).then(|| format!("{} not compared", plural(failed as u64, "experiment")));
    let gate = comparison.gate();
    let is_doubtful = !less.is_empty() || !informing.is_empty() || nothing || is_mixed || comparison.proves_less();
    let lead = match gate {
        _ if failed.is_some() => "✗ Fails: ",
        Gate::NewlyWrong | Gate::BrokenClaim | Gate::Regression => "✗ Fails: ",
        Gate::Incomparable => "≠ Fails: ",
        Gate::Pass if is_doubtful => "! Passes, needs a reviewer: ",
        Gate::Pass => "✓ Passes: ",
    };
    let passes = gate == Gate::Pass && failed.is_none();
    if let Some(changed) = of_experiments {
        named = std::iter::once(changed).chain(claims).collect();
    } else if passes && !is_doubtful {
        named.insert(0, "no regression".to_owned());
    }
    if passes && is_of_one {
        named.extend(tallies(&[Kind::StillWrong]));
    }
    let nothing = nothing.then(|| "nothing compared".to_owned()).filter(|_| passes);
    let parts: Vec<String> = if passes {
        let more = improved.into_iter().chain(neutral).filter(|_| is_of_one);
        let (doubts, rest) = if is_doubtful { (less, named) } else { (named, less) };
        let doubts = nothing.into_iter().chain(informing).chain(doubts);
        doubts.chain(rest).chain(manifests::others(comparison)).chain(more).collect()
    } else {
        // Loosened parts are more important than the cases that cannot be compared because of them.
        let (first, last) = if gate == Gate::Incomparable { (less, named) } else { (named, less) };
        failed.into_iter().chain(first).chain(last).chain(informing).collect()
    };
    format!("{lead}{}", parts.join(", "))
}

/// Cases in which one deciding count rose and another fell, with the largest of each: `2 cases with more instructions
/// (+328 %) and fewer barriers`.
fn mixed(comparison: &Comparison) -> Option<String> {
    let rows: Vec<rollup::Row<'_>> = words::rows(comparison).filter(|(_, change)| change.kind == Kind::Mixed).collect();
    let count = words::kinds_of_cases(rows.iter().copied()).into_values().sum::<usize>();
    let most = |rises: bool| {
        let counters = rows.iter().flat_map(|(_, change)| &change.counters);
        let alike = counters.filter(|counter| counter.decides && (counter.new > counter.base) == rises);
        alike.max_by(|a, b| words::size(a).total_cmp(&words::size(b)))
    };
    let (up, down) = (most(true)?, most(false)?);
    let size = words::relative(up).map(|percent| format!(" ({percent})")).unwrap_or_default();
    let [up, down] = [up, down].map(|counter| notation::counter_name(&counter.name));
    Some(format!("{} with more {up}{size} and fewer {down}", plural(count as u64, "case")))
}

/// `occupancy falls by half or more in 2 cases (100 % → 12 %)`.
fn halved_occupancy(comparison: &Comparison) -> Option<String> {
    let found: Vec<[f64; 2]> = comparison.changes().filter_map(Change::halved_occupancy).collect();
    let least = found.iter().copied().min_by(|a, b| (a[1] / a[0]).total_cmp(&(b[1] / b[0])))?;
    let [base, new] = least.map(|fraction| format!("{:.0} %", fraction * 100.0));
    Some(format!("occupancy falls by half or more in {} ({base} → {new})", plural(found.len() as u64, "case")))
}

/// By how much times changed, or what cannot be compared: ` (+8.00 %)`, ` (inputs changed)`.
fn detail(comparison: &Comparison, kind: Kind, is_excused: bool) -> String {
    let is_meant = |(_, change): &rollup::Row<'_>| change.kind == kind && change.is_excused() == is_excused;
    let rows: Vec<rollup::Row<'_>> = words::rows(comparison).filter(is_meant).collect();
    let text = match kind {
        Kind::Slower | Kind::Faster => rollup::times(rows.iter().map(|(_, change)| *change)),
        Kind::Incomparable => {
            let names = summary::differing(&rows);
            (!names.is_empty()).then(|| format!("{} changed", names.join(", ")))
        }
        _ => None,
    };
    text.map(|text| format!(" ({text})")).unwrap_or_default()
}

/// Counts the claims that fail the gate: `1 claim newly broken`, `1 tightened claim broken`.
fn failing_claims(comparison: &Comparison) -> Vec<String> {
    let failing = || comparison.claims().filter(|claim| claim.fails());
    let is_tightened = |claim: &&ClaimChange| {
        let former = claim.former.as_ref();
        claim.kind == ClaimKind::NewlyBroken && former.is_some_and(|former| former.state == ClaimState::Held)
    };
    let tightened = failing().filter(is_tightened).count();
    let others = failing().filter(|claim| !is_tightened(claim)).map(|claim| claim.kind);
    let others = words::claim_tallies(others).into_iter().map(|(count, state)| {
        let claims = plural(count as u64, "claim");
        format!("{claims} {state}")
    });
    let tightened = (tightened > 0).then(|| format!("{} broken", plural(tightened as u64, "tightened claim")));
    tightened.into_iter().chain(others).collect()
}

/// What is loosened, removed, deleted or stale, so that the change proves less than before.
fn weakened(comparison: &Comparison) -> Vec<String> {
    let mut less = manifests::weakened(comparison);
    let removed = comparison.claims().filter(|claim| claim.kind == ClaimKind::Removed).count();
    less.extend((removed > 0).then(|| format!("{} removed", plural(removed as u64, "claim"))));
    let checks = comparison.changed_checks();
    if checks > 0 && !comparison.manifests.iter().any(|manifest| !manifest.changes().is_empty()) {
        less.push(format!("{} with a different check", plural(checks as u64, "measurement")));
    }
    let weak = comparison.weak_checks();
    less.extend((weak > 0).then(|| format!("{} with a check that accepts wrong results", plural(weak as u64, "case"))));
    less.extend(stale::tally(&comparison.stale[1]));
    let is_unsanitized =
        |report: &&ReportComparison| report.limits[1].is_unsanitized && !report.limits[0].is_unsanitized;
    let unsanitized = comparison.reports.iter().filter(is_unsanitized).count();
    less.extend((unsanitized > 0).then(|| format!("{} made with --no-sanitize", plural(unsanitized as u64, "report"))));
    less.extend(is_all_wrong(comparison).then(|| "no result is right".to_owned()));
    less
}

/// Whether there are results, and all of them fail as before.
fn is_all_wrong(comparison: &Comparison) -> bool {
    let mut kinds =
        comparison.changes().filter(|change| change.kind != Kind::Gone).map(|change| change.kind).peekable();
    kinds.peek().is_some() && kinds.all(|kind| kind == Kind::StillWrong)
}

/// Slowdowns and the like that do not fail, and why: `1 case slower (+8.00 %), not failed because of another driver`.
fn excused(comparison: &Comparison, counts: &BTreeMap<Kind, usize>) -> Vec<String> {
    let excusing: BTreeSet<&str> = words::rows(comparison)
        .filter(|(_, change)| change.is_excused())
        .flat_map(|(report, change)| {
            let differing = report.differences.iter().chain(&change.differences).filter(|_| change.informs);
            let named = differing.map(|difference| difference.what.name());
            named.chain(change.accepted.as_ref().map(|_| "accepted in the manifest"))
        })
        .collect();
    let excusing: Vec<&str> = excusing.into_iter().collect();
    let count = |kind: &Kind| Some(words::cases(*kind, *counts.get(kind)?)? + &detail(comparison, *kind, true));
    let found: Vec<String> = Kind::ALL.iter().filter(|kind| words::GATING.contains(kind)).filter_map(count).collect();
    if found.is_empty() {
        return Vec::new();
    }
    let why = if excusing == ["accepted in the manifest"] {
        "accepted in the manifest".to_owned()
    } else {
        format!("not failed because of another {}", excusing.join(", "))
    };
    vec![format!("{}, {why}", found.join(", "))]
}

/// Whether a report has no known change.
pub fn is_unaffected(report: &ReportComparison) -> bool {
    report.changes.iter().all(|change| UNAFFECTED.contains(&change.kind))
        && !report.claims.iter().any(ClaimChange::fails)
}

/// Names of all experiments, and of the affected ones.
pub fn experiments(comparison: &Comparison) -> (BTreeSet<&str>, BTreeSet<&str>) {
    let all = comparison.reports.iter().map(|report| report.experiment.as_str()).collect();
    let changed = comparison.reports.iter().filter(|report| !is_unaffected(report));
    (all, changed.map(|report| report.experiment.as_str()).collect())
}

/// ``2 of 26 experiments changed: `unrolling` 19 cases newly wrong, `reduce` 95 cases do more work``; `None` for a single
/// experiment.
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
            let reports = comparison.reports.iter().filter(|report| report.experiment == **experiment);
            let (worst, text) = phrases(&reports.flat_map(|report| &report.changes).collect::<Vec<_>>());
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
        Kind::NewlyWrong => format!("{cases} newly wrong"),
        Kind::Slower => format!("{cases} slower{}", times()),
        Kind::Faster => format!("{cases} faster{}", times()),
        Kind::MoreWork => does("does more work", "do more work"),
        Kind::LessWork => does("does less work", "do less work"),
        Kind::OtherValues | Kind::Mixed => format!("{cases} {}", words::state(kind, keys.len())),
        Kind::Incomparable => format!("{cases} not comparable"),
        Kind::NewlyUnstable => format!("{cases} newly unstable"),
        Kind::Fixed => format!("fixed in {cases}"),
        Kind::Gone => format!("{cases} gone"),
        Kind::New => format!("{cases} new"),
        Kind::Undecided | Kind::Ambiguous => format!("{cases} undecided"),
        Kind::StillWrong | Kind::Same => cases,
    }
}

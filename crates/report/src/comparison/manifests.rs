//! What changed in the manifests, and which experiments and reports only one side has.

use super::claims::{limits, result, value};
use super::machine_code;
use super::notation::{self, code};
use super::words::without_common;
use runner_lang::format::plural;
use runner_results::analyse::compare::{Alone, Change, ClaimKind, Code, Comparison, Failed, Kind, ReportComparison};
use runner_results::analyse::{ClaimState, JudgedClaim};
use runner_types::{Effect, ManifestChange, ManifestComparison, ManifestPart, ManifestState};

/// Maximum number of changes to list; further ones are only counted.
const MOST_CHANGES: usize = 24;

/// Maximum number of variants to name per change; further ones are only counted.
const MOST_VARIANTS: usize = 3;

/// One sentence per change; loosened, deleted and removed parts come first.
pub fn sentences(comparison: &Comparison) -> Vec<String> {
    let several = comparison.reports.len() > 1 || comparison.manifests.len() > 1;
    let failed = comparison.failed.iter().map(|Failed { experiment, why }| {
        let why = why.strip_prefix("error: ").unwrap_or(why);
        (0, format!("Experiment `{experiment}` not compared: {why}."))
    });
    let mut found: Vec<(u8, String)> = failed.collect();
    for ManifestComparison { experiment, state, held } in &comparison.manifests {
        let place = if several { format!("`{experiment}`: ") } else { String::new() };
        match state {
            ManifestState::Deleted => {
                let held = held.map(|held| format!(" ({})", contents(held.cases, held.claims))).unwrap_or_default();
                found.push((0, format!("Experiment `{experiment}` deleted{held}.")));
            }
            ManifestState::Added => found.push((2, format!("Experiment `{experiment}` added."))),
            ManifestState::Changed(changes) => {
                let rank =
                    |change: &ManifestChange| u8::from(!matches!(change.effect, Effect::Loosened | Effect::Unordered));
                let of_one = changes
                    .iter()
                    .map(|change| (rank(change), capitalised(&place, &sentence(change, comparison, experiment))));
                found.extend(of_one);
            }
            ManifestState::Unknown(why) => {
                found.push((1, capitalised(&place, &format!("manifest changed; details unknown ({why})."))));
            }
        }
    }
    for (reports, (what, rank)) in comparison.alone.iter().zip([("deleted", 0), ("added", 2)]) {
        let report = |Alone { place, device, cases, claims, .. }: &Alone| {
            let held = contents(*cases, *claims);
            (rank, format!("Report {what}: {} ({held}; measured on {device}).", code(place)))
        };
        found.extend(reports.iter().map(report));
    }
    found.sort_by_key(|(rank, _)| *rank);
    let mut sentences: Vec<String> = found.into_iter().map(|(_, text)| text).collect();
    if sentences.len() > MOST_CHANGES {
        let more = sentences.len() - MOST_CHANGES;
        sentences.truncate(MOST_CHANGES);
        sentences.push(format!("{} of manifests.", plural(more as u64, "other change")));
    }
    sentences
}

/// Counts what is loosened or deleted or may let wrong results pass, for the headline: `1 experiment deleted, 1 check
/// loosened, 1 input changed`.
pub fn weakened(comparison: &Comparison) -> Vec<String> {
    let deleted = comparison.manifests.iter().filter(|manifest| manifest.state == ManifestState::Deleted).count();
    let of = |is: &dyn Fn(&ManifestChange) -> bool| {
        let weakening = changes(comparison).filter(|change| change.may_prove_less());
        weakening.filter(|change| is(change)).count()
    };
    let checks = |is: &dyn Fn(&ManifestChange) -> bool| of(&|change| is_of_check(change.part) && is(change));
    let is_unordered = |change: &ManifestChange| change.effect == Effect::Unordered;
    let thresholds = changes(comparison).filter(|change| change.part == ManifestPart::Threshold);
    counted([
        (deleted, "experiment", "deleted"),
        (comparison.alone[0].len(), "report", "deleted"),
        (checks(&|change| !is_unordered(change) && change.new.is_none()), "check", "removed"),
        (checks(&|change| !is_unordered(change) && change.new.is_some()), "check", "loosened"),
        (checks(&is_unordered), "check", "changed"),
        (of(&|change| is_of_inputs(change.part)), "input", "changed"),
        (of(&|change| change.part == ManifestPart::Let), "binding", "changed"),
        (narrowed(comparison), "case selection", "narrowed"),
        (thresholds.filter(|change| change.effect == Effect::Loosened).count(), "threshold", "raised"),
        (revised_claims(comparison, Effect::Loosened), "claim", "loosened"),
    ])
}

const fn is_of_check(part: ManifestPart) -> bool {
    matches!(
        part,
        ManifestPart::Check
            | ManifestPart::Tolerance
            | ManifestPart::Mask
            | ManifestPart::Printed
            | ManifestPart::ExpectedFailure
            | ManifestPart::Sanitizer
    )
}

const fn is_of_inputs(part: ManifestPart) -> bool {
    matches!(part, ManifestPart::Buffer | ManifestPart::Contents)
}

/// Number of changes that leave out cases, in experiments whose missing cases are not listed, e.g. because they run on
/// another device.
fn narrowed(comparison: &Comparison) -> usize {
    let lists_gone = |experiment: &str| {
        let reports = comparison.reports.iter().filter(|report| report.experiment == experiment);
        reports.flat_map(|report| &report.changes).any(|change| change.kind == Kind::Gone)
    };
    let manifests = comparison.manifests.iter().filter(|manifest| !lists_gone(&manifest.experiment));
    let changes = manifests.flat_map(ManifestComparison::changes);
    changes.filter(|change| change.part.is_of_selection() && change.may_prove_less()).count()
}

/// Whether results are judged by other checks or on other inputs than the base's.
pub fn judges_otherwise(comparison: &Comparison) -> bool {
    changes(comparison).any(|change| change.effect == Effect::Unordered && !change.part.is_of_selection())
}

/// Counts changes that do not weaken the experiment: `1 claim tightened, 1 baseline variant changed`.
pub fn others(comparison: &Comparison) -> Vec<String> {
    let baselines = changes(comparison).filter(|change| change.part == ManifestPart::Baseline).count();
    counted([
        (revised_claims(comparison, Effect::Tightened), "claim", "tightened"),
        (baselines, "baseline variant", "changed"),
    ])
}

fn changes(comparison: &Comparison) -> impl Iterator<Item = &ManifestChange> {
    comparison.manifests.iter().flat_map(ManifestComparison::changes)
}

fn revised_claims(comparison: &Comparison, effect: Effect) -> usize {
    let is_revised = |change: &&ManifestChange| {
        change.part == ManifestPart::Claim && change.effect == effect && change.base.is_some() && change.new.is_some()
    };
    changes(comparison).filter(is_revised).count()
}

fn counted<const N: usize>(found: [(usize, &str, &str); N]) -> Vec<String> {
    let found = found.into_iter().filter(|(count, ..)| *count > 0);
    found.map(|(count, what, how)| format!("{} {how}", plural(count as u64, what))).collect()
}

fn capitalised(place: &str, text: &str) -> String {
    if place.is_empty() { notation::capitalised(text) } else { format!("{place}{text}") }
}

/// `36 cases, 2 claims`.
fn contents(cases: usize, claims: usize) -> String {
    let claims = if claims == 0 { "no claims".to_owned() } else { plural(claims as u64, "claim") };
    format!("{}, {claims}", plural(cases as u64, "case"))
}

fn some(variants: &[String]) -> String {
    let more = variants.len().saturating_sub(MOST_VARIANTS);
    let shown = variants.iter().take(MOST_VARIANTS).map(|variant| code(variant));
    shown.chain((more > 0).then(|| plural(more as u64, "other variant"))).collect::<Vec<_>>().join(", ")
}

/// What the results say about a changed claim or tolerance: the measured values, and whether the former limit holds.
fn consequence(change: &ManifestChange, comparison: &Comparison, experiment: &str) -> Option<String> {
    let reports = || comparison.reports.iter().filter(|report| report.experiment == experiment);
    match change.part {
        ManifestPart::Claim => {
            let text = change.new.as_ref().or(change.base.as_ref())?;
            let mut claims = reports().flat_map(|report| &report.claims);
            let claim = claims.find(|claim| text.starts_with(&claim.new.claim.text))?;
            let is_last = reports().all(|report| report.claims.iter().all(|claim| claim.kind == ClaimKind::Removed));
            Some(match (&claim.former, claim.kind) {
                (Some(former), _) => {
                    let held = |claim: &JudgedClaim| match claim.state {
                        ClaimState::Held => "holds",
                        ClaimState::Broken => "is broken",
                        ClaimState::Undecided => "is undecided",
                        ClaimState::NotApplicable => "is not judged",
                    };
                    let now = format!("the new claim {}", held(&claim.new));
                    let before = match former.state {
                        ClaimState::Held => "the former still holds",
                        ClaimState::Broken => "the former would be broken",
                        ClaimState::Undecided => "the former would be undecided",
                        ClaimState::NotApplicable => "the former cannot be judged",
                    };
                    let [new_value, former_value] = [&claim.new, former].map(value);
                    if new_value == former_value {
                        format!("{}: {now}, {before}.", notation::capitalised(&new_value))
                    } else {
                        format!("{} ({new_value}); {before} ({former_value}).", notation::capitalised(&now))
                    }
                }
                (None, ClaimKind::Removed) => {
                    let state = match claim.new.state {
                        ClaimState::Held => "It still holds",
                        ClaimState::Broken => "It would be broken",
                        ClaimState::Undecided => "It would be undecided",
                        ClaimState::NotApplicable => "It cannot be judged",
                    };
                    let left = if is_last { " No claim is left." } else { "" };
                    format!("{state}: {}.{left}", result(&claim.new))
                }
                _ => return None,
            })
        }
        ManifestPart::Tolerance => {
            let errors = reports().flat_map(|report| &report.changes).filter_map(|change| change.error);
            let most = errors.map(|error| error.rel).reduce(f64::max)?;
            let shown = notation::significant(most, 3);
            let former =
                change.base.as_ref()?.split(", ").find_map(|bound| bound.strip_prefix("rel ")?.parse::<f64>().ok());
            Some(match former {
                Some(former) if most <= former => {
                    format!("The results still meet the former tolerance: their largest relative error is {shown}.")
                }
                Some(_) => {
                    format!("The results would fail the former tolerance: their largest relative error is {shown}.")
                }
                None => format!("The largest relative error of the results is {shown}."),
            })
        }
        ManifestPart::Baseline => {
            let new = change.new.as_ref()?;
            Some(format!(
                "Reports now show ratios to {}. What the kernels compute and count does not depend on it.",
                code(new)
            ))
        }
        ManifestPart::Check => {
            let unchecked = change.unchecked.as_ref()?;
            Some(format!("{} is checked against itself only.", code(unchecked)))
        }
        ManifestPart::Buffer | ManifestPart::Contents if change.base.is_some() && change.new.is_some() => {
            let is_compared = |report: &ReportComparison| {
                report.is_paired && report.changes.iter().all(|change| change.kind != Kind::Incomparable)
            };
            let all = reports().next().is_some() && reports().all(is_compared);
            all.then(|| "The kernels before and after were compared on the new contents.".to_owned())
        }
        ManifestPart::Option => code_change(change, &mut reports()),
        _ => None,
    }
}

/// Whether a compiler option changed the code of its variants.
fn code_change(change: &ManifestChange, reports: &mut dyn Iterator<Item = &ReportComparison>) -> Option<String> {
    let is_of = |row: &&Change| change.variants.is_empty() || change.variants.contains(&row.case.key.variant);
    let known = reports.flat_map(|report| &report.changes).filter(is_of).filter(|row| row.code.is_some());
    let rows: Vec<&Change> = known.collect();
    let changed: Vec<&Change> = rows.iter().copied().filter(|row| row.code == Some(Code::Changed)).collect();
    let first = match (changed.first(), rows.len()) {
        (_, 0) => return None,
        (None, _) => return Some("The compiled code is identical.".to_owned()),
        (Some(first), _) => first,
    };
    let what = if let Some(code) = machine_code::text(first) {
        format!(" ({code})")
    } else if changed.iter().all(|row| row.counted_by.is_some() && row.counters.is_empty()) {
        ", but executes as many instructions of each counted kind".to_owned()
    } else {
        String::new()
    };
    Some(match (changed.len(), rows.len()) {
        (changed, of) if changed == of => format!("The compiled code changed{what}."),
        (changed, of) => format!("The compiled code changed in {changed} of {}{what}.", plural(of as u64, "case")),
    })
}

/// `tolerance of `sum(sums)` loosened: rel 1e-5 → rel 0.01.`, and what follows from it.
fn sentence(change: &ManifestChange, comparison: &Comparison, experiment: &str) -> String {
    let follows = consequence(change, comparison, experiment).map(|text| format!(" {text}")).unwrap_or_default();
    statement(change) + &follows
}

fn statement(change: &ManifestChange) -> String {
    let ManifestChange { effect, part, name, variants, base, new, unchecked: _ } = change;
    let what = noun(*part);
    let is_of_all = variants.is_empty();
    let of = if is_of_all { String::new() } else { format!(" ({})", some(variants)) };
    // These parts have no value besides their name.
    let is_marker = matches!(
        part,
        ManifestPart::Option
            | ManifestPart::IncludePath
            | ManifestPart::Requires
            | ManifestPart::Zip
            | ManifestPart::Include
    );
    let subject = match (part, name.is_empty()) {
        (_, true) => what.to_owned(),
        (ManifestPart::Tolerance | ManifestPart::Mask | ManifestPart::Contents, _) => {
            format!("{what} of {}", code(name))
        }
        _ => format!("{what} {}", code(name)),
    };
    let how = match effect {
        // Fewer values are neither looser nor tighter.
        _ if part.is_of_selection() => "",
        Effect::Loosened if base.is_some() && new.is_some() => " loosened",
        Effect::Tightened if base.is_some() && new.is_some() => " tightened",
        _ => "",
    };
    match (base.as_deref(), new.as_deref()) {
        // A binding's values are listed under its name.
        (Some(base), Some(new)) if *part == ManifestPart::Let && name.is_empty() => {
            format!("binding {} renamed to {}.", code(base), code(new))
        }
        // A variant's value is its name.
        (Some(base), Some(new)) if *part == ManifestPart::Variant => {
            format!("variant {} renamed to {}.", code(base), code(new))
        }
        (Some(name), None) if *part == ManifestPart::Variant => format!("variant {} removed.", code(name)),
        (None, Some(name)) if *part == ManifestPart::Variant => format!("variant {} added.", code(name)),
        (Some(base), Some(new)) => {
            if let Some(limits) = limits(base, new).filter(|_| *part == ManifestPart::Claim) {
                return format!("{subject}{how}{of}, {limits}: {}.", code(new));
            }
            // A reader must see both versions of a claim in full to judge the change.
            let (base, new) = match part {
                ManifestPart::Claim => (base.to_owned(), new.to_owned()),
                _ => without_common(base, new),
            };
            format!("{subject}{how}{of}: {} → {}.", code(&base), code(&new))
        }
        (Some(_), None) if is_marker => format!("{subject} removed{of}."),
        (None, Some(_)) if is_marker => format!("{subject} added{of}."),
        (Some(text), None) => format!("{subject} removed{of}: {}.", code(text)),
        (None, Some(text)) => format!("{subject} added{of}: {}.", code(text)),
        (None, None) => format!("{subject}{of}."),
    }
}

const fn noun(part: ManifestPart) -> &'static str {
    match part {
        ManifestPart::Experiment => "experiment",
        ManifestPart::File => "manifest file",
        ManifestPart::Baseline => "baseline variant",
        ManifestPart::Check => "check",
        ManifestPart::Tolerance => "tolerance",
        ManifestPart::Mask => "mask",
        ManifestPart::Printed => "printed lines",
        ManifestPart::ExpectedFailure => "expected failure",
        ManifestPart::Sanitizer => "unsanitized",
        ManifestPart::Claim => "claim",
        ManifestPart::Acceptance => "accepted slowdown",
        ManifestPart::Threshold => "threshold",
        ManifestPart::Axis => "axis",
        ManifestPart::Zip => "zipped axes",
        ManifestPart::Compared => "compared axes",
        ManifestPart::Exclude => "exclusion",
        ManifestPart::Include => "included point",
        ManifestPart::Requires => "requirement",
        ManifestPart::Variant => "variant",
        ManifestPart::Buffer => "buffer",
        ManifestPart::Contents => "contents",
        ManifestPart::Let => "binding",
        ManifestPart::Option => "compiler option",
        ManifestPart::Define => "define",
        ManifestPart::IncludePath => "include path",
        ManifestPart::Compiler => "compiler",
        ManifestPart::Source => "source",
        ManifestPart::Kernel => "kernel",
        ManifestPart::Grid => "grid",
        ManifestPart::Block => "block",
        ManifestPart::Arguments => "arguments",
        ManifestPart::Setting => "setting",
        ManifestPart::Steps => "steps",
        ManifestPart::Work => "work",
        ManifestPart::Measure => "measurement",
        ManifestPart::Search => "search",
        ManifestPart::Package => "package",
        ManifestPart::Report => "report's",
    }
}

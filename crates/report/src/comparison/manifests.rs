//! What changed in the manifests, and which experiments and reports only one side has.

use runner_lang::format::{count, plural};
use runner_results::analyse::compare::{Comparison, Failed};
use runner_types::{Effect, ManifestChange, ManifestComparison, ManifestPart, ManifestState};

use super::words::without_common;

/// Maximum number of changes to list; further ones are counted.
const MOST_CHANGES: usize = 24;

/// Maximum number of variants to name per change; further ones are counted.
const MOST_VARIANTS: usize = 3;

/// One sentence per change; loosened, deleted and removed parts come first.
pub fn sentences(comparison: &Comparison) -> Vec<String> {
    let several = comparison.reports.len() > 1 || comparison.manifests.len() > 1;
    let failed = comparison.failed.iter().map(|Failed { experiment, why }| {
        let why = why.strip_prefix("error: ").unwrap_or(why);
        (0, format!("Experiment `{experiment}` not compared: {why}."))
    });
    let mut found: Vec<(u8, String)> = failed.collect();
    for ManifestComparison { experiment, state } in &comparison.manifests {
        let place = if several { format!("`{experiment}`: ") } else { String::new() };
        match state {
            ManifestState::Deleted => found.push((0, format!("Experiment `{experiment}` deleted."))),
            ManifestState::Added => found.push((2, format!("Experiment `{experiment}` added."))),
            ManifestState::Changed(changes) => {
                let rank = |change: &ManifestChange| u8::from(change.effect != Effect::Loosened);
                let of_one = changes.iter().map(|change| (rank(change), capitalised(&place, &sentence(change))));
                found.extend(of_one);
            }
            ManifestState::Unknown(why) => {
                found.push((1, capitalised(&place, &format!("manifest changed; details unknown ({why})."))));
            }
        }
    }
    for (places, (what, rank)) in comparison.alone.iter().zip([("deleted", 0), ("added", 2)]) {
        if !places.is_empty() {
            let reports = plural(places.len() as u64, "report");
            found.push((rank, format!("{} {what}: {}.", capitalised("", &reports), some(places))));
        }
    }
    found.sort_by_key(|(rank, _)| *rank);
    let mut sentences: Vec<String> = found.into_iter().map(|(_, text)| text).collect();
    if sentences.len() > MOST_CHANGES {
        let more = sentences.len() - MOST_CHANGES;
        sentences.truncate(MOST_CHANGES);
        sentences.push(format!("{} more manifest changes.", count(more as f64)));
    }
    sentences
}

/// Counts what is loosened, removed or deleted, for the headline: `1 check loosened, 1 experiment deleted`.
pub fn tallies(comparison: &Comparison) -> Vec<String> {
    let changes = || comparison.manifests.iter().flat_map(ManifestComparison::changes);
    let claims = |effect: Effect| {
        let is_revised = |change: &&ManifestChange| {
            change.part == ManifestPart::Claim
                && change.effect == effect
                && change.base.is_some()
                && change.new.is_some()
        };
        changes().filter(is_revised).count()
    };
    let deleted = comparison.manifests.iter().filter(|manifest| manifest.state == ManifestState::Deleted).count();
    let baselines = changes().filter(|change| change.part == ManifestPart::Baseline).count();
    let named = [
        (deleted, "experiment", "deleted"),
        (comparison.alone[0].len(), "report", "deleted"),
        (changes().filter(|change| change.loosens_check()).count(), "check", "loosened"),
        (claims(Effect::Loosened), "claim", "loosened"),
        (claims(Effect::Tightened), "claim", "tightened"),
        (baselines, "baseline", "changed"),
    ];
    let named = named.into_iter().filter(|(found, ..)| *found > 0);
    named.map(|(found, what, how)| format!("{} {how}", plural(found as u64, what))).collect()
}

fn capitalised(place: &str, text: &str) -> String {
    if !place.is_empty() {
        return format!("{place}{text}");
    }
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

fn some(places: &[String]) -> String {
    let shown = places.iter().take(MOST_VARIANTS).map(String::as_str).collect::<Vec<_>>().join(", ");
    let more = places.len().saturating_sub(MOST_VARIANTS);
    if more > 0 { format!("{shown} and {more} more") } else { shown }
}

/// `tolerance of `sum(sums)` loosened: rel 1e-5 → rel 0.01.`
fn sentence(change: &ManifestChange) -> String {
    let ManifestChange { effect, part, name, variants, base, new } = change;
    let what = noun(*part);
    let is_of_all = variants.is_empty();
    let of = if is_of_all { String::new() } else { format!(" ({})", some(variants)) };
    // These have no value besides their name.
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
        (ManifestPart::Tolerance | ManifestPart::Mask, _) => format!("{what} of {}", code(name)),
        _ => format!("{what} {}", code(name)),
    };
    let how = match effect {
        Effect::Loosened if base.is_some() && new.is_some() => " loosened",
        Effect::Tightened if base.is_some() && new.is_some() => " tightened",
        _ => "",
    };
    match (base.as_deref(), new.as_deref()) {
        // A variant's value is its name.
        (Some(base), Some(new)) if *part == ManifestPart::Variant => {
            format!("variant {} renamed to {}.", code(base), code(new))
        }
        (Some(name), None) if *part == ManifestPart::Variant => format!("variant {} removed.", code(name)),
        (None, Some(name)) if *part == ManifestPart::Variant => format!("variant {} added.", code(name)),
        (Some(base), Some(new)) => {
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

/// Wraps text in backticks, unless it contains one.
fn code(text: &str) -> String {
    if text.contains('`') || text.is_empty() { text.to_owned() } else { format!("`{text}`") }
}

const fn noun(part: ManifestPart) -> &'static str {
    match part {
        ManifestPart::Experiment => "experiment",
        ManifestPart::Baseline => "baseline",
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

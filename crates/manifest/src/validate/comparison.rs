//! Validates the rules for comparisons with a base: the experiment's `threshold`, and `[[accept]]`.

use super::context::{Context, Names};
use super::declared::Declared;
use super::measure::percentage;
use crate::raw::{RawAccept, RawManifest};
use crate::read::At;
use runner_lang::diagnostics::Diagnostic;
use runner_types::{Acceptance, ComparisonRules};

/// Largest growth that can be accepted: to eleven times the base.
const MOST_ACCEPTED: f64 = 10.0;

pub fn rules(ctx: &mut Context, raw: &RawManifest, declared: &Declared) -> ComparisonRules {
    let threshold = raw.experiment.0.as_ref().and_then(|experiment| experiment.value.threshold.as_ref());
    ComparisonRules {
        threshold: threshold.and_then(|threshold| percentage(ctx, "experiment.threshold", threshold, 1.0)),
        accept: raw.accept.iter().flatten().filter_map(|raw| accept(ctx, raw, declared)).collect(),
    }
}

fn accept(ctx: &mut Context, At { value: raw, .. }: &At<RawAccept>, declared: &Declared) -> Option<Acceptance> {
    if let Some(At { value: name, span }) = &raw.variant {
        declared.require_variant(ctx, name, span.clone());
    }
    if let Some(condition) = &raw.r#where {
        let known = declared.axes.iter().map(|axis| axis.name.clone()).collect();
        ctx.known(&condition.0, &[&Names { known, ..Names::default() }]);
    }
    let by = raw.by.0.as_ref().and_then(|by| percentage(ctx, "accept.by", by, MOST_ACCEPTED));
    let (reason, commit) = (raw.reason.0.as_ref(), raw.commit.0.as_ref());
    let is_commit =
        |text: &str| (7..=40).contains(&text.len()) && text.chars().all(|c| matches!(c, '0'..='9' | 'a'..='f'));
    if let Some(commit) = commit.filter(|commit| !is_commit(&commit.value)) {
        let message = format!("`{}` is not a commit", commit.value);
        ctx.fault(Diagnostic::at(commit.span.clone(), message).hint("write 7 to 40 hexadecimal digits of its name"));
    }
    Some(Acceptance {
        variant: raw.variant.as_ref().map(|variant| variant.value.clone()),
        condition: raw.r#where.as_ref().map(|condition| condition.0.text().to_owned()),
        reason: reason?.value.clone(),
        commit: commit?.value.clone(),
        by: by?,
    })
}

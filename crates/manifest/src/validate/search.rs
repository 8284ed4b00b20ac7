//! Validates `[search]`: names of strategies, and numbers with bounds.

use search::Budget;
use search::strategy::NAMES;

use super::context::Context;
use super::declared::Declared;
use crate::raw::{OneOrMany, RawBudget, RawSearch};
use crate::read::At;
use runner_experiment::SearchSpec;
use runner_lang::diagnostics::Diagnostic;

pub fn search(ctx: &mut Context, raw: Option<&At<RawSearch>>, declared: &Declared) -> SearchSpec {
    let Some(At { value: raw, .. }) = raw else { return SearchSpec::default() };
    if let Some(At { value: name, span }) = &raw.strategy
        && !NAMES.iter().any(|(known, _)| known == name)
    {
        ctx.unknown(span.clone(), "strategy", name, NAMES.iter().map(|(known, _)| *known));
    }
    for (key, at) in [("finalists", &raw.finalists), ("samples", &raw.samples)] {
        if let Some(At { span, .. }) = at.as_ref().filter(|at| at.value == 0) {
            ctx.fault(Diagnostic::at(span.clone(), format!("`search.{key}` must be at least 1")));
        }
    }
    if let Some(At { value, span }) = raw.drop_above.as_ref().filter(|at| !(at.value >= 1.0 && at.value.is_finite())) {
        let message = format!("`search.drop_above` must be at least 1, found {value}");
        ctx.fault(
            Diagnostic::at(span.clone(), message)
                .hint("1.25 drops configurations that are more than 25 % slower than the best"),
        );
    }
    SearchSpec {
        strategy: raw.strategy.as_ref().map(|at| at.value.clone()),
        budget: raw.budget.as_ref().and_then(|at| budget(ctx, at)),
        seed: raw.seed.as_ref().map(|at| at.value),
        objectives: objectives(ctx, raw.objective.as_ref()),
        finalists: raw.finalists.as_ref().map(|at| at.value),
        samples: raw.samples.as_ref().map(|at| at.value),
        drop_above: raw.drop_above.as_ref().map(|at| at.value),
        axes: declared.searched.clone(),
    }
}

/// Names of objectives, without repetitions. Whether they can be measured is known only once the device is open.
fn objectives(ctx: &mut Context, raw: Option<&OneOrMany<At<String>>>) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for At { value: name, span } in raw.map_or(&[][..], OneOrMany::as_slice) {
        if names.contains(name) {
            ctx.fault(Diagnostic::at(span.clone(), format!("`search.objective` names `{name}` twice")));
        }
        names.push(name.clone());
    }
    names
}

fn budget(ctx: &mut Context, at: &At<RawBudget>) -> Option<String> {
    let text = match &at.value {
        RawBudget::Count(count) => count.to_string(),
        RawBudget::Share(share) => share.clone(),
    };
    // A quoted number is not a TOML number.
    let is_share = matches!(at.value, RawBudget::Count(_)) || text.trim_end().ends_with('%');
    if !is_share || text.parse::<Budget>().is_err() {
        let message = format!("`search.budget` must be a number of configurations or a share of them, found `{text}`");
        ctx.fault(Diagnostic::at(at.span.clone(), message).hint("write 400, or \"5%\""));
        return None;
    }
    Some(text)
}

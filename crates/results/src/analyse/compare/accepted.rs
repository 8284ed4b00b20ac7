//! Slowdowns accepted by the new report's manifest.

use super::{Change, Kind, Pair};
use runner_lang::{Program, Scope};
use runner_types::Acceptance;

/// Marks each slowdown within an acceptance's bound as accepted. Ignores acceptances that the base's manifest also has,
/// since the slowdown is already in the base.
pub(super) fn accept<'a>(pair: Pair<'_>, changes: impl Iterator<Item = &'a mut Change>) {
    let of_base = &pair.base.header.comparison.accept;
    let accepted = pair.new.header.comparison.accept.iter().filter(|acceptance| !of_base.contains(acceptance));
    let parsed = |acceptance: &'_ Acceptance| acceptance.condition.as_deref().map(Program::parse).transpose().ok();
    // A condition that this version cannot parse accepts nothing.
    let accepted: Vec<(&Acceptance, Option<Program>)> =
        accepted.filter_map(|acceptance| Some((acceptance, parsed(acceptance)?))).collect();
    if accepted.is_empty() {
        return;
    }
    for change in changes.filter(|change| matches!(change.kind, Kind::Slower | Kind::MoreWork)) {
        let fits = |(acceptance, condition): &&(&Acceptance, Option<Program>)| {
            acceptance.variant.as_ref().is_none_or(|variant| *variant == change.case.key.variant)
                && condition.as_ref().is_none_or(|condition| applies(condition, change))
                && growth(change).is_some_and(|growth| growth <= 1.0 + acceptance.by)
        };
        change.accepted = accepted.iter().find(fits).map(|(acceptance, _)| (*acceptance).clone());
    }
}

fn applies(condition: &Program, change: &Change) -> bool {
    let mut scope = Scope::new();
    for (name, value) in &change.case.key.axes {
        scope.set(name.as_str(), value.clone());
    }
    condition.evaluate_bool(&scope).unwrap_or(false)
}

/// New time divided by the base's, or the largest growth of a deciding counter; `None` if one of them was zero.
fn growth(change: &Change) -> Option<f64> {
    if change.kind == Kind::Slower {
        return change.time.as_ref().map(|time| time.ratio);
    }
    let ratios = change.counters.iter().filter(|counter| counter.decides).map(|counter| counter.new / counter.base);
    ratios.reduce(f64::max).filter(|ratio| ratio.is_finite())
}

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
        let is_meant = |(acceptance, condition): &&(&Acceptance, Option<Program>)| {
            acceptance.variant.as_ref().is_none_or(|variant| *variant == change.case.key.variant)
                && condition.as_ref().is_none_or(|condition| applies(condition, change))
        };
        let meant: Vec<&Acceptance> = accepted.iter().filter(is_meant).map(|(acceptance, _)| *acceptance).collect();
        let (growth, counter) = growth(change);
        let fits = |acceptance: &&&Acceptance| growth <= 1.0 + acceptance.by;
        change.accepted = meant.iter().find(fits).map(|acceptance| (*acceptance).clone());
        let most = meant.iter().map(|acceptance| acceptance.by).reduce(f64::max).filter(|_| change.accepted.is_none());
        change.exceeds = most.map(|by| Excess { by, growth, counter });
    }
}

/// How far a slowdown exceeds what the manifest accepts.
#[derive(Debug, Clone, PartialEq)]
pub struct Excess {
    /// Largest accepted growth, as a fraction.
    pub by: f64,
    /// New value divided by the base's; infinite if that was zero.
    pub growth: f64,
    /// Deciding counter that grew most; `None` for a time.
    pub counter: Option<String>,
}

fn applies(condition: &Program, change: &Change) -> bool {
    let mut scope = Scope::new();
    for (name, value) in &change.case.key.axes {
        scope.set(name.as_str(), value.clone());
    }
    condition.evaluate_bool(&scope).unwrap_or(false)
}

/// New time divided by the base's, or the largest growth of a deciding counter with its name.
fn growth(change: &Change) -> (f64, Option<String>) {
    if change.kind == Kind::Slower {
        return (change.time.as_ref().map_or(f64::INFINITY, |time| time.ratio), None);
    }
    let counters = change.counters.iter().filter(|counter| counter.decides);
    let ratios = counters.map(|counter| (counter.new / counter.base, Some(counter.name.clone())));
    ratios.max_by(|(a, _), (b, _)| a.total_cmp(b)).unwrap_or((f64::INFINITY, None))
}

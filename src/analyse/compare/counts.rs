//! Counters, base and new. The simulator's are compared exactly; the hardware's differ by a little from run to run.

use std::collections::BTreeSet;

use serde::Serialize;

use super::time::Interval;
use super::{Call, Options, Pair};
use crate::model::{BackendKind, CaseRecord, CounterInfo, Counters, VOCABULARY};

/// Counts of the hardware that differ by no more than this fraction are the same.
const CLOSE: f64 = 0.01;

/// Who counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CountedBy {
    Simulator,
    Hardware,
}

/// A counter that differs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CounterChange {
    pub name: String,
    pub base: f64,
    pub new: f64,
    /// Whether more of it is more work.
    pub is_cost: bool,
}

/// What was counted in both.
pub(super) struct Counts {
    pub changes: Vec<CounterChange>,
    pub by: Option<CountedBy>,
    /// What the counters say, where they decide.
    pub call: Option<(Call, Option<Interval>)>,
}

pub(super) fn of(pair: Pair<'_>, [base, new]: [&CaseRecord; 2], options: &Options) -> Counts {
    let (Some(base), Some(new)) = (&base.counters, &new.counters) else {
        return Counts { changes: Vec::new(), by: None, call: None };
    };
    let by = match pair.new.header.backend {
        BackendKind::Sim => CountedBy::Simulator,
        BackendKind::Cuda | BackendKind::Fake => CountedBy::Hardware,
    };
    let tolerance = if by == CountedBy::Simulator { 0.0 } else { options.threshold.unwrap_or(CLOSE) };
    let changes = changes(base, new, tolerance);
    let decides = by == CountedBy::Simulator || options.gate_counters;
    let call = decides.then(|| (call(&changes), None));
    Counts { changes, by: Some(by), call }
}

/// The counters of both that differ by more than the tolerance, in the vocabulary's order and then by name.
fn changes(base: &Counters, new: &Counters, tolerance: f64) -> Vec<CounterChange> {
    let known = VOCABULARY.iter().map(|info| info.name);
    let others: BTreeSet<&str> =
        new.0.keys().map(String::as_str).filter(|name| CounterInfo::named(name).is_none()).collect();
    let change = |name: &str| {
        let (base, new) = (base.get(name)?, new.get(name)?);
        let differs = (new - base).abs() > tolerance * base.abs().max(new.abs());
        let is_cost = CounterInfo::named(name).is_some_and(CounterInfo::is_cost);
        differs.then(|| CounterChange { name: name.to_owned(), base, new, is_cost })
    };
    known.chain(others).filter_map(change).collect()
}

/// More work is slower and less is faster; more of one thing and less of another is neither.
fn call(changes: &[CounterChange]) -> Call {
    let costs = || changes.iter().filter(|change| change.is_cost);
    match (costs().any(|cost| cost.new > cost.base), costs().any(|cost| cost.new < cost.base)) {
        (true, false) => Call::Slower,
        (false, true) => Call::Faster,
        (false, false) if changes.is_empty() => Call::Same,
        _ => Call::Ambiguous,
    }
}

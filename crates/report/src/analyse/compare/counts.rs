//! Compares the counters of base and new. The simulator's are compared exactly, and so are the estimates from one
//! sample of blocks; the hardware's differ by a little from run to run.

use std::collections::{BTreeSet, HashMap};

use serde::Serialize;

use super::time::Interval;
use super::{Call, Change, Kind, Options, Pair, ReportComparison};
use crate::model::{BackendKind, CaseKey, CaseRecord, CounterInfo, Counters, VOCABULARY};

/// Counts of the hardware that differ by no more than this fraction are the same.
const CLOSE: f64 = 0.01;

/// Who counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CountedBy {
    /// The simulator, whose counts are exact.
    Simulator,
    /// The simulator counted, in the same sample of the blocks on both sides.
    Sample,
    /// The profiler of the GPU.
    Hardware,
}

/// A counter that differs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CounterChange {
    /// The counter's name in the vocabulary, or the profiler's name for it.
    pub name: String,
    /// The count of one run of the body in the base report.
    pub base: f64,
    /// The count of one run of the body in the new report.
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

pub(super) fn compare_counts(pair: Pair<'_>, [base, new]: [&CaseRecord; 2], options: &Options) -> Counts {
    let is_sampled = new.sample().is_some();
    let (Some(base), Some(new)) = (&base.counters, &new.counters) else {
        return Counts { changes: Vec::new(), by: None, call: None };
    };
    let by = match pair.new.header.backend {
        BackendKind::Sim if is_sampled => CountedBy::Sample,
        BackendKind::Sim => CountedBy::Simulator,
        BackendKind::Cuda | BackendKind::Fake => CountedBy::Hardware,
    };
    let is_simulated = by != CountedBy::Hardware;
    let tolerance = if is_simulated { 0.0 } else { options.threshold.unwrap_or(CLOSE) };
    let changes = changes(base, new, tolerance);
    let decides = is_simulated || options.gate_counters;
    let call = decides.then(|| (call(&changes), None));
    Counts { changes, by: Some(by), call }
}

/// Gives changed times the counters of the same case in another pair: `profile` counts in a report of its own.
pub(super) fn join(reports: &mut [ReportComparison]) {
    let mut counted: HashMap<(String, CaseKey), Vec<CounterChange>> = HashMap::new();
    for report in reports.iter() {
        let profiled = report.changes.iter().filter(|change| {
            change.time.is_none() && change.counted_by == Some(CountedBy::Hardware) && !change.counters.is_empty()
        });
        counted.extend(profiled.map(|c| ((report.device.clone(), c.case.key.clone()), c.counters.clone())));
    }
    if counted.is_empty() {
        return;
    }
    for report in reports {
        let device = &report.device;
        let changed =
            |change: &&mut Change| matches!(change.kind, Kind::Slower | Kind::Faster) && change.time.is_some();
        for change in report.changes.iter_mut().filter(changed).filter(|change| change.counted_by.is_none()) {
            if let Some(counters) = counted.get(&(device.clone(), change.case.key.clone())) {
                change.counters.clone_from(counters);
                change.counted_by = Some(CountedBy::Hardware);
            }
        }
    }
}

/// Returns the counters of both that differ by more than the tolerance, in the vocabulary's order and then by name.
fn changes(base: &Counters, new: &Counters, tolerance: f64) -> Vec<CounterChange> {
    let known = VOCABULARY.iter().map(|info| info.name);
    let others: BTreeSet<&str> =
        new.0.keys().map(AsRef::as_ref).filter(|name| CounterInfo::named(name).is_none()).collect();
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

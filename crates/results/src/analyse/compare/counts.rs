//! Compares the counters of base and new. Those of the simulator that differ at all are shown, and so are the estimates
//! from one sample of blocks; the hardware's differ by a little from run to run. A few of them decide, where they differ
//! by more than a threshold.

use std::collections::{BTreeSet, HashMap};

use serde::Serialize;

use super::{Change, Kind, Options, Pair, ReportComparison};
use crate::model::{BackendKind, CaseKey, CaseRecord, CounterInfo, CounterUnit, Counters, VOCABULARY};

/// The smallest change of a count that matters, as a fraction, where none is given.
const THRESHOLD: f64 = 0.01;

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
    /// Whether it is one of those that decide.
    pub decides: bool,
}

/// What was counted in both.
pub(super) struct Counts {
    pub changes: Vec<CounterChange>,
    pub by: Option<CountedBy>,
    /// What the counters say, where they decide.
    pub kind: Option<Kind>,
}

pub(super) fn compare_counts(pair: Pair<'_>, [base, new]: [&CaseRecord; 2], options: &Options) -> Counts {
    let is_sampled = new.sample().is_some();
    let (Some(base), Some(new)) = (&base.counters, &new.counters) else {
        return Counts { changes: Vec::new(), by: None, kind: None };
    };
    let by = match pair.new.header.backend {
        BackendKind::Sim if is_sampled => CountedBy::Sample,
        BackendKind::Sim => CountedBy::Simulator,
        BackendKind::Cuda | BackendKind::Fake => CountedBy::Hardware,
    };
    let is_simulated = by != CountedBy::Hardware;
    let threshold = options.threshold.unwrap_or(THRESHOLD);
    let changes = changes(base, new, if is_simulated { 0.0 } else { threshold });
    let decides = is_simulated || options.gate_counters;
    let kind = decides.then(|| judge(&changes, threshold));
    Counts { changes, by: Some(by), kind }
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
        let is_cost = CounterInfo::named(name).is_some_and(CounterInfo::is_cost);
        let decides = CounterInfo::named(name).is_some_and(CounterInfo::decides);
        let change = CounterChange { name: name.to_owned(), base, new, is_cost, decides };
        change.exceeds(tolerance).then_some(change)
    };
    // The time of the case says what a counter of time does.
    let is_time = |name: &&str| CounterInfo::named(name).is_some_and(|info| info.unit == CounterUnit::Nanoseconds);
    known.chain(others).filter(|name| !is_time(name)).filter_map(change).collect()
}

impl CounterChange {
    /// Whether the counts differ by more than a fraction of the greater one.
    fn exceeds(&self, fraction: f64) -> bool {
        (self.new - self.base).abs() > fraction * self.base.abs().max(self.new.abs())
    }
}

/// Returns what the counts that decide say. More of one and less of another is neither more nor less work.
fn judge(changes: &[CounterChange], threshold: f64) -> Kind {
    let deciding = || changes.iter().filter(|change| change.decides && change.exceeds(threshold));
    match (deciding().any(|count| count.new > count.base), deciding().any(|count| count.new < count.base)) {
        (true, false) => Kind::MoreWork,
        (false, true) => Kind::LessWork,
        (true, true) => Kind::Ambiguous,
        (false, false) => Kind::Same,
    }
}

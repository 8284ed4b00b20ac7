//! Compares the counters of base and new.
//!
//! Simulator counts are exact, so any difference is shown; so are differences between estimates from the same sample of
//! blocks. Hardware counts vary slightly from run to run. A few deciding counters determine the verdict if they change
//! by more than a threshold.

use std::collections::{BTreeSet, HashMap};

use serde::Serialize;

use super::{Change, Kind, Options, Pair, ReportComparison};
use runner_types::{BackendKind, CaseKey, CaseRecord, CounterInfo, CounterUnit, Counters, Note, VOCABULARY};

/// Default for the smallest change of a count that matters, as a fraction.
const THRESHOLD: f64 = 0.01;

/// Source of the counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CountedBy {
    /// The simulator, whose counts are exact.
    Simulator,
    /// The simulator, from the same sample of blocks on both sides.
    Sample,
    /// The GPU's profiler.
    Hardware,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CounterChange {
    /// Name in the vocabulary, or in the profiler.
    pub name: String,
    /// Count per run of the body in the base report.
    pub base: f64,
    /// Count per run of the body in the new report.
    pub new: f64,
    /// Whether a higher count means more work.
    pub is_cost: bool,
    pub decides: bool,
}

/// Why simulator counts do not decide.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Undecided {
    /// A record from an older version has only PTX counts.
    Older,
    /// There is no machine code to derive counts for.
    NoMachineCode {
        /// The reason and what to do, in a sentence.
        why: String,
    },
    /// Some machine instructions of a kernel have no count.
    Instructions {
        /// Kernel name as the linker knows it.
        kernel: String,
        /// Number of machine instructions without a count.
        unknown: u64,
        /// Number of all its machine instructions.
        of: u64,
    },
    /// Memory accesses of a kernel could not be derived.
    Accesses {
        /// Kernel name as the linker knows it.
        kernel: String,
        /// Names of the missing counters.
        counters: Vec<String>,
    },
}

/// Comparison of the counters that both sides have.
#[derive(Default)]
pub(super) struct Counts {
    pub changes: Vec<CounterChange>,
    pub by: Option<CountedBy>,
    /// Verdict of the deciding counters; `None` if counters do not decide.
    pub kind: Option<Kind>,
    /// Why deciding counts are unknown.
    pub undecided: Vec<Undecided>,
}

/// Compares the counters of a case. `is_same` is whether both sides ran the same code in the same way.
pub(super) fn compare_counts(pair: Pair<'_>, sides: [&CaseRecord; 2], (options, is_same): (&Options, bool)) -> Counts {
    let is_sampled = sides[1].sample().is_some();
    let [Some(base), Some(new)] = sides.map(|side| side.counters.as_ref()) else { return Counts::default() };
    let by = match pair.new.header.backend {
        BackendKind::Sim if is_sampled => CountedBy::Sample,
        BackendKind::Sim => CountedBy::Simulator,
        BackendKind::Cuda | BackendKind::Fake => CountedBy::Hardware,
    };
    let is_simulated = by != CountedBy::Hardware;
    let threshold = options.threshold.unwrap_or(THRESHOLD);
    let changes = changes(base, new, if is_simulated { 0.0 } else { threshold });
    let decides = is_simulated || options.gate_counters;
    let is_unknown = is_simulated && lacks_deciding([base, new]) && !(is_same && changes.is_empty());
    let undecided = if is_unknown { reasons(sides) } else { Vec::new() };
    let kind = decides.then(|| judge(&changes, threshold, is_unknown));
    Counts { changes, by: Some(by), kind, undecided }
}

/// Whether some deciding counter is known for the PTX of a side, but not for the machine code of both.
fn lacks_deciding([base, new]: [&Counters; 2]) -> bool {
    let lacks = |info: &CounterInfo| {
        let of_ptx = info.of_ptx().filter(|_| info.decides());
        let is_counted = of_ptx.is_some_and(|name| [base, new].iter().any(|side| side.get(name).is_some()));
        is_counted && [base, new].iter().any(|side| side.get(info.name).is_none())
    };
    VOCABULARY.iter().any(lacks)
}

/// Reasons why machine code counts are unknown.
fn reasons(sides: [&CaseRecord; 2]) -> Vec<Undecided> {
    let reason = |note: &Note| match note.clone() {
        Note::NoMachineCode { why } => Some(Undecided::NoMachineCode { why }),
        Note::Underived { kernel, unknown, of } => Some(Undecided::Instructions { kernel, unknown, of }),
        Note::UnderivedAccesses { kernel, counters } => Some(Undecided::Accesses { kernel, counters }),
        _ => None,
    };
    let of_side = |side: &CaseRecord| {
        let found: Vec<Undecided> = side.notes.iter().filter_map(reason).collect();
        let is_derived = side.counters.as_ref().is_some_and(|counters| counters.get("inst_executed").is_some());
        if found.is_empty() && !is_derived { vec![Undecided::Older] } else { found }
    };
    let all: BTreeSet<Undecided> = sides.into_iter().flat_map(of_side).collect();
    all.into_iter().collect()
}

/// Adds counters to changed times from the same case in another pair, since `profile` writes a separate report.
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

/// Counters that differ by more than the tolerance, in the vocabulary's order, followed by others sorted by name.
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
    // Counters that measure time are covered by the time of the case.
    let is_time = |name: &&str| CounterInfo::named(name).is_some_and(|info| info.unit == CounterUnit::Nanoseconds);
    known.chain(others).filter(|name| !is_time(name)).filter_map(change).collect()
}

impl CounterChange {
    /// Whether the counts differ by more than a fraction of the larger one.
    fn exceeds(&self, fraction: f64) -> bool {
        (self.new - self.base).abs() > fraction * self.base.abs().max(self.new.abs())
    }
}

/// Verdict of the deciding counters. If some rise and others fall, it is mixed. If one is unknown, a decrease in the
/// others does not count as less work.
fn judge(changes: &[CounterChange], threshold: f64, is_unknown: bool) -> Kind {
    let deciding = || changes.iter().filter(|change| change.decides && change.exceeds(threshold));
    match (deciding().any(|count| count.new > count.base), deciding().any(|count| count.new < count.base)) {
        (true, false) => Kind::MoreWork,
        (true, true) => Kind::Mixed,
        _ if is_unknown => Kind::Undecided,
        (false, true) => Kind::LessWork,
        (false, false) => Kind::Same,
    }
}

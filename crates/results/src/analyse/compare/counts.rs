//! Compares the counters of base and new. Those of the simulator that differ at all are shown, and so are the estimates
//! from one sample of blocks; the hardware's differ by a little from run to run. A few of them decide, where they differ
//! by more than a threshold.

use std::collections::{BTreeSet, HashMap};

use serde::Serialize;

use super::{Change, Kind, Options, Pair, ReportComparison};
use runner_types::{BackendKind, CaseKey, CaseRecord, CounterInfo, CounterUnit, Counters, Note, VOCABULARY};

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

/// Why counts of a simulator do not decide.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Undecided {
    /// A record has counts of the PTX only, as versions wrote that derived none of the machine code.
    Older,
    /// There is no machine code whose counts could be derived.
    NoMachineCode {
        /// The reason and what to do, in a sentence.
        why: String,
    },
    /// Machine instructions of a kernel have no count.
    Instructions {
        /// The kernel, as the linker knows it.
        kernel: String,
        /// The number of machine instructions without a count.
        unknown: u64,
        /// The number of its machine instructions.
        of: u64,
    },
    /// Accesses of a kernel to memory could not be derived.
    Accesses {
        /// The kernel, as the linker knows it.
        kernel: String,
        /// The names of the counters.
        counters: Vec<String>,
    },
}

/// What was counted in both.
#[derive(Default)]
pub(super) struct Counts {
    pub changes: Vec<CounterChange>,
    pub by: Option<CountedBy>,
    /// What the counters say, where they decide.
    pub kind: Option<Kind>,
    /// Why counts that decide are not known.
    pub undecided: Vec<Undecided>,
}

/// Compares the counters of a case. `is_same` says that both sides ran the same code in the same way.
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

/// Whether a counter that decides is counted in the PTX of a side, and not known of the machine code of both.
fn lacks_deciding([base, new]: [&Counters; 2]) -> bool {
    let lacks = |info: &CounterInfo| {
        let of_ptx = info.of_ptx().filter(|_| info.decides());
        let is_counted = of_ptx.is_some_and(|name| [base, new].iter().any(|side| side.get(name).is_some()));
        is_counted && [base, new].iter().any(|side| side.get(info.name).is_none())
    };
    VOCABULARY.iter().any(lacks)
}

/// Returns why counts of machine code are not known.
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

/// Returns what the counts that decide say. More of one and less of another is neither more nor less work. Where one is not
/// known, less of the others is not less work.
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

//! Finds the best case of a group, and the cases that cannot be distinguished from it.
//!
//! Cases that do the same work are ranked by time. If the manifest states different work for them, they are ranked by
//! rate, since a case that does less is not better for finishing earlier. An unchecked result is never the best.

use super::contender::contender;
use super::ratios::{Call, call};
use super::roofline::{Bound, bound};
use super::times::deviation_between_runs;
use runner_types::{CaseRecord, Ratio, Records, Regime, RegimeResult, Spread, Unchecked, Unit, Verdict};

/// Quantity by which the cases of a group are ranked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Basis {
    /// Time: all cases do the same work, or their work is unknown.
    Time,
    /// Bytes per second: the cases transfer different amounts.
    Bandwidth,
    /// Floating-point operations per second: the cases compute different amounts.
    Arithmetic,
}

impl Basis {
    /// Chooses the quantity for ranking the cases that have a time.
    pub(super) fn choose(records: &Records, members: &[usize]) -> Self {
        let measured = || members.iter().map(|i| &records.cases[*i]).filter(|record| record.result.is_some());
        let by_arithmetic =
            measured().all(|record| record.work.bytes.is_none() || is_bound_by_arithmetic(records, record));
        let basis = if by_arithmetic { Self::Arithmetic } else { Self::Bandwidth };
        let works: Option<Vec<f64>> = measured().map(|record| basis.work(record).filter(|work| *work > 0.0)).collect();
        let differs = works.is_some_and(|works| works.windows(2).any(|pair| (pair[0] - pair[1]).abs() > 0.0));
        if differs { basis } else { Self::Time }
    }

    /// Divisor for times: bytes or operations, or 1 to compare times themselves.
    pub fn work(self, record: &CaseRecord) -> Option<f64> {
        match self {
            Self::Time => Some(1.0),
            Self::Bandwidth => record.work.bytes.map(|bytes| bytes as f64),
            Self::Arithmetic => record.work.flops,
        }
    }
}

fn is_bound_by_arithmetic(records: &Records, record: &CaseRecord) -> bool {
    let ceilings = records.environment.machine.ceilings.as_ref();
    ceilings.and_then(|ceilings| bound(&record.work, ceilings)) == Some(Bound::Arithmetic)
}

/// The best case of a group in one regime, on the device's clock.
#[derive(Debug, Clone, PartialEq)]
pub struct Best {
    pub regime: Regime,
    /// Index of the case's record.
    pub index: usize,
    /// Indices of cases that may be as good: their intervals overlap, or the difference is within the noise or the
    /// spread between processes.
    pub tied: Vec<usize>,
}

/// The best case of each regime, among cases with checked results.
pub(super) fn best(records: &Records, members: &[usize], basis: Basis) -> Vec<Best> {
    let ahead = |regime: Regime| {
        let timed: Vec<Timed<'_>> = members.iter().filter_map(|i| Timed::new(records, *i, regime, basis)).collect();
        let first = timed.iter().min_by(|a, b| a.cost.total_cmp(&b.cost))?;
        let others = timed.iter().filter(|other| other.index != first.index);
        let tied = others.filter(|other| is_tied(records, first, other, basis)).map(|other| other.index).collect();
        Some(Best { regime, index: first.index, tied })
    };
    Regime::ALL.iter().copied().filter_map(ahead).collect()
}

struct Timed<'r> {
    index: usize,
    record: &'r CaseRecord,
    result: &'r RegimeResult,
    /// Nanoseconds per unit of work.
    cost: f64,
    work: f64,
}

impl<'r> Timed<'r> {
    fn new(records: &'r Records, index: usize, regime: Regime, basis: Basis) -> Option<Self> {
        let record = &records.cases[index];
        let result = record.result.as_ref().filter(|r| r.regime == regime && r.unit == regime.unit())?;
        // The reference itself is unchecked, but the checked variants agree with it.
        let is_checked = matches!(record.verdict, Verdict::Pass | Verdict::Unchecked(Unchecked::IsReference));
        let work = basis.work(record).filter(|_| is_checked)?;
        Some(Self { index, record, result, cost: result.time.point / work, work })
    }

    /// Possible deviation of the time, downwards and upwards, as logarithms.
    fn errors(&self) -> (f64, f64) {
        let time = &self.result.time;
        ((time.point / time.low).ln(), (time.high / time.point).ln())
    }

    fn between_processes(&self, spread: Option<&Spread>) -> f64 {
        let spread = spread.filter(|_| self.result.unit == Unit::DeviceNanoseconds);
        spread.map_or(0.0, |spread| deviation_between_runs(spread, self.result))
    }
}

fn is_tied(records: &Records, first: &Timed<'_>, other: &Timed<'_>, basis: Basis) -> bool {
    if other.result.time.low / other.work <= first.result.time.high / first.work {
        return true;
    }
    if basis == Basis::Time && [(first, other), (other, first)].iter().any(|(a, b)| compared_as_equal(records, a, b)) {
        return true;
    }
    let spread = records.environment.machine.spread.as_ref();
    let processes = first.between_processes(spread).hypot(other.between_processes(spread));
    let sampling = first.errors().1.hypot(other.errors().0);
    let least = (other.cost / first.cost).ln() - sampling.hypot(runner_stats::NORMAL_TWO_SIDED * processes);
    // Times of zero have no ratio.
    least.is_finite() && least <= noise_floor(records, first.result.regime).unwrap_or(0.0).ln_1p()
}

/// Whether the records compare the two within rounds and find no difference.
fn compared_as_equal(records: &Records, this: &Timed<'_>, base: &Timed<'_>) -> bool {
    let name = contender(&records.header, &base.record.case);
    let ratios = this.result.against_baseline.iter().chain(&this.result.against_previous);
    ratios.filter(|ratio| ratio.against == name).any(|ratio| is_noise(records, this.result, ratio) || is_local(ratio))
}

fn noise_floor(records: &Records, regime: Regime) -> Option<f64> {
    records.header.noise.iter().find(|floor| floor.regime == regime).map(|floor| floor.width)
}

/// Whether a ratio is neither faster nor slower. Without a noise floor, no ratio counts as noise.
pub fn is_noise(records: &Records, result: &RegimeResult, against: &Ratio) -> bool {
    let noise = against.noise.or_else(|| noise_floor(records, result.regime));
    noise.is_some_and(|noise| matches!(call(&against.speedup, noise), Call::Same | Call::Ambiguous))
}

/// Whether the ratio may be the opposite in another process.
pub fn is_local(against: &Ratio) -> bool {
    against.reproducible.is_some_and(|estimate| estimate.low <= 1.0 && 1.0 <= estimate.high)
}

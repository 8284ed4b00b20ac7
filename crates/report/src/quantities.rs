//! Times, ratios and rates of cases as texts.
//!
//! `number` chooses digits; this module knows which value and which marks a cell shows.

use super::number;
use super::units::{TimeUnit, per_second};
use runner_results::analyse::{self, GroupSummary, is_local, is_noise};
use runner_types::{CaseRecord, Ratio, Records, RegimeResult, Unit};

pub fn time_unit(records: &Records, members: &[usize]) -> TimeUnit {
    let results = members.iter().filter_map(|i| records.cases[*i].result.as_ref());
    TimeUnit::choose(results.filter(|r| r.unit == r.regime.unit()).map(|r| r.time.point))
}

/// The ratio of times, or of rates if cases do different work. `≈` marks a ratio that is not a speedup, since its
/// interval overlaps the noise floor. `†` marks one that holds for this run, although another process's may be on the
/// other side of 1.
pub fn speedup(
    records: &Records,
    group: &GroupSummary,
    record: &CaseRecord,
    against: Option<&Ratio>,
) -> Option<String> {
    let against = analyse::gain(records, group, record, against?)?;
    Some(marked(records, record.result.as_ref()?, &against))
}

pub fn marked(records: &Records, result: &RegimeResult, against: &Ratio) -> String {
    let mark = match () {
        () if is_noise(records, result, against) => " ≈",
        () if is_local(against) => " †",
        () => "",
    };
    ratio(against) + mark
}

/// Writes a ratio, such as `2.150 ± 0.003`, with the interval that covers other processes if it is known.
pub fn ratio(ratio: &Ratio) -> String {
    number::ratio(&ratio.reproducible.unwrap_or(ratio.speedup))
}

/// Rate of the least bytes that the job must move.
pub fn bandwidth(record: &CaseRecord, result: Option<&RegimeResult>) -> Option<String> {
    let result = result?;
    let rate = per_second(record.work.bytes? as f64, &result.time) / 1e9;
    Some(number::derived(rate, &result.time, 1))
}

/// The job's rate divided by the data-sheet peak, which refers to the clock of the device.
pub fn percent_of_peak(record: &CaseRecord, result: &RegimeResult, peak: f64) -> Option<String> {
    if result.unit != Unit::DeviceNanoseconds {
        return None;
    }
    let rate = per_second(record.work.bytes? as f64, &result.time);
    Some(number::derived(rate / peak * 100.0, &result.time, 1))
}

/// Share of the measured roof that the time reaches.
pub fn percent_of_ceiling(records: &Records, record: &CaseRecord, result: Option<&RegimeResult>) -> Option<String> {
    let (result, ceilings) = (result?, records.environment.machine.ceilings.as_ref()?);
    let share = analyse::share_of_roof(&record.work, &result.time, result.unit, ceilings)?;
    Some(number::derived(share * 100.0, &result.time, 1))
}

/// Rate of the job's floating-point operations.
pub fn gflops(record: &CaseRecord, result: Option<&RegimeResult>) -> Option<String> {
    let result = result?;
    let rate = per_second(record.work.flops?, &result.time) / 1e9;
    Some(number::derived(rate, &result.time, 1))
}

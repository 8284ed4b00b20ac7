//! Writes times, ratios and rates as texts.

use super::number;
use super::units::{TimeUnit, per_second};
use crate::analyse::{self, GroupSummary, is_local, is_noise};
use crate::model::{CaseRecord, Ratio, Records, RegimeResult, Unit};

/// Returns the unit of a group's times.
pub fn time_unit(records: &Records, members: &[usize]) -> TimeUnit {
    let results = members.iter().filter_map(|i| records.cases[*i].result.as_ref());
    TimeUnit::choose(results.filter(|r| r.unit == r.regime.unit()).map(|r| r.time.point))
}

/// Returns the ratio, of rates where cases do different work. `≈` marks one that is no speedup, since its interval
/// overlaps the noise floor. `†` marks one that holds for this run, while that of another process may be on the other
/// side of 1.
pub fn speedup(
    records: &Records,
    group: &GroupSummary,
    record: &CaseRecord,
    against: Option<&Ratio>,
) -> Option<String> {
    let against = analyse::gain(records, group, record, against?)?;
    Some(marked(records, record.result.as_ref()?, &against))
}

/// Returns a ratio of a result with its mark.
pub fn marked(records: &Records, result: &RegimeResult, against: &Ratio) -> String {
    let mark = match () {
        () if is_noise(records, result, against) => " ≈",
        () if is_local(against) => " †",
        () => "",
    };
    ratio(against) + mark
}

/// `2.150 ± 0.003`, with the interval that covers other processes if it is known.
pub fn ratio(ratio: &Ratio) -> String {
    number::ratio(&ratio.reproducible.unwrap_or(ratio.speedup))
}

/// Returns the rate of the least bytes that the job must move.
pub fn bandwidth(record: &CaseRecord, result: Option<&RegimeResult>) -> Option<String> {
    let result = result?;
    let rate = per_second(record.work.bytes? as f64, &result.time) / 1e9;
    Some(number::derived(rate, &result.time, 1))
}

/// Returns the job's rate over the peak of the data sheet, which refers to the clock of the device.
pub fn percent_of_peak(record: &CaseRecord, result: &RegimeResult, peak: f64) -> Option<String> {
    if result.unit != Unit::DeviceNanoseconds {
        return None;
    }
    let rate = per_second(record.work.bytes? as f64, &result.time);
    Some(number::derived(rate / peak * 100.0, &result.time, 1))
}

/// Returns the share of the measured roof that the time reaches.
pub fn percent_of_ceiling(records: &Records, record: &CaseRecord, result: Option<&RegimeResult>) -> Option<String> {
    let (result, ceilings) = (result?, records.environment.machine.ceilings.as_ref()?);
    let share = analyse::share_of_roof(&record.work, &result.time, result.unit, ceilings)?;
    Some(number::derived(share * 100.0, &result.time, 1))
}

/// Returns the rate of the job's floating-point operations.
pub fn gflops(record: &CaseRecord, result: Option<&RegimeResult>) -> Option<String> {
    let result = result?;
    let rate = per_second(record.work.flops?, &result.time) / 1e9;
    Some(number::derived(rate, &result.time, 1))
}

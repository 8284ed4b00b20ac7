//! Times, ratios and rates of cases as text.
//!
//! `number` chooses the digits; this module chooses the value and its marks.

use super::number;
use super::units::{TimeUnit, per_second};
use runner_results::analyse::{self, GroupSummary, is_local, is_noise};
use runner_types::{CaseRecord, Ratio, Records, RegimeResult, Unit};

pub fn time_unit(records: &Records, members: &[usize]) -> TimeUnit {
    let results = members.iter().filter_map(|i| records.cases[*i].result.as_ref());
    TimeUnit::choose(results.filter(|r| r.unit == r.regime.unit()).map(|r| r.time.point))
}

/// Ratio of times, or of rates if cases do different work. `≈` marks a ratio whose interval overlaps the noise floor,
/// so it is not a speedup. `†` marks one that holds for this run, although another process might measure one on the
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

/// Formats a ratio, such as `2.150 ± 0.003`, with the interval that covers variation between processes, if known.
pub fn ratio(ratio: &Ratio) -> String {
    number::ratio(&ratio.reproducible.unwrap_or(ratio.speedup))
}

/// Rate of the minimum bytes that the job must move.
pub fn bandwidth(record: &CaseRecord, result: Option<&RegimeResult>) -> Option<String> {
    let result = result?;
    let rate = per_second(record.work.bytes? as f64, &result.time) / 1e9;
    Some(number::derived(rate, &result.time, 1))
}

/// The job's rate as a percentage of the data-sheet peak, which assumes the device's clock.
pub fn percent_of_peak(record: &CaseRecord, result: &RegimeResult, peak: f64) -> Option<String> {
    if result.unit != Unit::DeviceNanoseconds {
        return None;
    }
    let rate = per_second(record.work.bytes? as f64, &result.time);
    Some(number::derived(rate / peak * 100.0, &result.time, 1))
}

/// Percentage of the measured roofline that the time reaches.
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

//! Times, ratios and rates of cases as text.
//!
//! `number` chooses the digits; this module chooses the value and its marks.

use super::bound::is_arithmetic;
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

/// Bandwidth in GB/s: the minimum bytes that the job must move, divided by its time.
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

/// Describes the time and rate reached: `1.1712 ± 0.0011 ms, 2750 GB/s (82.0 % of peak, 86.2 % of the measured
/// ceiling)`.
pub fn achievement(records: &Records, group: &GroupSummary, record: &CaseRecord) -> String {
    let Some(result) = &record.result else { return String::new() };
    let unit = time_unit(records, &group.members);
    let time = format!("{} {}", number::plus_minus(&result.time, unit.nanoseconds()), unit.symbol());
    let rate = rate(records, record, result).map(|rate| format!(", {rate}")).unwrap_or_default();
    let peak = peak_percent(records, record, result).map(|p| format!("{p} % of peak"));
    let ceiling = percent_of_ceiling(records, record, Some(result)).map(|p| format!("{p} % of the measured ceiling"));
    let shares: Vec<String> = peak.into_iter().chain(ceiling).collect();
    let shares = if shares.is_empty() { String::new() } else { format!(" ({})", shares.join(", ")) };
    format!("{time}{rate}{shares}")
}

/// The rate that limits the job: operations if arithmetic bounds it, otherwise bytes.
pub fn rate(records: &Records, record: &CaseRecord, result: &RegimeResult) -> Option<String> {
    let bytes = || bandwidth(record, Some(result)).map(|rate| format!("{rate} GB/s"));
    let operations = || gflops(record, Some(result)).map(|rate| format!("{rate} GFLOP/s"));
    if is_arithmetic(records, record) { operations() } else { bytes().or_else(operations) }
}

/// Percentage of the data-sheet bandwidth, for jobs that arithmetic does not bound.
pub fn peak_percent(records: &Records, record: &CaseRecord, result: &RegimeResult) -> Option<String> {
    let peak = records.environment.device.peak_bandwidth().filter(|_| !is_arithmetic(records, record))?;
    percent_of_peak(record, result, peak)
}

//! How a report was made: machine settings, and the meaning of the numbers.

use super::wording;
use runner_types::{CaseRecord, Records};

/// Sentences on the meaning of the numbers and the machine settings; may be empty.
pub fn method(records: &Records, has_times: bool) -> Vec<String> {
    let machine = wording::conditions(&records.environment.machine).into_iter().map(|line| line + ".");
    let mut lines: Vec<String> = machine.collect();
    if has_times {
        lines.extend(timing(records));
    }
    if records.cases.iter().any(|r| r.energy.is_some()) {
        lines.push(
            "Energy is the whole board's by NVML, idle power included, from a separate pass of back-to-back runs; \
             ± is one step of the counter."
                .to_owned(),
        );
    }
    let counted = records.cases.iter().any(|r| r.counters.is_some());
    if let Some(method) = records.environment.counting_method.as_ref().filter(|_| counted) {
        lines.push(format!("Hardware counters are from {method}."));
        if has_times {
            lines.push("Timed launches are not profiled, and profiled launches are not timed.".to_owned());
        }
    }
    lines
}

fn timing(records: &Records) -> Vec<String> {
    let mut lines =
        vec!["Times are medians; ± is the wider half of the 95 % confidence interval (order statistics).".to_owned()];
    if records.header.baseline.is_some() {
        lines.push(
            "A speedup is the trimmed mean of the ratios of single rounds, each of which runs every variant once in \
             random order; its interval is a bootstrap over rounds."
                .to_owned(),
        );
    }
    lines.extend(records.header.noise.iter().map(|floor| wording::noise(floor, records.header.noise.len() > 1)));
    lines.extend(wording::samples(records));
    let host = |r: &&CaseRecord| r.result.as_ref().is_some_and(|r| r.unit != r.regime.unit());
    if records.cases.iter().any(|r| host(&r)) {
        lines.push(
            "Times marked (host) were measured with the CPU's clock; their speedups are ratios of medians.".to_owned(),
        );
    }
    lines.extend(records.environment.timing_method.clone());
    if records.cases.iter().any(|r| r.work.bytes.is_some()) {
        lines.push("GB/s are computed from the fewest bytes the job must move; 1 GB is 10⁹ bytes.".to_owned());
    }
    if records.environment.machine.ceilings.is_some() {
        lines.push(
            "% of ceiling: the least time that the measured ceilings allow for the stated work (memory at the highest \
             of the rates, arithmetic at that of f32 multiply-adds), divided by the median; bound is the greater of \
             the two. Times up to 10 % below the least time count as at the ceiling."
                .to_owned(),
        );
    }
    lines
}

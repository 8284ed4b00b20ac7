//! Results of new cases: their time and rank in their group, or their counts relative to the baseline's.

use std::collections::HashMap;

use super::{Kind, Row};
use crate::analyse::contender::is_baseline;
use runner_types::{CaseKey, CaseRecord, CounterInfo, Counters, Estimate, GroupKey, Records, Regime, Unit};

/// Results of a case that the base does not have.
#[derive(Debug, Clone, PartialEq)]
pub struct Newcomer {
    /// `None` if nothing was timed.
    pub time: Option<Estimate>,
    /// 1-based rank by time among the group's cases on the same clock, and the number of these; `None` if no other was
    /// timed.
    pub place: Option<(usize, usize)>,
    /// Time of the baseline divided by this case's.
    pub speedup: Option<f64>,
    /// Nonzero deciding counters: name, count, and ratio to the baseline's count.
    pub counts: Vec<(String, f64, Option<f64>)>,
}

/// Adds the results of new cases to their rows.
pub(super) fn describe(records: &Records, rows: &mut [Row]) {
    if !rows.iter().any(|row| row.change.kind == Kind::New) {
        return;
    }
    let mut times: HashMap<(&GroupKey, Regime, Unit), Vec<f64>> = HashMap::new();
    let mut baselines: HashMap<&GroupKey, &Counters> = HashMap::new();
    let mut found: HashMap<(&CaseKey, Option<Regime>), &CaseRecord> = HashMap::new();
    for record in &records.cases {
        let (case, result) = (&record.case, record.result.as_ref());
        found.insert((&case.key, result.map(|result| result.regime)), record);
        if let Some(result) = result.filter(|_| !record.outcome.is_failure()) {
            times.entry((&case.group, result.regime, result.unit)).or_default().push(result.time.point);
        }
        if let Some(counters) = record.counters.as_ref().filter(|_| is_baseline(&records.header, case)) {
            baselines.insert(&case.group, counters);
        }
    }
    for change in rows.iter_mut().map(|row| &mut row.change).filter(|change| change.kind == Kind::New) {
        let Some(record) = found.get(&(&change.case.key, change.regime)) else { continue };
        let group = &record.case.group;
        let result = record.result.as_ref();
        let place = result.and_then(|result| {
            let times = times.get(&(group, result.regime, result.unit)).filter(|times| times.len() > 1)?;
            Some((1 + times.iter().filter(|time| **time < result.time.point).count(), times.len()))
        });
        change.newcomer = Some(Newcomer {
            time: result.map(|result| result.time),
            place,
            speedup: result.and_then(|result| Some(result.against_baseline.as_ref()?.speedup.point)),
            counts: counts(record, baselines.get(group).copied()),
        });
    }
}

fn counts(record: &CaseRecord, baseline: Option<&Counters>) -> Vec<(String, f64, Option<f64>)> {
    let counts = record.counters.iter().flat_map(|counters| &counters.0);
    let deciding = counts
        .filter(|(name, count)| **count > 0.0 && CounterInfo::named(name.as_ref()).is_some_and(CounterInfo::decides));
    let beside = |name: &str, count: f64| baseline?.get(name).filter(|base| *base > 0.0).map(|base| count / base);
    deciding.map(|(name, count)| (name.as_ref().to_owned(), *count, beside(name.as_ref(), *count))).collect()
}

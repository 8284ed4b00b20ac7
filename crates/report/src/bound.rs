//! Whether memory or arithmetic bounds a job, and the name of a group. Shared by tables, charts and findings.

use super::units;
use runner_results::analyse::{self, Bound};
use runner_types::{CaseRecord, GroupKey, Records, Value};

/// Whether arithmetic bounds the job, judged by the measured ceilings.
pub fn is_arithmetic(records: &Records, record: &CaseRecord) -> bool {
    let ceilings = records.environment.machine.ceilings.as_ref();
    ceilings.and_then(|ceilings| analyse::bound(&record.work, ceilings)) == Some(Bound::Arithmetic)
}

/// Axes of a group as text, without those that are constant.
pub fn group_text(key: &GroupKey, constant: &[(String, Value)]) -> String {
    units::axes_text(key.0.iter().filter(|axis| !constant.contains(axis)))
}

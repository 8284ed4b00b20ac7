//! What bounds a job, and how a group is called.

use super::units;
use crate::analyse::{self, Bound};
use crate::model::{CaseRecord, GroupKey, Records, Value};

/// Whether the job is bound by arithmetic and not memory, by the measured ceilings.
pub fn is_arithmetic(records: &Records, record: &CaseRecord) -> bool {
    let ceilings = records.environment.machine.ceilings.as_ref();
    ceilings.and_then(|ceilings| analyse::bound(&record.work, ceilings)) == Some(Bound::Arithmetic)
}

/// Returns the axes of a group in words, without those that are the same everywhere.
pub fn group_text(key: &GroupKey, constant: &[(String, Value)]) -> String {
    units::axes_text(key.0.iter().filter(|axis| !constant.contains(axis)))
}

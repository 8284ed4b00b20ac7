//! Compares the opcode counts of the machine code.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use runner_types::{CaseRecord, operation_counts};

/// Change in the instruction count of one opcode, e.g. `LDG`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OperationChange {
    /// Opcode without modifiers.
    pub name: String,
    /// Number of instructions in the base.
    pub base: u32,
    /// Number of instructions in the new report.
    pub new: u32,
}

/// Opcodes whose counts differ, largest change first; empty if unknown on a side.
pub(super) fn compare_operations(sides: [&CaseRecord; 2]) -> Vec<OperationChange> {
    let counts = |record: &CaseRecord| -> Option<BTreeMap<String, u32>> {
        let operations = record.hashes.as_ref()?.operations.as_ref()?;
        Some(operation_counts(operations).map(|(name, count)| (name.to_owned(), count)).collect())
    };
    let [Some(base), Some(new)] = sides.map(counts) else { return Vec::new() };
    let names: BTreeSet<&String> = base.keys().chain(new.keys()).collect();
    let count = |side: &BTreeMap<String, u32>, name: &String| side.get(name).copied().unwrap_or(0);
    let change =
        |name: &String| OperationChange { name: name.clone(), base: count(&base, name), new: count(&new, name) };
    let mut changes: Vec<_> = names.into_iter().map(change).filter(|change| change.base != change.new).collect();
    changes.sort_by_key(|change| (std::cmp::Reverse(change.base.abs_diff(change.new)), change.name.clone()));
    changes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyse::compare::tests::fixture;
    use runner_types::CaseHashes;

    fn changed(base: Option<&str>, new: Option<&str>) -> Vec<(String, u32, u32)> {
        let side = |operations: Option<&str>| {
            let record = fixture::case(1);
            let hashes = record.hashes.map(|hashes| CaseHashes { operations: operations.map(str::to_owned), ..hashes });
            CaseRecord { hashes, ..record }
        };
        let changes = compare_operations([&side(base), &side(new)]);
        changes.into_iter().map(|OperationChange { name, base, new }| (name, base, new)).collect()
    }

    #[test]
    fn operations_that_changed_most_come_first_and_those_of_one_side_are_none_on_the_other() {
        let change = |name: &str, base, new| (name.to_owned(), base, new);
        assert_eq!(
            changed(Some("BAR 2 EXIT 1 LDG 4"), Some("BAR 3 EXIT 1 LDG 8 STS 1")),
            [change("LDG", 4, 8), change("BAR", 2, 3), change("STS", 0, 1)]
        );
        assert_eq!(changed(Some("BAR 2"), Some("BAR 2")), []);
        assert_eq!(changed(None, Some("BAR 2")), [], "a report of before has none");
    }
}

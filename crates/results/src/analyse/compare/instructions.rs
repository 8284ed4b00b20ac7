//! Lists individual machine instructions that were added or removed, if there are few.

use serde::Serialize;

use super::alignment::common;
use runner_types::{CaseRecord, ListedOperation, list_of, listed_operations};

/// Maximum number of changed instructions to list. Beyond this, opcode counts are more useful.
const MOST: usize = 12;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct InstructionChange {
    /// Whether only the new report has it, rather than only the base.
    pub added: bool,
    #[serde(flatten)]
    pub instruction: ListedOperation,
}

/// Instructions that only one side has, in order; empty if a side does not list them, or if there are too many. Ignores
/// registers and addresses, which change with every other instruction.
pub(super) fn compare_instructions(sides: [&CaseRecord; 2]) -> Vec<InstructionChange> {
    let list = |record: &CaseRecord| {
        let list = list_of(record.hashes.as_ref()?.operations.as_ref()?);
        (!list.is_empty()).then(|| listed_operations(list))
    };
    let [Some(base), Some(new)] = sides.map(list) else { return Vec::new() };
    if base.len().abs_diff(new.len()) > MOST {
        return Vec::new();
    }
    let changes = differences(&base, &new);
    if changes.len() > MOST { Vec::new() } else { changes }
}

/// Instructions outside a longest common subsequence. One that only moved within its line is not a change.
fn differences(base: &[ListedOperation], new: &[ListedOperation]) -> Vec<InstructionChange> {
    let mut places = common(base, new, |base, new| base.name == new.name);
    places.push([base.len(), new.len()]);
    let (mut changes, mut from) = (Vec::new(), [0, 0]);
    let change = |added, instruction: &ListedOperation| InstructionChange { added, instruction: instruction.clone() };
    for [b, n] in places {
        changes.extend(base[from[0]..b].iter().map(|instruction| change(false, instruction)));
        changes.extend(new[from[1]..n].iter().map(|instruction| change(true, instruction)));
        from = [b + 1, n + 1];
    }
    without_moved(changes)
}

fn without_moved(changes: Vec<InstructionChange>) -> Vec<InstructionChange> {
    let mut kept: Vec<InstructionChange> = Vec::new();
    for change in changes {
        let is_back = |other: &InstructionChange| {
            other.added != change.added && other.instruction == change.instruction && change.instruction.place.is_some()
        };
        match kept.iter().position(is_back) {
            Some(place) => drop(kept.remove(place)),
            None => kept.push(change),
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyse::compare::tests::fixture;
    use runner_types::CaseHashes;

    fn changed(base: &str, new: &str) -> Vec<String> {
        let side = |list: &str| {
            let record = fixture::case(1);
            let operations = Some(format!("LDG 1 ; {list}"));
            CaseRecord { hashes: record.hashes.map(|hashes| CaseHashes { operations, ..hashes }), ..record }
        };
        let changes = compare_instructions([&side(base), &side(new)]);
        let text = |InstructionChange { added, instruction: ListedOperation { name, place } }| {
            format!("{}{name} {}", if added { '+' } else { '-' }, place.unwrap_or_default())
        };
        changes.into_iter().map(text).collect()
    }

    #[test]
    fn instructions_of_one_side_alone_are_found_with_their_lines() {
        let base = "S2R k.cu:1 LDG :2 FADD :3 BAR :4 STG :5 EXIT -";
        let new = "S2R k.cu:1 LDG :2 LDG :3 FADD :4 STG :6 EXIT -";
        assert_eq!(changed(base, new), ["+LDG k.cu:3", "-BAR k.cu:4"]);
        assert_eq!(changed(new, base), ["-LDG k.cu:3", "+BAR k.cu:4"]);
        assert_eq!(changed(base, base), [""; 0]);
        assert_eq!(changed("LDG k.cu:1 BAR :2 FADD :3", "LDG k.cu:1 FADD :2 BAR :3"), ["-BAR k.cu:2", "+BAR k.cu:3"]);
    }

    #[test]
    fn many_changes_and_a_side_without_a_list_have_none() {
        let many = |name: &str, count: usize| vec![format!("{name} k.cu:1"); count].join(" ");
        assert_eq!(changed(&many("LDG", 3), &many("LDG", 15)).len(), 12);
        assert_eq!(changed(&many("LDG", 3), &many("LDG", 16)), [""; 0]);
        assert_eq!(changed(&many("LDG", 7), &many("STG", 7)), [""; 0]);
        assert_eq!(changed("", &many("STG", 1)), [""; 0]);
    }
}

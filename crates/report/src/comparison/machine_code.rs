//! Differences in the machine code of a case, as text.

use runner_lang::format::plural;
use runner_results::analyse::compare::{Change, InstructionChange, OperationChange};

/// Maximum number of changed opcodes to list; further ones are only counted.
const MOST_OPERATIONS: usize = 4;

/// Maximum number of individual instructions to list; beyond it, counts per opcode say more.
const MOST_INSTRUCTIONS: usize = 4;

/// Individual changed instructions if they are few, otherwise changed counts per opcode: `machine code: + BAR at new sum.cu:16`,
/// `machine code: SHFL 0 → 5, FADD 2 → 7`.
pub fn text(change: &Change) -> Option<String> {
    let is_few = (1..=MOST_INSTRUCTIONS).contains(&change.instructions.len());
    let parts = if is_few { instructions(&change.instructions) } else { operations(&change.operations) };
    (!parts.is_empty()).then(|| format!("machine code: {}", parts.join(", ")))
}

/// Opcodes that only one side has come first, then those whose counts changed most.
fn operations(changes: &[OperationChange]) -> Vec<String> {
    let mut sorted: Vec<&OperationChange> = changes.iter().collect();
    sorted.sort_by_key(|change| {
        let is_of_one = change.base == 0 || change.new == 0;
        (!is_of_one, std::cmp::Reverse(change.base.abs_diff(change.new)))
    });
    let shown = sorted.into_iter().take(MOST_OPERATIONS);
    let mut parts: Vec<String> =
        shown.map(|OperationChange { name, base, new }| format!("{name} {base} → {new}")).collect();
    let more = changes.len().saturating_sub(MOST_OPERATIONS);
    parts.extend((more > 0).then(|| plural(more as u64, "other opcode")));
    parts
}

/// Instructions that only one side has: `+ LDG at new load.cuh:1`, `− BAR at former scale.cu:8`.
fn instructions(changes: &[InstructionChange]) -> Vec<String> {
    let one = |InstructionChange { added, instruction }: &InstructionChange| {
        let side = if *added { "new" } else { "former" };
        let place = instruction.place.as_ref().map_or_else(String::new, |place| format!(" at {side} {place}"));
        format!("{} {}{place}", if *added { '+' } else { '−' }, instruction.name)
    };
    changes.iter().map(one).collect()
}

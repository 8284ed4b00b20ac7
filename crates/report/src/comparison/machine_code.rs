//! Differences in the machine code of a case, as text.

use runner_results::analyse::compare::{Change, InstructionChange, OperationChange};

/// Maximum number of changed opcodes to list; further ones are counted.
const MOST_OPERATIONS: usize = 4;

/// Sentences on changed opcode counts and on individual changed instructions.
pub fn texts(change: &Change) -> impl Iterator<Item = String> {
    [operations(&change.operations), instructions(&change.instructions)].into_iter().flatten()
}

/// Opcodes whose instruction counts changed most: `machine code: LDG 4 → 8, BAR 2 → 3`.
fn operations(changes: &[OperationChange]) -> Option<String> {
    let shown = changes.iter().take(MOST_OPERATIONS);
    let mut parts: Vec<String> =
        shown.map(|OperationChange { name, base, new }| format!("{name} {base} → {new}")).collect();
    let more = changes.len().saturating_sub(MOST_OPERATIONS);
    parts.extend((more > 0).then(|| format!("{more} more")));
    (!parts.is_empty()).then(|| format!("machine code: {}", parts.join(", ")))
}

/// Instructions that only one side has: `instructions: + LDG at load.cuh:1, − BAR at scale.cu:8`.
fn instructions(changes: &[InstructionChange]) -> Option<String> {
    let one = |InstructionChange { added, instruction }: &InstructionChange| {
        let place = instruction.place.as_ref().map_or_else(String::new, |place| format!(" at {place}"));
        format!("{} {}{place}", if *added { '+' } else { '−' }, instruction.name)
    };
    let parts: Vec<String> = changes.iter().map(one).collect();
    (!parts.is_empty()).then(|| format!("instructions: {}", parts.join(", ")))
}

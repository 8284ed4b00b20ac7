//! Derives how often machine instructions were executed from the counts of PTX instructions.
//!
//! All instructions of a basic block are executed equally often. The compiler moves, merges and copies instructions, so
//! not each says how often its block was executed: one that comes from a PTX instruction with copies in other blocks does
//! not, nor one that was made conditional. Stores, atomics, barriers and branches cannot be moved out of their block, so
//! they decide where a block has some; otherwise all others must agree. A block in which they do not has no count.

use std::collections::{BTreeMap, BTreeSet};

use crate::{INSTRUCTION_BYTES, Instruction, Listing};

/// Instructions after which a block ends.
const ENDS: [&str; 11] = ["BRA", "BRX", "BRXU", "JMP", "JMX", "EXIT", "RET", "CALL", "BSYNC", "KILL", "BPT"];
/// Instructions whose operand is the offset of a block.
const LEADS: [&str; 4] = ["BRA", "BSSY", "CALL", "JMP"];
/// Instructions that stay in their block.
const STAYS: [&str; 10] = ["ST", "STG", "STS", "STL", "ATOM", "ATOMG", "ATOMS", "RED", "BAR", "BRA"];

impl Listing {
    /// Returns how many warps executed each instruction, given how many executed each line of the PTX; `None` where the
    /// counts do not say, and `count` returns `None` for lines that are no instructions.
    pub fn executed(&self, count: impl Fn(u32) -> Option<u64>) -> Vec<Option<u64>> {
        let blocks = self.blocks();
        let mut places: BTreeMap<u32, BTreeSet<usize>> = BTreeMap::new();
        for (instruction, block) in self.instructions.iter().zip(&blocks) {
            places.entry(instruction.ptx_line.unwrap_or(0)).or_default().insert(*block);
        }
        let said = |instruction: &Instruction| {
            let line = instruction.ptx_line.filter(|line| places[line].len() == 1)?;
            count(line)
        };
        let mut each = vec![None; self.instructions.len()];
        let mut first = 0;
        for members in self.instructions.chunk_by(|a, b| blocks[index(self, a)] == blocks[index(self, b)]) {
            let stays =
                |i: &&Instruction| STAYS.contains(&i.operation()) && (i.predicate.is_empty() || i.operation() == "BRA");
            let agreed = agreed(members.iter().filter(stays).filter_map(said));
            let agreed = match agreed {
                Agreed::Nothing => self::agreed(members.iter().filter(|i| i.predicate.is_empty()).filter_map(said)),
                decided => decided,
            };
            if let Agreed::On(count) = agreed {
                each[first..first + members.len()].fill(Some(count));
            }
            first += members.len();
        }
        let padding = self.instructions.iter().rev().take_while(|i| i.is_padding()).count();
        each[self.instructions.len() - padding..].fill(Some(0));
        each
    }

    /// Returns the number of the basic block of each instruction.
    fn blocks(&self) -> Vec<usize> {
        let leads = self.instructions.iter().filter(|i| LEADS.contains(&i.operation()));
        let leaders: BTreeSet<u64> = leads.filter_map(Instruction::target).collect();
        let mut block = 0;
        let mut after_end = false;
        let number = |instruction: &Instruction| {
            block += usize::from(after_end || leaders.contains(&instruction.offset));
            after_end = ENDS.contains(&instruction.operation());
            block
        };
        self.instructions.iter().map(number).collect()
    }
}

fn index(listing: &Listing, instruction: &Instruction) -> usize {
    let start = listing.instructions.first().map_or(0, |first| first.offset);
    usize::try_from((instruction.offset - start) / INSTRUCTION_BYTES).unwrap_or_default()
}

enum Agreed {
    Nothing,
    On(u64),
    Not,
}

fn agreed(mut counts: impl Iterator<Item = u64>) -> Agreed {
    let Some(first) = counts.next() else { return Agreed::Nothing };
    if counts.all(|count| count == first) { Agreed::On(first) } else { Agreed::Not }
}

impl Instruction {
    /// Returns the operation without its modifiers.
    fn operation(&self) -> &str {
        self.opcode.split('.').next().unwrap_or_default()
    }

    /// Whether the instruction only fills the end of the code: no path arrives there.
    fn is_padding(&self) -> bool {
        let endless = self.operation() == "BRA" && self.predicate.is_empty() && self.target() == Some(self.offset);
        self.operation() == "NOP" || endless
    }

    /// Returns the offset that the last operand is.
    fn target(&self) -> Option<u64> {
        let last = self.operands.rsplit([',', ' ']).find(|part| !part.is_empty())?;
        u64::from_str_radix(last.strip_prefix("0x")?, 16).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Control;

    /// Returns a listing of instructions: guard, opcode, operands, line of the PTX.
    fn listing(lines: &[(&str, &str, &str, u32)]) -> Listing {
        let instruction = |(at, (predicate, opcode, operands, line)): (u64, &(&str, &str, &str, u32))| Instruction {
            offset: at * INSTRUCTION_BYTES,
            predicate: (*predicate).to_owned(),
            opcode: (*opcode).to_owned(),
            operands: (*operands).to_owned(),
            word: 0,
            control: Control::decode(0),
            ptx_line: Some(*line),
            source: Vec::new(),
        };
        let instructions = (0..).zip(lines).map(instruction).collect();
        Listing { name: "k".to_owned(), section: 1, instructions, files: Vec::new() }
    }

    /// A loop of 10 rounds after a prologue that one warp executes: lines 1 to 3, lines 4 to 6, line 7.
    fn count(line: u32) -> Option<u64> {
        match line {
            1..=3 | 7 => Some(1),
            4..=6 => Some(10),
            _ => None,
        }
    }

    #[test]
    fn a_block_is_executed_as_often_as_what_stays_in_it_says() {
        // Line 4 was moved in front of the loop; line 5 is the store in it.
        let code = listing(&[
            ("", "LDC", "R1, c[0x0][0x28]", 20),
            ("", "MOV", "R2, R3", 1),
            ("", "STS", "[R2], R3", 2),
            ("", "IADD3", "R4, R5, R6", 4),
            ("", "STG.E", "[R4], R5", 5),
            ("@P0", "BRA", "0x40", 6),
            ("", "EXIT", "", 7),
            ("", "BRA", "0x70", 20),
            ("", "NOP", "", 20),
        ]);
        let (none, one, ten) = (Some(0), Some(1), Some(10));
        assert_eq!(code.executed(count), [one, one, one, one, ten, ten, one, none, none]);
    }

    #[test]
    fn a_block_has_no_count_where_its_instructions_disagree_or_say_nothing() {
        // Lines 1 and 4 disagree. Line 5 was copied to two blocks, and line 20 is no instruction.
        let code = listing(&[
            ("", "MOV", "R2, R3", 1),
            ("", "MOV", "R2, R3", 4),
            ("", "BSYNC", "B0", 20),
            ("", "LDG.E", "R4, [R2]", 5),
            ("", "BSYNC", "B0", 20),
            ("", "LDG.E", "R4, [R2]", 5),
            ("@!P0", "EXIT", "", 7),
            ("@P0", "MOV", "R2, R3", 2),
            ("", "MOV", "R2, R3", 6),
        ]);
        let ten = Some(10);
        assert_eq!(code.executed(count), [None, None, None, None, None, None, None, ten, ten]);
    }
}

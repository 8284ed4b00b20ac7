//! The control-flow graph of machine code: basic blocks and the edges between them. Where lanes diverge or reconverge,
//! a block is not left as many times as it is executed, so each block has a rule for this.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use crate::{INSTRUCTION_BYTES, Instruction, Listing};

/// Operations that end a block.
const ENDS: [&str; 11] = ["BRA", "BRX", "BRXU", "JMP", "JMX", "EXIT", "RET", "CALL", "BSYNC", "KILL", "BPT"];
/// Operations with a block's offset as an operand.
const LEADS: [&str; 4] = ["BRA", "BSSY", "CALL", "JMP"];
/// Branches whose targets are not named in the instruction.
const TABLES: [&str; 3] = ["BRX", "BRXU", "JMX"];

/// How many times a block is left, relative to how many times it is executed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Leaving {
    /// As many times as it is executed.
    Once,
    /// As many times as it is executed, plus once for each divergence at its branch.
    Branch,
    /// As many times as the given blocks are executed, in which the warp's lanes started to wait for each other.
    Together(Vec<usize>),
    /// Unknown, because lanes exit or the targets are not named.
    Unknown,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Edge {
    pub from: usize,
    pub to: usize,
}

/// Basic blocks of a function.
#[derive(Debug, Clone, Default)]
pub struct Blocks {
    pub members: Vec<Range<usize>>,
    pub of: Vec<usize>,
    pub edges: Vec<Edge>,
    /// Outgoing edges of each block.
    pub out: Vec<Vec<usize>>,
    /// Incoming edges of each block.
    pub into: Vec<Vec<usize>>,
    pub leaving: Vec<Leaving>,
    /// Calls, as edges from the calling to the called block.
    pub calls: Vec<Edge>,
    /// Blocks that are executed only by lanes that diverged before a warp-wide instruction.
    pub apart: BTreeSet<usize>,
    /// The block of padding at the end of the code.
    pub padding: Option<usize>,
    /// Whether all edges are known.
    pub is_whole: bool,
}

impl Blocks {
    /// Divides the instructions of a function into blocks.
    pub fn divide(listing: &Listing) -> Self {
        let instructions = &listing.instructions;
        let filled = instructions.iter().rev().take_while(|instruction| instruction.is_padding()).count();
        let end = instructions.len() - filled;
        let leads = instructions.iter().filter(|instruction| LEADS.contains(&instruction.operation()));
        let leaders: BTreeSet<u64> = leads.filter_map(Instruction::target).collect();
        let mut blocks = Self { is_whole: true, ..Self::default() };
        let mut after_end = true;
        for (at, instruction) in instructions.iter().enumerate() {
            if after_end || at == end || leaders.contains(&instruction.offset) {
                blocks.members.push(at..at);
            }
            after_end = ENDS.contains(&instruction.operation());
            if let Some(last) = blocks.members.last_mut() {
                last.end = at + 1;
            }
            blocks.of.push(blocks.members.len() - 1);
        }
        blocks.padding = (filled > 0).then(|| blocks.of[end]);
        blocks.link(instructions);
        (blocks.out, blocks.into) = (vec![Vec::new(); blocks.members.len()], vec![Vec::new(); blocks.members.len()]);
        for (at, edge) in blocks.edges.iter().enumerate() {
            blocks.out[edge.from].push(at);
            blocks.into[edge.to].push(at);
        }
        blocks
    }

    fn link(&mut self, instructions: &[Instruction]) {
        let first = |members: &Range<usize>| instructions[members.start].offset;
        let at: BTreeMap<u64, usize> = self.members.iter().map(first).zip(0..).collect();
        let mut waits: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
        for (instruction, block) in instructions.iter().zip(&self.of) {
            if instruction.operation() == "BSSY"
                && let Some(target) = instruction.target()
            {
                waits.entry(target).or_default().push(*block);
            }
        }
        for from in 0..self.members.len() {
            if self.padding == Some(from) {
                self.leaving.push(Leaving::Unknown);
                continue;
            }
            let last = &instructions[self.members[from].end - 1];
            let target = last.target().and_then(|target| at.get(&target)).copied();
            let is_conditional = last.is_conditional();
            let mut next = |to: Option<usize>| {
                self.edges.extend(to.filter(|to| *to < self.members.len()).map(|to| Edge { from, to }));
            };
            let leaving = match last.operation() {
                "BRA" | "JMP" => {
                    next(target);
                    if is_conditional {
                        next(Some(from + 1));
                    }
                    if last.is_for_diverged_lanes() {
                        self.apart.extend(target);
                    }
                    match target {
                        None => Leaving::Unknown,
                        Some(_) if is_conditional && !last.is_for_diverged_lanes() => Leaving::Branch,
                        Some(_) => Leaving::Once,
                    }
                }
                "BSYNC" => {
                    next(Some(from + 1));
                    let before = waits.remove(&(last.offset + INSTRUCTION_BYTES)).unwrap_or_default();
                    let begin = before.iter().map(|block| self.members[*block].start).min();
                    // Lanes that begin to wait further on are not followed.
                    let within = instructions.get(begin.unwrap_or(0)..self.members[from].end).unwrap_or_default();
                    let barrier = last.operands.trim();
                    let breaks = |one: &Instruction| one.operation() == "BREAK" && one.operands.trim() == barrier;
                    if before.is_empty()
                        || within.is_empty()
                        || within.iter().any(|one| one.operation() == "EXIT")
                        || is_conditional
                    {
                        Leaving::Unknown
                    } else if within.iter().any(breaks) {
                        // Lanes that break out meet the others further on. Until then, the simulator keeps all of them
                        // separate.
                        Leaving::Once
                    } else {
                        Leaving::Together(before)
                    }
                }
                "CALL" => {
                    next(Some(from + 1));
                    self.calls.extend(target.map(|to| Edge { from, to }));
                    Leaving::Once
                }
                "EXIT" | "RET" | "KILL" | "BPT" | "BRX" | "BRXU" | "JMX" => {
                    self.is_whole &= !TABLES.contains(&last.operation());
                    if is_conditional {
                        next(Some(from + 1));
                    }
                    Leaving::Unknown
                }
                _ => {
                    next(Some(from + 1));
                    Leaving::Once
                }
            };
            self.leaving.push(leaving);
        }
    }

    pub fn is_loop(&self, block: usize) -> bool {
        self.out[block].iter().any(|edge| self.edges[*edge].to == block)
    }

    pub fn predecessors(&self, block: usize) -> impl Iterator<Item = usize> {
        self.into[block].iter().map(|edge| self.edges[*edge].from)
    }
}

impl Instruction {
    /// Operation without modifiers.
    pub fn operation(&self) -> &str {
        self.opcode.split('.').next().unwrap_or_default()
    }

    /// Whether the instruction is unreachable padding at the end of the code.
    fn is_padding(&self) -> bool {
        let endless = self.operation() == "BRA" && self.predicate.is_empty() && self.target() == Some(self.offset);
        self.operation() == "NOP" || endless
    }

    /// Whether the branch is taken only by lanes that diverged before a warp-wide instruction.
    pub(crate) fn is_for_diverged_lanes(&self) -> bool {
        self.opcode.contains(".DIV") || self.opcode.contains(".CONV")
    }

    /// Whether the branch or exit is conditional.
    pub(crate) fn is_conditional(&self) -> bool {
        let is_predicate = |operand: &str| {
            let name = operand.trim_start_matches('!').trim_start_matches('U');
            name.strip_prefix('P').is_some_and(|number| number.starts_with(|digit: char| digit.is_ascii_digit()))
        };
        let has_predicate = || self.operands.split([',', ' ']).any(is_predicate);
        !self.predicate.is_empty() || self.operation() == "BRA" && (self.is_for_diverged_lanes() || has_predicate())
    }

    pub(crate) fn operand_list(&self) -> Vec<&str> {
        self.operands.split(',').map(str::trim).collect()
    }

    /// Whether the instruction writes a register or predicate, which is then among its first operands.
    pub(crate) fn writes(&self, name: &str) -> bool {
        self.operand_list().iter().take(2).any(|operand| *operand == name)
    }

    /// Returns the offset in the last operand, if it is one.
    pub(crate) fn target(&self) -> Option<u64> {
        let last = self.operands.rsplit([',', ' ']).find(|part| !part.is_empty())?;
        u64::from_str_radix(last.strip_prefix("0x")?, 16).ok()
    }
}

//! Derives how often machine instructions were executed from the counts of PTX instructions.
//!
//! All instructions of a basic block are executed equally often, and a block is left as often as it is executed, but where
//! lanes diverge, come together or exit. The compiler moves, merges and copies instructions, so not each says how often its
//! block was executed. What it cannot move does: branches, stores, atomics, barriers and instructions of a whole warp. From
//! these the counts of other blocks follow, those of blocks without any instruction of the PTX among them. Where that does
//! not decide, instructions of the block that agree do; and copies of a loop's body are executed as if all warps had gone
//! through the loop alike, the longest copies first.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use crate::balance::Balance;
use crate::blocks::{Blocks, Leaving};
use crate::{Instruction, Listing};

/// Operations that stay where the PTX has them.
const STAYS: [&str; 13] =
    ["BRA", "ST", "STG", "STS", "STL", "BAR", "ATOM", "ATOMG", "ATOMS", "RED", "REDG", "SHFL", "REDUX"];
/// How the names of functions begin that the compiler adds.
const ADDED_FUNCTION: &str = "$__internal_";
/// Operations that the compiler adds where it needs them, whatever line they name.
const ADDED: [&str; 11] = ["BRA", "BSYNC", "BSSY", "EXIT", "NOP", "WARPSYNC", "S2R", "LDC", "ULDC", "CS2R", "PLOP3"];

/// How often the simulator executed a line of the PTX, and how often lanes diverged there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LineCount {
    /// How many warps executed it.
    pub warps: u64,
    /// How often lanes diverged there; `None` if the line is no branch.
    pub diverged: Option<u64>,
}

impl Listing {
    /// Returns how many warps executed each instruction, given what was counted of each line of the PTX; `None` where the
    /// counts do not say. `count` returns `None` for lines that are no instructions.
    pub fn executed(&self, count: impl Fn(u32) -> Option<LineCount>) -> Vec<Option<u64>> {
        Derivation::new(self, &count).finish()
    }

    /// Returns how many warps executed each instruction of a function that the compiler added, which is called so often.
    /// Lines of the PTX say nothing of it.
    pub fn executed_when_called(&self, calls: u64) -> Vec<Option<u64>> {
        if calls == 0 {
            return vec![Some(0); self.instructions.len()];
        }
        let mut derivation = Derivation::new(self, &|_| None);
        derivation.balance.set(0, calls);
        derivation.finish()
    }

    /// Whether the compiler added the function, for instance for a division.
    pub fn is_added(&self) -> bool {
        self.name.starts_with(ADDED_FUNCTION)
    }

    /// Returns the functions that the compiler added and this one calls, each with how many warps called it, given how many
    /// executed each instruction.
    pub fn calls_of_added(&self, executed: &[Option<u64>]) -> Vec<(&str, Option<u64>)> {
        let calls = self.instructions.iter().zip(executed).filter(|(instruction, _)| instruction.operation() == "CALL");
        let name = |instruction: &'_ Instruction| instruction.operands.find(ADDED_FUNCTION);
        calls
            .filter_map(|(call, count)| Some((call.operands[name(call)?..].trim_end_matches([')', '`']), *count)))
            .collect()
    }
}

impl Derivation<'_> {
    /// Derives the counts of all instructions from what is known.
    fn finish(mut self) -> Vec<Option<u64>> {
        let derivation = &mut self;
        derivation.anchor();
        derivation.follow_witnesses(Witnesses::Several);
        derivation.follow_loops();
        derivation.follow_witnesses(Witnesses::All);
        derivation.follow_loops();
        derivation.follow_witnesses(Witnesses::Most);
        derivation.follow_loops();
        // Where nothing else decides, warps go alike through branches of the PTX, too.
        derivation.alike.append(&mut derivation.undiverged);
        derivation.follow_loops();
        self.blocks.of.iter().map(|block| self.balance.get(*block)).collect()
    }
}

/// Which instructions of a block must agree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Witnesses {
    /// All, and they come from several lines.
    Several,
    All,
    Most,
}

/// How many copies of an instruction each block has, apart by their guards.
type Copies<'l> = BTreeMap<(usize, &'l str), u64>;

/// How sure a count is: the share of instructions that agree, in thousandths, how many they are, and the block.
type Sureness = (u64, u64, Reverse<usize>);

/// Holds the counts that have been derived so far. The first counts of the balance are those of the blocks, and then come those of the edges.
struct Derivation<'l> {
    instructions: &'l [Instruction],
    counted: Vec<Option<LineCount>>,
    blocks: Blocks,
    balance: Balance,
    /// Blocks whose branch all warps take in the same way: the compiler made it, mostly to test how many rounds remain.
    alike: Vec<usize>,
    /// Blocks that end with a branch of the PTX at which no lanes diverged.
    undiverged: Vec<usize>,
    /// The blocks that each line has instructions in.
    places: BTreeMap<u32, BTreeSet<usize>>,
    /// The instructions that stay where the PTX has them, by line and operation.
    staying: BTreeMap<(u32, &'l str), Vec<usize>>,
}

impl<'l> Derivation<'l> {
    fn new(listing: &'l Listing, count: &dyn Fn(u32) -> Option<LineCount>) -> Self {
        let instructions = &listing.instructions;
        let blocks = Blocks::divide(listing);
        let counted = instructions.iter().map(|instruction| count(instruction.ptx_line?)).collect();
        let mut places: BTreeMap<u32, BTreeSet<usize>> = BTreeMap::new();
        let mut staying: BTreeMap<(u32, &str), Vec<usize>> = BTreeMap::new();
        for (at, (instruction, block)) in instructions.iter().zip(&blocks.of).enumerate() {
            let Some(line) = instruction.ptx_line else { continue };
            if blocks.apart.contains(block) || blocks.padding == Some(*block) {
                continue;
            }
            places.entry(line).or_default().insert(*block);
            if STAYS.contains(&instruction.operation()) && !instruction.is_for_diverged_lanes() {
                staying.entry((line, instruction.operation())).or_default().push(at);
            }
        }
        let balance = Balance::new(blocks.members.len() + blocks.edges.len());
        let mut derivation =
            Self { instructions, counted, blocks, balance, alike: Vec::new(), undiverged: Vec::new(), places, staying };
        derivation.equate_blocks_and_edges();
        derivation
    }

    /// Returns the counts of the edges that leave a block.
    fn edges_out(&self, block: usize) -> Vec<usize> {
        self.blocks.out[block].iter().map(|edge| self.blocks.members.len() + edge).collect()
    }

    /// Returns the counts of the edges that lead to a block.
    fn edges_in(&self, block: usize) -> Vec<usize> {
        self.blocks.into[block].iter().map(|edge| self.blocks.members.len() + edge).collect()
    }

    /// Returns the last instruction of a block.
    fn last(&self, block: usize) -> usize {
        self.blocks.members[block].end - 1
    }

    /// Demands that blocks are entered and left as often as they are executed.
    fn equate_blocks_and_edges(&mut self) {
        for block in 0..self.blocks.members.len() {
            let is_apart = self.blocks.apart.contains(&block) || self.calls_for_rare_values(block);
            if self.blocks.padding == Some(block) || is_apart {
                self.balance.set(block, 0);
            }
            if self.blocks.padding == Some(block) {
                continue;
            }
            let ways = self.edges_out(block);
            let before = match &self.blocks.leaving[block] {
                Leaving::Once => Some((0, vec![block])),
                Leaving::Branch => self.diverged(block).map(|diverged| (diverged, vec![block])),
                Leaving::Together(blocks) => Some((0, blocks.clone())),
                Leaving::Unknown => None,
            };
            if let Some((number, before)) = before.filter(|_| !ways.is_empty()) {
                if self.blocks.leaving[block] == Leaving::Branch && number == 0 {
                    if self.is_of_ptx(block) { &mut self.undiverged } else { &mut self.alike }.push(block);
                }
                self.balance.equate(number, before, ways);
            }
            let ways = self.edges_in(block);
            let calls = self.blocks.calls.iter().filter(|call| call.to == block).map(|call| call.from);
            let ways: Vec<usize> = ways.into_iter().chain(calls).collect();
            if block > 0 && self.blocks.is_whole {
                self.balance.equate(0, ways, [block]);
            }
        }
        for (at, edge) in self.blocks.edges.iter().enumerate() {
            let last = self.last(edge.from);
            let branches_away = edge.to != edge.from + 1;
            let leads_around = branches_away && edge.to > edge.from && self.begins_loop(edge.to);
            // Of the compiler's own making are branches to code for diverged lanes, and tests that a loop has rounds at all.
            let own = self.counted[last].is_none_or(|line| line.diverged.is_none());
            let is_branch = self.blocks.leaving[edge.from] == Leaving::Branch;
            if branches_away && self.instructions[last].is_for_diverged_lanes() || is_branch && own && leads_around {
                self.balance.set(self.blocks.members.len() + at, 0);
            }
        }
    }

    /// Whether a block is the part of one PTX instruction, such as a division, that calls a function for values that are
    /// rare.
    fn calls_for_rare_values(&self, block: usize) -> bool {
        let members = &self.instructions[self.blocks.members[block].clone()];
        let is_call =
            members.last().is_some_and(|last| last.operation() == "CALL" && last.operands.contains(ADDED_FUNCTION));
        is_call
            && self.blocks.into[block].len() == 1
            && members.windows(2).all(|two| two[0].ptx_line == two[1].ptx_line)
    }

    /// Whether a block is a loop, or only leads to one.
    fn begins_loop(&self, block: usize) -> bool {
        let only = if let [edge] = self.blocks.out[block][..] { Some(self.blocks.edges[edge].to) } else { None };
        self.blocks.is_loop(block) || only.is_some_and(|only| self.blocks.is_loop(only))
    }

    /// Returns how often lanes diverged at the branch that ends a block.
    fn diverged(&self, block: usize) -> Option<u64> {
        match self.counted[self.last(block)].and_then(|line| line.diverged) {
            // The compiler's own branches test counts of rounds, which are mostly those of all lanes.
            None | Some(0) => Some(0),
            Some(diverged) => self.is_of_ptx(block).then_some(diverged),
        }
    }

    /// Whether the branch that ends a block is the only one that comes from a branch of the PTX.
    fn is_of_ptx(&self, block: usize) -> bool {
        let last = self.last(block);
        let line = self.instructions[last].ptx_line.unwrap_or_default();
        let is_branch = self.counted[last].is_some_and(|line| line.diverged.is_some());
        is_branch && self.staying.get(&(line, "BRA")).is_some_and(|branches| branches.len() == 1)
    }

    /// Returns what an instruction says of its block: no other block has instructions of its line, or none was executed.
    fn says(&self, at: usize) -> Option<u64> {
        let line = self.instructions[at].ptx_line?;
        let is_alone = self.places.get(&line).is_some_and(|blocks| blocks.len() == 1);
        self.counted[at].filter(|line| is_alone || line.warps == 0).map(|line| line.warps)
    }

    /// Finds the counts of blocks with instructions that stay where the PTX has them, and what follows from these.
    fn anchor(&mut self) {
        for block in 0..self.blocks.members.len() {
            if self.balance.get(block).is_some() {
                continue;
            }
            let says = |at: usize| {
                let (instruction, line) = (&self.instructions[at], self.counted[at]?);
                let is_branch = instruction.operation() == "BRA";
                let stays = if is_branch { line.diverged.is_some() } else { instruction.predicate.is_empty() };
                let same = self.staying.get(&(instruction.ptx_line?, instruction.operation()))?;
                (stays && (same == &[at] || line.warps == 0)).then_some(line.warps)
            };
            if let Some((warps, _)) = most_frequent(self.blocks.members[block].clone().filter_map(says)) {
                self.balance.set(block, warps);
            }
        }
        if self.balance.get(0).is_none() && !self.blocks.members.is_empty() {
            let said = self.blocks.members[0].clone().filter_map(|at| self.says(at)).filter(|warps| *warps > 0);
            if let Some((warps, _)) = most_frequent(said) {
                self.balance.set(0, warps);
            }
        }
        // Each copy of an instruction that stays is executed for a part of the counts.
        for ((_, operation), copies) in &self.staying {
            let all_stay = copies.iter().all(|at| self.instructions[*at].predicate.is_empty());
            if let Some(line) = self.counted[copies[0]].filter(|_| *operation != "BRA" && copies.len() > 1 && all_stay)
            {
                self.balance.equate(line.warps, [], copies.iter().map(|at| self.blocks.of[*at]));
            }
        }
        self.balance.solve();
    }

    /// Finds the counts of blocks whose instructions agree, those that most are sure of first.
    fn follow_witnesses(&mut self, wanted: Witnesses) {
        loop {
            let mut best: Option<(Sureness, u64)> = None;
            for block in 0..self.blocks.members.len() {
                if self.balance.get(block).is_some() {
                    continue;
                }
                let is_witness = |at: &usize| {
                    let instruction = &self.instructions[*at];
                    instruction.predicate.is_empty() && !["BSYNC", "BSSY"].contains(&instruction.operation())
                };
                let witnesses =
                    || self.blocks.members[block].clone().filter(is_witness).filter(|at| self.says(*at).is_some());
                let Some((warps, agreeing)) = most_frequent(witnesses().filter_map(|at| self.says(at))) else {
                    continue;
                };
                let all = witnesses().count() as u64;
                let lines: BTreeSet<Option<u32>> = witnesses().map(|at| self.instructions[at].ptx_line).collect();
                if (wanted != Witnesses::Most && agreeing < all) || (wanted == Witnesses::Several && lines.len() < 2) {
                    continue;
                }
                let sureness = (agreeing * 1000 / all, agreeing, Reverse(block));
                if best.is_none_or(|(other, _)| other < sureness) {
                    best = Some((sureness, warps));
                }
            }
            let Some(((_, _, Reverse(block)), warps)) = best else { return };
            self.balance.set(block, warps);
            self.balance.solve();
        }
    }

    /// Finds the counts of copies of loops, and of blocks on the only way to what was executed.
    fn follow_loops(&mut self) {
        let copies = self.copies();
        while copies.iter().any(|(line, copies)| self.share(*line, copies)) || self.follow_ways() {}
    }

    /// Returns for each line and opcode how many warps executed the line, and the instructions with both.
    fn copies(&self) -> Vec<(u64, Copies<'l>)> {
        let mut copies: BTreeMap<(u32, &str), (u64, Copies<'l>)> = BTreeMap::new();
        for (at, instruction) in self.instructions.iter().enumerate() {
            let (block, Some(line), Some(counted)) = (self.blocks.of[at], instruction.ptx_line, self.counted[at])
            else {
                continue;
            };
            let is_added = ADDED.contains(&instruction.operation())
                || ["MOV", "SETP"].iter().any(|part| instruction.opcode.contains(part));
            let is_outside = self.blocks.apart.contains(&block) || self.blocks.padding == Some(block);
            if is_added || is_outside || counted.warps == 0 || counted.diverged.is_some() {
                continue;
            }
            let of_line = copies.entry((line, &instruction.opcode)).or_insert((counted.warps, BTreeMap::new()));
            *of_line.1.entry((block, &instruction.predicate)).or_default() += 1;
        }
        copies.into_values().collect()
    }

    /// Shares what a line counted among the blocks with copies of it, if that decides; false if it does not.
    fn share(&mut self, warps: u64, copies: &Copies<'_>) -> bool {
        let unknown: Vec<(u64, usize)> = copies
            .iter()
            .filter(|((block, guard), _)| guard.is_empty() && self.balance.get(*block).is_none())
            .map(|((block, _), number)| (*number, *block))
            .collect();
        let longest = unknown.iter().filter(|(number, block)| *number > 1 && self.blocks.is_loop(*block)).max();
        let is_chain = longest.is_none()
            && unknown.len() > 1
            && unknown.iter().all(|(number, block)| *number == unknown[0].0 && !self.blocks.is_loop(*block))
            && copies.keys().all(|(_, guard)| guard.is_empty());
        let Some((_, first)) = longest.or(is_chain.then(|| &unknown[0])) else { return false };
        let known = |((block, guard), number): (&(usize, &str), &u64)| {
            self.balance.get(*block).filter(|_| guard.is_empty()).map(|executed| executed * number)
        };
        let Some(mut rest) = warps.checked_sub(copies.iter().filter_map(known).sum()) else { return false };
        let Some(entered) = self.entered(*first).filter(|entered| *entered > 0) else { return false };
        if is_chain {
            for (number, block) in unknown {
                let executed = entered.min(rest / number);
                rest -= executed * number;
                self.balance.set(block, executed);
            }
        } else {
            if !rest.is_multiple_of(entered) {
                return false;
            }
            let mut rounds = rest / entered;
            let open =
                copies.iter().filter(|((block, guard), _)| !guard.is_empty() || self.balance.get(*block).is_none());
            let mut open: Vec<(u64, usize, &str)> =
                open.map(|((block, guard), number)| (*number, *block, *guard)).collect();
            open.sort_unstable_by(|a, b| b.cmp(a));
            if open.windows(2).any(|two| two[0].0 == two[1].0) {
                return false;
            }
            for (number, block, guard) in open {
                let is_loop = guard.is_empty() && self.blocks.is_loop(block);
                let times = if is_loop { rounds / number } else { (rounds / number).min(1) };
                rounds -= times * number;
                if guard.is_empty() {
                    self.balance.set(block, times * entered);
                }
            }
        }
        self.balance.solve();
        true
    }

    /// Returns how often the only block with a count was executed from which unknown blocks lead to this one.
    fn entered(&self, block: usize) -> Option<u64> {
        let (mut seen, mut open, mut found) = (BTreeSet::from([block]), vec![block], BTreeSet::new());
        while let Some(at) = open.pop() {
            for before in self.blocks.predecessors(at) {
                if self.balance.get(before).is_some() {
                    found.insert(before);
                } else if seen.insert(before) {
                    open.push(before);
                }
            }
        }
        let mut found = found.into_iter();
        let only = found.next()?;
        found.next().is_none().then(|| self.balance.get(only)).flatten()
    }

    /// Sends all warps of a branch that they take alike the only way to what was executed; false if none is found.
    fn follow_ways(&mut self) -> bool {
        let blocks = self.blocks.members.len();
        let known = (0..blocks + self.blocks.edges.len()).map(|count| self.balance.get(count));
        let mut is_executed: Vec<bool> = known.map(|count| count.is_some_and(|count| count > 0)).collect();
        let mut has_changed = self.blocks.is_whole;
        while has_changed {
            has_changed = false;
            for block in 0..blocks {
                let mut ways = self.edges_in(block);
                ways.retain(|way| self.balance.get(*way) != Some(0) && self.blocks.edges[way - blocks].from != block);
                let is_called = self.blocks.calls.iter().any(|call| call.to == block);
                if is_executed[block] && ways.len() == 1 && !is_called && !is_executed[ways[0]] {
                    is_executed[ways[0]] = true;
                    has_changed = true;
                }
                if !is_executed[block] && self.edges_out(block).iter().any(|way| is_executed[*way]) {
                    is_executed[block] = true;
                    has_changed = true;
                }
            }
        }
        let mut has_found = false;
        for block in self.alike.clone() {
            let Some(executed) = self.balance.get(block) else { continue };
            for way in self.edges_out(block) {
                if is_executed[way] && self.balance.get(way).is_none() {
                    self.balance.set(way, executed);
                    has_found = true;
                }
            }
        }
        self.balance.solve();
        has_found
    }
}

/// Returns the most frequent value, the first of several, with how often there is one.
fn most_frequent(values: impl Iterator<Item = u64>) -> Option<(u64, u64)> {
    let mut counts: Vec<(u64, u64)> = Vec::new();
    for value in values {
        match counts.iter_mut().find(|(known, _)| *known == value) {
            Some((_, count)) => *count += 1,
            None => counts.push((value, 1)),
        }
    }
    counts.into_iter().rev().max_by_key(|(_, count)| *count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::INSTRUCTION_BYTES;

    /// Returns a listing of instructions: guard, opcode, operands, line of the PTX.
    fn listing(lines: &[(&str, &str, &str, u32)]) -> Listing {
        let instruction = |(at, (predicate, opcode, operands, line)): (u64, &(&str, &str, &str, u32))| Instruction {
            offset: at * INSTRUCTION_BYTES,
            predicate: (*predicate).to_owned(),
            opcode: (*opcode).to_owned(),
            operands: (*operands).to_owned(),
            word: 0,
            ptx_line: Some(*line),
            source: Vec::new(),
        };
        let instructions = (0..).zip(lines).map(instruction).collect();
        Listing { name: "k".to_owned(), section: 1, instructions, files: Vec::new(), ptx: String::new() }
    }

    /// Returns the counts of the instructions, given those of lines: the line, warps, and divergences of a branch.
    fn executed(code: &Listing, lines: &[(u32, u64, Option<u64>)]) -> Vec<Option<u64>> {
        code.executed(|line| {
            let found = lines.iter().find(|(known, ..)| *known == line);
            found.map(|(_, warps, diverged)| LineCount { warps: *warps, diverged: *diverged })
        })
    }

    fn known(counts: &[u64]) -> Vec<Option<u64>> {
        counts.iter().copied().map(Some).collect()
    }

    #[test]
    fn a_block_is_executed_as_often_as_what_stays_in_it_says() {
        // A loop of 10 rounds. Line 4 was moved in front of it; line 5 is the store in it.
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
        let lines = [(1, 1, None), (2, 1, None), (4, 10, None), (5, 10, None), (6, 10, Some(0)), (7, 1, None)];
        assert_eq!(executed(&code, &lines), known(&[1, 1, 1, 1, 10, 10, 1, 0, 0]));
    }

    #[test]
    fn lanes_that_diverge_come_together_once_for_each_path() {
        // Of 16 warps 6 go into the body of an `if`, 4 of them with some of their lanes.
        let code = listing(&[
            ("", "BSSY", "B0, 0x50", 1),
            ("@P0", "BRA", "0x40", 2),
            ("", "LDG.E", "R4, [R2]", 3),
            ("", "STG.E", "[R2], R4", 3),
            ("", "BSYNC", "B0", 3),
            ("", "BAR.SYNC", "0x0", 4),
            ("", "EXIT", "", 5),
        ]);
        let lines = [(1, 16, None), (2, 16, Some(4)), (3, 6, None), (4, 16, None), (5, 16, None)];
        // Ten warps jump over the body as a whole, and four in part.
        assert_eq!(executed(&code, &lines), known(&[16, 16, 6, 6, 20, 16, 16]));
    }

    #[test]
    fn code_for_lanes_that_diverged_before_a_shuffle_is_not_executed() {
        let code = listing(&[
            ("", "MOV", "R0, R1", 1),
            ("", "BRA.DIV", "UR4, 0x50", 2),
            ("", "SHFL.DOWN", "PT, R2, R0, 0x10, 0x1f", 3),
            ("", "STG.E", "[R2], R4", 4),
            ("", "EXIT", "", 5),
            ("", "WARPSYNC.COLLECTIVE", "R8, 0x70", 3),
            ("", "SHFL.DOWN", "P0, R2, R0, R1, R3", 3),
            ("", "BRA", "0x30", 3),
        ]);
        let lines = [(1, 8, None), (2, 8, None), (3, 8, None), (4, 8, None), (5, 8, None)];
        assert_eq!(executed(&code, &lines), known(&[8, 8, 8, 8, 8, 0, 0, 0]));
    }

    #[test]
    fn rounds_of_an_unrolled_loop_are_those_of_its_longest_copies_first() {
        // Each of 4 warps goes 11 times through a loop, of which the compiler made copies of 4 rounds and of one: twice
        // four rounds and three single ones.
        let code = listing(&[
            ("", "STS", "[R2], R3", 1),
            ("", "ISETP.GT", "P1, PT, R3, 0x3, PT", 3),
            ("@!P1", "BRA", "0x80", 4),
            ("", "FFMA", "R5, R5, R4, R6", 2),
            ("", "FFMA", "R5, R5, R4, R6", 2),
            ("", "FFMA", "R5, R5, R4, R6", 2),
            ("", "FFMA", "R5, R5, R4, R6", 2),
            ("@P1", "BRA", "0x30", 4),
            ("", "FFMA", "R5, R5, R4, R6", 2),
            ("@P0", "BRA", "0x80", 4),
            ("", "STG.E", "[R2], R5", 5),
            ("", "EXIT", "", 6),
        ]);
        let lines = [(1, 4, None), (2, 44, None), (3, 44, None), (4, 44, Some(0)), (5, 4, None), (6, 4, None)];
        assert_eq!(executed(&code, &lines), known(&[4, 4, 4, 8, 8, 8, 8, 8, 12, 12, 4, 4]));
    }

    #[test]
    fn a_division_calls_its_function_for_no_value_and_what_is_not_executed_has_no_rounds() {
        let code = listing(&[
            ("", "BSSY", "B0, 0x50", 1),
            ("@!P0", "BRA", "0x40", 1),
            ("", "MOV", "R8, R7", 1),
            ("", "CALL.REL.NOINC", "`($__internal_0_$__cuda_sm3x_div)", 1),
            ("", "BSYNC", "B0", 1),
            ("@P0", "BRA", "0x90", 2),
            ("", "LDS", "R4, [R2]", 3),
            ("", "LDS", "R4, [R2]", 3),
            ("@P1", "BRA", "0x60", 4),
            ("", "STG.E", "[R2], R4", 5),
            ("", "EXIT", "", 5),
        ]);
        let lines = [(1, 8, None), (2, 8, Some(0)), (3, 0, None), (4, 0, Some(0)), (5, 8, None)];
        let counts = executed(&code, &lines);
        assert_eq!(counts, known(&[8, 8, 0, 0, 8, 8, 0, 0, 0, 8, 8]));
        assert_eq!(code.calls_of_added(&counts), [("$__internal_0_$__cuda_sm3x_div", Some(0))]);
        let function = Listing { name: "$__internal_0_$__cuda_sm3x_div".to_owned(), ..code };
        assert!(function.is_added());
        assert_eq!(function.executed_when_called(0), known(&[0; 11]));
        assert_eq!(function.executed_when_called(3)[0], Some(3));
    }

    #[test]
    fn a_block_has_no_count_where_its_instructions_say_nothing() {
        let code = listing(&[
            ("", "STS", "[R2], R3", 1),
            ("", "BRX", "R4 -0x30", 2),
            ("", "LDG.E", "R4, [R2]", 5),
            ("", "EXIT", "", 20),
            ("", "LDG.E", "R4, [R2]", 5),
            ("", "EXIT", "", 20),
        ]);
        let counts = executed(&code, &[(1, 3, None), (2, 3, None), (5, 3, None)]);
        assert_eq!(counts, [Some(3), Some(3), None, None, None, None]);
    }
}

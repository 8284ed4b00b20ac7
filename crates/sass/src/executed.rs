//! Derives how many times machine instructions were executed from the counts of PTX instructions.
//!
//! All instructions of a basic block are executed the same number of times. A block is left as many times as it is
//! executed, unless lanes diverge, reconverge or exit. The compiler moves, merges and copies instructions, so a single
//! instruction does not tell how many times its block was executed. But some instructions stay in place: branches,
//! stores, atomics, barriers and warp-wide instructions. The counts of other blocks follow from theirs, even for blocks
//! without any PTX instruction.
//!
//! Where that is not enough, the count on which most instructions of a block agree is used. The iterations of a loop
//! are attributed to the longest copies of its body first. If the iterations of each warp were not counted, all warps
//! are assumed to run equally many.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use crate::balance::Balance;
use crate::blocks::{Blocks, Leaving};
use crate::branch_targets::{BranchTarget, find_target};
use crate::{Instruction, Listing};

/// Operations that the compiler does not move.
const STAYS: [&str; 13] =
    ["BRA", "ST", "STG", "STS", "STL", "BAR", "ATOM", "ATOMG", "ATOMS", "RED", "REDG", "SHFL", "REDUX"];
/// Prefix of the names of functions that the compiler adds.
const ADDED_FUNCTION: &str = "$__internal_";
/// Operations that the compiler inserts anywhere, regardless of the source line.
const ADDED: [&str; 11] = ["BRA", "BSYNC", "BSSY", "EXIT", "NOP", "WARPSYNC", "S2R", "LDC", "ULDC", "CS2R", "PLOP3"];

/// How many times the simulator executed a line of the PTX.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LineCount<'c> {
    /// Number of executions, counted per warp.
    pub warps: u64,
    /// Number of times that lanes diverged at the line; `None` if it is not a branch.
    pub diverged: Option<u64>,
    /// For the back edge of a loop: numbers of iterations, each with the number of warps that left the loop after that
    /// many.
    pub rounds: &'c [(u64, u64)],
}

impl Listing {
    /// Derives the number of executions of each instruction, counted per warp; `None` where the counts do not determine
    /// it. `count` returns the counts of a PTX line, or `None` for lines that are not instructions.
    pub fn executed<'c>(&'c self, count: impl Fn(u32) -> Option<LineCount<'c>>) -> Vec<Option<u64>> {
        Derivation::new(self, &count).finish()
    }

    /// Derives the number of executions of each instruction in an added function that is called `calls` times. The
    /// lines of the PTX say nothing about it.
    pub fn executed_when_called(&self, calls: u64) -> Vec<Option<u64>> {
        if calls == 0 {
            return vec![Some(0); self.instructions.len()];
        }
        let mut derivation = Derivation::new(self, &|_| None);
        derivation.balance.set(0, calls);
        derivation.finish()
    }

    /// Whether the compiler added the function, e.g. for a division.
    pub fn is_added(&self) -> bool {
        self.name.starts_with(ADDED_FUNCTION)
    }

    /// Returns the added functions that this one calls, with the number of calls, given the executions of each
    /// instruction.
    pub fn calls_of_added(&self, executed: &[Option<u64>]) -> Vec<(&str, Option<u64>)> {
        let calls = self.instructions.iter().zip(executed).filter(|(instruction, _)| instruction.operation() == "CALL");
        let name = |instruction: &'_ Instruction| instruction.operands.find(ADDED_FUNCTION);
        calls
            .filter_map(|(call, count)| Some((call.operands[name(call)?..].trim_end_matches([')', '`']), *count)))
            .collect()
    }
}

impl Derivation<'_> {
    /// Derives the counts of all instructions.
    fn finish(mut self) -> Vec<Option<u64>> {
        let derivation = &mut self;
        derivation.anchor();
        derivation.follow_branches();
        derivation.follow_witnesses(Witnesses::Several);
        derivation.follow_loops();
        derivation.follow_witnesses(Witnesses::All);
        derivation.follow_loops();
        derivation.follow_witnesses(Witnesses::Most);
        derivation.follow_loops();
        // Where nothing else decides, assume that warps agree on branches of the PTX, too.
        derivation.alike.append(&mut derivation.undiverged);
        derivation.follow_loops();
        self.blocks.of.iter().map(|block| self.balance.get(*block)).collect()
    }
}

/// Which instructions of a block must agree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Witnesses {
    /// All instructions, from more than one line.
    Several,
    All,
    Most,
}

/// Number of copies of an instruction, by block and guard.
type Copies<'l> = BTreeMap<(usize, &'l str), u64>;

/// Certainty of a count: fraction of agreeing instructions in thousandths, their number, and the block.
type Sureness = (u64, u64, Reverse<usize>);

/// Counts derived so far. The balance has the counts of the blocks, followed by the counts of the edges.
struct Derivation<'l> {
    instructions: &'l [Instruction],
    ptx: Vec<&'l str>,
    counted: Vec<Option<LineCount<'l>>>,
    blocks: Blocks,
    balance: Balance,
    /// Blocks at whose branch all warps are assumed to take the same path. The compiler added the branch, mostly to
    /// test the remaining iterations.
    alike: Vec<usize>,
    /// Blocks that end with a PTX branch at which no lanes diverged.
    undiverged: Vec<usize>,
    /// Loops whose first iteration the compiler peeled off, along with its branch. The loop's lines count one iteration
    /// more.
    peeled: BTreeSet<usize>,
    /// For each line, the blocks that contain instructions of it.
    places: BTreeMap<u32, BTreeSet<usize>>,
    /// Instructions that the compiler does not move, by line and operation.
    staying: BTreeMap<(u32, &'l str), Vec<usize>>,
    /// Blocks that end with the only machine instruction of a conditional PTX branch, where that branch leads, and the
    /// number of warps that continued past it.
    ways: Vec<(usize, BranchTarget, u64)>,
}

impl<'l> Derivation<'l> {
    fn new(listing: &'l Listing, count: &dyn Fn(u32) -> Option<LineCount<'l>>) -> Self {
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
        let ptx: Vec<&str> = listing.ptx.lines().collect();
        let ways = find_ways((listing, &ptx), &blocks, count);
        let (alike, undiverged) = (Vec::new(), Vec::new());
        let peeled = find_peeled(instructions, &blocks, &places);
        let mut derivation =
            Self { instructions, ptx, counted, blocks, balance, alike, undiverged, peeled, places, staying, ways };
        derivation.equate_blocks_and_edges();
        derivation.equate_divisions();
        derivation
    }

    /// Returns the counts of the edges that leave a block.
    fn edges_out(&self, block: usize) -> Vec<usize> {
        self.blocks.out[block].iter().map(|edge| self.blocks.members.len() + edge).collect()
    }

    /// Returns the counts of the edges that enter a block.
    fn edges_in(&self, block: usize) -> Vec<usize> {
        self.blocks.into[block].iter().map(|edge| self.blocks.members.len() + edge).collect()
    }

    fn last(&self, block: usize) -> usize {
        self.blocks.members[block].end - 1
    }

    /// Adds equations stating that blocks are entered and left as many times as they are executed.
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
            // The compiler itself adds branches to code for diverged lanes, and tests for loops without iterations.
            // They are assumed not to be taken.
            let own = self.counted[last].is_none_or(|line| line.diverged.is_none());
            let is_branch = self.blocks.leaving[edge.from] == Leaving::Branch;
            if branches_away && self.instructions[last].is_for_diverged_lanes() || is_branch && own && leads_around {
                self.balance.set(self.blocks.members.len() + at, 0);
            }
        }
    }

    /// Adds equations stating that a block that tests whether a division needs its function is executed as many times
    /// as the division.
    fn equate_divisions(&mut self) {
        let mut tests: BTreeMap<u32, (u64, BTreeSet<usize>)> = BTreeMap::new();
        for block in (0..self.blocks.members.len()).filter(|block| self.calls_for_rare_values(*block)) {
            let last = self.last(block);
            let (Some(line), Some(counted)) = (self.instructions[last].ptx_line, self.counted[last]) else { continue };
            let is_start = |one: &Instruction| one.operation() == "MUFU" && one.ptx_line == Some(line);
            let starts = |block: &usize| self.instructions[self.blocks.members[*block].clone()].iter().any(is_start);
            let of_line = tests.entry(line).or_insert((counted.warps, BTreeSet::new()));
            of_line.1.extend(self.blocks.predecessors(block).filter(starts));
        }
        for (warps, blocks) in tests.into_values().filter(|(_, blocks)| !blocks.is_empty()) {
            self.balance.equate(warps, [], blocks);
        }
    }

    /// Whether a block is the part of a PTX instruction, such as a division, that calls a function for rare values.
    fn calls_for_rare_values(&self, block: usize) -> bool {
        let members = &self.instructions[self.blocks.members[block].clone()];
        let is_call =
            members.last().is_some_and(|last| last.operation() == "CALL" && last.operands.contains(ADDED_FUNCTION));
        is_call
            && self.blocks.into[block].len() == 1
            && members.windows(2).all(|two| two[0].ptx_line == two[1].ptx_line)
    }

    /// Whether a block is a loop or leads only to one.
    fn begins_loop(&self, block: usize) -> bool {
        let only = if let [edge] = self.blocks.out[block][..] { Some(self.blocks.edges[edge].to) } else { None };
        self.blocks.is_loop(block) || only.is_some_and(|only| self.blocks.is_loop(only))
    }

    /// Returns how many times lanes diverged at the branch that ends a block.
    fn diverged(&self, block: usize) -> Option<u64> {
        match self.counted[self.last(block)].and_then(|line| line.diverged) {
            // The compiler's own branches mostly test iteration counts, which are the same for all lanes.
            None | Some(0) => Some(0),
            Some(diverged) => self.is_of_ptx(block).then_some(diverged),
        }
    }

    /// Whether a machine branch is a conditional PTX branch. An unconditional PTX branch may have been merged with
    /// others, or split if the machine branch is conditional.
    fn is_branch(&self, at: usize) -> bool {
        let instruction = &self.instructions[at];
        let text = instruction.ptx_line.and_then(|line| self.ptx.get((line as usize).checked_sub(1)?));
        let is_conditional = text.is_none_or(|text| text.trim_start().starts_with('@') && instruction.is_conditional());
        is_conditional && self.counted[at].is_some_and(|line| line.diverged.is_some())
    }

    /// Whether all instructions of a block have copies in other blocks. Its branch may then also have copies, which
    /// name another line.
    fn is_copy(&self, block: usize) -> bool {
        let own = self.instructions[self.blocks.members[block].clone()].iter();
        let own = own.filter(|instruction| !ADDED.contains(&instruction.operation()));
        let mut others = own.filter_map(|instruction| self.places.get(&instruction.ptx_line?)).peekable();
        others.peek().is_some() && others.all(|places| places.len() > 1)
    }

    /// Whether the branch that ends a block is the only machine branch of a PTX branch.
    fn is_of_ptx(&self, block: usize) -> bool {
        let last = self.last(block);
        let line = self.instructions[last].ptx_line.unwrap_or_default();
        self.is_branch(last) && self.staying.get(&(line, "BRA")).is_some_and(|branches| branches.len() == 1)
    }

    /// Returns the count that an instruction implies for its block, if no other block contains its line or the line was
    /// never executed.
    fn implied_count(&self, at: usize) -> Option<u64> {
        let line = self.instructions[at].ptx_line?;
        let is_alone = self.places.get(&line).is_some_and(|blocks| blocks.len() == 1);
        self.counted[at].filter(|line| is_alone || line.warps == 0).map(|line| line.warps)
    }

    /// Sets the counts of blocks with instructions that the compiler does not move, and the counts that follow.
    fn anchor(&mut self) {
        for block in 0..self.blocks.members.len() {
            if self.balance.get(block).is_some() {
                continue;
            }
            let implied = |at: usize| {
                let (instruction, line) = (&self.instructions[at], self.counted[at]?);
                let is_branch = instruction.operation() == "BRA";
                let stays = if is_branch {
                    !self.peeled.contains(&block) && self.is_branch(at) && !self.is_copy(block)
                } else {
                    instruction.predicate.is_empty()
                };
                let same = self.staying.get(&(instruction.ptx_line?, instruction.operation()))?;
                (stays && (same == &[at] || line.warps == 0)).then_some(line.warps)
            };
            if let Some((warps, _)) = most_frequent(self.blocks.members[block].clone().filter_map(implied)) {
                self.balance.set(block, warps);
            }
        }
        if !self.blocks.members.is_empty() && self.balance.get(0).is_none() {
            let said =
                self.blocks.members[0].clone().filter_map(|at| self.implied_count(at)).filter(|warps| *warps > 0);
            if let Some((warps, _)) = most_frequent(said) {
                self.balance.set(0, warps);
            }
        }
        // Copies of such an instruction share its count.
        for ((_, operation), copies) in &self.staying {
            let all_stay = copies.iter().all(|at| self.instructions[*at].predicate.is_empty());
            if let Some(line) = self.counted[copies[0]].filter(|_| *operation != "BRA" && copies.len() > 1 && all_stay)
            {
                self.balance.equate(line.warps, [], copies.iter().map(|at| self.blocks.of[*at]));
            }
        }
        self.balance.solve();
    }

    /// Derives how many times each edge of a branch was taken, from the number of warps that continued past the PTX
    /// branch. Since the compiler may have inverted the condition, the instructions of the two blocks show which edge
    /// is which.
    fn follow_branches(&mut self) {
        for (block, way, passed) in std::mem::take(&mut self.ways) {
            let says_past = |block: usize| -> i64 {
                let members = self.instructions[self.blocks.members[block].clone()].iter();
                let moved = |instruction: &&Instruction| !ADDED.contains(&instruction.operation());
                let sides = members.filter(moved).filter_map(|instruction| way.is_past(instruction.ptx_line?));
                sides.map(|is_past| if is_past { 1 } else { -1 }).sum()
            };
            let to = |edge: usize| self.blocks.edges[edge].to;
            let (edges, counted) = (&self.blocks.out[block], self.counted[self.last(block)]);
            let turned = counted.and_then(|line| (line.warps + line.diverged?).checked_sub(passed));
            let found = match edges[..] {
                [branch, next] => match [next, branch].map(|edge| says_past(to(edge)).signum()) {
                    [1, 0 | -1] | [0, -1] => Some((next, passed)),
                    [0 | -1, 1] | [-1, 0] => Some((branch, passed)),
                    _ => None,
                },
                [next] => match says_past(to(next)) {
                    0 => None,
                    past => if past > 0 { Some(passed) } else { turned }.map(|passed| (next, passed)),
                },
                _ => None,
            };
            let found = found.map(|(edge, passed)| (self.blocks.members.len() + edge, passed));
            if let Some((edge, passed)) = found.filter(|(edge, _)| self.balance.get(*edge).is_none()) {
                self.balance.set(edge, passed);
            }
        }
        self.balance.solve();
    }

    /// Sets the counts of blocks whose instructions agree, starting with the most certain.
    fn follow_witnesses(&mut self, wanted: Witnesses) {
        loop {
            let mut best: Option<(Sureness, u64)> = None;
            for block in 0..self.blocks.members.len() {
                if self.balance.get(block).is_some() || self.peeled.contains(&block) {
                    continue;
                }
                let is_witness = |at: &usize| {
                    let instruction = &self.instructions[*at];
                    instruction.predicate.is_empty() && !["BSYNC", "BSSY"].contains(&instruction.operation())
                };
                let witnesses = || {
                    self.blocks.members[block].clone().filter(is_witness).filter(|at| self.implied_count(*at).is_some())
                };
                let Some((warps, agreeing)) = most_frequent(witnesses().filter_map(|at| self.implied_count(at))) else {
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

    /// Derives the counts of copied loops, and of blocks on the only path to executed code.
    fn follow_loops(&mut self) {
        self.enter_loops();
        let copies = self.copies();
        while copies.iter().any(|(line, warps, copies)| self.share((*line, *warps), copies)) || self.follow_ways() {}
    }

    /// Handles one-block loops that were executed once, which no warp can have repeated.
    fn enter_loops(&mut self) {
        let once = |block: &usize| self.balance.get(*block) == Some(1) && self.blocks.is_loop(*block);
        let loops: Vec<usize> = (0..self.blocks.members.len()).filter(once).collect();
        for block in loops {
            self.set_rounds(block, 0);
        }
        self.balance.solve();
    }

    /// Sets how many times a one-block loop repeats.
    fn set_rounds(&mut self, block: usize, times: u64) {
        let back = self.blocks.out[block].iter().filter(|edge| self.blocks.edges[**edge].to == block);
        back.for_each(|edge| self.balance.set(self.blocks.members.len() + edge, times));
    }

    /// Returns, for each line and opcode, the line, its count, and the copies of the instruction.
    fn copies(&self) -> Vec<(u32, u64, Copies<'l>)> {
        let mut copies: BTreeMap<(u32, &str), (u64, Copies<'l>)> = BTreeMap::new();
        for (at, instruction) in self.instructions.iter().enumerate() {
            let (block, Some(line), Some(counted)) = (self.blocks.of[at], instruction.ptx_line, self.counted[at])
            else {
                continue;
            };
            let is_added = ADDED.contains(&instruction.operation())
                || ["MOV", "SETP"].iter().any(|part| instruction.opcode.contains(part));
            let is_outside = self.blocks.apart.contains(&block) || self.blocks.padding == Some(block);
            if is_added || is_outside || self.is_never_executed(at) || counted.warps == 0 || counted.diverged.is_some()
            {
                continue;
            }
            let of_line = copies.entry((line, &instruction.opcode)).or_insert((counted.warps, BTreeMap::new()));
            *of_line.1.entry((block, &instruction.predicate)).or_default() += 1;
        }
        copies.into_iter().map(|((line, _), (warps, copies))| (line, warps, copies)).collect()
    }

    /// Whether an instruction's guard is always false, because its block is only entered where the same comparison
    /// fails. The compiler puts such a first iteration in front of loops that it unrolls.
    fn is_never_executed(&self, at: usize) -> bool {
        let guard =
            |at: usize| self.instructions[at].predicate.strip_prefix('@').filter(|guard| !guard.starts_with('!'));
        let block = self.blocks.of[at];
        let [edge] = self.blocks.into[block][..] else { return false };
        let before = self.blocks.edges[edge].from;
        let last = self.last(before);
        if before + 1 != block || self.instructions[last].operation() != "BRA" {
            return false;
        }
        let compared = |guard: &str, from: usize, end: usize| {
            let set = (from..end).rev().find(|at| self.instructions[*at].writes(guard))?;
            let [_, _, register, number, _] = self.instructions[set].operand_list()[..] else { return None };
            let number = u64::from_str_radix(number.strip_prefix("0x")?, 16).ok()?;
            Some((set, self.instructions[set].opcode.as_str(), register.trim_end_matches(".reuse"), number))
        };
        let own = guard(at).and_then(|guard| compared(guard, self.blocks.members[block].start, at));
        let theirs = guard(last).and_then(|guard| compared(guard, self.blocks.members[before].start, last));
        let (Some((set, at_least, register, number)), Some((tested, above, other, most))) = (own, theirs) else {
            return false;
        };
        let is_kept = || !self.instructions[tested..set].iter().any(|one| one.writes(register));
        at_least.starts_with("ISETP.GE.")
            && above == at_least.replacen("GE", "GT", 1)
            && (register, number) == (other, most + 1)
            && is_kept()
    }

    /// Divides a line's count among the blocks that contain copies of it. Returns false if the count does not determine
    /// how.
    fn share(&mut self, (line, warps): (u32, u64), copies: &Copies<'_>) -> bool {
        let unknown: Vec<(u64, usize)> = copies
            .iter()
            .filter(|((block, guard), _)| guard.is_empty() && self.balance.get(*block).is_none())
            .map(|((block, _), number)| (*number, *block))
            .collect();
        let known = |((block, guard), number): (&(usize, &str), &u64)| {
            self.balance.get(*block).filter(|_| guard.is_empty()).map(|executed| executed * number)
        };
        let Some(mut rest) = warps.checked_sub(copies.iter().filter_map(known).sum()) else { return false };
        if rest == 0 && !unknown.is_empty() && copies.keys().all(|(_, guard)| guard.is_empty()) {
            // The known copies account for all executions.
            for (_, block) in unknown {
                self.balance.set(block, 0);
            }
            self.balance.solve();
            return true;
        }
        if let [(number, block)] = unknown[..]
            && self.peeled.contains(&block)
            && copies.len() > 1
            && copies.keys().all(|(_, guard)| guard.is_empty())
            && rest.is_multiple_of(number)
        {
            self.balance.set(block, rest / number);
            self.balance.solve();
            return true;
        }
        let longest = unknown.iter().filter(|(number, block)| *number > 1 && self.blocks.is_loop(*block)).max();
        let is_chain = longest.is_none()
            && unknown.len() > 1
            && unknown.iter().all(|(number, block)| *number == unknown[0].0 && !self.blocks.is_loop(*block))
            && copies.keys().all(|(_, guard)| guard.is_empty());
        let Some((_, first)) = longest.or(is_chain.then(|| &unknown[0])) else { return false };
        let Some(entered) = self.entered(*first).filter(|entered| *entered > 0) else { return false };
        if is_chain {
            for (number, block) in unknown {
                let executed = entered.min(rest / number);
                rest -= executed * number;
                self.balance.set(block, executed);
            }
        } else {
            let counted = self.rounds(line).filter(|rounds| {
                let warps: u64 = rounds.iter().map(|(_, warps)| warps).sum();
                let all: u64 = rounds.iter().map(|(each, warps)| each * warps).sum();
                (warps, all) == (entered, rest)
            });
            let alike = [(rest / entered, entered)];
            let Some(rounds) = counted.or(rest.is_multiple_of(entered).then_some(&alike)) else { return false };
            let open =
                copies.iter().filter(|((block, guard), _)| !guard.is_empty() || self.balance.get(*block).is_none());
            let mut open: Vec<(u64, usize, &str)> =
                open.map(|((block, guard), number)| (*number, *block, *guard)).collect();
            open.sort_unstable_by(|a, b| b.cmp(a));
            if open.windows(2).any(|two| two[0].0 == two[1].0) {
                return false;
            }
            let mut left = rounds.to_vec();
            for (number, block, guard) in open {
                let is_loop = guard.is_empty() && self.blocks.is_loop(block);
                let (mut executed, mut entered) = (0, 0);
                for (rounds, warps) in &mut left {
                    let times = if is_loop { *rounds / number } else { (*rounds / number).min(1) };
                    *rounds -= times * number;
                    executed += times * *warps;
                    entered += times.min(1) * *warps;
                }
                if guard.is_empty() {
                    self.balance.set(block, executed);
                }
                if is_loop && counted.is_some() {
                    self.set_rounds(block, executed - entered);
                }
            }
        }
        self.balance.solve();
        true
    }

    /// Returns the iterations of the innermost loop around a line, if no lanes diverged at the loop's branch.
    fn rounds(&self, line: u32) -> Option<&'l [(u64, u64)]> {
        let branches = self.instructions.iter().zip(&self.counted);
        let counted = branches.filter_map(|(branch, counted)| Some((branch.ptx_line?, (*counted)?)));
        let counted = counted.filter(|(end, counted)| line <= *end && !counted.rounds.is_empty());
        let loops =
            counted.filter_map(|(end, counted)| Some((end.checked_sub(find_target(&self.ptx, end)?)?, end, counted)));
        let around = loops.filter(|(length, end, _)| line >= end - length);
        let (_, _, counted) = around.min_by_key(|(length, ..)| *length)?;
        (counted.diverged == Some(0)).then_some(counted.rounds)
    }

    /// Returns the count of the only known block that leads here through unknown blocks; `None` if there are several.
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

    /// Where all warps take the same edge of a branch and one edge leads to executed code, assigns them to that edge.
    /// Returns false if no such branch is left.
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

/// Finds one-block loops that have a copy of one of their instructions directly before them, and nowhere else.
fn find_peeled(
    instructions: &[Instruction],
    blocks: &Blocks,
    places: &BTreeMap<u32, BTreeSet<usize>>,
) -> BTreeSet<usize> {
    let of_block = |block: usize| instructions[blocks.members[block].clone()].iter();
    let is_work = |one: &&Instruction| {
        let is_added = ADDED.contains(&one.operation()) || ["MOV", "SETP"].iter().any(|part| one.opcode.contains(part));
        !is_added && one.predicate.is_empty() && !STAYS.contains(&one.operation())
    };
    let has_copy = |block: usize, before: usize| {
        of_block(before).filter(is_work).any(|copy| {
            let only = copy
                .ptx_line
                .and_then(|line| places.get(&line))
                .is_some_and(|places| *places == [before, block].into());
            only && of_block(block)
                .filter(is_work)
                .any(|one| one.ptx_line == copy.ptx_line && one.opcode == copy.opcode)
        })
    };
    let is_peeled = |block: &usize| {
        blocks.is_loop(*block)
            && blocks.predecessors(*block).any(|before| before + 1 == *block && has_copy(*block, before))
    };
    (0..blocks.members.len()).filter(is_peeled).collect()
}

/// Finds the conditional PTX branches that became a single machine instruction.
fn find_ways<'c>(
    (listing, ptx): (&Listing, &[&str]),
    blocks: &Blocks,
    count: &dyn Fn(u32) -> Option<LineCount<'c>>,
) -> Vec<(usize, BranchTarget, u64)> {
    let mut branches: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    for (at, instruction) in listing.instructions.iter().enumerate() {
        let is_branch = ["BRA", "EXIT"].contains(&instruction.operation()) && !instruction.is_for_diverged_lanes();
        if let Some(line) = instruction.ptx_line.filter(|_| is_branch && !instruction.predicate.is_empty()) {
            branches.entry(line).or_default().push(at);
        }
    }
    let only = branches.into_iter().filter_map(|(line, all)| if let [at] = all[..] { Some((line, at)) } else { None });
    let ways = only.filter_map(|(line, at)| Some((blocks.of[at], BranchTarget::find(ptx, line)?)));
    ways.filter_map(|(block, way)| Some((block, way, count(way.next)?.warps))).collect()
}

/// Returns the most frequent value (the first one on ties) and its frequency.
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
mod tests;

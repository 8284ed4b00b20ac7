//! Counts for each instruction of a kernel, collected while its blocks run.
//!
//! A path counts a whole straight-line run where it arrives, and takes back the rest where it stops. An instruction's
//! count therefore follows from the arrivals and stops in its run, up to itself. Only these are recorded here, along
//! with the counters of accesses, so most instructions of a run cost nothing.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use crate::counters::{Counters, LineCounts};
use crate::program::ins::Ins;
use crate::program::{Code, Kernel, Line, Origin, source_path};

/// Arrivals and stops of paths at one instruction of the bytecode.
#[derive(Debug, Clone, Copy, Default)]
struct Visits {
    /// Paths that arrived here, minus paths that stopped before this instruction.
    warps: i64,
    /// Lanes of the paths that arrived here, minus lanes of the paths that stopped before this instruction.
    threads: i64,
}

/// Differences between an instruction's visits and its executions.
#[derive(Debug, Clone, Copy, Default)]
struct Special {
    /// Warps that executed the instruction although it must not be counted.
    uncounted: i64,
    /// Lanes that did not execute the instruction because a guard was false, or that must not be counted.
    idle: i64,
    /// Number of times that lanes diverged at this branch.
    diverged: u64,
}

#[derive(Debug, Clone)]
pub struct InstructionCounts {
    visits: Vec<Visits>,
    special: Vec<Special>,
    /// Access counters per instruction, while no block has borrowed them.
    pub accesses: Vec<Counters>,
    /// For each loop, the number of warps that left it, by number of iterations.
    rounds: Vec<BTreeMap<u64, u64>>,
}

impl InstructionCounts {
    fn new(kernel: &Kernel) -> Self {
        let len = kernel.functions.iter().map(|function| function.ins.len()).sum();
        Self {
            visits: vec![Visits::default(); len],
            special: vec![Special::default(); len],
            accesses: vec![Counters::default(); len],
            rounds: vec![BTreeMap::new(); kernel.inner.iter().filter_map(|inner| inner.back).count()],
        }
    }

    /// Records that a path of `lanes` lanes arrives at an instruction.
    #[inline(always)]
    pub fn arrive(&mut self, at: *const Ins, lanes: u32) {
        self.visit(at, 1, i64::from(lanes));
    }

    /// Records that a path of `lanes` lanes stops before an instruction.
    #[inline(always)]
    pub fn stop(&mut self, at: *const Ins, lanes: u32) {
        self.visit(at, -1, -i64::from(lanes));
    }

    #[inline(always)]
    fn visit(&mut self, at: *const Ins, warps: i64, threads: i64) {
        // SAFETY: a path continues at an instruction of a loaded function.
        let number = unsafe { (*at).number };
        if let Some(visits) = self.visits.get_mut(number as usize) {
            visits.warps += warps;
            visits.threads += threads;
        }
    }

    /// Records that a warp leaves a loop after this many iterations.
    pub fn leave_loop(&mut self, number: u32, rounds: u64) {
        if let Some(all) = self.rounds.get_mut(number as usize) {
            *all.entry(rounds).or_default() += 1;
        }
    }

    /// Records that the lanes of a branch diverge.
    pub fn diverge(&mut self, i: &Ins) {
        if let Some(special) = self.special.get_mut(i.number as usize) {
            special.diverged += 1;
        }
    }

    /// Records that a false guard kept `lanes` lanes from executing the next instruction.
    #[inline(always)]
    pub fn hold_back(&mut self, guard: &Ins, lanes: i64) {
        if let Some(special) = self.special.get_mut(guard.number as usize + 1) {
            special.idle += lanes;
        }
    }

    /// Records that a warp with `lanes` lanes executed an instruction that must not be counted.
    pub fn uncount(&mut self, i: &Ins, lanes: u32) {
        if let Some(special) = self.special.get_mut(i.number as usize) {
            special.uncounted += 1;
            special.idle += i64::from(lanes);
        }
    }
}

/// Counts of a grid. Blocks that run at the same time have separate counts, as do blocks that represent different
/// numbers of blocks.
#[derive(Debug, Default)]
pub struct GridCounts(Mutex<Vec<(u64, InstructionCounts)>>);

impl GridCounts {
    /// Lends counts to a block that represents `weight` blocks.
    pub fn lend(&self, kernel: &Kernel, weight: u64) -> InstructionCounts {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let free = all.iter().position(|(represented, _)| *represented == weight);
        free.map_or_else(|| InstructionCounts::new(kernel), |at| all.swap_remove(at).1)
    }

    pub fn give_back(&self, counts: InstructionCounts, weight: u64) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push((weight, counts));
    }

    /// Adds the counts of the kernel's lines to `lines`, and its access counters to `sum`.
    pub fn add_to(self, kernel: &Kernel, lines: &mut Vec<LineCounts>, sum: &mut Counters) {
        for (weight, counts) in self.0.into_inner().unwrap_or_else(PoisonError::into_inner) {
            counts.accesses.iter().for_each(|counted| sum.add_times(counted, weight));
            let mut first = 0;
            for code in &kernel.functions {
                let range = first..first + code.ins.len();
                first = range.end;
                let (visits, special) = (&counts.visits[range.clone()], &counts.special[range.clone()]);
                let loops = kernel.inner[range.clone()].iter().zip(0..);
                for (number, at) in loops.filter_map(|(inner, at)| Some((inner.back?, at))) {
                    let rounds = counts.rounds[number as usize].iter().map(|(rounds, warps)| (*rounds, weight * warps));
                    // An instruction with a fused branch takes the branch's place as the back edge.
                    let decides = matches!(code.origins[at], Origin::Instruction { decides: true, .. });
                    lines.push(LineCounts {
                        rounds: rounds.collect(),
                        ..line_counts(kernel, line_at(code, at + usize::from(decides)))
                    });
                }
                let accesses = (0..).zip(&counts.accesses[range]).map(|(at, counted)| (*line_at(code, at), *counted));
                let parts = executed(kernel, code, visits, special).into_iter().chain(accesses);
                for (line, counted) in parts.filter(|(_, counted)| *counted != Counters::default()) {
                    let mut counters = Counters::default();
                    counters.add_times(&counted, weight);
                    lines.push(LineCounts { counters, ..line_counts(kernel, &line) });
                }
            }
        }
        LineCounts::merge(lines);
    }
}

/// Returns how many warps and threads executed each line of a function, and how often its branches were executed and
/// diverged. A line can occur several times.
fn executed(kernel: &Kernel, code: &Code, visits: &[Visits], special: &[Special]) -> Vec<(Line, Counters)> {
    let counted = |warps: i64, threads: i64| Counters {
        warp_instructions: warps as u64,
        thread_instructions: threads as u64,
        ..Counters::default()
    };
    let mut left_out = code.left_out.iter().peekable();
    let (mut warps, mut threads) = (0, 0);
    let mut parts = Vec::new();
    for (at, ((origin, here), special)) in code.origins.iter().zip(visits).zip(special).enumerate() {
        warps += here.warps;
        threads += here.threads;
        let (mut own, mut branches) = (0, false);
        if let Origin::Instruction { counts, opcode, .. } = origin {
            own = i64::from(*counts);
            branches = matches!(kernel.opcodes[*opcode as usize].split('.').next(), Some("bra" | "brx"));
        }
        while let Some((_, line, counts)) = left_out.next_if(|(counting, _, _)| *counting == at) {
            own -= i64::from(*counts);
            parts.push((*line, counted(warps * i64::from(*counts), threads * i64::from(*counts))));
        }
        let mut counters = counted(warps * own - special.uncounted, threads * own - special.idle);
        counters.divergent_branches = special.diverged;
        if branches {
            counters.branches = counters.warp_instructions;
        }
        parts.push((*line_at(code, at), counters));
        if matches!(origin, Origin::Join | Origin::Instruction { ends: true, .. }) {
            (warps, threads) = (0, 0);
        }
    }
    parts
}

/// Returns zero counts for a line.
fn line_counts(kernel: &Kernel, line: &Line) -> LineCounts {
    let source = source_path(&kernel.files, line).map(|path| (path.to_owned(), line.source));
    let (counters, rounds) = (Counters::default(), BTreeMap::new());
    LineCounts { kernel: kernel.name.clone(), ptx_line: line.ptx, source, counters, rounds }
}

fn line_at(code: &Code, at: usize) -> &Line {
    &code.lines[code.ins[at].line as usize]
}

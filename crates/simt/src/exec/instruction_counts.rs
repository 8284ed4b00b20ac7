//! Counts of each instruction of a kernel, while its blocks run.
//!
//! A path counts a straight-line run as a whole where it arrives, and takes back what follows where it stops. What an
//! instruction executed therefore follows from the arrivals and stops in its run, up to itself. Only these and what
//! accesses change is noted here, so that most instructions cost two comparisons.

use std::sync::{Mutex, PoisonError};

use crate::counters::{Counters, LineCounts};
use crate::program::ins::Ins;
use crate::program::{Code, Kernel, Line, Origin, source_path};

/// What happened at one instruction of the bytecode.
#[derive(Debug, Clone, Copy, Default)]
struct Visits {
    /// Paths that arrived here, less those that stopped before it.
    warps: i64,
    /// Lanes of paths that arrived here, less those of paths that stopped before it.
    threads: i64,
    /// What the instruction counts beyond that, in warps and lanes: less than zero where a guard holds lanes back.
    own_warps: i64,
    own_threads: i64,
}

/// Counts of each instruction of a kernel.
#[derive(Debug, Clone)]
pub struct InstructionCounts {
    visits: Vec<Visits>,
    /// What accesses and branches counted.
    accesses: Vec<Counters>,
    /// The counters when they were looked at last.
    seen: Counters,
}

impl InstructionCounts {
    fn new(kernel: &Kernel) -> Self {
        let len = kernel.functions.iter().map(|function| function.ins.len()).sum();
        let (visits, accesses) = (vec![Visits::default(); len], vec![Counters::default(); len]);
        Self { visits, accesses, seen: Counters::default() }
    }

    /// Records that a path with so many lanes arrives at an instruction.
    pub fn arrive(&mut self, at: *const Ins, lanes: u32) {
        self.visit(at, 1, i64::from(lanes));
    }

    /// Records that a path with so many lanes stops before an instruction.
    pub fn stop(&mut self, at: *const Ins, lanes: u32) {
        self.visit(at, -1, -i64::from(lanes));
    }

    fn visit(&mut self, at: *const Ins, warps: i64, threads: i64) {
        // SAFETY: a path goes on at an instruction of a loaded function.
        let index = unsafe { (*at).index() };
        if let Some(visits) = self.visits.get_mut(index) {
            visits.warps += warps;
            visits.threads += threads;
        }
    }

    /// Begins to look at counters, which other warps may have changed before.
    pub const fn begin(&mut self, now: &Counters) {
        self.seen = *now;
    }

    /// Whether the counters of executed instructions or of branches have changed.
    #[inline(always)]
    pub const fn is_behind(&self, now: &Counters) -> bool {
        let executed = now.warp_instructions ^ self.seen.warp_instructions;
        executed | (now.branches ^ self.seen.branches) != 0
    }

    /// Assigns what the counters changed by to the instruction `i`, after which a path with so many lanes goes on at `to`.
    #[inline(never)]
    pub fn note(&mut self, now: &Counters, i: &Ins, to: *const Ins, lanes: u32) {
        let warps = now.warp_instructions.wrapping_sub(self.seen.warp_instructions) as i64;
        let threads = now.thread_instructions.wrapping_sub(self.seen.thread_instructions) as i64;
        // A guard executes the instruction after it.
        let own = i.index() + usize::from(i.is_guard());
        if warps > 0 {
            self.arrive(to, lanes);
        } else if let Some(visits) = self.visits.get_mut(own) {
            visits.own_warps += warps;
            visits.own_threads += threads;
        }
        if let Some(accesses) = self.accesses.get_mut(own) {
            accesses.add_since(now, &self.seen);
        }
        self.seen = *now;
    }
}

/// The counts of a grid: blocks that run at the same time count apart, and those that represent different numbers of
/// blocks too.
#[derive(Debug, Default)]
pub struct GridCounts(Mutex<Vec<(u64, Box<InstructionCounts>)>>);

impl GridCounts {
    /// Lends counts to a block that represents `weight` blocks.
    pub fn lend(&self, kernel: &Kernel, weight: u64) -> Box<InstructionCounts> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let free = all.iter().position(|(represented, _)| *represented == weight);
        free.map_or_else(|| Box::new(InstructionCounts::new(kernel)), |at| all.swap_remove(at).1)
    }

    pub fn give_back(&self, counts: Box<InstructionCounts>, weight: u64) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push((weight, counts));
    }

    /// Adds the counts of the kernel's lines to those that `lines` has.
    pub fn add_to(self, kernel: &Kernel, lines: &mut Vec<LineCounts>) {
        for (weight, counts) in self.0.into_inner().unwrap_or_else(PoisonError::into_inner) {
            let mut first = 0;
            for code in &kernel.functions {
                let range = first..first + code.ins.len();
                first = range.end;
                let accesses = counts.accesses[range.clone()].iter().enumerate();
                let accesses = accesses.map(|(at, counted)| (*line_at(code, branch_of(code, at, counted)), *counted));
                let parts = executed(code, &counts.visits[range]).into_iter().chain(accesses);
                for (line, counted) in parts.filter(|(_, counted)| *counted != Counters::default()) {
                    let mut counters = Counters::default();
                    counters.add_times(&counted, weight);
                    let source = source_path(&kernel.files, &line).map(|path| (path.to_owned(), line.source));
                    lines.push(LineCounts { kernel: kernel.name.clone(), ptx_line: line.ptx, source, counters });
                }
            }
        }
        LineCounts::merge(lines);
    }
}

/// Returns the instruction that diverged where `at` counted that: a branch may run at once with the decision before it.
fn branch_of(code: &Code, at: usize, counted: &Counters) -> usize {
    let ends = |at: usize| matches!(code.origins.get(at), Some(Origin::Instruction { ends: true, .. }));
    at + usize::from(counted.branches > 0 && !ends(at) && ends(at + 1))
}

/// Returns how many warps and threads executed the lines of a function, in parts.
fn executed(code: &Code, visits: &[Visits]) -> Vec<(Line, Counters)> {
    let counted = |warps: i64, threads: i64| Counters {
        warp_instructions: warps as u64,
        thread_instructions: threads as u64,
        ..Counters::default()
    };
    let mut left_out = code.left_out.iter().peekable();
    let (mut warps, mut threads) = (0, 0);
    let mut parts = Vec::new();
    for (at, (origin, here)) in code.origins.iter().zip(visits).enumerate() {
        warps += here.warps;
        threads += here.threads;
        let mut own = 0;
        if let Origin::Instruction { counts, .. } = origin {
            own = i64::from(*counts);
        }
        while let Some((_, line, counts)) = left_out.next_if(|(counting, _, _)| *counting == at) {
            own -= i64::from(*counts);
            parts.push((*line, counted(warps * i64::from(*counts), threads * i64::from(*counts))));
        }
        parts.push((*line_at(code, at), counted(warps * own + here.own_warps, threads * own + here.own_threads)));
        if matches!(origin, Origin::Join | Origin::Instruction { ends: true, .. }) {
            (warps, threads) = (0, 0);
        }
    }
    parts
}

fn line_at(code: &Code, at: usize) -> &Line {
    &code.lines[code.ins[at].line as usize]
}

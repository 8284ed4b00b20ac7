//! A warp between its turns: its registers and local memory, and the paths that its lanes are on.

use std::ptr;

use crate::exec::ahead::prefetch;
use crate::program::Kernel;
use crate::program::ins::Ins;
use crate::program::row::{LANES, Row};

/// A path that waits: lanes that resume at `pc` when the path above them on the stack has arrived or ended.
#[derive(Debug, Clone, Copy)]
pub struct Waiting {
    pub pc: *const Ins,
    pub mask: u32,
    /// Where this path meets the next one down.
    pub rpc: *const Ins,
}

/// A call that has not returned.
#[derive(Debug, Clone, Copy)]
pub struct Frame {
    /// Index of the function that called.
    pub function: usize,
    pub return_to: *const Ins,
    pub mask: u32,
    pub rpc: *const Ins,
    /// Length of the stack of waiting paths at the call.
    pub depth: usize,
    /// Byte offsets of the caller's registers and locals.
    pub registers: u32,
    pub locals: u32,
    /// Where the caller wants the result, in its locals.
    pub result: u32,
}

/// Lanes that run together, with the paths that wait for them.
#[derive(Debug, Clone)]
pub struct Fiber {
    pub pc: *const Ins,
    pub mask: u32,
    pub rpc: *const Ins,
    pub stack: Vec<Waiting>,
    pub frames: Vec<Frame>,
    pub function: usize,
    pub registers: u32,
    pub locals: u32,
    pub state: FiberState,
}

/// What a fiber waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FiberState {
    Ready,
    /// At a barrier of the block: the lanes have arrived.
    Barrier {
        id: u32,
    },
    /// At an instruction that needs these lanes together.
    Lanes {
        wanted: u32,
    },
}

/// The barrier that a path waits at, behind the sixteen of the block.
pub const CLUSTER_BARRIER: u32 = 16;

/// A warp of a block. What every turn of it asks for comes first, in one line of the cache.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub struct Warp {
    /// Frames of 4-byte units, as rows for their alignment.
    pub registers: Vec<Row<u32>>,
    pub fibers: Vec<Fiber>,
    /// Lanes that exist.
    pub born: u32,
    pub exited: u32,
    /// The warp's number in its block.
    pub index: u32,
    /// The path that ran last.
    pub current: u32,
    /// What the turn that was cut short has left of its time slice.
    pub fuel: Option<u32>,
    /// Polls of the turn that was cut short.
    pub spun: u32,
    /// Lanes that have arrived at the barrier of the cluster, and lanes that have been let go and have not waited yet.
    pub arrived: u32,
    pub released: u32,
    /// The carry flag of every lane.
    pub carry: u32,
    /// Votes in favour, and voters, of the last barrier reduction.
    pub reduced: (u32, u32),
    /// Local memory, lane after lane.
    pub local: Vec<u8>,
    /// Bytes of local memory a lane.
    pub local_stride: usize,
    /// A fiber that has ended, for its storage.
    pub spare: Option<Fiber>,
    /// Instructions that polled last, with their addresses.
    pub polled: [(usize, u64); 4],
}

impl Default for Fiber {
    /// No lanes, ready.
    fn default() -> Self {
        Self {
            pc: ptr::null(),
            mask: 0,
            rpc: ptr::null(),
            stack: Vec::new(),
            frames: Vec::new(),
            function: 0,
            registers: 0,
            locals: 0,
            state: FiberState::Ready,
        }
    }
}

impl Warp {
    /// Puts all lanes of `born` at the start of a kernel, with local memory zero, and with registers zero where the
    /// program could tell.
    pub fn start(&mut self, kernel: &Kernel, index: u32, born: u32) {
        if kernel.reads_unwritten {
            self.registers.clear();
        }
        let code = &kernel.functions[0];
        self.local.fill(0);
        self.grow(code.frame.max(1), code.locals as usize);
        self.fibers.truncate(1);
        let mut fiber = self.fibers.pop().or_else(|| self.spare.take()).unwrap_or_default();
        fiber.stack.clear();
        fiber.frames.clear();
        let (stack, frames) = (fiber.stack, fiber.frames);
        self.fibers.push(Fiber { pc: code.ins.as_ptr(), mask: born, stack, frames, ..Fiber::default() });
        (self.index, self.born) = (index, born);
        (self.exited, self.carry, self.reduced, self.current) = (0, 0, (0, 0), 0);
        (self.fuel, self.spun, self.arrived, self.released) = (None, 0, 0, 0);
        self.polled = Default::default();
    }

    /// Brings what the warp's next turn begins with into the first-level cache. By the time a warp has its turn, the
    /// others have pushed it out.
    #[inline(always)]
    pub fn prefetch(&self) {
        prefetch(ptr::from_ref(self).cast());
        prefetch(ptr::from_ref(self).cast::<u8>().wrapping_add(64));
        for offset in (0..size_of::<Fiber>()).step_by(64) {
            prefetch(self.fibers.as_ptr().cast::<u8>().wrapping_add(offset));
        }
    }

    /// Makes room for bytes of registers, and of local memory a lane.
    pub fn grow(&mut self, registers: u32, local: usize) {
        let rows = (registers as usize).div_ceil(size_of::<Row<u32>>());
        if rows > self.registers.len() {
            self.registers.resize(rows, Row([0; LANES]));
        }
        if local > self.local_stride {
            let stride = local.next_power_of_two().max(64);
            let mut wider = vec![0; stride * LANES];
            for lane in 0..LANES {
                let old = &self.local[lane * self.local_stride..(lane + 1) * self.local_stride];
                wider[lane * stride..lane * stride + old.len()].copy_from_slice(old);
            }
            self.local = wider;
            self.local_stride = stride;
        }
    }
}

//! A warp while it is not running: its registers, its local memory, and the paths of its lanes.

use std::ptr;

use crate::exec::prefetch::prefetch;
use crate::exec::undefined::Undefined;
use crate::program::Kernel;
use crate::program::ins::Ins;
use crate::program::row::{LANES, Row};

/// A waiting path: lanes that continue at `pc` once the path above them on the stack has reconverged or ended.
#[derive(Debug, Clone, Copy)]
pub struct Waiting {
    pub pc: *const Ins,
    pub mask: u32,
    /// Where this path reconverges with the next one down the stack.
    pub rpc: *const Ins,
}

/// A call that has not returned yet.
#[derive(Debug, Clone, Copy)]
pub struct Frame {
    /// Index of the calling function.
    pub function: usize,
    pub return_to: *const Ins,
    pub mask: u32,
    pub rpc: *const Ins,
    /// Number of waiting paths on the stack at the time of the call.
    pub depth: usize,
    /// Byte offsets of the caller's registers and locals.
    pub registers: u32,
    pub locals: u32,
    /// Offset of the result in the caller's locals.
    pub result: u32,
}

/// A warp split: lanes that run together, and the paths that wait for them.
#[derive(Debug, Clone)]
pub struct Split {
    pub pc: *const Ins,
    pub mask: u32,
    pub rpc: *const Ins,
    pub stack: Vec<Waiting>,
    pub frames: Vec<Frame>,
    pub function: usize,
    pub registers: u32,
    pub locals: u32,
    pub state: SplitState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SplitState {
    Ready,
    /// At a barrier of the block, where the split's lanes have arrived.
    Barrier {
        id: u32,
    },
    /// At an instruction that needs these lanes together.
    Lanes {
        wanted: u32,
    },
}

/// Id of the cluster barrier, after the ids of the block's 16 barriers.
pub const CLUSTER_BARRIER: u32 = 16;

/// A warp of a block. The fields that are used whenever it runs come first, in one cache line.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub struct Warp {
    /// Register frames in units of four bytes. Stored as rows for their alignment.
    pub registers: Vec<Row<u32>>,
    pub splits: Vec<Split>,
    /// Lanes that have a thread.
    pub existing: u32,
    pub exited: u32,
    pub index: u32,
    /// Index of the split that ran last.
    pub current: u32,
    /// Remaining fuel of a time slice that was cut short.
    pub fuel: Option<u32>,
    /// Number of polls in the slice that was cut short.
    pub spun: u32,
    /// Lanes that have arrived at the cluster barrier, and lanes that it has released but that have not waited yet.
    pub arrived: u32,
    pub released: u32,
    /// The carry flag of every lane.
    pub carry: u32,
    /// Predicates of the last barrier reduction: how many were true, and how many there were.
    pub reduced: (u32, u32),
    /// Local memory of all lanes, one lane after another.
    pub local: Vec<u8>,
    /// Iterations of each loop so far, in a kernel that counts per instruction.
    pub rounds: Vec<u64>,
    /// Bytes of local memory per lane.
    pub local_stride: usize,
    /// A split that has ended, kept so that its storage can be reused.
    pub spare: Option<Split>,
    /// The most recent polling instructions, with the addresses that they read.
    pub polled: [(usize, u64); 4],
    /// Operations at which the warp waited for lanes, and those lanes.
    pub awaited: Vec<(*const Ins, u32)>,
    /// Undefined bits of the registers, if any.
    pub undefined: Option<Box<Undefined>>,
}

impl Default for Split {
    /// Returns a split that is ready and has no lanes.
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
            state: SplitState::Ready,
        }
    }
}

impl Warp {
    /// Puts all lanes of `existing` at the start of a kernel. Zeroes local memory, and also registers if the program
    /// could read them uninitialised.
    pub fn start(&mut self, kernel: &Kernel, index: u32, existing: u32) {
        if kernel.reads_unwritten {
            self.registers.clear();
        }
        let code = &kernel.functions[0];
        self.local.fill(0);
        self.grow(code.frame.max(1), code.locals as usize);
        self.splits.truncate(1);
        let mut split = self.splits.pop().or_else(|| self.spare.take()).unwrap_or_default();
        split.stack.clear();
        split.frames.clear();
        let (stack, frames) = (split.stack, split.frames);
        self.splits.push(Split { pc: code.ins.as_ptr(), mask: existing, stack, frames, ..Split::default() });
        (self.index, self.existing) = (index, existing);
        (self.exited, self.carry, self.reduced, self.current) = (0, 0, (0, 0), 0);
        (self.fuel, self.spun, self.arrived, self.released) = (None, 0, 0, 0);
        self.polled = Default::default();
        self.undefined = None;
        self.awaited.clear();
        self.rounds.clear();
    }

    /// Prefetches what the warp needs first when it runs next; by then, other warps will have evicted it.
    #[inline(always)]
    pub fn prefetch(&self) {
        prefetch(ptr::from_ref(self).cast());
        prefetch(ptr::from_ref(self).cast::<u8>().wrapping_add(64));
        for offset in (0..size_of::<Split>()).step_by(64) {
            prefetch(self.splits.as_ptr().cast::<u8>().wrapping_add(offset));
        }
    }

    /// Makes room for the registers, and for each lane's local memory.
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

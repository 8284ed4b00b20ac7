//! What a handler works on: the warp that runs, the block around it, the launch around that.

use std::ptr;

use super::ahead::Trail;
use super::program::{Kernel, Position};
use super::row::{Area, Bases, Ins, Row, Slot};
pub use super::warp::{Fiber, FiberState, Frame, Waiting, Warp};
use crate::counters::Counters;
use crate::error::{Site, Trap, TrapKind};
use crate::launch::Deadline;
use crate::memory::{Extent, Memory};
use crate::sanitize::GridShadow;

/// Why a handler stopped the warp.
#[derive(Debug)]
pub enum Event {
    None,
    /// The fiber's lanes have all exited.
    Exited,
    /// The fiber has arrived at a barrier and continues behind it.
    Barrier(Arrival),
    /// The same at one that waits for the whole block and asks nothing, as nearly all do.
    Sync {
        id: u32,
    },
    /// The fiber waits at the barrier of the cluster and continues behind it.
    Cluster,
    /// The time slice is over.
    Slice,
    /// The instruction's effect shows in other blocks; it waits for the block's turn and is then retried.
    Turn,
    /// The instruction needs lanes of other paths; it is retried with them.
    Lanes {
        wanted: u32,
    },
    Trap(Box<Trap>),
}

/// An arrival at a barrier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    pub id: u32,
    /// Threads that the barrier waits for; `None` for the whole block.
    pub threads: Option<u32>,
    /// False for `arrive`, which does not wait.
    pub waits: bool,
    /// The lanes' predicate in a reduction.
    pub votes: u32,
}

/// How blocks may show their effects to each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// All earlier blocks have ended: anything goes.
    Mine,
    /// Wait before the next visible effect.
    Wait,
    /// So many visible effects, then wait.
    Some(u32),
}

/// What stays the same for all blocks of a launch.
#[derive(Debug)]
pub struct LaunchState<'m> {
    pub kernel: &'m Kernel,
    pub memory: &'m Memory,
    pub heap: &'m super::heap::Heap,
    pub params: Vec<u8>,
    /// The kernel's constants, its parameters among them.
    pub constants: Vec<Row<u32>>,
    pub grid: [u32; 3],
    pub block: [u32; 3],
    /// Blocks of a cluster, along each axis.
    pub cluster: [u32; 3],
    pub shared_bytes: u32,
    pub sanitize: bool,
    /// What blocks did to memory that others reach, for the sanitizer.
    pub shadow: GridShadow,
    pub sm_count: u32,
    /// Rows of each warp of a block: thread indices.
    pub warp_rows: Vec<WarpRows>,
    pub local_limit: usize,
    /// Back edges that a warp may take before the next one runs.
    pub slice: u32,
    /// Warp instructions that a block may execute.
    pub watchdog: u64,
    /// When it is to end, whatever it has executed.
    pub deadline: Option<Deadline>,
    /// What the grid may ask of the device runtime.
    pub runtime: super::device_runtime::GridRuntime<'m>,
}

/// What the [`Area::Warp`] operands read.
#[derive(Debug, Clone)]
#[repr(C)]
pub struct WarpRows {
    pub tid: [Row<u32>; 3],
    pub warp_id: Row<u32>,
}

/// What the [`Area::Block`] operands read.
#[derive(Debug, Clone)]
#[repr(C)]
pub struct BlockRows {
    pub block_index: [Row<u32>; 3],
    pub block_size: [Row<u32>; 3],
    pub grid_size: [Row<u32>; 3],
    pub warps: Row<u32>,
    pub dynamic_shared: Row<u32>,
    pub sm_id: Row<u32>,
    pub sm_count: Row<u32>,
    pub total_shared: Row<u32>,
    pub workspace: [Row<u32>; 2],
    /// Of the block in its cluster, of its cluster in the grid, the sizes of both.
    pub cluster_place: [Row<u32>; 3],
    pub cluster_index: [Row<u32>; 3],
    pub cluster_size: [Row<u32>; 3],
    pub clusters: [Row<u32>; 3],
    /// The block's number in its cluster, and how many there are.
    pub cluster_rank: Row<u32>,
    pub cluster_blocks: Row<u32>,
    /// All bits of every lane where the kernel was compiled for clusters.
    pub is_clustered: Row<u32>,
}

impl BlockRows {
    /// The rows of blocks of so many warps; [`Self::move_to`] says of which one.
    pub fn new(launch: &LaunchState<'_>, warps: u32, workspace: u64) -> Self {
        let clusters = std::array::from_fn(|axis| Row::of(launch.grid[axis] / launch.cluster[axis]));
        Self {
            block_index: [Row::of(0); 3],
            block_size: launch.block.map(Row::of),
            grid_size: launch.grid.map(Row::of),
            warps: Row::of(warps),
            dynamic_shared: Row::of(launch.shared_bytes),
            sm_id: Row::of(0),
            sm_count: Row::of(launch.sm_count),
            total_shared: Row::of(launch.kernel.shared_static + launch.shared_bytes),
            workspace: [Row::of((workspace >> 32) as u32), Row::of(workspace as u32)],
            cluster_place: [Row::of(0); 3],
            cluster_index: [Row::of(0); 3],
            cluster_size: launch.cluster.map(Row::of),
            clusters,
            cluster_rank: Row::of(0),
            cluster_blocks: Row::of(launch.cluster.iter().product()),
            is_clustered: Row::of(if launch.kernel.cluster.is_some() { u32::MAX } else { 0 }),
        }
    }

    /// Makes the rows those of a block of the launch.
    pub fn move_to(&mut self, launch: &LaunchState<'_>, linear: u64, index: [u32; 3]) {
        let each = |of: &dyn Fn(usize) -> u32| std::array::from_fn(|axis| Row::of(of(axis)));
        self.block_index = index.map(Row::of);
        self.sm_id = Row::of((linear % u64::from(launch.sm_count)) as u32);
        self.cluster_place = each(&|axis| index[axis] % launch.cluster[axis]);
        self.cluster_index = each(&|axis| index[axis] / launch.cluster[axis]);
        self.cluster_rank = Row::of(super::cluster::rank_of(index, launch.cluster));
    }
}

/// What a block sees of another one of its cluster while it runs.
#[derive(Debug)]
pub struct Peer {
    pub shared: *mut u8,
    pub ended: bool,
    pub index: [u32; 3],
    pub monitor: super::monitor::Monitor,
}

// SAFETY: the pointer leads into the storage of another block of the same cluster, which goes with it from thread to
// thread and is run by one at a time.
unsafe impl Send for Peer {}

/// State of the warp that runs.
#[derive(Debug)]
pub struct Context<'m> {
    pub bases: Bases,
    pub mask: u32,
    pub lanes: u32,
    pub rpc: *const Ins,
    pub fuel: u32,
    pub launch: &'m LaunchState<'m>,
    /// The allocation that the last access hit.
    pub cached: Extent,
    pub trail: Trail,
    pub counters: Counters,
    pub warp: Box<Warp>,
    pub stack: Vec<Waiting>,
    pub frames: Vec<Frame>,
    pub function: usize,
    pub registers: u32,
    pub locals: u32,
    pub event: Event,
    /// Where a stopped path goes on.
    pub resume: *const Ins,
    pub shared: *mut u8,
    pub shared_len: u64,
    /// The blocks of the cluster, by rank; none where the block is alone.
    pub peers: Vec<Peer>,
    pub monitor: super::monitor::Monitor,
    pub block_index: [u32; 3],
    pub turn: Turn,
    pub printed: String,
    /// Polling loads and atomics since the warp last made visible progress.
    pub polls: u32,
    /// The warp has made some in this slice.
    pub progressed: bool,
    /// Deterministic clock: instructions of this block.
    pub issued: u64,
}

impl Context<'_> {
    /// The instruction behind `i`.
    #[inline(always)]
    pub fn next(i: &Ins) -> *const Ins {
        // SAFETY: every function ends in a control instruction, so a lane-wise one has a successor.
        unsafe { ptr::from_ref(i).add(1) }
    }

    /// Where an operand lies.
    ///
    /// # Safety
    /// The slot is one that the loader made for the current function.
    #[inline(always)]
    pub unsafe fn at<T>(&self, slot: Slot) -> *mut T {
        // SAFETY: by the caller's promise.
        unsafe { self.bases.at(slot) }
    }

    /// A copy of a source row.
    ///
    /// # Safety
    /// The slot holds a row of `T`s' width.
    #[inline(always)]
    pub unsafe fn row<T: Copy>(&self, slot: Slot) -> Row<T> {
        // SAFETY: by the caller's promise; every bit pattern is a value of the lane types.
        unsafe { *self.at::<Row<T>>(slot) }
    }

    /// Lane 0 of a source row, which the compiler takes for another value than that of the row: were it to see that one
    /// lane compared with itself, it would treat the other 31 piece by piece instead of as vectors.
    ///
    /// # Safety
    /// The slot holds a row of `T`s' width.
    #[inline(always)]
    pub unsafe fn first<T: Copy>(&self, slot: Slot) -> T {
        // SAFETY: by the caller's promise.
        unsafe { self.at::<T>(slot).read_volatile() }
    }

    /// A destination row.
    ///
    /// # Safety
    /// The slot holds a row of `T`s' width in the frame. The borrow must end before the slot is read again.
    #[inline(always)]
    pub unsafe fn row_mut<'r, T: Copy>(&self, slot: Slot) -> &'r mut Row<T> {
        // SAFETY: by the caller's promise.
        unsafe { &mut *self.bases.register::<Row<T>>(slot) }
    }

    /// The bits of a predicate register.
    ///
    /// # Safety
    /// The slot holds a predicate.
    #[inline(always)]
    pub unsafe fn pred(&self, slot: Slot) -> u32 {
        // SAFETY: by the caller's promise.
        unsafe { *self.at::<u32>(slot) }
    }

    /// Writes a predicate register where lanes are active; nothing for [`Slot::NONE`].
    ///
    /// # Safety
    /// The slot holds a predicate.
    #[inline(always)]
    pub unsafe fn set_pred(&mut self, slot: Slot, bits: u32) {
        if slot == Slot::NONE {
            return;
        }
        // SAFETY: by the caller's promise.
        unsafe {
            let at = self.bases.register::<u32>(slot);
            *at = (*at & !self.mask) | (bits & self.mask);
        }
    }

    /// Writes one lane of a destination row.
    ///
    /// # Safety
    /// The slot holds a row of `T`s' width in the frame.
    #[inline(always)]
    pub unsafe fn set_lane<T: Copy>(&mut self, slot: Slot, lane: usize, value: T) {
        // SAFETY: by the caller's promise; a lane is below 32.
        unsafe { *self.bases.register::<T>(slot).add(lane) = value };
    }

    /// Whether a lane is active.
    #[inline(always)]
    pub const fn on(&self, lane: usize) -> bool {
        self.mask & (1 << lane) != 0
    }

    /// Makes `mask` the active lanes.
    #[inline]
    pub fn set_mask(&mut self, mask: u32) {
        if mask == self.mask {
            return;
        }
        self.mask = mask;
        self.lanes = mask.count_ones();
    }

    /// Points the frame area at the current function's registers.
    pub fn rebase(&mut self) {
        // SAFETY: `registers` is an offset inside the warp's register file.
        let frame = unsafe { self.warp.registers.as_mut_ptr().cast::<u8>().add(self.registers as usize) };
        self.bases.set(Area::Frame, frame);
    }

    /// Counts a poll of an address, unless the instruction asked another one the last time.
    pub fn poll(&mut self, i: &Ins, address: u64) {
        let at = ptr::from_ref(i).addr();
        let last = &mut self.warp.polled[at / size_of::<Ins>() % 4];
        if *last == (at, address) {
            self.polls += 1;
        } else {
            *last = (at, address);
            self.progress();
        }
    }

    /// Notes that the warp does not wait.
    pub const fn progress(&mut self) {
        self.polls = 0;
        self.progressed = true;
    }

    /// Stops the warp with `event`; what the handler returns then.
    pub fn stop(&mut self, event: Event) -> *const Ins {
        self.event = event;
        ptr::null()
    }

    /// Stops the warp with `event`, to go on at `resume`.
    pub fn stop_at(&mut self, event: Event, resume: *const Ins) -> *const Ins {
        self.resume = resume;
        self.stop(event)
    }

    /// Ends the launch with a fault of the first lane of `lanes`.
    #[cold]
    pub fn trap(&mut self, i: &Ins, kind: TrapKind, lanes: u32, message: String) -> *const Ins {
        let trap = self.describe(i.line, kind, lanes, message);
        self.stop(Event::Trap(Box::new(trap)))
    }

    /// A fault at `i`, described.
    #[cold]
    pub fn describe(&self, line: u32, kind: TrapKind, lanes: u32, message: String) -> Trap {
        let thread = (lanes != 0).then(|| self.thread_of(lanes.trailing_zeros()));
        Trap {
            kernel: self.launch.kernel.name.clone(),
            place: self.launch.kernel.place(Position { function: self.function, line }),
            block: self.block_index,
            thread,
            kind,
            message,
            launched_by: None,
            site: None,
            printed: String::new(),
        }
    }

    /// Says what memory the trap just made is about.
    #[cold]
    pub fn locate_trap(&mut self, site: Site) {
        if let Event::Trap(trap) = &mut self.event {
            trap.site = Some(site);
        }
    }

    /// The index of a lane's thread in its block.
    pub fn thread_of(&self, lane: u32) -> [u32; 3] {
        let rows = &self.launch.warp_rows[self.warp.index as usize];
        rows.tid.map(|row| row.0[(lane & 31) as usize])
    }

    fn local_at(&self, lane: usize, offset: u32) -> usize {
        lane * self.warp.local_stride + (self.locals + offset) as usize
    }

    /// Eight bytes of a lane's locals, `offset` bytes into the current frame.
    pub fn local_u64(&self, lane: usize, offset: u32) -> u64 {
        let at = self.local_at(lane, offset);
        let bytes = self.warp.local.get(at..at + 8).and_then(|b| b.try_into().ok());
        bytes.map_or(0, u64::from_le_bytes)
    }

    /// Writes eight bytes of a lane's locals.
    pub fn set_local_u64(&mut self, lane: usize, offset: u32, value: u64) {
        let at = self.local_at(lane, offset);
        if let Some(bytes) = self.warp.local.get_mut(at..at + 8) {
            bytes.copy_from_slice(&value.to_le_bytes());
        }
    }

    /// Blocks of the cluster.
    pub const fn cluster_blocks(&self) -> u32 {
        let [x, y, z] = self.launch.cluster;
        x * y * z
    }

    /// The block's number in its cluster.
    pub const fn cluster_rank(&self) -> u32 {
        super::cluster::rank_of(self.block_index, self.launch.cluster)
    }

    /// Lanes that have not exited.
    pub const fn alive(&self) -> u32 {
        self.warp.born & !self.warp.exited
    }

    /// Moves the running path out of the warp's fiber `at` into the context; gives where it goes on.
    pub fn enter(&mut self, at: usize) -> *const Ins {
        let fiber = &mut self.warp.fibers[at];
        exchange(&mut self.stack, &mut fiber.stack);
        exchange(&mut self.frames, &mut fiber.frames);
        let (pc, mask) = (fiber.pc, fiber.mask);
        self.rpc = fiber.rpc;
        self.function = fiber.function;
        self.registers = fiber.registers;
        self.locals = fiber.locals;
        self.set_mask(mask);
        self.rebase();
        self.count(pc);
        pc
    }

    /// Moves the running path back into the warp's fiber `at`, which will go on at `pc`.
    pub fn leave(&mut self, at: usize, pc: *const Ins, state: FiberState) {
        self.uncount(pc);
        let fiber = &mut self.warp.fibers[at];
        exchange(&mut self.stack, &mut fiber.stack);
        exchange(&mut self.frames, &mut fiber.frames);
        fiber.rpc = self.rpc;
        fiber.function = self.function;
        fiber.registers = self.registers;
        fiber.locals = self.locals;
        fiber.mask = self.mask;
        fiber.pc = pc;
        fiber.state = state;
    }

    /// Counts the stretch that starts at `pc`, for the active lanes.
    #[inline(always)]
    pub fn count(&mut self, pc: *const Ins) {
        // SAFETY: `pc` is where a path goes on: an instruction of a loaded function.
        let ahead = u64::from(unsafe { (*pc).ahead });
        self.counters.warp_instructions += ahead;
        self.counters.thread_instructions += ahead * u64::from(self.lanes);
    }

    /// Takes back what a path that stops at `pc` has not executed.
    pub fn uncount(&mut self, pc: *const Ins) {
        // SAFETY: as in `count`.
        let ahead = u64::from(unsafe { (*pc).ahead });
        self.counters.warp_instructions -= ahead;
        self.counters.thread_instructions -= ahead * u64::from(self.lanes);
    }
}

/// Swaps two lists; most of the time both are empty, and every barrier comes here.
#[inline(always)]
fn exchange<T>(a: &mut Vec<T>, b: &mut Vec<T>) {
    if !a.is_empty() || !b.is_empty() {
        std::mem::swap(a, b);
    }
}

//! What a handler works on: the running warp, its block and its launch.

use std::ptr;

use crate::counters::Counters;
use crate::error::{Site, Trap, TrapKind};
use crate::exec::instruction_counts::InstructionCounts;
use crate::exec::launch_state::LaunchState;
use crate::exec::prefetch::Strides;
use crate::exec::warp::{Frame, SplitState, Waiting, Warp};
use crate::exec::window::rank_of;
use crate::memory::Extent;
use crate::program::ins::{Area, Bases, Entry, Ins, Slot};
use crate::program::row::Row;
use crate::program::{Inner, Position};
use crate::sanitize::BlockShadow;

/// Why a handler stopped the warp.
#[derive(Debug)]
pub enum Event {
    None,
    /// All lanes of the split have exited.
    Exited,
    /// The split has arrived at a barrier and continues after it.
    Barrier(Arrival),
    /// The running path arrived at a barrier of the whole block without a reduction; this is the most frequent kind.
    Sync {
        id: u32,
    },
    /// The split waits at the cluster barrier and continues after it.
    Cluster,
    /// The time slice has ended.
    Slice,
    /// The instruction has an effect visible to other blocks. It waits for the block's place in commit order and is
    /// then retried.
    Commit,
    /// The instruction needs lanes on other paths; it is retried with them.
    Lanes {
        wanted: u32,
    },
    /// A load reads memory that was never written. It is retried with undefined bits tracked.
    Undefined,
    Trap(Box<Trap>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    pub id: u32,
    /// Threads that the barrier waits for; `None` for the whole block.
    pub threads: Option<u32>,
    /// False for `arrive`, which does not wait.
    pub waits: bool,
    /// The lanes' predicates in a reduction.
    pub votes: u32,
}

/// How many effects visible to other blocks a block may have now, given commit order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Commits {
    /// All, because every earlier block has ended.
    All,
    /// None: the block waits before its next visible effect.
    None,
    /// The block may have this many visible effects before it must wait.
    UpTo(u32),
}

/// The parts of another block in the cluster that the running block can access.
#[derive(Debug)]
pub struct Peer {
    pub shared: *mut u8,
    pub ended: bool,
    pub index: [u32; 3],
    pub shadow: BlockShadow,
}

// SAFETY: the pointer points to the storage of another block of the same cluster. The blocks of a cluster move between
// threads together, and only one of them runs at a time.
unsafe impl Send for Peer {}

/// State of the running warp.
#[derive(Debug)]
#[repr(C)]
pub struct Context<'m> {
    pub bases: Bases,
    pub mask: u32,
    pub lanes: u32,
    pub rpc: *const Ins,
    pub fuel: u32,
    pub launch: &'m LaunchState<'m>,
    /// Allocation of the most recent access.
    pub cached: Extent,
    pub strides: Strides,
    pub counters: Counters,
    /// Access counters, by instruction number.
    pub accesses: Vec<Counters>,
    pub warp: Box<Warp>,
    pub stack: Vec<Waiting>,
    pub frames: Vec<Frame>,
    pub function: usize,
    pub registers: u32,
    pub locals: u32,
    pub event: Event,
    /// Where the stopped path continues.
    pub resume: *const Ins,
    pub shared: *mut u8,
    /// Start of the shared memory that the kernel may access. It follows the system's reserved bytes, unless the kernel
    /// uses these itself.
    pub shared_start: u64,
    pub shared_end: u64,
    /// Blocks of the cluster, by rank; empty if the block is alone.
    pub peers: Vec<Peer>,
    pub shadow: BlockShadow,
    pub block_index: [u32; 3],
    pub commits: Commits,
    pub printed: String,
    /// Polling loads and atomics since the warp's last visible progress.
    pub polls: u32,
    /// Whether the warp has made progress in this slice.
    pub progressed: bool,
    /// Instructions that this block has executed. Serves as a deterministic clock.
    pub issued: u64,
    /// Counts per instruction, if the launch requests them.
    pub per_instruction: Option<InstructionCounts>,
    /// The wrapped handlers, in a kernel that counts per instruction.
    pub inner: &'m [Inner],
}

/// Executes one instruction for the active lanes and returns the next one. Null hands an event to the scheduler.
pub type Handler = unsafe fn(&mut Context<'_>, &Ins) -> *const Ins;

impl Entry {
    pub const fn from_handler(handler: Handler) -> Self {
        // SAFETY: both are function pointers; `handler` restores the signature before the call.
        Self(unsafe { std::mem::transmute::<Handler, unsafe fn()>(handler) })
    }

    #[inline(always)]
    pub const fn handler(self) -> Handler {
        // SAFETY: only `from_handler` creates entries, and only from handlers.
        unsafe { std::mem::transmute::<unsafe fn(), Handler>(self.0) }
    }
}

impl Context<'_> {
    /// Returns the instruction after `i`.
    #[inline(always)]
    pub fn next(i: &Ins) -> *const Ins {
        // SAFETY: a function ends with a control instruction, so every other instruction has a successor.
        unsafe { ptr::from_ref(i).add(1) }
    }

    /// Returns the location of an operand.
    ///
    /// # Safety
    ///
    /// The loader assigned the slot in the current function.
    #[inline(always)]
    pub unsafe fn at<T>(&self, slot: Slot) -> *mut T {
        // SAFETY: the loader assigned the slot in the current function.
        unsafe { self.bases.at(slot) }
    }

    /// Returns a copy of a source row.
    ///
    /// # Safety
    ///
    /// The slot holds a row of the width of `T`.
    #[inline(always)]
    pub unsafe fn row<T: Copy>(&self, slot: Slot) -> Row<T> {
        // SAFETY: the slot holds a row of the width of `T`; every bit pattern is a value of the lane types.
        unsafe { *self.at::<Row<T>>(slot) }
    }

    /// Returns lane 0 of a source row, read in a way that hides from the compiler that it is part of the row. Otherwise
    /// the compiler would handle the other 31 lanes piece by piece instead of as vectors.
    ///
    /// # Safety
    ///
    /// The slot holds a row of the width of `T`.
    #[inline(always)]
    pub unsafe fn first<T: Copy>(&self, slot: Slot) -> T {
        // SAFETY: the slot holds a row of the width of `T`.
        unsafe { self.at::<T>(slot).read_volatile() }
    }

    /// Returns a destination row.
    ///
    /// # Safety
    /// The slot holds a row of the width of `T` in the frame. The borrow must end before the slot is read again.
    #[inline(always)]
    pub unsafe fn row_mut<'r, T: Copy>(&self, slot: Slot) -> &'r mut Row<T> {
        // SAFETY: the slot holds such a row in the frame, and the borrow ends before it is read again.
        unsafe { &mut *self.bases.register::<Row<T>>(slot) }
    }

    /// Returns the bits of a predicate register.
    ///
    /// # Safety
    /// The slot holds a predicate.
    #[inline(always)]
    pub unsafe fn pred(&self, slot: Slot) -> u32 {
        // SAFETY: the slot holds a predicate.
        unsafe { *self.at::<u32>(slot) }
    }

    /// Writes a predicate register for the active lanes; does nothing for [`Slot::NONE`].
    ///
    /// # Safety
    ///
    /// The slot holds a predicate.
    #[inline(always)]
    pub unsafe fn set_pred(&mut self, slot: Slot, bits: u32) {
        if slot == Slot::NONE {
            return;
        }
        // SAFETY: the slot holds a predicate.
        unsafe {
            let at = self.bases.register::<u32>(slot);
            *at = (*at & !self.mask) | (bits & self.mask);
        }
    }

    /// Writes one lane of a destination row.
    ///
    /// # Safety
    /// The slot holds a row of the width of `T` in the frame.
    #[inline(always)]
    pub unsafe fn set_lane<T: Copy>(&mut self, slot: Slot, lane: usize, value: T) {
        // SAFETY: the slot holds such a row in the frame; a lane is below 32.
        unsafe { *self.bases.register::<T>(slot).add(lane) = value };
    }

    #[inline(always)]
    pub const fn first_lane(&self) -> usize {
        (self.mask.trailing_zeros() & 31) as usize
    }

    #[inline(always)]
    pub const fn is_active(&self, lane: usize) -> bool {
        self.mask & (1 << lane) != 0
    }

    #[inline]
    pub fn set_mask(&mut self, mask: u32) {
        if mask == self.mask {
            return;
        }
        self.mask = mask;
        self.lanes = mask.count_ones();
    }

    /// Points the register area at the current function's frame.
    pub fn rebase(&mut self) {
        // SAFETY: `registers` is an offset inside the warp's register file.
        let frame = unsafe { self.warp.registers.as_mut_ptr().cast::<u8>().add(self.registers as usize) };
        self.bases.set(Area::Frame, frame);
    }

    /// Whether the block may now have an effect that other blocks can see; uses up one permission.
    #[inline]
    pub const fn commit(&mut self) -> bool {
        match &mut self.commits {
            Commits::All => true,
            Commits::None | Commits::UpTo(0) => false,
            Commits::UpTo(left) => {
                *left -= 1;
                true
            }
        }
    }

    /// Returns the handler's return value if an instruction with an effect visible to other blocks must wait, or `None`
    /// if it may proceed.
    #[inline(always)]
    pub fn wait_for_commit(&mut self, i: &Ins) -> Option<*const Ins> {
        if self.commit() {
            return None;
        }
        Some(if self.launch.sample.is_some() { self.communicates(i) } else { self.stop_at(Event::Commit, i) })
    }

    /// Ends the launch at an instruction through which blocks communicate, because only a sample of the blocks runs.
    #[cold]
    pub fn communicates(&mut self, i: &Ins) -> *const Ins {
        let message = "an access through which blocks communicate (a sample of them cannot run without the others)";
        self.trap(i, TrapKind::Communication, self.mask, message.to_owned())
    }

    /// Counts a poll, unless the instruction accessed a different address last time.
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

    pub const fn progress(&mut self) {
        self.polls = 0;
        self.progressed = true;
    }

    /// Stops the warp with `event`. Returns the handler's return value.
    pub fn stop(&mut self, event: Event) -> *const Ins {
        self.event = event;
        ptr::null()
    }

    /// Stops the warp with `event`; it will continue at `resume`.
    pub fn stop_at(&mut self, event: Event, resume: *const Ins) -> *const Ins {
        self.resume = resume;
        self.stop(event)
    }

    /// Ends the launch with a fault, attributed to the first lane of `lanes`.
    #[cold]
    pub fn trap(&mut self, i: &Ins, kind: TrapKind, lanes: u32, message: String) -> *const Ins {
        let trap = self.describe(i.line, kind, lanes, message);
        self.stop(Event::Trap(Box::new(trap)))
    }

    /// Describes a fault at `i`.
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
            cure: None,
            launched_by: None,
            site: None,
            printed: String::new(),
        }
    }

    /// Adds the memory location to the most recent trap.
    #[cold]
    pub fn locate_trap(&mut self, site: Site) {
        if let Event::Trap(trap) = &mut self.event {
            trap.site = Some(site);
        }
    }

    /// Adds a fix for the race to the most recent trap.
    #[cold]
    pub fn cure_trap(&mut self, cure: String) {
        if let Event::Trap(trap) = &mut self.event {
            trap.cure = Some(cure);
        }
    }

    /// Returns the index of a lane's thread in its block.
    pub fn thread_of(&self, lane: u32) -> [u32; 3] {
        let rows = &self.launch.warp_rows[self.warp.index as usize];
        rows.tid.map(|row| row.0[(lane & 31) as usize])
    }

    fn local_at(&self, lane: usize, offset: u32) -> usize {
        lane * self.warp.local_stride + (self.locals + offset) as usize
    }

    /// Reads eight bytes of a lane's locals, at `offset` in the current frame.
    pub fn local_u64(&self, lane: usize, offset: u32) -> u64 {
        let at = self.local_at(lane, offset);
        let bytes = self.warp.local.get(at..at + 8).and_then(|b| b.try_into().ok());
        bytes.map_or(0, u64::from_le_bytes)
    }

    /// Writes eight bytes of a lane's locals, at `offset` in the current frame.
    pub fn set_local_u64(&mut self, lane: usize, offset: u32, value: u64) {
        let at = self.local_at(lane, offset);
        if let Some(bytes) = self.warp.local.get_mut(at..at + 8) {
            bytes.copy_from_slice(&value.to_le_bytes());
        }
    }

    pub const fn cluster_blocks(&self) -> u32 {
        let [x, y, z] = self.launch.cluster;
        x * y * z
    }

    pub const fn cluster_rank(&self) -> u32 {
        rank_of(self.block_index, self.launch.cluster)
    }

    /// Returns the lanes that have not exited.
    pub const fn alive(&self) -> u32 {
        self.warp.existing & !self.warp.exited
    }

    /// Moves the path of split `at` from the warp into the context. Returns where it continues.
    pub fn enter(&mut self, at: usize) -> *const Ins {
        let split = &mut self.warp.splits[at];
        exchange(&mut self.stack, &mut split.stack);
        exchange(&mut self.frames, &mut split.frames);
        let (pc, mask) = (split.pc, split.mask);
        self.rpc = split.rpc;
        self.function = split.function;
        self.registers = split.registers;
        self.locals = split.locals;
        self.set_mask(mask);
        self.rebase();
        self.count(pc);
        pc
    }

    /// Moves the running path from the context back into split `at` of the warp. It will continue at `pc`.
    pub fn leave(&mut self, at: usize, pc: *const Ins, state: SplitState) {
        self.uncount(pc);
        let split = &mut self.warp.splits[at];
        exchange(&mut self.stack, &mut split.stack);
        exchange(&mut self.frames, &mut split.frames);
        split.rpc = self.rpc;
        split.function = self.function;
        split.registers = self.registers;
        split.locals = self.locals;
        split.mask = self.mask;
        split.pc = pc;
        split.state = state;
    }

    /// Counts the straight-line run that starts at `pc`, for the active lanes.
    #[inline(always)]
    pub fn count(&mut self, pc: *const Ins) {
        // SAFETY: `pc` is where a path continues: an instruction of a loaded function.
        let ahead = u64::from(unsafe { (*pc).ahead });
        self.counters.warp_instructions += ahead;
        self.counters.thread_instructions += ahead * u64::from(self.lanes);
    }

    #[inline(always)]
    pub fn accesses(&mut self, i: &Ins) -> &mut Counters {
        debug_assert!((i.number as usize) < self.accesses.len());
        // SAFETY: the block has counters for every number. In a kernel that does not count per instruction, all
        // instructions have number zero.
        unsafe { self.accesses.get_unchecked_mut(i.number as usize) }
    }

    /// Records that the active lanes continue at `pc`, if the launch counts per instruction.
    #[inline(always)]
    pub fn note_arrival(&mut self, pc: *const Ins) {
        if let Some(counts) = &mut self.per_instruction {
            counts.arrive(pc, self.lanes);
        }
    }

    /// Subtracts the instruction at `pc` and those after it: they were counted, but the path stops there.
    pub fn uncount(&mut self, pc: *const Ins) {
        // SAFETY: as in `count`.
        let ahead = u64::from(unsafe { (*pc).ahead });
        self.counters.warp_instructions -= ahead;
        self.counters.thread_instructions -= ahead * u64::from(self.lanes);
        if let Some(counts) = &mut self.per_instruction {
            counts.stop(pc, self.lanes);
        }
    }
}

/// Swaps two lists. Both are usually empty, and every barrier calls this.
#[inline(always)]
fn exchange<T>(a: &mut Vec<T>, b: &mut Vec<T>) {
    if !a.is_empty() || !b.is_empty() {
        std::mem::swap(a, b);
    }
}

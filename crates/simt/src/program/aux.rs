//! The bits of `aux`, with one type per kind of instruction.

use crate::image::Geometry;
use bitflags::bitflags;

/// A state space, in bits 4 to 7 of memory instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StateSpace(u32);

impl StateSpace {
    pub const GENERIC: Self = Self(0x00);
    pub const GLOBAL: Self = Self(0x10);
    pub const SHARED: Self = Self(0x20);
    pub const LOCAL: Self = Self(0x30);
    pub const PARAM: Self = Self(0x40);
    /// Shared memory of another block in the cluster. No instruction names this space.
    pub const REMOTE: Self = Self(0x50);
}

bitflags! {
    /// A memory instruction: flags and state space. The low four bits are the number of elements per lane (1, 2, 4, or
    /// for an atomic 8).
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct Access: u32 {
        /// Mask of the state space.
        const SPACE = 0xf0;
        /// The addresses are in a 32-bit row.
        const NARROW = 0x100;
        /// The offset is relative to the function's locals.
        const FRAME = 0x200;
        /// The access has no address row: the offset is the address.
        const ABSOLUTE = 0x400;
        /// Other blocks can see the effect, or the value comes from them, so the access follows commit order.
        const ORDERED = 0x800;
        /// The program may be waiting for another thread here.
        const POLL = 0x1000;
        /// The access is volatile, relaxed, acquiring or releasing, and cannot race.
        const STRONG = 0x2000;
        /// A store or atomic that releases the thread's earlier accesses.
        const RELEASE = 0x4000;
        const VOLATILE = 0x8000;
        /// Constant memory, which the simulator keeps in global memory. Registers hold 32-bit addresses.
        const CONST = 0x1_0000;
        /// The atomic replaces the value without reading it.
        const REPLACES = 0x2_0000;
        /// A load or atomic that acquires what was released with its value.
        const ACQUIRE = 0x4_0000;
        /// The scope of a strong access is the block, or for `CLUSTER_SCOPE` the cluster.
        const BLOCK_SCOPE = 0x8_0000;
        const CLUSTER_SCOPE = 0x10_0000;
    }

    /// A branch or a guard.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct Branch: u32 {
        const NEGATED = 1;
        /// The target is at or before the branch.
        const BACKWARD = 2;
        /// Slot 1 holds the distance to the reconvergence point.
        const RECONVERGES = 4;
        /// The loader added the branch, so it is not counted.
        const SILENT = 8;
    }

    /// A reconvergence point.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct Join: u32 {
        /// Lanes that continue from here only exit.
        const EXITS = 1;
    }

    /// An instruction that writes predicates.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct Decision: u32 {
        /// The next instruction is a branch.
        const BEFORE_BRANCH = 1 << 16;
    }

    /// An instruction of a carry chain; its two low bits are the operation.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct Carry: u32 {
        /// The carry flag is an input.
        const TAKES = 4;
        /// The carry flag is an output.
        const SETS = 8;
        const SIGNED = 16;
    }

    /// Predicate logic; the two low bits are the operation.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct Negations: u32 {
        const FIRST = 4;
        const SECOND = 8;
    }

    /// A comparison; the two low bits are the logic that combines the result with the predicate in slot 4.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct Combination: u32 {
        /// The predicate in slot 4 is negated first.
        const NEGATED = 4;
    }

    /// A vote; the two low bits are the mode.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct Vote: u32 {
        const NEGATED = 8;
    }

    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct Barrier: u32 {
        /// Slot 1 is the thread count.
        const WITH_COUNT = 1;
        /// The threads arrive without waiting.
        const ARRIVE = 2;
        /// Slot 2 is the predicate of a reduction.
        const WITH_VOTE = 4;
        const NEGATED_VOTE = 8;
        /// All lanes of a warp must arrive together.
        const ALIGNED = 16;
    }

    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct Fence: u32 {
        /// The scope includes other blocks.
        const DEVICE = 1;
        /// A proxy fence for bulk copies.
        const BULK = 2;
        /// Completes the acquires of preceding strong loads.
        const ACQUIRE = 4;
        /// Later strong stores release what precedes the fence.
        const RELEASE = 8;
        const BLOCK_SCOPE = 16;
    }

    /// An address in the shared memory of a cluster.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct ClusterAddress: u32 {
        /// The address has 32 bits.
        const NARROW = 1;
        /// The address is an offset in the window, not a generic address.
        const OFFSET = 2;
    }

    /// A bulk copy, `st.async` or `red.async`.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct Bulk: u32 {
        /// The address row of the target, source or mbarrier object has 32 bits.
        const NARROW_TO = 1;
        const NARROW_FROM = 2;
        const NARROW_OBJECT = 4;
        const FROM_GLOBAL = 8;
        const TO_GLOBAL = 16;
        /// A prefetch, which has no effect here.
        const PREFETCH = 32;
        /// The copy goes to all blocks of the cluster whose bits are set in slot 4.
        const MULTICAST = 64;
        /// The instruction uses generic addresses.
        const GENERIC = 128;
        /// A store's elements have 64 bits.
        const DOUBLE = 1 << 16;
    }

    /// An access to a texture or a surface; the three low bits are the geometry.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct Texture: u32 {
        const GEOMETRY = 7;
        const SURFACE = 8;
        /// A query, which any object can answer.
        const QUERY = 16;
        const FLOAT_RESULT = 32;
        const FLOAT_COORDINATES = 64;
        /// Gathers one channel of four texels.
        const GATHERS = 128;
        /// An out-of-range surface access uses the nearest texel. Without this bit, it reads zero and writes nothing.
        const CLAMPS = 256;
        const ZEROES = 512;
        /// Coordinates count texels, and values are converted to the format of the texels.
        const FORMATTED = 1024;
    }
}

impl Texture {
    /// Returns an access to an object with this geometry, without flags.
    pub const fn to(geometry: Geometry) -> Self {
        Self::from_bits_retain(geometry as u32)
    }

    pub const fn geometry(self) -> Geometry {
        Geometry::ALL[(self.bits() & Self::GEOMETRY.bits()) as usize % Geometry::ALL.len()]
    }
}

impl Access {
    /// Returns an access to this state space, without flags.
    pub const fn to(space: StateSpace) -> Self {
        Self::from_bits_retain(space.0)
    }

    /// Returns the flags with `count` elements per lane.
    pub const fn with_elements(self, count: u32) -> Self {
        Self::from_bits_retain(self.bits() | count)
    }

    /// Returns the number of elements per lane.
    #[inline(always)]
    pub const fn elements(self) -> u32 {
        self.bits() & 0xf
    }

    #[inline(always)]
    pub const fn space(self) -> StateSpace {
        StateSpace(self.bits() & Self::SPACE.bits())
    }
}

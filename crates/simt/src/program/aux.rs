//! The bits of `aux`: one type for each kind of instruction.

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
    /// Shared memory of another block in the cluster; no instruction names this space.
    pub const REMOTE: Self = Self(0x50);
}

bitflags! {
    /// A memory instruction: flags, state space, and in the low four bits the number of elements per lane (1, 2, 4, or
    /// 8 for an atomic).
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct Access: u32 {
        /// The bits of the state space.
        const SPACE = 0xf0;
        /// The address is a 32-bit row.
        const NARROW = 0x100;
        /// The offset is relative to the function's locals.
        const FRAME = 0x200;
        /// The access has no row: the offset is the address.
        const ABSOLUTE = 0x400;
        /// The effect is visible to other blocks, or the value comes from them: the access is in commit order.
        const ORDERED = 0x800;
        /// The program may be waiting for another thread here.
        const POLL = 0x1000;
        /// Volatile, relaxed, acquiring or releasing: does not race.
        const STRONG = 0x2000;
        /// A store or atomic that releases the earlier accesses of the thread.
        const RELEASE = 0x4000;
        const VOLATILE = 0x8000;
        /// Constant memory, which is in global memory here: registers hold 32-bit addresses.
        const CONST = 0x1_0000;
        /// The atomic replaces the value without reading it.
        const REPLACES = 0x2_0000;
        /// A load or atomic that acquires what its value was released with.
        const ACQUIRE = 0x4_0000;
        /// The scope of a strong access is the block or the cluster.
        const BLOCK_SCOPE = 0x8_0000;
        const CLUSTER_SCOPE = 0x10_0000;
    }

    /// A branch or a guard.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct Branch: u32 {
        /// The predicate is negated.
        const NEGATED = 1;
        /// The target is at or before the branch.
        const BACKWARD = 2;
        /// Slot 1 holds the distance to the reconvergence point.
        const RECONVERGES = 4;
        /// The loader added the branch; it is not counted.
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

    /// A carry chain; its two low bits are the operation.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct Carry: u32 {
        /// The carry flag is an operand.
        const TAKES = 4;
        /// The carry flag is a result.
        const SETS = 8;
        const SIGNED = 16;
    }

    /// Logic on predicates; its two low bits are the operation.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct Negations: u32 {
        const FIRST = 4;
        const SECOND = 8;
    }

    /// A comparison; its two low bits are the logic that combines the result with the predicate in slot 4.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct Combination: u32 {
        /// The predicate in slot 4 is negated first.
        const NEGATED = 4;
    }

    /// A vote; its two low bits are the mode.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct Vote: u32 {
        /// The predicate is negated.
        const NEGATED = 8;
    }

    /// A barrier of a block.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct Barrier: u32 {
        /// Slot 1 is the count of threads.
        const WITH_COUNT = 1;
        /// The threads arrive without waiting.
        const ARRIVE = 2;
        /// Slot 2 is the predicate of a reduction.
        const WITH_VOTE = 4;
        const NEGATED_VOTE = 8;
        /// All lanes of a warp must arrive together.
        const ALIGNED = 16;
    }

    /// A fence.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct Fence: u32 {
        /// The scope includes other blocks.
        const DEVICE = 1;
        /// A proxy fence for bulk copies.
        const BULK = 2;
        /// Completes acquires by the strong loads before it.
        const ACQUIRE = 4;
        /// Strong stores after it release what is before it.
        const RELEASE = 8;
        /// The scope is the block.
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
        /// The row with the target's, the source's or the mbarrier object's address has 32 bits.
        const NARROW_TO = 1;
        const NARROW_FROM = 2;
        const NARROW_OBJECT = 4;
        const FROM_GLOBAL = 8;
        const TO_GLOBAL = 16;
        /// A prefetch, which has no effect here.
        const PREFETCH = 32;
        /// The copy goes to the blocks of the cluster whose bits are set in slot 4.
        const MULTICAST = 64;
        /// The addresses are generic.
        const GENERIC = 128;
        /// The elements of a store have 64 bits.
        const DOUBLE = 1 << 16;
    }

    /// An access to a texture or a surface; its three low bits are the geometry.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct Texture: u32 {
        const GEOMETRY = 7;
        const SURFACE = 8;
        /// A query that any object can answer.
        const QUERY = 16;
        const FLOAT_RESULT = 32;
        const FLOAT_COORDINATES = 64;
        /// Gathers a channel of four texels.
        const GATHERS = 128;
        /// An out-of-range access to a surface uses the nearest texel. Without this bit it reads zero and writes
        /// nothing.
        const CLAMPS = 256;
        const ZEROES = 512;
        /// Coordinates count texels, and values are converted to the texels' format.
        const FORMATTED = 1024;
    }
}

impl Texture {
    /// Returns an access to an object of a geometry, without flags.
    pub const fn to(geometry: Geometry) -> Self {
        Self::from_bits_retain(geometry as u32)
    }

    pub const fn geometry(self) -> Geometry {
        Geometry::ALL[(self.bits() & Self::GEOMETRY.bits()) as usize % Geometry::ALL.len()]
    }
}

impl Access {
    /// Returns an access to a state space, without flags.
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

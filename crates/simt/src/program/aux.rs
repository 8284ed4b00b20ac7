/// How `aux` of a memory instruction is read.
pub mod form {
    /// Low bits: elements a lane (1, 2, 4).
    pub const VECTOR: u32 = 0xf;
    pub const SPACE: u32 = 0xf0;
    pub const GENERIC: u32 = 0x00;
    pub const GLOBAL: u32 = 0x10;
    pub const SHARED: u32 = 0x20;
    pub const LOCAL: u32 = 0x30;
    pub const PARAM: u32 = 0x40;
    /// Shared memory of another block of the cluster: where an address leads, never what an instruction says.
    pub const REMOTE: u32 = 0x50;
    /// The address is a 32-bit row.
    pub const NARROW: u32 = 0x100;
    /// The offset counts from the function's locals.
    pub const FRAME: u32 = 0x200;
    /// There is no row: the offset is the address.
    pub const ABSOLUTE: u32 = 0x400;
    /// The effect shows in other blocks, or the value comes from them: wait for the turn.
    pub const ORDERED: u32 = 0x800;
    /// The program may be waiting for another thread here.
    pub const POLL: u32 = 0x1000;
    /// Volatile, relaxed, acquiring or releasing: no race.
    pub const STRONG: u32 = 0x2000;
    /// What the thread did before is made known by this store or atomic.
    pub const RELEASE: u32 = 0x4000;
    pub const VOLATILE: u32 = 0x8000;
    /// Global memory that the instruction calls constant: addresses that a register holds have 32 bits.
    pub const CONST: u32 = 0x1_0000;
}

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
    /// Shared memory of another block of the cluster: only of an address, never of an instruction.
    pub const REMOTE: u32 = 0x50;
    /// The address is a 32-bit row.
    pub const NARROW: u32 = 0x100;
    /// The offset is relative to the function's locals.
    pub const FRAME: u32 = 0x200;
    /// There is no row: the offset is the address.
    pub const ABSOLUTE: u32 = 0x400;
    /// Other blocks can see the effect, or the value comes from them: the access is in commit order.
    pub const ORDERED: u32 = 0x800;
    /// The program may be waiting for another thread here.
    pub const POLL: u32 = 0x1000;
    /// Volatile, relaxed, acquiring or releasing: does not race.
    pub const STRONG: u32 = 0x2000;
    /// A store or atomic that releases the earlier accesses of the thread.
    pub const RELEASE: u32 = 0x4000;
    pub const VOLATILE: u32 = 0x8000;
    /// Constant memory, which is in global memory here: registers have addresses of 32 bits.
    pub const CONST: u32 = 0x1_0000;
}

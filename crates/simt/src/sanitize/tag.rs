//! The last access to a word, in 64 bits: thread, epoch and source line.

/// Maximum number of epochs per block. After these, all tags are reset and epochs start from one again.
pub const EPOCHS: u32 = 1 << 19;
/// Maximum time of a warp since the last barrier. Time saturates: later moments are not distinguished.
const TIMES: u32 = (1 << 11) - 1;
/// Stands for all source lines whose number is out of range.
pub const NO_LINE: u16 = u16::MAX;

const LINE: u32 = 10;
const THREAD: u64 = (1 << LINE) - 1;
const WARPS: u64 = 1 << 26;
const LANES: u64 = 1 << 27;
const VOLATILE: u64 = 1 << 28;
const WRITE: u64 = 1 << 29;
const BYTES: u32 = 30;
const TIME: u32 = 34;
const EPOCH: u32 = 45;

/// A thread's access to a four-byte word. The default means "never", since epochs start at one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tag(u64);

impl Tag {
    /// Returns the tag of an access by thread zero of a warp to all four bytes. `time` is the warp's time.
    pub fn new(epoch: u32, time: u32, warp: u32, line: u16) -> Self {
        Self::at(u32::from(line) << LINE | (warp & 31) << 5, epoch, time)
    }

    /// Bit position of the source line in the result of [`Self::who`].
    pub const WHO_LINE: u32 = LINE;
    /// Time of an access that is ordered before all later ones of its warp, if nothing else is known about it.
    pub const UNKNOWN: u32 = TIMES;

    /// Returns the tag of an access to all four bytes. `who` is the thread and source line, encoded like [`Self::who`].
    #[inline]
    pub fn at(who: u32, epoch: u32, time: u32) -> Self {
        let bits = u64::from(epoch) << EPOCH | u64::from(time.min(TIMES)) << TIME | 0xf << BYTES;
        Self(bits | u64::from(who))
    }

    /// Returns the tag of the same access by another thread, `lane` lanes after this tag's.
    #[inline]
    pub const fn of_lane(self, lane: u64) -> Self {
        Self(self.0 + lane)
    }

    /// Returns the tag of the same thread at another source line.
    pub const fn at_line(self, line: u16) -> Self {
        Self(self.0 & !(0xffff << LINE) | (line as u64) << LINE)
    }

    /// Returns the tag of the same access to only some bytes, given with one bit per byte.
    pub const fn of_bytes(self, bytes: u8) -> Self {
        Self(self.0 & !(0xf << BYTES) | (bytes as u64 & 0xf) << BYTES)
    }

    pub const fn volatile(self) -> Self {
        Self(self.0 | VOLATILE)
    }

    /// Marks the access as a strong store instead of an atomic.
    pub const fn write(self) -> Self {
        Self(self.0 | WRITE)
    }

    /// Records that other lanes of the warp access the word at the same time.
    pub const fn by_lanes(self) -> Self {
        Self(self.0 | LANES)
    }

    /// Records that other warps have accessed the word in the same way.
    pub const fn by_warps(self) -> Self {
        Self(self.0 | WARPS)
    }

    /// Merges two accesses of the same kind to a word; `self` is the earlier one. `synced` is when the whole warp last
    /// synchronised.
    ///
    /// Accesses by different threads to different bytes are not merged: the later one is kept.
    pub fn merged(self, later: Self, synced: u32) -> Self {
        if self.epoch() != later.epoch() || self.is_volatile() != later.is_volatile() {
            return later;
        }
        if self.thread() == later.thread() {
            let lanes = if self.is_since(synced) { self.0 & LANES } else { 0 };
            return Self(later.0 | lanes | self.0 & WARPS | self.0 & 0xf << BYTES);
        }
        if self.bytes() != later.bytes() {
            return later;
        }
        if self.warp() != later.warp() {
            return Self(self.0 | WARPS);
        }
        Self(later.0 | self.0 & WARPS | if self.is_since(synced) { LANES } else { 0 })
    }

    /// Adds the bytes of an earlier access if it is by the same thread in the same epoch.
    pub const fn with_bytes_of(self, earlier: Self) -> Self {
        let same = self.epoch() == earlier.epoch() && self.thread() == earlier.thread();
        Self(self.0 | if same { earlier.0 & 0xf << BYTES } else { 0 })
    }

    #[inline]
    pub const fn epoch(self) -> u32 {
        (self.0 >> EPOCH) as u32
    }

    /// Returns the bits that encode the thread and the source line.
    #[inline]
    pub const fn who(self) -> u32 {
        self.0 as u32 & (WARPS - 1) as u32
    }

    /// Returns a tag with the given thread and source line.
    pub const fn of_who(who: u32) -> Self {
        Self(who as u64)
    }

    /// Whether an access may conflict with a later one. They must be in the same epoch, by different threads or by
    /// several; within one warp, the earlier access must not precede the last synchronisation of the whole warp.
    /// Vectorises over tags.
    #[inline]
    pub const fn may_conflict(self, later: Self, synced: u32) -> bool {
        let apart = self.0 ^ later.0;
        let alike = apart >> EPOCH == 0;
        let alone = apart & THREAD == 0 && (self.0 | later.0) & (WARPS | LANES) == 0;
        let one_warp = apart & (THREAD & !31) == 0 && self.0 & WARPS == 0;
        alike && !alone && (!one_warp || self.is_since(synced))
    }

    /// Returns the index of the thread in its block.
    pub const fn thread(self) -> u32 {
        (self.0 & 0x3ff) as u32
    }

    pub const fn warp(self) -> u32 {
        self.thread() / 32
    }

    pub const fn line(self) -> u16 {
        (self.0 >> LINE) as u16
    }

    pub const fn bytes(self) -> u8 {
        (self.0 >> BYTES & 0xf) as u8
    }

    pub const fn is_volatile(self) -> bool {
        self.0 & VOLATILE != 0
    }

    pub const fn several_warps(self) -> bool {
        self.0 & WARPS != 0
    }

    pub const fn several_lanes(self) -> bool {
        self.0 & LANES != 0
    }

    pub const fn is_write(self) -> bool {
        self.0 & WRITE != 0
    }

    /// Time of the warp at the access.
    pub const fn time(self) -> u32 {
        (self.0 >> TIME) as u32 & TIMES
    }

    /// Whether the access is no earlier than a synchronisation of its whole warp in the same epoch.
    pub const fn is_since(self, synced: u32) -> bool {
        self.time() >= synced && self.time() != TIMES
    }
}

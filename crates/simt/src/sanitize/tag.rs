//! The last access to a word in 64 bits: thread, epoch and source line.

/// Largest number of epochs per block; then all tags are reset and epochs start again.
pub const EPOCHS: u32 = 1 << 19;
/// Largest time of a warp since the last barrier. It saturates: later moments are not distinguished.
const TIMES: u32 = (1 << 11) - 1;
/// Number of all source lines beyond the range.
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

/// A thread's access to a four-byte word. The default is "never": epochs start at one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tag(u64);

impl Tag {
    /// Returns the tag of an access by thread zero of a warp to all four bytes; `time` is the warp's.
    pub fn new(epoch: u32, time: u32, warp: u32, line: u16) -> Self {
        Self::at(u32::from(line) << LINE | (warp & 31) << 5, epoch, time)
    }

    /// Position of the source line in the result of [`Self::who`].
    pub const WHO_LINE: u32 = LINE;
    /// Time of an access that is ordered before all later ones of the warp, if nothing else is known of it.
    pub const UNKNOWN: u32 = TIMES;

    /// Returns an access to all four bytes, by thread and source line as [`Self::who`] encodes them.
    #[inline]
    pub fn at(who: u32, epoch: u32, time: u32) -> Self {
        let bits = u64::from(epoch) << EPOCH | u64::from(time.min(TIMES)) << TIME | 0xf << BYTES;
        Self(bits | u64::from(who))
    }

    /// Returns the tag of the same access by another thread, `lane` lanes after the tag's own.
    #[inline]
    pub const fn of_lane(self, lane: u64) -> Self {
        Self(self.0 + lane)
    }

    /// Returns the tag of the same thread at another source line.
    pub const fn at_line(self, line: u16) -> Self {
        Self(self.0 & !(0xffff << LINE) | (line as u64) << LINE)
    }

    /// Returns the tag of the same access to some bytes only, a bit per byte.
    pub const fn of_bytes(self, bytes: u8) -> Self {
        Self(self.0 & !(0xf << BYTES) | (bytes as u64 & 0xf) << BYTES)
    }

    pub const fn volatile(self) -> Self {
        Self(self.0 | VOLATILE)
    }

    /// Records that the access is a strong store, not an atomic.
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

    /// Merges two accesses of one kind to a word; `self` is the earlier one. The whole warp last synchronised at
    /// `synced`.
    ///
    /// Accesses of different threads to different bytes are not merged: the later one is kept.
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

    /// Adds the bytes of an earlier access of the same thread in the same epoch.
    pub const fn with_bytes_of(self, earlier: Self) -> Self {
        let same = self.epoch() == earlier.epoch() && self.thread() == earlier.thread();
        Self(self.0 | if same { earlier.0 & 0xf << BYTES } else { 0 })
    }

    #[inline]
    pub const fn epoch(self) -> u32 {
        (self.0 >> EPOCH) as u32
    }

    /// Returns the bits that identify the thread and the source line.
    #[inline]
    pub const fn who(self) -> u32 {
        self.0 as u32 & (WARPS - 1) as u32
    }

    /// Returns a tag with the given thread and source line.
    pub const fn of_who(who: u32) -> Self {
        Self(who as u64)
    }

    /// Whether an access may conflict with a later one: same epoch, another thread or several, and, within one warp,
    /// not before the whole warp's last synchronisation. Vectorises over tags.
    #[inline]
    pub const fn may_conflict(self, later: Self, synced: u32) -> bool {
        let apart = self.0 ^ later.0;
        let alike = apart >> EPOCH == 0;
        let alone = apart & THREAD == 0 && (self.0 | later.0) & (WARPS | LANES) == 0;
        let one_warp = apart & (THREAD & !31) == 0 && self.0 & WARPS == 0;
        alike && !alone && (!one_warp || self.is_since(synced))
    }

    /// Returns the thread's number in the block.
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

    /// The time of the warp at the access.
    pub const fn time(self) -> u32 {
        (self.0 >> TIME) as u32 & TIMES
    }

    /// Whether the access is not before a synchronisation of its whole warp, in the same epoch.
    pub const fn is_since(self, synced: u32) -> bool {
        self.time() >= synced && self.time() != TIMES
    }
}

//! Device memory: one reserved address range, a table of allocations, and one bit per byte that records whether the
//! byte was written.
//!
//! Kernels see simulated addresses. The bytes are in one anonymous mapping, whose pages the operating system provides
//! on first touch. Allocations are aligned to 256 bytes, like the driver's, and are at least [`GAP`] bytes apart. This
//! module only checks that accesses are inside allocations.

mod gaps;

use std::collections::BTreeMap;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::RwLock;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

use crate::error::SimError;
use gaps::Gaps;

/// Address of the first byte of device memory.
pub const GLOBAL_BASE: u64 = 0x7_0000_0000;
/// Start of the generic addresses of shared memory.
pub const SHARED_WINDOW: u64 = 0x1_0000_0000;
/// Start of the generic addresses of local memory.
pub const LOCAL_WINDOW: u64 = 0x2_0000_0000;
/// Start of the generic addresses of kernel parameters.
pub const PARAM_WINDOW: u64 = 0x3_0000_0000;
/// Size of a window in bytes.
pub const WINDOW: u64 = 0x1_0000_0000;
/// Grid workspace of launches that are not cooperative: an address at which nothing is allocated.
pub const ABSENT_WORKSPACE: u64 = 0x6_0000_0000;
/// Size of a grid's workspace in bytes.
pub const WORKSPACE: u64 = 64;
/// Address of the first device function. Functions are [`FUNCTION_STEP`] apart.
pub const FUNCTION_BASE: u64 = 0x6_0000_0000;
pub const FUNCTION_STEP: u64 = 16;
/// Minimum distance in bytes between two allocations, and between them and the ends of memory. It is a row of 32
/// eight-byte elements, because a load may read a whole row even if it needs only part of it.
const GAP: u64 = 256;
/// Size of the host's huge pages in bytes, on x86.
const HUGE_PAGE: usize = 2 << 20;
/// Size of the host's pages in bytes.
const PAGE: usize = 4096;
/// Minimum length in bytes at which zeroing returns pages to the system instead of writing to them.
const LONG: usize = 64 << 20;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Allocation {
    pub start: u64,
    pub bytes: u64,
    /// Name in messages, e.g. `buffer 3` or ``variable `table` ``.
    pub name: String,
    /// Whether stores to it trap.
    pub constant: bool,
    /// Whether the allocation is not the program's own. Messages never name it as the nearest allocation.
    pub internal: bool,
}

/// Purpose of an allocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// Writable data of the program.
    Data,
    /// Read-only data of the program.
    Constant,
    /// Data of the compiler or the device runtime.
    Internal,
    InternalConstant,
}

impl Allocation {
    pub const fn end(&self) -> u64 {
        self.start + self.bytes
    }
}

/// Address range of an allocation.
#[derive(Debug, Clone, Copy, Default)]
pub struct Extent {
    pub start: u64,
    pub end: u64,
    pub constant: bool,
}

impl Extent {
    /// Whether the allocation contains all bytes from `lo` to `hi + bytes`.
    #[inline]
    pub const fn holds(&self, lo: u64, hi: u64, bytes: u64) -> bool {
        lo >= self.start && hi < self.end && hi + bytes <= self.end
    }
}

/// An anonymous memory mapping.
#[derive(Debug)]
struct Mapping {
    at: NonNull<u8>,
    bytes: usize,
}

impl Mapping {
    fn new(bytes: usize) -> Result<Self, SimError> {
        // SAFETY: a new anonymous mapping at an address that the operating system chooses aliases nothing.
        let at = unsafe {
            mmap_anonymous(
                std::ptr::null_mut(),
                bytes,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE | MapFlags::NORESERVE,
            )
        };
        let at = at.map_err(|e| SimError::Host(format!("cannot reserve {bytes} bytes for device memory: {e}")))?;
        NonNull::new(at.cast())
            .map(|at| Self { at, bytes })
            .ok_or_else(|| SimError::Host("mmap returned null".to_owned()))
    }

    /// Requests huge pages if the range contains any. They reduce page faults of kernels that touch much memory. For
    /// kernels that touch little, zeroing a huge page would take longer.
    fn enlarge_pages(&self, offset: usize, bytes: usize) {
        let start = offset.next_multiple_of(HUGE_PAGE);
        let end = (offset + bytes) / HUGE_PAGE * HUGE_PAGE;
        if start < end {
            // SAFETY: the range is inside the mapping and page-aligned, and the advice does not change its bytes. A
            // system without huge pages returns an error, which is harmless.
            let _ = unsafe { madvise(self.at.as_ptr().add(start).cast(), end - start, Advice::LinuxHugepage) };
        }
    }

    /// Returns whole pages to the system; they read as zero afterwards. Returns the range of these pages.
    fn discard(&self, offset: usize, bytes: usize) -> Range<usize> {
        let start = offset.next_multiple_of(PAGE);
        let end = (offset + bytes) / PAGE * PAGE;
        if start >= end {
            return offset..offset;
        }
        // SAFETY: the range is inside the mapping, is page-aligned, and holds only plain bytes.
        let done = unsafe { madvise(self.at.as_ptr().add(start).cast(), end - start, Advice::LinuxDontNeed) };
        if done.is_ok() { start..end } else { offset..offset }
    }

    /// Sets a range to zero. A long range takes no host memory until it is touched again.
    fn zero(&self, offset: usize, bytes: usize) {
        let end = offset + bytes;
        let zeroed = if bytes < LONG { offset..offset } else { self.discard(offset, bytes) };
        for rest in [offset..zeroed.start, zeroed.end..end] {
            // SAFETY: callers pass ranges inside the mapping, and any byte value is valid.
            unsafe { std::ptr::write_bytes(self.at.as_ptr().add(rest.start), 0, rest.len()) };
        }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: `new` created the mapping with this size, and no pointer into it remains.
        let _ = unsafe { munmap(self.at.as_ptr().cast(), self.bytes) };
    }
}

#[derive(Debug)]
pub struct Memory {
    data: Mapping,
    /// One bit per byte of data: whether the byte was written.
    written: Mapping,
    capacity: u64,
    /// Maximum total size of all allocations.
    limit: u64,
    table: RwLock<Table>,
}

#[derive(Debug, Default)]
struct Table {
    live: BTreeMap<u64, Allocation>,
    /// Free ranges. An allocation starts at the aligned start of a gap, and ends at least [`GAP`] bytes before the next
    /// one.
    gaps: Gaps,
    used: u64,
}

// SAFETY: the mappings are plain bytes, accessed through raw pointers. Simulated blocks on several host threads race on
// data bytes exactly where the simulated program does, and any byte value is valid.
unsafe impl Send for Memory {}
// SAFETY: as above. The table is behind a lock, and the shadow is changed by atomic operations.
unsafe impl Sync for Memory {}

impl Memory {
    /// Reserves `capacity` bytes of address space, which are committed only when touched. Allocations may have at most
    /// `limit` bytes in total.
    pub fn new(capacity: u64, limit: Option<u64>) -> Result<Self, SimError> {
        let capacity = capacity.next_multiple_of(4096);
        Ok(Self {
            limit: limit.map_or(capacity, |limit| limit.min(capacity)),
            data: Mapping::new(capacity as usize)?,
            written: Mapping::new(capacity as usize / 8)?,
            capacity,
            table: RwLock::new(Table {
                live: BTreeMap::new(),
                gaps: Gaps::from_range(GLOBAL_BASE + GAP, (GLOBAL_BASE + capacity).saturating_sub(GAP)),
                used: 0,
            }),
        })
    }

    fn table(&self) -> std::sync::RwLockReadGuard<'_, Table> {
        self.table.read().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn table_mut(&self) -> std::sync::RwLockWriteGuard<'_, Table> {
        self.table.write().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Returns how many more bytes can be allocated.
    pub fn free_bytes(&self) -> u64 {
        self.limit.saturating_sub(self.table().used)
    }

    /// Allocates `bytes` bytes (at least one) by first fit. `None` if no gap is large enough or the limit would be
    /// exceeded.
    pub fn alloc(&self, bytes: u64, name: &str, used: Use) -> Option<u64> {
        let bytes = bytes.max(1);
        let mut table = self.table_mut();
        if bytes > self.limit.saturating_sub(table.used) {
            return None;
        }
        let at = table.gaps.first(bytes)?;
        table.gaps.take(at, begin_after(at + bytes));
        let constant = matches!(used, Use::Constant | Use::InternalConstant);
        let internal = matches!(used, Use::Internal | Use::InternalConstant);
        table.live.insert(at, Allocation { start: at, bytes, name: name.to_owned(), constant, internal });
        table.used += bytes;
        drop(table);
        let offset = (at - GLOBAL_BASE) as usize;
        self.data.enlarge_pages(offset, bytes as usize);
        self.written.enlarge_pages(offset / 8, bytes as usize / 8);
        self.forget_writes(at, bytes);
        Some(at)
    }

    /// Renames the allocation that starts at `at`.
    pub fn rename(&self, at: u64, name: &str) {
        if let Some(allocation) = self.table_mut().live.get_mut(&at) {
            name.clone_into(&mut allocation.name);
        }
    }

    /// Frees the allocation that starts at `at`; returns false if there is none.
    pub fn free(&self, at: u64) -> bool {
        let Some(old) = ({
            let mut table = self.table_mut();
            let old = table.live.remove(&at);
            if let Some(old) = &old {
                table.used -= old.bytes;
                let before = table.live.range(..at).next_back().map_or(GLOBAL_BASE, |(_, before)| before.end());
                let next = table.live.range(at..).next().map_or(GLOBAL_BASE + self.capacity, |(start, _)| *start);
                table.gaps.free(begin_after(before), next.saturating_sub(GAP));
            }
            old
        }) else {
            return false;
        };
        self.data.discard((at - GLOBAL_BASE) as usize, old.bytes as usize);
        true
    }

    pub fn find(&self, address: u64) -> Option<Allocation> {
        let table = self.table();
        let (_, found) = table.live.range(..=address).next_back()?;
        (address < found.end()).then(|| found.clone())
    }

    /// Returns the addresses of all allocations with this name.
    pub fn named(&self, name: &str) -> Vec<u64> {
        self.table().live.values().filter(|live| live.name == name).map(|live| live.start).collect()
    }

    /// Returns the address range of the allocation that contains `address`.
    pub fn extent(&self, address: u64) -> Option<Extent> {
        let table = self.table();
        let (_, found) = table.live.range(..=address).next_back()?;
        let extent = Extent { start: found.start, end: found.end(), constant: found.constant };
        (address < extent.end).then_some(extent)
    }

    /// Returns the address of the constant byte whose low 32 bits are `low`.
    pub fn constant(&self, low: u32) -> Option<u64> {
        self.table().live.values().filter(|a| a.constant).find_map(|a| {
            let offset = u64::from(low.wrapping_sub(a.start as u32));
            (offset < a.bytes).then_some(a.start + offset)
        })
    }

    /// For messages, returns the allocation that contains the address, or else the program's nearest one.
    pub fn nearest(&self, address: u64, bytes: u64) -> Option<Allocation> {
        let table = self.table();
        let mut before = table.live.range(..=address).map(|(_, a)| a).rev();
        let found = before.clone().next().filter(|a| address < a.end());
        let last = before.find(|a| !a.internal);
        let next = table.live.range(address..).map(|(_, a)| a).find(|a| !a.internal);
        let distance = |a: &Allocation| match address.checked_sub(a.end()) {
            Some(past) => past,
            None => a.start.saturating_sub(address + bytes),
        };
        found.or_else(|| last.into_iter().chain(next).min_by_key(|a| distance(a))).cloned()
    }

    /// Returns the host pointer for an address in device memory.
    pub fn host(&self, address: u64) -> *mut u8 {
        debug_assert!(address >= GLOBAL_BASE && address - GLOBAL_BASE <= self.capacity);
        // SAFETY: callers pass addresses of live allocations, which are inside the mapping.
        unsafe { self.data.at.as_ptr().add((address - GLOBAL_BASE) as usize) }
    }

    /// Whether a range is inside one allocation.
    pub fn owns(&self, address: u64, bytes: u64) -> bool {
        bytes == 0 || self.extent(address).is_some_and(|a| bytes <= a.end - address)
    }

    /// Copies from the host. Fails if the range is not inside one allocation.
    pub fn write(&self, address: u64, data: &[u8]) -> Result<(), SimError> {
        self.check(address, data.len() as u64)?;
        if !data.is_empty() {
            // SAFETY: `check` has verified that the range is inside a live allocation.
            unsafe { std::ptr::copy_nonoverlapping(data.as_ptr(), self.host(address), data.len()) };
            self.mark_written(address, data.len() as u64);
        }
        Ok(())
    }

    /// Copies to the host. Fails if the range is not inside one allocation.
    pub fn read(&self, address: u64, data: &mut [u8]) -> Result<(), SimError> {
        self.check(address, data.len() as u64)?;
        if !data.is_empty() {
            // SAFETY: `check` has verified that the range is inside a live allocation.
            unsafe { std::ptr::copy_nonoverlapping(self.host(address), data.as_mut_ptr(), data.len()) };
        }
        Ok(())
    }

    /// Sets every byte of a range. Fails if the range is not inside one allocation.
    pub fn fill(&self, address: u64, bytes: u64, byte: u8) -> Result<(), SimError> {
        self.check(address, bytes)?;
        if bytes > 0 {
            // SAFETY: `check` has verified that the range is inside a live allocation.
            unsafe { std::ptr::write_bytes(self.host(address), byte, bytes as usize) };
            self.mark_written(address, bytes);
        }
        Ok(())
    }

    /// Sets every byte of a range to zero. Fails if the range is not inside one allocation.
    pub fn zero(&self, address: u64, bytes: u64) -> Result<(), SimError> {
        self.check(address, bytes)?;
        if bytes > 0 {
            self.data.zero((address - GLOBAL_BASE) as usize, bytes as usize);
            self.mark_written(address, bytes);
        }
        Ok(())
    }

    /// Sets every byte of a range, and marks the range as never written. Fails if the range is not inside one
    /// allocation.
    pub fn undefine(&self, address: u64, bytes: u64, byte: u8) -> Result<(), SimError> {
        self.fill(address, bytes, byte)?;
        for (at, bits) in stretches(address, bytes) {
            self.shadow(at).fetch_and(!bits, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Copies on the device. A copy of a byte that was never written counts as never written, too. Fails if either
    /// range is not inside one allocation.
    pub fn copy(&self, from: u64, to: u64, bytes: u64) -> Result<(), SimError> {
        self.check(from, bytes)?;
        self.check(to, bytes)?;
        if bytes > 0 {
            // SAFETY: both ranges were checked; `copy` allows overlap.
            unsafe { std::ptr::copy(self.host(from), self.host(to), bytes as usize) };
            self.copy_shadow(from, to, bytes);
        }
        Ok(())
    }

    fn copy_shadow(&self, from: u64, to: u64, bytes: u64) {
        if self.is_written(from, bytes) {
            return self.mark_written(to, bytes);
        }
        // All of the source is read first, because it may overlap the destination.
        let parts: Vec<(u64, u64)> = stretches(to, bytes).collect();
        let written: Vec<u64> =
            parts.iter().map(|(at, bits)| self.written_bits(from + (at - to), u64::from(bits.count_ones()))).collect();
        for ((at, bits), written) in parts.into_iter().zip(written) {
            let shadow = self.shadow(at);
            shadow.fetch_and(!bits, Ordering::Relaxed);
            shadow.fetch_or(written << (at % 64), Ordering::Relaxed);
        }
    }

    /// Marks bytes, starting at an address, as never written, since their values are undefined. `bytes` has one bit per
    /// byte.
    pub fn mark_undefined(&self, address: u64, bytes: u32) {
        for at in (0..32).filter(|k| bytes >> k & 1 == 1).map(|k| address + k) {
            self.shadow(at).fetch_and(!(1 << (at % 64)), Ordering::Relaxed);
        }
    }

    /// Returns which of up to 64 bytes were written. Bit `k` stands for byte `k`.
    pub fn written_bits(&self, address: u64, bytes: u64) -> u64 {
        let part =
            |(at, bits): (u64, u64)| (self.shadow(at).load(Ordering::Relaxed) & bits) >> (at % 64) << (at - address);
        stretches(address, bytes).map(part).fold(0, |all, part| all | part)
    }

    /// Returns the bytes of a range that were never written, as maximal ranges in ascending order, relative to its
    /// start. Fails if the range is not inside one allocation.
    pub fn unwritten(&self, address: u64, bytes: u64) -> Result<Vec<Range<u64>>, SimError> {
        self.check(address, bytes)?;
        let mut found: Vec<Range<u64>> = Vec::new();
        for (at, bits) in stretches(address, bytes) {
            let mut missing = bits & !self.shadow(at).load(Ordering::Relaxed);
            while missing != 0 {
                let first = missing.trailing_zeros();
                let len = (missing >> first).trailing_ones();
                missing &= !(u64::MAX >> (64 - len) << first);
                let start = at / 64 * 64 + u64::from(first) - address;
                match found.last_mut().filter(|last| last.end == start) {
                    Some(last) => last.end += u64::from(len),
                    None => found.push(start..start + u64::from(len)),
                }
            }
        }
        Ok(found)
    }

    fn check(&self, address: u64, bytes: u64) -> Result<(), SimError> {
        if self.owns(address, bytes) {
            return Ok(());
        }
        Err(SimError::Address { address, bytes })
    }

    /// Returns the shadow bits of the 64 aligned bytes that contain `address`.
    #[inline]
    fn shadow(&self, address: u64) -> &AtomicU64 {
        let at = ((address - GLOBAL_BASE) / 64 * 8) as usize;
        // SAFETY: callers pass addresses of live allocations. The shadow has one bit for each byte of the mapping and
        // is page-aligned.
        unsafe { AtomicU64::from_ptr(self.written.at.as_ptr().add(at).cast()) }
    }

    /// Whether every byte of a range was written.
    #[inline]
    pub fn is_written(&self, address: u64, bytes: u64) -> bool {
        if (address | bytes).is_multiple_of(64) {
            // The most frequent case: a warp accesses a row.
            let whole = |k: u64| self.shadow(address + 64 * k).load(Ordering::Relaxed) == u64::MAX;
            return (0..bytes / 64).all(whole);
        }
        stretches(address, bytes).all(|(at, bits)| self.shadow(at).load(Ordering::Relaxed) & bits == bits)
    }

    #[inline]
    pub fn mark_written(&self, address: u64, bytes: u64) {
        for (at, bits) in stretches(address, bytes) {
            let shadow = self.shadow(at);
            // Most bytes are marked already, and a store would take the cache line away from other threads.
            if shadow.load(Ordering::Relaxed) & bits != bits {
                if bits == u64::MAX {
                    shadow.store(bits, Ordering::Relaxed);
                } else {
                    shadow.fetch_or(bits, Ordering::Relaxed);
                }
            }
        }
    }

    /// Whether these words of the 128 bytes at `line` were written. Bit `k` stands for word `k`.
    #[inline]
    pub fn has_words(&self, line: u64, words: u32) -> bool {
        [words as u16, (words >> 16) as u16].into_iter().zip([0, 64]).all(|(words, at)| {
            let bits = bytes_of(words);
            self.shadow(line + at).load(Ordering::Relaxed) & bits == bits
        })
    }

    /// Records that these words of the 128 bytes at `line` were written. Bit `k` stands for word `k`.
    #[inline]
    pub fn mark_words(&self, line: u64, words: u32) {
        for (words, at) in [words as u16, (words >> 16) as u16].into_iter().zip([0, 64]) {
            let (bits, shadow) = (bytes_of(words), self.shadow(line + at));
            if shadow.load(Ordering::Relaxed) & bits != bits {
                shadow.fetch_or(bits, Ordering::Relaxed);
            }
        }
    }

    fn forget_writes(&self, address: u64, bytes: u64) {
        // Allocations start at multiples of 256, and no two share a shadow byte.
        self.written.zero(((address - GLOBAL_BASE) / 8) as usize, bytes.div_ceil(8) as usize);
    }
}

/// Returns the first address at which an allocation may start after one that ends at `end`.
const fn begin_after(end: u64) -> u64 {
    (end + GAP).next_multiple_of(256)
}

/// Converts a mask of words to a mask of bytes: bit `k` becomes four bits, starting at bit `4 k`.
#[inline]
pub const fn bytes_of(words: u16) -> u64 {
    let mut x = words as u64;
    x = (x | x << 24) & 0x0000_00ff_0000_00ff;
    x = (x | x << 12) & 0x000f_000f_000f_000f;
    x = (x | x << 6) & 0x0303_0303_0303_0303;
    x = (x | x << 3) & 0x1111_1111_1111_1111;
    x * 15
}

/// Splits a range at multiples of 64 bytes. Yields the address of each part and the mask of its bytes.
#[inline]
fn stretches(address: u64, bytes: u64) -> impl Iterator<Item = (u64, u64)> {
    let end = address + bytes;
    let mut at = address;
    std::iter::from_fn(move || {
        (at < end).then(|| {
            let upto = end.min((at / 64 + 1) * 64);
            let bits = u64::MAX >> (64 - (upto - at)) << (at % 64);
            (std::mem::replace(&mut at, upto), bits)
        })
    })
}

#[cfg(test)]
mod tests;

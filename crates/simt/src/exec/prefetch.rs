//! Prefetches into the host's cache what an instruction is likely to load next.
//!
//! Grid-stride loops step over megabytes: each request is on another page, so the host's own prefetcher finds no
//! stream. Prefetching changes neither results nor counts.

use std::ptr;

use crate::program::ins::Ins;

/// Number of instructions whose most recent requests are remembered.
const LOADS: usize = 16;
/// How many requests ahead to prefetch. One request takes less time than a memory access.
const STEPS: u64 = 2;

/// Address of each instruction's last load from global memory. If two instructions share an entry, they only lose
/// prefetches.
#[derive(Debug, Default)]
pub struct Strides([u64; LOADS]);

impl Strides {
    /// Returns the address that the instruction will load from soon, if it repeats the step from its previous request
    /// to `at`.
    #[inline(always)]
    pub fn predict(&mut self, i: &Ins, at: u64) -> u64 {
        let last = &mut self.0[ptr::from_ref(i).addr() / 8 % LOADS];
        let step = at.wrapping_sub(std::mem::replace(last, at));
        at.wrapping_add(step.wrapping_mul(STEPS))
    }
}

/// Prefetches a line into the L1 cache.
#[inline(always)]
pub fn prefetch(at: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch never faults, whatever the address.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(at.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::ins::{Entry, Ins, Slot};

    /// Placeholder for a handler, which this test never runs.
    unsafe fn unused() {}

    #[test]
    fn an_instruction_is_followed_by_its_own_last_step() {
        let blank = Ins { run: Entry(unused), o: [Slot::NONE; 6], imm: 0, aux: 0, line: 0, ahead: 0, number: 0 };
        let code = [blank; 2];
        let mut strides = Strides::default();
        strides.predict(&code[0], 1000);
        strides.predict(&code[1], 90_000);
        assert_eq!(strides.predict(&code[0], 1256), 1256 + 2 * 256);
        assert_eq!(strides.predict(&code[1], 89_000), 87_000);
        assert_eq!(strides.predict(&code[0], 1256), 1256);
    }
}

//! What the host's cache is asked for before it is needed: what an instruction is likely to load next.
//!
//! A warp runs on through its loop, and the loops of grids step over megabytes, so that each request lies in another
//! page and the processor's own prefetcher sees no stream. Nothing here changes what a program computes or counts.

use std::ptr;

use crate::program::ins::Ins;

/// Instructions of a kernel whose last requests are remembered.
const LOADS: usize = 16;
/// How many requests ahead memory is asked for: one alone takes less time than memory does.
const STEPS: u64 = 2;

/// Where loads of global memory were last, each under its instruction's address. Instructions that share a place only
/// lose what could have been foreseen.
#[derive(Debug, Default)]
pub struct Trail([u64; LOADS]);

impl Trail {
    /// Where the instruction goes in a while, should it keep the step from its last request to this one, at `at`.
    #[inline(always)]
    pub fn follow(&mut self, i: &Ins, at: u64) -> u64 {
        let last = &mut self.0[ptr::from_ref(i).addr() / 8 % LOADS];
        let step = at.wrapping_sub(std::mem::replace(last, at));
        at.wrapping_add(step.wrapping_mul(STEPS))
    }
}

/// Asks for a line of the first-level cache.
#[inline(always)]
pub fn prefetch(at: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch touches nothing, whatever the address.
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

    /// Stands for a handler, which this test never runs.
    unsafe fn unused() {}

    #[test]
    fn an_instruction_is_followed_by_its_own_last_step() {
        let blank = Ins { run: Entry(unused), o: [Slot::NONE; 6], imm: 0, aux: 0, line: 0, ahead: 0 };
        let code = [blank; 2];
        let mut trail = Trail::default();
        trail.follow(&code[0], 1000);
        trail.follow(&code[1], 90_000);
        assert_eq!(trail.follow(&code[0], 1256), 1256 + 2 * 256);
        assert_eq!(trail.follow(&code[1], 89_000), 87_000);
        assert_eq!(trail.follow(&code[0], 1256), 1256);
    }
}

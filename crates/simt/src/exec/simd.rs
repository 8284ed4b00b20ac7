//! Instruction sets of the host, and operations on rows that LLVM does not vectorise.

use crate::program::row::{Flags, LANES, Lane, Row};

/// Instruction sets of the host for which handlers are compiled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostIsa {
    Baseline,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl HostIsa {
    /// Returns the widest instruction set of this processor.
    pub fn detect() -> Self {
        #[cfg(target_arch = "x86_64")]
        {
            let avx2 = is_x86_feature_detected!("avx2")
                && is_x86_feature_detected!("fma")
                && is_x86_feature_detected!("bmi1")
                && is_x86_feature_detected!("bmi2")
                && is_x86_feature_detected!("lzcnt")
                && is_x86_feature_detected!("popcnt");
            let avx512 = is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512vl");
            if avx2 && avx512 {
                return Self::Avx512;
            }
            if avx2 {
                return Self::Avx2;
            }
        }
        Self::Baseline
    }
}

/// Packs flags into bits: bit `k` of the result is the flag of lane `k`.
#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
pub fn bits_avx512(flags: &Flags) -> u32 {
    use std::arch::x86_64::{_mm512_loadu_si512, _mm512_movepi32_mask};
    // SAFETY: the halves of a row are 64 bytes each.
    let [low, high] = [0, 16].map(|k| unsafe { _mm512_loadu_si512(flags.as_ptr().add(k).cast()) });
    u32::from(_mm512_movepi32_mask(low)) | u32::from(_mm512_movepi32_mask(high)) << 16
}

/// Packs flags into bits: bit `k` of the result is the flag of lane `k`.
#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "avx2")]
pub fn bits_avx2(flags: &Flags) -> u32 {
    use std::arch::x86_64::{_mm256_castsi256_ps, _mm256_loadu_si256, _mm256_movemask_ps};
    let mut bits = 0;
    for k in (0..LANES).step_by(8) {
        // SAFETY: eight lanes, starting at `k`, are inside the row.
        let part = unsafe { _mm256_loadu_si256(flags.as_ptr().add(k).cast()) };
        bits |= (_mm256_movemask_ps(_mm256_castsi256_ps(part)) as u32) << k;
    }
    bits
}

/// Packs flags into bits: bit `k` of the result is the flag of lane `k`.
#[inline(always)]
pub fn bits_base(flags: &Flags) -> u32 {
    let mut bits = 0;
    for (k, &flag) in flags.iter().enumerate() {
        bits |= u32::from(flag != 0) << k;
    }
    bits
}

/// Permutes lanes: lane `k` of the result is lane `from[k]` of `a`.
#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
pub fn permute_avx512(a: &Row<u32>, from: &Row<u32>) -> Row<u32> {
    use std::arch::x86_64::{_mm512_load_si512, _mm512_permutex2var_epi32, _mm512_store_si512};
    let mut out = Row([0; LANES]);
    // SAFETY: a row is 64-byte aligned and has two halves of 64 bytes.
    unsafe {
        let [low, high] = [0, 16].map(|k| _mm512_load_si512(a.0.as_ptr().add(k).cast()));
        for k in [0, 16] {
            let lanes = _mm512_load_si512(from.0.as_ptr().add(k).cast());
            _mm512_store_si512(out.0.as_mut_ptr().add(k).cast(), _mm512_permutex2var_epi32(low, lanes, high));
        }
    }
    out
}

/// Reads element `v` of each of 32 contiguous vectors, starting at `from`. A vector has `N` four-byte elements; `N` is
/// 2 or 4.
///
/// # Safety
///
/// The vectors can be read.
#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
pub unsafe fn every_avx512<M: Lane, const N: usize>(from: *const u8, v: usize) -> Row<M> {
    use std::arch::x86_64::{
        _mm512_add_epi32, _mm512_castsi512_si256, _mm512_inserti64x4, _mm512_loadu_si512, _mm512_permutex2var_epi32,
        _mm512_set1_epi32, _mm512_setr_epi32, _mm512_store_si512,
    };
    debug_assert!(size_of::<M>() == 4 && (N == 2 || N == 4));
    let n = N as i32;
    let steps = _mm512_setr_epi32(
        0,
        n,
        2 * n,
        3 * n,
        4 * n,
        5 * n,
        6 * n,
        7 * n,
        8 * n,
        9 * n,
        10 * n,
        11 * n,
        12 * n,
        13 * n,
        14 * n,
        15 * n,
    );
    // The values come from two adjacent registers. These hold only eight four-element vectors, so the upper half is
    // unused.
    let places = _mm512_add_epi32(steps, _mm512_set1_epi32(v as i32));
    let mut row = Row([M::default(); LANES]);
    for half in 0..2 {
        // SAFETY: the 16 vectors, which fill `N` registers, can be read; a row is 64-byte aligned and has two halves of
        // 64 bytes.
        unsafe {
            let part = |k: usize| _mm512_loadu_si512(from.add((half * N + k) * 64).cast());
            let pair = |k: usize| _mm512_permutex2var_epi32(part(k), places, part(k + 1));
            let all = if N == 2 { pair(0) } else { _mm512_inserti64x4::<1>(pair(0), _mm512_castsi512_si256(pair(2))) };
            _mm512_store_si512(row.0.as_mut_ptr().add(half * 16).cast(), all);
        }
    }
    row
}

/// Writes the lanes in `mask` of a row of four-byte elements to where they would be if all lanes were written
/// contiguously, starting at `to`.
///
/// # Safety
///
/// There is room for the elements of those lanes.
#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
#[expect(clippy::cast_ptr_alignment, reason = "it is written unaligned")]
pub unsafe fn put_avx512<M: Lane>(to: *mut u8, elements: &Row<M>, mask: u32) {
    use std::arch::x86_64::{_mm512_load_si512, _mm512_mask_storeu_epi32};
    debug_assert!(size_of::<M>() == 4);
    for k in [0, 16] {
        // SAFETY: there is room for the lanes' elements; rows are 64-byte aligned and have two halves of 64 bytes.
        unsafe {
            let half = _mm512_load_si512(elements.0.as_ptr().add(k).cast());
            _mm512_mask_storeu_epi32(to.cast::<i32>().wrapping_add(k), (mask >> k) as u16, half);
        }
    }
}

/// Permutes lanes: lane `k` of the result is lane `from[k]` of `a`.
#[inline(always)]
pub fn permute_base(a: &Row<u32>, from: &Row<u32>) -> Row<u32> {
    let mut out = Row([0; LANES]);
    for k in 0..LANES {
        out.0[k] = a.0[from.0[k] as usize % LANES];
    }
    out
}

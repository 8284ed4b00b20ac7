//! Work on arrays, on all cores.
//!
//! The work is called through `dyn`: the scheduling is compiled once, not again for each of the twelve element types.
//! Bounds depend on the length alone and results are in order, so a result is the same for any number of cores.

use std::ops::Range;

use rayon::prelude::*;

/// Returns what `work` makes of each `block` of `0..len`, in order; the last one may be shorter.
pub fn blocks<R: Send>(len: usize, block: usize, work: &(dyn Fn(Range<usize>) -> R + Sync)) -> Vec<R> {
    (0..len.div_ceil(block)).into_par_iter().map(|i| work(i * block..len.min((i + 1) * block))).collect()
}

/// Calls `work` with the number and the content of each chunk of `size`; the last one may be shorter.
pub fn chunks<T: Send>(all: &mut [T], size: usize, work: &(dyn Fn(usize, &mut [T]) + Sync)) {
    all.par_chunks_mut(size).enumerate().for_each(|(number, chunk)| work(number, chunk));
}

//! Work on arrays, on many cores.
//!
//! The work is called through `dyn`: the scheduling is compiled once, not again for each of the twelve element types.
//! Bounds depend on the length alone and results are in order, so a result is the same for any number of cores.

use std::ops::Range;
use std::thread;

use rayon::prelude::*;

/// The fewest cores of which one is left to functions that are timed.
const FEWEST_CORES: usize = 4;

/// Makes all later work on arrays use one core less than this process has, so that a function of the host that is timed
/// meanwhile has a core of its own. A process with fewer than four cores, or that has worked on arrays before, goes on
/// using all.
pub fn leave_a_core() {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    if cores >= FEWEST_CORES {
        // It fails if the threads exist already.
        let _ = rayon::ThreadPoolBuilder::new().num_threads(cores - 1).build_global();
    }
}

/// Returns what `work` makes of each `block` of `0..len`, in order; the last one may be shorter.
pub fn blocks<R: Send>(len: usize, block: usize, work: &(dyn Fn(Range<usize>) -> R + Sync)) -> Vec<R> {
    (0..len.div_ceil(block)).into_par_iter().map(|i| work(i * block..len.min((i + 1) * block))).collect()
}

/// Calls `work` with the number and the content of each chunk of `size`; the last one may be shorter.
pub fn chunks<T: Send>(all: &mut [T], size: usize, work: &(dyn Fn(usize, &mut [T]) + Sync)) {
    all.par_chunks_mut(size).enumerate().for_each(|(number, chunk)| work(number, chunk));
}

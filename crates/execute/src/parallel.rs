//! Parallel work on arrays.
//!
//! The work is called through `dyn`, so the scheduling is compiled once, not for each of the twelve element types.
//! Block boundaries depend only on the length, and results are in order, so the result is the same for any number of
//! cores.

use std::ops::Range;
use std::thread;

use rayon::prelude::*;

/// Minimum number of cores for leaving one to timed functions.
const FEWEST_CORES: usize = 4;

/// Limits all later work on arrays to one core less than this process has, so that a timed host function has its own
/// core. A process with fewer than four cores, or one that has already worked on arrays, keeps using all.
pub fn leave_a_core() {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    if cores >= FEWEST_CORES {
        // Fails if the threads already exist.
        let _ = rayon::ThreadPoolBuilder::new().num_threads(cores - 1).build_global();
    }
}

/// Results of `work` on each `block` of `0..len`, in order; the last block may be shorter.
pub fn blocks<R: Send>(len: usize, block: usize, work: &(dyn Fn(Range<usize>) -> R + Sync)) -> Vec<R> {
    (0..len.div_ceil(block)).into_par_iter().map(|i| work(i * block..len.min((i + 1) * block))).collect()
}

/// Calls `work` with the index and content of each chunk of `size`; the last one may be shorter.
pub fn chunks<T: Send>(all: &mut [T], size: usize, work: &(dyn Fn(usize, &mut [T]) + Sync)) {
    all.par_chunks_mut(size).enumerate().for_each(|(number, chunk)| work(number, chunk));
}

//! Counting under a profiler, with a script in place of `ncu` that starts a real worker and writes what `ncu` writes.

mod count;
mod lines;
mod rig;
mod vocabulary;

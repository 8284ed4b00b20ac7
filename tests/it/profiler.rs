//! Counting under a profiler. A script in place of `ncu` starts a real worker and writes what `ncu` would write.

mod count;
mod lines;
mod rig;
mod vocabulary;

//! Counting under a profiler, with a script in place of `ncu` that starts a real worker and writes what `ncu` writes.

#![expect(clippy::unwrap_used, reason = "a test panics to fail")]

mod count;
mod rig;
mod vocabulary;

//! Worker processes, also inside a profiler, and the groups of cases that they run.

pub mod dispatch;
pub mod profiler;

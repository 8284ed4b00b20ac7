//! State of the running warp, and the handlers that execute instructions on it.
//!
//! From bottom to top: [`launch_state`], [`warp`] and [`context`] are the state; [`findings`], [`access`] and
//! [`sanitizer`] serve all memory accesses; the operations' handlers use these.

#![expect(clippy::many_single_char_names, reason = "context, instruction, addresses, sources, in every handler alike")]
#![expect(clippy::float_cmp, reason = "comparing floats bit for bit is what a GPU does")]

pub mod access;
pub mod arith;
pub mod async_write;
pub mod atomic;
pub mod bulk;
pub mod carry;
pub mod cell;
pub mod cluster;
pub mod collective;
pub mod context;
pub mod contiguous;
pub mod control;
pub mod copy;
pub mod counted;
pub mod device_runtime;
pub mod elements;
pub mod exact;
pub mod findings;
pub mod footprint;
pub mod format;
pub mod instruction_counts;
pub mod lanes;
pub mod launch_state;
pub mod load;
pub mod malloc;
pub mod matrix;
pub mod mbarrier;
pub mod pieces;
pub mod prefetch;
pub mod remote;
pub mod resolve;
pub mod sanitizer;
pub mod sending;
pub mod shapes;
pub mod shuffle;
pub mod simd;
pub mod store;
pub mod system;
pub mod texture;
pub mod traffic;
pub mod undefined;
pub mod vector;
pub mod warp;
pub mod window;

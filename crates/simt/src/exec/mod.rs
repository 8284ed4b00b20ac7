//! The machine: warps of 32 lanes that execute the flat bytecode.

#![expect(clippy::inline_always, reason = "a lane's work must become part of the loop of each instruction set")]
#![expect(clippy::many_single_char_names, reason = "context, instruction, addresses, sources, in every handler alike")]
#![expect(clippy::float_cmp, reason = "comparing floats bit for bit is what a GPU does")]

pub mod access;
mod ahead;
pub mod arith;
pub mod atomic;
mod barrier;
pub mod block;
pub mod bulk;
pub mod carry;
pub mod cluster;
pub mod collective;
pub mod context;
pub mod control;
pub mod copy;
mod deliver;
pub mod device_runtime;
pub mod exact;
mod fibers;
pub mod findings;
pub mod footprint;
mod format;
mod gang;
pub mod grid;
pub mod heap;
mod lanes;
pub mod load;
pub mod mbarrier;
pub mod monitor;
mod pieces;
pub mod program;
mod resolve;
pub mod row;
pub mod sending;
pub mod shapes;
pub mod shuffle;
pub mod store;
mod straight;
pub mod system;
pub mod traffic;
pub mod vector;
mod visits;
pub mod warp;
mod whereabouts;

//! The machine: warps of 32 lanes that execute the flat bytecode.

pub mod access;
pub mod arith;
pub mod atomic;
pub mod block;
pub mod carry;
pub mod collective;
pub mod context;
pub mod control;
mod format;
pub mod grid;
pub mod heap;
pub mod monitor;
pub mod program;
pub mod row;
pub mod shapes;
pub mod system;
pub mod traffic;

//! Detects races and other misuse of memory: the sanitizer's shadow state and checks. Independent of instructions.
//!
//! Within a block ([`BlockShadow`]) every word keeps its last accesses, and each new access is compared with them
//! ([`races`]). Between blocks ([`GridShadow`]) every line keeps the accesses of blocks to its bytes, which are
//! compared when the launch ends. If the order of two accesses is unknown, the sanitizer reports nothing.

mod block;
mod compact;
mod grid;
mod ignored;
mod knowledge;
mod launch_log;
mod lines;
mod log;
mod order;
mod part;
mod races;
mod request;
mod summary;
mod table;
mod tag;
mod words;

pub use block::{BlockShadow, Bulk, Earlier, Piece, RemoteConflict, RemoteThread, Run, Sender, Way};
pub use grid::{BlockConflict, GridShadow};
pub use ignored::Ignored;
pub use races::{Class, Fault, Hazard};
pub use request::{Op, Request, Space, Strength};
pub use tag::Tag;

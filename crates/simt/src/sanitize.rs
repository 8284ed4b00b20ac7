//! The sanitizer's shadow state and checks, which detect races and other misuse of memory. Independent of instructions.
//!
//! Within a block ([`BlockShadow`]), every word keeps its last accesses, and each new access is compared with them
//! ([`races`]). Between blocks ([`GridShadow`]), every line keeps the blocks' accesses to its bytes, which are compared
//! when the launch ends. If the order of two accesses is unknown, the sanitizer reports nothing.

mod block;
mod compact;
mod grid;
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
pub use races::{Class, Fault, Hazard, Ignored};
pub use request::{Op, Request, Space, Strength};
pub use tag::Tag;

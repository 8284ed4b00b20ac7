//! The sanitizer: what it remembers and how it judges. It knows nothing of instructions.
//!
//! Within a block ([`BlockShadow`]) every word keeps its last accesses, and each new one is compared with them
//! ([`races`]). Between blocks ([`GridShadow`]) every line keeps what blocks did to its bytes, judged when the launch
//! ends. It refuses to guess: where it cannot tell whether two accesses are ordered, it says nothing.

mod block;
mod compact;
mod grid;
mod ledger;
mod lines;
mod log;
mod part;
mod races;
mod request;
mod summary;
mod table;
mod tag;
mod when;
mod words;

pub use block::{BlockShadow, Bulk, Earlier, Piece, RemoteConflict, RemoteThread, Run, Sender, Way};
pub use grid::{BlockConflict, GridShadow};
pub use races::{Fault, Hazard};
pub use request::{Op, Request, Space, Strength};
pub use tag::Tag;

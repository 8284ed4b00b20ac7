//! The sanitizer: what it remembers and how it judges. It knows nothing of instructions.
//!
//! Within a block ([`Watch`]) every word keeps its last accesses, and each new one is held against them ([`races`]).
//! Between blocks ([`Board`]) every line keeps what blocks did to its bytes, judged when the launch ends.
//! It refuses to guess: where it cannot tell whether two accesses are ordered, it says nothing.

mod board;
mod brief;
mod bulk;
mod copies;
mod guests;
mod ledger;
mod lines;
mod locals;
mod log;
mod part;
mod plain;
mod races;
mod summary;
mod table;
mod tag;
mod watch;
mod when;

pub use board::{Board, Meeting};
pub use bulk::{Bulk, Sender, Way};
pub use guests::{Clash, Visitor, Who};
pub use plain::{Piece, Run};
pub use races::{Fault, Hazard, Op};
pub use tag::Tag;
pub use watch::{Request, Space, Strength, Watch};

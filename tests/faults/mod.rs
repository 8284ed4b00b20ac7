//! What the tests share: one run at a time in a folder of its own, and what it left there.

mod bench;
mod controls;
mod left;
mod plugins;
mod repeats;
mod stops;
mod survival;

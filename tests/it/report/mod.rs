//! From events to files: what is stored, analysed and rendered of whole runs.

mod analyse;
mod claims;
mod command;
mod compare;
mod cuts;
mod events;
mod expected_failures;
mod fidelity;
mod folder;
mod headlines;
mod hostile;
mod html;
mod journal;
mod merge;
mod reals;
mod render;
mod templates;
mod terminal;
mod versions;

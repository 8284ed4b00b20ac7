//! A comparison as people and programs read it: terminal and Markdown.

mod markdown;
mod terminal;
mod view;
mod words;

use crate::analyse::compare::Comparison;

pub use markdown::{MOST_CHARACTERS, markdown};
pub use terminal::terminal;
pub(super) use view::View;

/// A comparison with the places of what was compared.
#[derive(Debug, Clone, Copy)]
pub struct Compared<'a> {
    pub comparison: &'a Comparison,
    /// Where the reports of each pair were read from.
    pub places: &'a [[String; 2]],
    /// Reports that only one of them has.
    pub alone: &'a [Vec<String>; 2],
}

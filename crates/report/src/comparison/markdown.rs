//! The page of a comparison, short enough for a comment on a pull request.

use super::view::{View, view};
use super::{Compared, words};
use crate::{RenderError, Templates};

/// Size limit of a GitHub comment.
pub const MOST_CHARACTERS: usize = 65_536;

/// Size of the shortest row, in bytes.
const LEAST_ROW: usize = 20;

/// The page, of at most `limit` bytes, or else below [`MOST_CHARACTERS`]. Rows without room are omitted from the end,
/// where the least important are, and counted. The verdict is never omitted.
pub fn markdown(compared: Compared<'_>, limit: Option<usize>) -> Result<String, RenderError> {
    let templates = Templates::new()?;
    let page = |rows: usize| -> Result<(String, View), RenderError> {
        let view = view(compared, rows);
        Ok((templates.comparison(&view)?, view))
    };
    let fits = |page: &str| limit.map_or_else(|| page.chars().count() < MOST_CHARACTERS, |limit| page.len() <= limit);
    // More rows than this cannot have room.
    let mut too_many = MOST_CHARACTERS / LEAST_ROW;
    let (text, _) = page(too_many)?;
    if fits(&text) {
        return Ok(text);
    }
    let (mut shown, mut best) = (0, page(0)?.0);
    if !fits(&best) {
        return Ok(format!("## {}\n\nThe rest of the page has no room here.\n", words::headline(compared)));
    }
    while too_many - shown > 1 {
        let middle = usize::midpoint(shown, too_many);
        let (text, _) = page(middle)?;
        if fits(&text) {
            (shown, best) = (middle, text);
        } else {
            too_many = middle;
        }
    }
    Ok(best)
}

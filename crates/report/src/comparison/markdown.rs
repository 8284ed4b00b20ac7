//! A comparison as a Markdown page, short enough for a comment on a pull request.

use super::view::{Section, View, view};
use super::{Compared, headline};
use crate::escape::prose;
use crate::{RenderError, Templates};

/// Size limit of a GitHub comment.
pub const MOST_CHARACTERS: usize = 65_536;

/// Last sentence of a page from which more than rows is cut.
const LEFT_OUT: &str = "Parts of this page are left out (size limit).";

/// Size of the shortest row, in bytes.
const LEAST_ROW: usize = 20;

/// What to cut from a page that is too long even without rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cut {
    /// How the comparison was made.
    Method,
    /// Variant lines of folded sections, which do not fail the gate, and lines of unaffected reports.
    Harmless,
    Caveats,
    /// All but a few lines of each section.
    Lines,
    /// All sentences except those about manifests, and all claims that do not fail the gate.
    Facts,
    /// Sections that do not fail the gate.
    Sections,
}

/// Cuts in order; each is made in addition to those before it.
const CUTS: [Cut; 6] = [Cut::Method, Cut::Harmless, Cut::Caveats, Cut::Lines, Cut::Facts, Cut::Sections];

/// Maximum number of lines in a section after [`Cut::Lines`].
const FEW_LINES: usize = 3;

impl Cut {
    /// Cuts, but keeps `more` lines, sentences and the like of each kind than it must.
    fn apply(self, view: &mut View, more: usize) {
        match self {
            Self::Method => {
                view.method.clear();
                view.places.truncate(1);
            }
            Self::Harmless => {
                view.sections.iter_mut().filter(|section| !section.is_open).for_each(|section| keep(section, more));
                view.unaffected.clear();
            }
            Self::Caveats => view.warnings.clear(),
            Self::Lines => {
                view.sections.iter_mut().for_each(|section| keep(section, FEW_LINES + more));
                view.changed.truncate(2 * FEW_LINES + more);
                view.sources.truncate(FEW_LINES + more);
                view.sources.iter_mut().for_each(|source| source.lines.truncate(FEW_LINES + more));
            }
            Self::Facts => {
                view.facts.truncate(1 + more);
                view.sources.truncate(more);
                if let Some(claims) = &mut view.claims {
                    let before = claims.lines.len();
                    claims.lines.retain(|line| line.fails);
                    claims.lines.truncate(FEW_LINES + more);
                    claims.left_out += before - claims.lines.len();
                }
            }
            Self::Sections => view.sections.retain(|section| section.is_gating),
        }
    }
}

/// Keeps the first lines of a section.
fn keep(section: &mut Section, most: usize) {
    let lines = &mut section.rollup.lines;
    section.rollup.left_out += lines.len().saturating_sub(most);
    lines.truncate(most);
}

/// Renders the page in at most `limit` bytes, by default below [`MOST_CHARACTERS`]. Rows that do not fit are dropped
/// from the end, where the least important are, and counted. If that is not enough, more is cut, starting with parts
/// that do not fail the gate. The verdict is always kept.
pub fn markdown(compared: Compared<'_>, limit: Option<usize>) -> Result<String, RenderError> {
    let templates = Templates::new()?;
    let page = |rows: usize| templates.comparison(&view(compared, rows));
    let fits = |page: &str| limit.map_or_else(|| page.chars().count() < MOST_CHARACTERS, |limit| page.len() <= limit);
    // More rows than this cannot fit.
    let too_many = MOST_CHARACTERS / LEAST_ROW;
    let text = page(too_many)?;
    if fits(&text) {
        return Ok(text);
    }
    if !fits(&page(0)?) {
        for (index, _) in CUTS.iter().enumerate() {
            let cut = |rows: usize, more: usize| {
                let mut view = view(compared, rows);
                CUTS[..=index].iter().for_each(|cut| cut.apply(&mut view, more));
                view.facts.push(LEFT_OUT.to_owned());
                templates.comparison(&view)
            };
            if fits(&cut(0, 0)?) {
                // What room is left goes first to lines and sentences, then to rows.
                let (more, _) = most(too_many, &fits, |more| cut(0, more))?;
                return most(too_many, &fits, |rows| cut(rows, more)).map(|(_, text)| text);
            }
        }
        return Ok(format!("## {}\n\nThe rest of the page is omitted (size limit).\n", prose(&headline(compared))));
    }
    most(too_many, &fits, page).map(|(_, text)| text)
}

/// The largest number below `too_many` whose page fits, with that page. With 0, the page fits.
fn most(
    mut too_many: usize,
    fits: &impl Fn(&str) -> bool,
    page: impl Fn(usize) -> Result<String, RenderError>,
) -> Result<(usize, String), RenderError> {
    let (mut shown, mut best) = (0, page(0)?);
    while too_many - shown > 1 {
        let middle = usize::midpoint(shown, too_many);
        let text = page(middle)?;
        if fits(&text) {
            (shown, best) = (middle, text);
        } else {
            too_many = middle;
        }
    }
    Ok((shown, best))
}

//! The interface of a strategy, and helpers that several strategies use.

use std::fmt::Debug;

use crate::history::{History, Outcome};
use crate::random::Random;
use crate::space::Space;

/// Proposes points to evaluate.
pub trait Strategy: Debug + Send {
    /// Proposes a point that is neither evaluated nor pending; `None` ends the search. A strategy learns of results
    /// only from the history, so several points can be evaluated at once, and points can fail.
    fn propose(&mut self, space: &Space, history: &History, random: &mut Random) -> Option<u64>;
}

/// Number of consecutive draws of taken points after which all points are scanned.
const DRAWS: usize = 64;

/// Draws uniformly from the free points, if any.
pub(super) fn draw(space: &Space, history: &History, random: &mut Random) -> Option<u64> {
    let size = space.len();
    let free = |&point: &u64| !history.is_taken(point);
    if history.untouched(size) == 0 {
        return None;
    }
    (0..DRAWS).map(|_| random.below(size)).find(free).or_else(|| {
        let start = random.below(size);
        (start..size).chain(0..start).find(free)
    })
}

/// Logarithm of an outcome's objective. A failure is higher than any objective.
pub(super) fn height(outcome: Option<Outcome>) -> f64 {
    outcome.and_then(Outcome::value).map_or(1e9, f64::ln)
}

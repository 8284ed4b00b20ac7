//! What a strategy is, and what several of them need.

use std::fmt::Debug;

use crate::history::{History, Outcome};
use crate::random::Random;
use crate::space::Space;

/// Proposes points to evaluate.
pub trait Strategy: Debug + Send {
    /// Proposes a point that has neither been evaluated nor is being evaluated. All that a strategy knows of the
    /// objective is in the history, so that points can be evaluated at once, and can fail. `None` ends the search.
    fn propose(&mut self, space: &Space, history: &History, random: &mut Random) -> Option<u64>;
}

/// A draw that hits taken points so often in a row is followed by a walk over all points.
const DRAWS: usize = 64;

/// Draws uniformly from the free points, if there is one.
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

/// Returns the logarithm of an outcome's objective; a failure is higher than any.
pub(super) fn height(outcome: Option<Outcome>) -> f64 {
    outcome.and_then(Outcome::value).map_or(1e9, f64::ln)
}

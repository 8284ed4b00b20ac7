//! The interface of a strategy, and what several of them need.

use std::fmt::Debug;

use crate::history::{History, Outcome};
use crate::random::Random;
use crate::space::Space;

/// Proposes points to evaluate.
pub trait Strategy: Debug + Send {
    /// Proposes a point that is neither evaluated nor in evaluation; `None` ends the search. A strategy learns of
    /// objectives only from the history, so several points can be in evaluation at once, and points can fail.
    fn propose(&mut self, space: &Space, history: &History, random: &mut Random) -> Option<u64>;
}

/// Number of draws that hit taken points in a row before all points are scanned.
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

/// Logarithm of an outcome's objective; a failure is higher than any.
pub(super) fn height(outcome: Option<Outcome>) -> f64 {
    outcome.and_then(Outcome::value).map_or(1e9, f64::ln)
}

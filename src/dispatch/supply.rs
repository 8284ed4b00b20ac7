//! Where groups come from: a list, or something that gives each when it may start.

use crate::model::GroupJob;

/// Gives groups, one after the other.
pub trait Supply {
    /// The next group that may start, waited for if need be. `None` where there is none left, and where the user's
    /// interrupt ends the waiting.
    fn next(&mut self) -> Option<GroupJob>;

    /// All that were not given, at once and whether they may start or not: none of them will run.
    fn rest(&mut self) -> Vec<GroupJob>;
}

/// A list, all of which may start.
impl<I: Iterator<Item = GroupJob>> Supply for I {
    fn next(&mut self) -> Option<GroupJob> {
        Iterator::next(self)
    }

    fn rest(&mut self) -> Vec<GroupJob> {
        self.by_ref().collect()
    }
}

//! Where groups come from: a list, or a source that gives each group when it may start.

use crate::model::GroupJob;

/// Gives groups one after the other.
pub trait GroupSource {
    /// The next group that may start; waits for it if need be. `None` after the last one, and after an interrupt.
    fn next(&mut self) -> Option<GroupJob>;

    /// Every group that was not given, whether or not it may start. None of them will run.
    fn remaining(&mut self) -> Vec<GroupJob>;
}

/// A list, all of which may start.
impl<I: Iterator<Item = GroupJob>> GroupSource for I {
    fn next(&mut self) -> Option<GroupJob> {
        Iterator::next(self)
    }

    fn remaining(&mut self) -> Vec<GroupJob> {
        self.by_ref().collect()
    }
}

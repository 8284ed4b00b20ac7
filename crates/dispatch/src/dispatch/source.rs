//! Sources of groups: a list, or a source that returns each group when it may start.

use crate::model::GroupJob;

/// Returns groups one after the other.
pub trait GroupSource {
    /// Returns the next group that may start; waits for it if necessary. The result is `None` after the last group, and
    /// after an interrupt.
    fn next(&mut self) -> Option<GroupJob>;

    /// Returns every group that was not returned by `next`. None of them will run.
    fn remaining(&mut self) -> Vec<GroupJob>;

    /// Returns why `next` returned nothing though groups remain, if it was no interrupt.
    fn fault(&self) -> Option<String> {
        None
    }
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

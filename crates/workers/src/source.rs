//! Sources of groups: a list, or a source that returns each group when it may start.

use runner_types::GroupJob;

pub trait GroupSource {
    /// Returns the next group that may start, after waiting if necessary. `None` after the last group or an
    /// interrupt.
    fn next(&mut self) -> Option<GroupJob>;

    /// Returns every group that `next` has not returned. None of them will run.
    fn remaining(&mut self) -> Vec<GroupJob>;

    /// Why `next` returned nothing although groups remain, unless interrupted.
    fn fault(&self) -> Option<String> {
        None
    }
}

/// A list of groups that may all start.
impl<I: Iterator<Item = GroupJob>> GroupSource for I {
    fn next(&mut self) -> Option<GroupJob> {
        Iterator::next(self)
    }

    fn remaining(&mut self) -> Vec<GroupJob> {
        self.by_ref().collect()
    }
}

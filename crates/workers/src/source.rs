//! Sources of groups: a list, or a source that returns each group once it may start.

use runner_types::GroupJob;

pub trait GroupSource {
    /// The next group that may start; waits if necessary. `None` after the last group or an interrupt.
    fn next(&mut self) -> Option<GroupJob>;

    /// All groups that `next` has not returned. None of them will run.
    fn remaining(&mut self) -> Vec<GroupJob>;

    /// Why `next` returned `None` although groups remain, unless interrupted.
    fn fault(&self) -> Option<String> {
        None
    }
}

/// A list of groups that may all start immediately.
impl<I: Iterator<Item = GroupJob>> GroupSource for I {
    fn next(&mut self) -> Option<GroupJob> {
        Iterator::next(self)
    }

    fn remaining(&mut self) -> Vec<GroupJob> {
        self.by_ref().collect()
    }
}

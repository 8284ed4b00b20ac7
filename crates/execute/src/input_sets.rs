//! Which set of inputs the buffers of a group hold, and the seeds that no kernel knows.
//!
//! Separate from [`super::inputs`], which moves the contents: a group's sets outlive its memory, because the next group
//! may reuse them.

use std::hash::{BuildHasher, Hasher};
use std::ops::Range;

use runner_types::{BufferPlan, FillPlan, Vary};

/// Set generated with the manifest's seeds.
pub const FIRST: usize = 0;
/// Set generated with secret seeds.
pub const OTHER: usize = 1;
/// The first set, except that a range of each buffer comes from the secret one.
pub const MIXED: usize = 2;

/// Current set of a group's inputs, and the number of sets.
#[derive(Debug, Clone)]
pub struct Sets {
    pub current: usize,
    pub count: usize,
    /// Secret that changes the seeds of the second set.
    pub secret: u64,
    /// Secret that determines each buffer's range in the third set.
    place: u64,
    /// Whether expected values exist only for the first set.
    pub expects_first: bool,
}

impl Default for Sets {
    fn default() -> Self {
        Self { current: FIRST, count: 1, secret: secret(), place: secret(), expects_first: false }
    }
}

impl Sets {
    /// Sets for another group with the same seeds.
    pub fn with_same_seeds(&self) -> Self {
        Self { secret: self.secret, place: self.place, ..Self::default() }
    }

    /// Plan of a buffer's content in a set.
    pub fn varied(&self, plan: &BufferPlan, set: usize) -> BufferPlan {
        let mut plan = plan.clone();
        let stretch = if set == MIXED { self.stretch(plan.len) } else { 0..plan.len };
        match (set, plan.vary) {
            (FIRST, _) => {}
            (_, Some(Vary::Permute)) => plan.fill = plan.fill.map(|fill| fill.permuted(self.secret, stretch)),
            (MIXED, None) => plan.fill = plan.fill.map(|fill| fill.spliced(self.secret, stretch)),
            (_, None) => {
                if let Some(seed) = plan.fill.as_mut().and_then(FillPlan::seed_mut) {
                    *seed ^= self.secret;
                }
            }
        }
        plan
    }

    /// Range in which the third set has elements of the second: a half to a sixteenth of the buffer, at a random
    /// position.
    fn stretch(&self, len: u64) -> Range<u64> {
        let part = (len >> (1 + (self.place >> 1) % 4)).max(len.min(1));
        let begin = (u128::from(self.place) * u128::from(len - part + 1)) >> 64;
        begin as u64..begin as u64 + part
    }
}

/// A random number that differs in every process and for every caller, and is never zero.
pub fn secret() -> u64 {
    std::hash::RandomState::new().build_hasher().finish() | 1
}

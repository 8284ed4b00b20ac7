//! Which set of inputs the buffers of a group hold, and the seeds that no kernel knows.

use std::hash::{BuildHasher, Hasher};

use crate::model::{BufferPlan, FillPlan, Vary};

/// The set of the manifest's seeds.
pub const FIRST: usize = 0;
/// The set of secret seeds.
pub const OTHER: usize = 1;

/// Which set the inputs of a group hold.
#[derive(Debug)]
pub struct Sets {
    pub current: usize,
    /// Whether there is a second set.
    pub there: bool,
    /// What the seeds of the second set differ by.
    pub secret: u64,
    /// Whether expected values exist for the first set alone.
    pub expects_first: bool,
}

impl Default for Sets {
    fn default() -> Self {
        Self { current: FIRST, there: false, secret: secret(), expects_first: false }
    }
}

impl Sets {
    /// The plan of a buffer's content in a set.
    pub fn varied(&self, plan: &BufferPlan, set: usize) -> BufferPlan {
        let mut plan = plan.clone();
        if set == FIRST {
            return plan;
        }
        match plan.vary {
            Some(Vary::Permute) => plan.fill = plan.fill.map(|fill| fill.permuted(self.secret)),
            None => {
                if let Some(seed) = plan.fill.as_mut().and_then(FillPlan::seed_mut) {
                    *seed ^= self.secret;
                }
            }
        }
        plan
    }
}

/// A number that is different in every process and for every caller, and never zero.
pub fn secret() -> u64 {
    std::hash::RandomState::new().build_hasher().finish() | 1
}

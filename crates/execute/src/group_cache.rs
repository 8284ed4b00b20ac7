//! What a group leaves to the next one in its process: its host inputs and the values expected for them.
//!
//! Many groups have the same buffers: those of a search, and those of a run that differ only in launch shape.
//! Generating large inputs and computing their expected values takes seconds; checking a kernel with them takes
//! milliseconds. The secret seeds live as long as the inputs generated from them. A group's memory and modules are
//! freed at its end, so the next group's kernels cannot know the seeds either.

use std::sync::Arc;

use super::buffers::{Input, Store, same_input};
use super::expected::Expected;
use super::input_sets::{MIXED, Sets};
use runner_types::{BufferPlan, GroupJob};

/// Maximum host memory to keep between two groups, in bytes.
const MOST: usize = 1 << 30;

/// Inputs and expected values that a group leaves to the next one.
#[derive(Debug, Default)]
pub struct GroupCache {
    sets: Sets,
    inputs: Vec<Input>,
    expected: Expected,
}

impl GroupCache {
    /// Keeps what a group leaves, unless it is too large.
    pub(super) fn from_group(store: Store, mut expected: Expected) -> Self {
        let (sets, mut inputs) = store.into_inputs();
        // A file may have changed before the next group.
        inputs.retain(|(plan, _)| plan.fill.as_ref().is_none_or(|fill| fill.file().is_none()));
        expected.end_group();
        let bytes = inputs.iter().map(|(_, bytes)| bytes.len()).sum::<usize>() + expected.size();
        if bytes > MOST { Self::default() } else { Self { sets, inputs, expected } }
    }

    /// What a group can reuse. If it can reuse nothing, the seeds are new.
    pub(super) fn for_group(self, job: &GroupJob) -> (Store, Expected) {
        let Self { sets, mut inputs, mut expected } = self;
        let is_of_job = |plan: &BufferPlan| {
            let named = job.cases.iter().flat_map(|case| &case.buffers).filter(|wanted| wanted.name == plan.name);
            let mut contents = named.flat_map(|wanted| (0..=MIXED).map(|set| sets.varied(wanted, set)));
            contents.any(|wanted| same_input(plan, &wanted))
        };
        inputs.retain(|(plan, _)| is_of_job(plan));
        expected.retain_values(&|bytes| inputs.iter().any(|(_, kept)| Arc::ptr_eq(kept, bytes)), &is_of_job);
        let is_nothing = inputs.is_empty() && expected.is_empty();
        let sets = if is_nothing { Sets::default() } else { sets.with_same_seeds() };
        (Store::with_inputs(sets, inputs), expected)
    }
}

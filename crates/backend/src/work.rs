//! Work for a device: batches of launches and copies, and what they refer to.

use super::argument::LaunchArg;
use super::views::Views;
use super::{BufferId, Condition, FunctionId, KernelId};
use crate::model::{Allocation, Dim3, LaunchSettings, Persist, Regime, ScalarValue};

/// A body to run untimed.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Batch {
    /// What is done before every repetition.
    pub prepare: Vec<Prepare>,
    /// The steps that form one run of the body.
    pub steps: Vec<Step>,
    /// Runs of the body.
    pub repeat: u32,
    /// Whether the report must hold what kernels print, also where the driver writes that to standard output.
    pub capture_printf: bool,
}

impl Batch {
    /// Returns a batch with one repetition.
    pub fn once(prepare: Vec<Prepare>, steps: Vec<Step>) -> Self {
        Self { prepare, steps, repeat: 1, capture_printf: false }
    }
}

/// A body to time.
#[derive(Debug, Clone, PartialEq)]
pub struct TimedBatch {
    /// What is done before every sample, outside the timed span.
    pub prepare: Vec<Prepare>,
    /// The steps that are timed together, and one by one.
    pub steps: Vec<Step>,
    /// The state that the caches have before each sample.
    pub regime: Regime,
    /// How many runs make a sample, and on which buffers.
    pub series: Series,
    /// Samples to take.
    pub samples: u32,
}

impl TimedBatch {
    /// Returns the steps on each set of buffers, its own first.
    pub fn sets(&self) -> impl Iterator<Item = &Vec<Step>> + Clone {
        std::iter::once(&self.steps).chain(&self.series.others)
    }
}

/// What one sample of a timed batch is made of.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// Runs of the body that make a sample, at least 1; the sample is their mean. Cold ones are prepared and timed one
    /// by one; those of the other regimes follow each other in one timed span, prepared once.
    pub launches: u32,
    /// Sets of steps like the batch's own on other sets of buffers, which alternate with the batch's own.
    pub others: Vec<Vec<Step>>,
    /// Runs before the timed span, outside of it, that bring the caches into the state which the span keeps.
    pub lead: u32,
    /// Buffers that each run allocates, uses in place of the existing ones, and frees; only in the regime `host`, each
    /// at most once.
    pub fresh: Vec<(BufferId, Allocation)>,
    /// Whether the steps of a cold run are not timed one by one as well.
    pub whole_only: bool,
}

impl Default for Series {
    /// Makes a batch in which a sample is one run.
    fn default() -> Self {
        Self { launches: 1, others: Vec::new(), lead: 0, fresh: Vec::new(), whole_only: false }
    }
}

/// Brings a buffer into its state before a launch.
#[derive(Debug, Clone, PartialEq)]
pub enum Prepare {
    /// Every byte becomes `byte`.
    Fill {
        /// The buffer that is written.
        buffer: BufferId,
        /// The value of each byte.
        byte: u8,
    },
    /// Every byte becomes `byte`, and no launch may depend on it: a device that knows which bytes were written, such as
    /// the simulator, reports launches that read them before they write them.
    Undefine {
        /// The buffer that is written.
        buffer: BufferId,
        /// The value of each byte.
        byte: u8,
    },
    /// The whole of `to` becomes what `from` holds; equal sizes.
    Copy {
        /// The buffer that is read.
        from: BufferId,
        /// The buffer that is written.
        to: BufferId,
    },
}

/// An operation that is timed.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// A kernel is launched.
    Launch(Launch),
    /// A device-to-device copy of the whole of `from`.
    Copy {
        /// The buffer that is read.
        from: BufferId,
        /// The buffer that is written.
        to: BufferId,
    },
    /// A host function queues its work.
    Call(HostCall),
    /// Every element of a buffer becomes a number of up to four bytes, or of eight with equal halves.
    Memset {
        /// The buffer that is written.
        buffer: BufferId,
        /// The number that every element is set to.
        value: ScalarValue,
    },
    /// Steps that are repeated until a condition holds.
    Loop(Box<Loop>),
}

impl Step {
    /// Returns the stream that it is queued in, from 0.
    pub fn stream(&self) -> usize {
        if let Self::Launch(launch) = self { launch.settings.stream_index() } else { 0 }
    }

    /// Returns about how many nodes of a graph it becomes.
    fn nodes(&self) -> usize {
        let Self::Loop(inner) = self else { return self.operations() };
        // Each iteration has a kernel for its condition and a conditional node.
        let count = |iteration: &Iteration| 2 + iteration.steps.iter().map(Self::nodes).sum::<usize>();
        1 + inner.iterations.iter().take(Loop::LONGEST_PERIOD).map(count).sum::<usize>()
    }

    /// Returns an upper bound of the operations that it queues. For a host function this is an assumption: library
    /// calls queue a few.
    pub fn operations(&self) -> usize {
        match self {
            Self::Launch(_) | Self::Copy { .. } | Self::Memset { .. } => 1,
            Self::Call(_) => 8,
            Self::Loop(inner) => {
                let longest = inner.iterations.iter().map(|iteration| operations(&iteration.steps)).max();
                longest.unwrap_or(0).saturating_mul(inner.at_most as usize)
            }
        }
    }
}

/// Steps that are repeated until a condition holds.
#[derive(Debug, Clone, PartialEq)]
pub struct Loop {
    /// The iterations that differ, at least one. After the last of these, the first follows again.
    pub iterations: Vec<Iteration>,
    /// The largest number of iterations that the loop makes.
    pub at_most: u32,
}

/// What one iteration of a loop does.
#[derive(Debug, Clone, PartialEq)]
pub struct Iteration {
    /// The steps in their order, which are all in the first stream.
    pub steps: Vec<Step>,
    /// The loop ends if this holds after the steps.
    pub until: Condition,
}

impl Loop {
    /// Most iterations that a graph has copies of.
    pub const LONGEST_PERIOD: usize = 8;

    /// Returns after how many iterations the first follows again; `None` if that is more than [`Self::LONGEST_PERIOD`].
    pub fn period(&self) -> Option<usize> {
        let all = &self.iterations;
        let recurs = |period: &usize| all.len().is_multiple_of(*period) && all[*period..] == all[..all.len() - period];
        (1..=Self::LONGEST_PERIOD.min(all.len())).find(recurs)
    }

    /// Returns the iteration of an index.
    pub fn iteration(&self, nth: u32) -> Option<&Iteration> {
        self.iterations.get(nth as usize % self.iterations.len().max(1))
    }
}

/// A call of a host function.
#[derive(Debug, Clone, PartialEq)]
pub struct HostCall {
    /// The function that is called, which is already bound to its module.
    pub function: FunctionId,
    /// The arguments in the order of the function's parameters.
    pub args: Vec<LaunchArg>,
}

/// A launch of one kernel.
#[derive(Debug, Clone, PartialEq)]
pub struct Launch {
    /// The kernel of a loaded module.
    pub kernel: KernelId,
    /// The number of blocks that the grid has.
    pub grid: Dim3,
    /// The number of threads that each block has.
    pub block: Dim3,
    /// The arguments in the order of the kernel's parameters.
    pub args: Vec<LaunchArg>,
    /// The numbers and switches that the launch sets. Launches of one stream run one after the other, those of several
    /// may run beside each other; copies are in stream 0. A body begins in all of its streams at once and has ended
    /// when all of them have.
    pub settings: LaunchSettings,
    /// Blocks per cluster along each axis; `None` for those that the kernel was compiled for.
    pub cluster: Option<[u32; 3]>,
    /// A buffer that stays in the L2.
    pub persist: Option<Persist<BufferId>>,
}

impl Launch {
    /// Returns a launch without any setting.
    pub fn new(kernel: KernelId, grid: Dim3, block: Dim3, args: Vec<LaunchArg>) -> Self {
        Self { kernel, grid, block, args, settings: LaunchSettings::default(), cluster: None, persist: None }
    }
}

/// Returns the streams that steps use: one more than the highest.
pub fn streams(steps: &[Step]) -> usize {
    1 + steps.iter().map(Step::stream).max().unwrap_or(0)
}

/// Whether a body has textures or surfaces.
pub fn has_textures(steps: &[Step]) -> bool {
    !views(steps).buffers().is_empty()
}

/// Returns what the steps of a body use their buffers as.
pub(crate) fn views(steps: &[Step]) -> Views {
    let mut views = Views::default();
    add_views(steps, &mut views);
    views
}

fn add_views(steps: &[Step], views: &mut Views) {
    for step in steps {
        match step {
            Step::Launch(Launch { args, .. }) | Step::Call(HostCall { args, .. }) => views.add(args),
            Step::Copy { from, to } => [from, to].into_iter().for_each(|buffer| views.note_address(*buffer)),
            Step::Memset { buffer, .. } => views.note_address(*buffer),
            Step::Loop(inner) => {
                for iteration in &inner.iterations {
                    add_views(&iteration.steps, views);
                    iteration.until.reads.iter().for_each(|read| views.note_address(read.buffer));
                }
            }
        }
    }
}

/// Returns an upper bound of the operations that a device queues for a run of steps: the steps, the copies of arrays
/// around them, and the events that let streams begin and end together.
pub fn operations(steps: &[Step]) -> usize {
    let views = views(steps);
    let copies = |step: &Step| match step {
        Step::Launch(launch) => {
            views.mixed(&launch.args).iter().map(|(_, is_stored)| 1 + usize::from(*is_stored)).sum()
        }
        _ => 0,
    };
    let own = steps.iter().map(|step| step.operations() + copies(step)).fold(0, usize::saturating_add);
    match streams(steps) {
        1 => own,
        // The first stream marks the beginning, and each other stream has two waits and a mark.
        several => own + 1 + 3 * (several - 1),
    }
}

/// Returns about how many nodes a graph of steps has: that of a loop with a condition has its iterations once.
pub fn nodes(steps: &[Step]) -> usize {
    if steps.iter().any(|step| matches!(step, Step::Loop(_))) {
        steps.iter().map(Step::nodes).sum()
    } else {
        operations(steps)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn launch(stream: i64) -> Step {
        let one = Dim3::new(1, 1, 1);
        let settings = LaunchSettings { stream: Some(stream), ..LaunchSettings::default() };
        Step::Launch(Launch { settings, ..Launch::new(KernelId(0), one, one, Vec::new()) })
    }

    #[test]
    fn a_body_in_several_streams_queues_what_lets_them_begin_and_end_together() {
        let copy = || Step::Copy { from: BufferId(0), to: BufferId(1) };
        assert_eq!((streams(&[]), operations(&[])), (1, 0));
        let plain = [launch(0), copy(), launch(0)];
        assert_eq!((streams(&plain), operations(&plain)), (1, 3));
        // The first stream makes a mark; each of two streams then has a wait, and a mark for which the first one waits.
        let spread = [launch(0), launch(2), copy()];
        assert_eq!((streams(&spread), operations(&spread)), (3, 3 + 1 + 2 * 3));
    }
}

//! Work for a device: batches of launches and copies. A batch is data, so that every backend runs the same one.

use super::argument::LaunchArg;
use super::views::Views;
use super::{BufferId, Condition, FunctionId, KernelId};
use runner_types::{Allocation, Dim3, LaunchSettings, Persist, Regime, ScalarValue};

/// A body to run untimed.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Batch {
    /// Preparation before every repetition.
    pub prepare: Vec<Prepare>,
    pub steps: Vec<Step>,
    pub repeat: u32,
    /// Whether the report must contain what kernels print, even if the driver writes that to standard output.
    pub capture_printf: bool,
}

impl Batch {
    pub fn once(prepare: Vec<Prepare>, steps: Vec<Step>) -> Self {
        Self { prepare, steps, repeat: 1, capture_printf: false }
    }
}

/// A body to time.
#[derive(Debug, Clone, PartialEq)]
pub struct TimedBatch {
    /// Preparation before every sample, outside the timed span.
    pub prepare: Vec<Prepare>,
    /// The body, timed as a whole and step by step.
    pub steps: Vec<Step>,
    /// State of the caches before each sample.
    pub regime: Regime,
    pub series: Series,
    pub samples: u32,
}

impl TimedBatch {
    /// The steps on each set of buffers, the batch's own first.
    pub fn sets(&self) -> impl Iterator<Item = &Vec<Step>> + Clone {
        std::iter::once(&self.steps).chain(&self.series.others)
    }
}

/// Composition of a sample.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// Runs of the body per sample, at least 1; the sample is their mean. Cold runs are prepared and timed one by one.
    /// Runs of the other regimes follow each other in one timed span, prepared once.
    pub launches: u32,
    /// The same steps on other sets of buffers, which alternate with the batch's own.
    pub others: Vec<Vec<Step>>,
    /// Runs before the timed span that bring the caches into their steady state.
    pub lead: u32,
    /// Buffers that each run allocates, uses in place of the existing ones, and frees. Only in the regime `host`, each
    /// at most once.
    pub fresh: Vec<(BufferId, Allocation)>,
    /// Whether to skip timing the steps of a cold run one by one.
    pub whole_only: bool,
}

impl Default for Series {
    /// One run per sample.
    fn default() -> Self {
        Self { launches: 1, others: Vec::new(), lead: 0, fresh: Vec::new(), whole_only: false }
    }
}

/// Brings a buffer into its state before a launch.
#[derive(Debug, Clone, PartialEq)]
pub enum Prepare {
    /// Sets every byte to `byte`.
    Fill { buffer: BufferId, byte: u8 },
    /// Sets every byte to `byte`, on which no launch may depend. A device that knows which bytes were written, such as
    /// the simulator, reports launches that read them first.
    Undefine { buffer: BufferId, byte: u8 },
    /// Copies all of `from` to `to`, which must have the same size.
    Copy { from: BufferId, to: BufferId },
}

/// An operation of a body.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    Launch(Launch),
    /// A device-to-device copy of all of `from`.
    Copy {
        from: BufferId,
        to: BufferId,
    },
    /// A call of a host function, which queues its work.
    Call(HostCall),
    /// Sets every element of a buffer to a number of up to four bytes, or of eight with equal halves.
    Memset {
        buffer: BufferId,
        value: ScalarValue,
    },
    Loop(Box<Loop>),
}

impl Step {
    pub fn stream(&self) -> usize {
        if let Self::Launch(launch) = self { launch.settings.stream_index() } else { 0 }
    }

    /// Approximate number of graph nodes.
    fn nodes(&self) -> usize {
        let Self::Loop(inner) = self else { return self.operations() };
        // Each iteration has a kernel for its condition and a conditional node.
        let count = |iteration: &Iteration| 2 + iteration.steps.iter().map(Self::nodes).sum::<usize>();
        1 + inner.iterations.iter().take(Loop::LONGEST_PERIOD).map(count).sum::<usize>()
    }

    /// Upper bound on the operations that the step queues. For a host function this is an assumption: library calls
    /// queue a few.
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
    /// The distinct iterations, at least one. After the last, the first follows again.
    pub iterations: Vec<Iteration>,
    pub at_most: u32,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Iteration {
    /// Steps in order, all in the first stream.
    pub steps: Vec<Step>,
    /// Condition that ends the loop if it holds after the steps.
    pub until: Condition,
}

impl Loop {
    /// Maximum number of iterations that a graph unrolls.
    pub const LONGEST_PERIOD: usize = 8;

    /// Number of iterations after which the first one repeats; `None` if larger than [`Self::LONGEST_PERIOD`].
    pub fn period(&self) -> Option<usize> {
        let all = &self.iterations;
        let recurs = |period: &usize| all.len().is_multiple_of(*period) && all[*period..] == all[..all.len() - period];
        (1..=Self::LONGEST_PERIOD.min(all.len())).find(recurs)
    }

    pub fn iteration(&self, nth: u32) -> Option<&Iteration> {
        self.iterations.get(nth as usize % self.iterations.len().max(1))
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct HostCall {
    pub function: FunctionId,
    /// Arguments in the order of the function's parameters.
    pub args: Vec<LaunchArg>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Launch {
    pub kernel: KernelId,
    pub grid: Dim3,
    pub block: Dim3,
    /// Arguments in the order of the kernel's parameters.
    pub args: Vec<LaunchArg>,
    /// Options of the launch. Launches in one stream run in order, those in several streams may overlap; copies are in
    /// stream 0. A body starts in all of its streams at once and ends when all of them have ended.
    pub settings: LaunchSettings,
    /// Blocks per cluster along each axis; `None` for the size for which the kernel was compiled.
    pub cluster: Option<[u32; 3]>,
    /// A buffer to keep in the L2.
    pub persist: Option<Persist<BufferId>>,
}

impl Launch {
    /// A launch without settings.
    pub fn new(kernel: KernelId, grid: Dim3, block: Dim3, args: Vec<LaunchArg>) -> Self {
        Self { kernel, grid, block, args, settings: LaunchSettings::default(), cluster: None, persist: None }
    }
}

/// Number of streams that steps use: one more than the highest index.
pub fn streams(steps: &[Step]) -> usize {
    1 + steps.iter().map(Step::stream).max().unwrap_or(0)
}

pub fn has_textures(steps: &[Step]) -> bool {
    !views(steps).buffers().is_empty()
}

/// How each step uses its buffers.
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

/// Upper bound on the operations that a device queues for a run: the steps, the array copies around them, and the
/// events that let streams begin and end together.
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
        // The first stream records an event, and each other stream has two waits and a record.
        several => own + 1 + 3 * (several - 1),
    }
}

/// Approximate number of graph nodes. The iterations of a loop with a condition count once.
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
        // Fork and join: the first stream records an event that the other two wait for; each of them then records one
        // that the first waits for.
        let spread = [launch(0), launch(2), copy()];
        assert_eq!((streams(&spread), operations(&spread)), (3, 3 + 1 + 2 * 3));
    }
}

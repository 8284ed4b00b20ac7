//! The validated experiment: the content of a manifest with every text parsed. `manifest::load` makes it. Later stages
//! parse nothing again.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::Arc;

use crate::model::{Access, Allocation, BackendKind, Claim, Failure, Regime, SourceText, Span, Value};

mod located;

pub use located::{Expression, Located, Reference, Template, fault, place};

/// The validated experiment.
#[derive(Debug, Clone, PartialEq)]
pub struct Manifest {
    pub source: Arc<SourceText>,
    /// SHA-256 of the text, hexadecimal.
    pub hash: String,
    pub name: String,
    pub title: String,
    /// The question at the beginning of the report; a paragraph of Markdown.
    pub question: Option<String>,
    pub baseline: Option<Baseline>,
    /// Axes that are compared besides the variant.
    pub compare: Vec<String>,
    /// Whether each variant is a step after the one before it.
    pub steps: bool,
    pub axes: Vec<Axis>,
    /// Axes that advance together; each list has at least two names and equal lengths.
    pub zip: Vec<Vec<String>>,
    pub exclude: Vec<ExcludeRule>,
    /// Points added to the product; each gives every shared axis a value.
    pub include: Vec<BTreeMap<String, Value>>,
    pub on: BTreeMap<BackendKind, AxisOverride>,
    pub lets: Vec<LetBinding>,
    pub buffers: Vec<BufferSpec>,
    pub checks: Vec<CheckSpec>,
    /// The expected output of kernels, if it is checked.
    pub printed: Option<PrintedSpec>,
    pub work: WorkSpec,
    pub measure: MeasureSpec,
    pub variants: Vec<VariantSpec>,
    /// What its author claims of the results: records keep the texts, and `analyse` judges them.
    pub claims: Vec<Claim>,
}

/// The cell of a group that the others are compared with.
#[derive(Debug, Clone, PartialEq)]
pub struct Baseline {
    /// A variant's name, after expansion of its axes.
    pub variant: String,
    /// Values of the compared axes, if there are any.
    pub at: BTreeMap<String, Value>,
    pub span: Span,
}

/// A named list of values.
#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    pub name: String,
    pub values: Vec<Value>,
    pub span: Span,
}

/// Axes (by name) and bindings that replace the manifest's on one backend.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct AxisOverride {
    pub axes: Vec<Axis>,
    pub lets: Vec<LetBinding>,
}

/// A rule that excludes cells, and why.
#[derive(Debug, Clone, PartialEq)]
pub struct ExcludeRule {
    pub when: Expression,
    pub why: String,
}

/// One `[let]` line. Their order does not matter; cycles were refused.
#[derive(Debug, Clone, PartialEq)]
pub struct LetBinding {
    pub name: Arc<str>,
    pub value: Expression,
}

/// One buffer of device memory.
#[derive(Debug, Clone, PartialEq)]
pub struct BufferSpec {
    pub name: String,
    /// Evaluates to an element type's name.
    pub element: Template,
    /// Elements.
    pub len: Expression,
    /// `None` for `out` and `scratch`.
    pub fill: Option<FillSpec>,
    pub access: Access,
    /// The C++ name of a static `__device__` array that is the buffer's memory, in place of an allocation.
    pub symbol: Option<Template>,
    pub allocate: Allocation,
}

/// The initial content of a buffer.
#[derive(Debug, Clone, PartialEq)]
pub enum FillSpec {
    Constant(Expression),
    /// `start + step × index`.
    Iota {
        start: Expression,
        step: Expression,
    },
    /// Uniform on `[low, high]`: inclusive for integers, half-open for floats.
    Uniform {
        low: Expression,
        high: Expression,
        seed: u64,
    },
    Normal {
        mean: Expression,
        deviation: Expression,
        seed: u64,
    },
    /// An `.npy` file, resolved against the manifest's folder.
    Npy(PathBuf),
}

/// A comparison of a result with its expected value.
#[derive(Debug, Clone, PartialEq)]
pub struct CheckSpec {
    pub actual: Reference,
    pub expect: Expectation,
    pub tolerance: ToleranceSpec,
    /// Whether the report shows the greatest error.
    pub error: bool,
}

/// The lines that kernels print, in any order. The texts may have placeholders.
#[derive(Debug, Clone, PartialEq)]
pub enum PrintedSpec {
    Lines(Vec<Template>),
    /// A text file of this folder.
    File(PathBuf, Template),
}

/// Where the expected value comes from.
#[derive(Debug, Clone, PartialEq)]
pub enum Expectation {
    /// Reference functions over buffers as they were before the launch.
    Reference(Reference),
    /// The same `actual`, as another variant computes it.
    Variant { name: String, span: Span },
    /// An `.npy` file, resolved against the manifest's folder.
    Npy(PathBuf),
}

/// If all fields are absent, the default of the element type applies; otherwise an absent one is 0. Integers are always
/// exact.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct ToleranceSpec {
    pub abs: Option<f64>,
    pub rel: Option<f64>,
    pub ulp: Option<u64>,
}

/// The least work that the job requires; rates are computed from it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct WorkSpec {
    pub bytes: Option<Expression>,
    pub flops: Option<Expression>,
}

/// How long and how precisely to measure, with defaults filled in.
#[derive(Debug, Clone, PartialEq)]
pub struct MeasureSpec {
    pub regimes: Vec<Regime>,
    /// Half-width of the median's interval to reach, as a fraction of the median.
    pub precision: f64,
    /// Time limit of each step of a case, in seconds.
    pub timeout: f64,
    pub warmup: u32,
    pub min_samples: u32,
    pub max_samples: u32,
    /// Device time that the samples of one case may take, in seconds.
    pub budget: f64,
    /// Whether energy is measured, in a pass of its own.
    pub energy: bool,
    /// Additional counters, by the profiler's names.
    pub metrics: Vec<String>,
}

/// One implementation under comparison, before its own axes are expanded.
#[derive(Debug, Clone, PartialEq)]
pub struct VariantSpec {
    /// Must contain every value of `axes`, so that names are distinct.
    pub name: Template,
    /// Axes of this variant alone; each combination of their values is a variant.
    pub axes: Vec<Axis>,
    /// If one does not hold, the case is excluded with the text of the first such condition.
    pub requires: Vec<Expression>,
    pub lets: Vec<LetBinding>,
    /// Buffers that only this variant has, or that it defines differently.
    pub buffers: Vec<BufferSpec>,
    pub work: Option<WorkSpec>,
    /// Replaces the shared checks as a whole.
    pub checks: Option<Vec<CheckSpec>>,
    /// Belongs to `checks` and replaces the shared one together with them.
    pub printed: Option<PrintedSpec>,
    /// How it is expected to fail; empty for one that should be right.
    pub fails: Vec<Failure>,
    pub body: BodySpec,
    pub span: Span,
}

/// The body of a variant.
#[derive(Debug, Clone, PartialEq)]
pub enum BodySpec {
    /// One kernel, or a sequence of them.
    Launches {
        /// How often the sequence runs; `nth` is the number of the round, from 0.
        rounds: Option<Expression>,
        launches: Vec<LaunchSpec>,
    },
    Builtin(BuiltinSpec),
    /// A reference function timed on the host.
    Cpu(Reference),
    /// A host function, which queues work on the device.
    Host(HostSpec),
}

/// One call of a host function: CUDA C++ that nvcc builds.
#[derive(Debug, Clone, PartialEq)]
pub struct HostSpec {
    /// A file under `kernels/`, resolved against the manifest.
    pub source: PathBuf,
    /// The C name.
    pub function: Template,
    pub args: Vec<ArgSpec>,
    /// Libraries to link, as the linker names them.
    pub libraries: Vec<Template>,
    pub compile: CompileSpec,
}

/// Operations of the driver.
#[derive(Debug, Clone, PartialEq)]
pub enum BuiltinSpec {
    /// Device-to-device copies, one `(from, to)` after the other.
    Memcpy(Vec<(String, String)>),
}

/// One kernel launch.
#[derive(Debug, Clone, PartialEq)]
pub struct LaunchSpec {
    /// Its name in the report; the kernel's name if absent.
    pub label: Option<String>,
    /// A file under `kernels/`, resolved against the manifest.
    pub source: PathBuf,
    /// A C++ name expression.
    pub kernel: Template,
    pub grid: GridSpec,
    pub block: BlockSpec,
    /// Dynamic shared memory, bytes.
    pub shared: Option<Expression>,
    pub args: Vec<ArgSpec>,
    pub cooperative: bool,
    /// How often it is launched; `nth` is the number of the repetition, from 0.
    pub repeat: Option<Expression>,
    /// The stream of the launch, from 0.
    pub stream: Option<Expression>,
    /// Most launches from its kernels that may be pending.
    pub pending_launches: Option<Expression>,
    pub compile: CompileSpec,
}

impl LaunchSpec {
    /// Allowed repetitions of a launch: a run queues a limited number.
    pub const REPEATS: RangeInclusive<u64> = 1..=1024;
    /// Allowed streams of a body: any GPU runs at most as many kernels at the same time.
    pub const STREAMS: RangeInclusive<u64> = 0..=127;
    /// Allowed pending launches from kernels: a device reserves memory for each.
    pub const PENDING_LAUNCHES: RangeInclusive<u64> = 1..=1 << 20;
}

impl CompileSpec {
    /// Registers per thread.
    pub const REGISTERS: RangeInclusive<u64> = 1..=255;
}

/// Blocks of a launch.
#[derive(Debug, Clone, PartialEq)]
pub enum GridSpec {
    /// One to three dimensions.
    Dims(Vec<Expression>),
    /// As many blocks as are resident on the whole device at once.
    Occupancy,
}

/// Threads per block.
#[derive(Debug, Clone, PartialEq)]
pub enum BlockSpec {
    /// One to three dimensions.
    Dims(Vec<Expression>),
    /// The block size with the most resident threads; expressions of `grid` may name it `occupancy_block`.
    Occupancy,
}

/// One argument of a kernel.
#[derive(Debug, Clone, PartialEq)]
pub enum ArgSpec {
    /// The address of a buffer.
    Buffer(String),
    /// `u32(n)`: a number of a type.
    Scalar { element: Template, value: Expression },
}

/// How a source is compiled.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CompileSpec {
    pub defines: Vec<(String, Template)>,
    pub options: Vec<Template>,
    pub include_paths: Vec<PathBuf>,
    /// `-G`.
    pub debug: bool,
    pub max_registers: Option<Expression>,
    /// `-rdc=true`, and linked with the device runtime.
    pub relocatable: bool,
}

impl Manifest {
    /// The shared axes as `backend` runs them.
    pub fn axes_on(&self, backend: BackendKind) -> Vec<Axis> {
        let replaced = self.on.get(&backend).map(|o| o.axes.as_slice()).unwrap_or_default();
        self.axes.iter().map(|axis| replaced.iter().find(|r| r.name == axis.name).unwrap_or(axis).clone()).collect()
    }
}

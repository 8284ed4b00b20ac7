//! The validated experiment: the content of a manifest with every text parsed. `manifest::load` makes it. Later stages
//! parse nothing again.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::Arc;

use crate::model::{
    BackendKind, Claim, ComparisonRules, CompileSettings, KernelCompiler, LaunchSettings, Persist, Regime, SourceText,
    Span, TextureKind, TextureSampler, Unsanitized, Value,
};
use crate::project::Project;

mod buffers;
mod checks;
mod function;
mod located;
mod on_backend;
mod packages;
mod search;
mod steps;

pub use buffers::{BufferSpec, FileSpec, FillSpec, StructureSpec, TensorSpec};
pub use checks::{CheckSpec, Expectation, PrintedSpec, ToleranceSpec};
pub use function::{FunctionParameter, FunctionSpec};
pub use located::{Expression, Located, Reference, Template, fault, place};
pub use on_backend::{ExpectedFailure, OnBackend};
pub use packages::{PackageSpec, Registry};
pub use search::SearchSpec;
pub use steps::{LoopSpec, StepSpec, Times};

/// An experiment that was validated.
#[derive(Debug, Clone, PartialEq)]
pub struct Manifest {
    /// The text that it was parsed from, for messages and the report.
    pub source: Arc<SourceText>,
    /// Where its files may be.
    pub project: Project,
    /// The SHA-256 of the text, hexadecimal.
    pub hash: String,
    /// The experiment's name, which is also that of its folder of reports.
    pub name: String,
    /// The heading of the report.
    pub title: String,
    /// The question at the beginning of the report; a paragraph of Markdown.
    pub question: Option<String>,
    /// The template of the report: a path relative to the manifest, with its place.
    pub template: Option<(PathBuf, Span)>,
    /// `None` if nothing is compared with one cell.
    pub baseline: Option<Baseline>,
    /// Axes that are compared besides the variant.
    pub compare: Vec<String>,
    /// Whether each variant is a step after the one before it.
    pub steps: bool,
    /// The published packages that its sources may be of.
    pub packages: Vec<PackageSpec>,
    /// The shared axes of the matrix, in the manifest's order.
    pub axes: Vec<Axis>,
    /// Axes that advance together; each list has at least two names and equal lengths.
    pub zip: Vec<Vec<String>>,
    /// Rules that remove cells of the product.
    pub exclude: Vec<ExcludeRule>,
    /// Points added to the product; each gives every shared axis a value.
    pub include: Vec<BTreeMap<String, Value>>,
    /// What the manifest replaces on one backend.
    pub on: BTreeMap<BackendKind, AxisOverride>,
    /// Named values that all variants share.
    pub lets: Vec<LetBinding>,
    /// The device memory that all variants share.
    pub buffers: Vec<BufferSpec>,
    /// What a result must equal; empty if nothing is compared.
    pub checks: Vec<CheckSpec>,
    /// The expected output of kernels, if it is checked.
    pub printed: Option<PrintedSpec>,
    /// The least work of a case.
    pub work: WorkSpec,
    /// How cases are measured.
    pub measure: MeasureSpec,
    /// How its space is searched.
    pub search: SearchSpec,
    /// The variants in the manifest's order.
    pub variants: Vec<VariantSpec>,
    /// What its author claims of the results: records keep the texts, and `analyse` judges them.
    pub claims: Vec<Claim>,
    /// What it says about comparisons of its results.
    pub comparison: ComparisonRules,
}

/// The cell of a group that the others are compared with.
#[derive(Debug, Clone, PartialEq)]
pub struct Baseline {
    /// The variant's name, after expansion of its axes.
    pub variant: String,
    /// Values of the compared axes, if there are any.
    pub at: BTreeMap<String, Value>,
    /// The place of `baseline` in the manifest.
    pub span: Span,
}

/// A named list of values.
#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    /// The name that expressions use.
    pub name: String,
    /// The values in the manifest's order, without duplicates.
    pub values: Vec<Value>,
    /// The place of the axis in the manifest.
    pub span: Span,
}

/// Axes (by name) and bindings that replace the manifest's on one backend.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct AxisOverride {
    /// Axes with other values.
    pub axes: Vec<Axis>,
    /// Bindings with other values.
    pub lets: Vec<LetBinding>,
}

/// A rule that excludes cells, and why.
#[derive(Debug, Clone, PartialEq)]
pub struct ExcludeRule {
    /// The condition: a cell for which it holds is excluded.
    pub when: Expression,
    /// The reason, which the report shows.
    pub why: String,
}

/// A line of `[let]`. Their order does not matter; cycles were refused.
#[derive(Debug, Clone, PartialEq)]
pub struct LetBinding {
    /// The name that expressions use.
    pub name: Arc<str>,
    /// The expression of the value, which may depend on axes and other bindings.
    pub value: Expression,
}

/// The least work that the job requires; rates are computed from it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct WorkSpec {
    /// Bytes that must be read or written, per run of the body.
    pub bytes: Option<Expression>,
    /// The number of floating-point operations per run of the body.
    pub flops: Option<Expression>,
}

/// How long and how precisely to measure, with defaults filled in.
#[derive(Debug, Clone, PartialEq)]
pub struct MeasureSpec {
    /// The states of the caches, each of which has its own samples.
    pub regimes: Vec<Regime>,
    /// Half-width of the median's interval to reach, as a fraction of the median.
    pub precision: f64,
    /// The time limit of each step of a case, in seconds.
    pub timeout: f64,
    /// Runs before the first sample of each regime.
    pub warmup: u32,
    /// The fewest samples per regime.
    pub min_samples: u32,
    /// The most samples per regime.
    pub max_samples: u32,
    /// Device time that the samples of one case may take, in seconds.
    pub budget: f64,
    /// Whether energy is measured, in a pass of its own.
    pub energy: bool,
    /// The number of processes that measure each group, one after the other; `None` for as many as the precision asks
    /// for.
    pub processes: Option<u32>,
    /// The additional counters, by the profiler's names.
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
    /// Named values of this variant alone, or that it defines differently.
    pub lets: Vec<LetBinding>,
    /// Buffers that only this variant has, or that it defines differently.
    pub buffers: Vec<BufferSpec>,
    /// Replaces the shared work as a whole.
    pub work: Option<WorkSpec>,
    /// Replaces the shared checks as a whole.
    pub checks: Option<Vec<CheckSpec>>,
    /// Belongs to `checks` and replaces the shared one together with them.
    pub printed: Option<PrintedSpec>,
    /// How it is expected to fail; empty for one that should be right.
    pub fails: Vec<ExpectedFailure>,
    /// What differs on one backend.
    pub on: BTreeMap<BackendKind, OnBackend>,
    /// What the simulator's sanitizer does not look for in it; `None` if it is on.
    pub unsanitized: Option<Unsanitized>,
    /// Whether the simulator runs a sample of the blocks of its launch.
    pub sampled: bool,
    /// What is run and timed.
    pub body: BodySpec,
    /// The place of the variant in the manifest.
    pub span: Span,
}

/// The body of a variant.
#[derive(Debug, Clone, PartialEq)]
pub enum BodySpec {
    /// The body is one kernel, or a sequence of them.
    Launches {
        /// How often the sequence runs; `nth` is the number of the round, from 0.
        rounds: Option<Expression>,
        /// The launches that form one round, in order.
        launches: Vec<LaunchSpec>,
        /// The order of the launches where it has loops, or operations between them.
        steps: Option<Vec<StepSpec>>,
    },
    /// An operation of the driver, without a kernel.
    Builtin(BuiltinSpec),
    /// A reference function timed on the host.
    Cpu(Reference),
    /// A host function, which queues work on the device.
    Host(Box<HostSpec>),
}

/// A call of a host function, which is CUDA C++ that nvcc builds.
#[derive(Debug, Clone, PartialEq)]
pub struct HostSpec {
    /// A file under `kernels/`, resolved against the manifest.
    pub source: PathBuf,
    /// The name that the function has in C.
    pub function: Template,
    /// The arguments in the order of the function's parameters.
    pub args: Vec<ArgSpec>,
    /// Libraries to link, as the linker names them.
    pub libraries: Vec<Template>,
    /// The options that nvcc gets.
    pub compile: CompileSpec,
}

/// Operations of the driver.
#[derive(Debug, Clone, PartialEq)]
pub enum BuiltinSpec {
    /// The device copies one buffer after the other, each `(from, to)`.
    Memcpy(Vec<(String, String)>),
}

/// A launch of a kernel.
#[derive(Debug, Clone, PartialEq)]
pub struct LaunchSpec {
    /// The launch's name in the report; the kernel's name if absent.
    pub label: Option<String>,
    /// A file under `kernels/`, resolved against the manifest.
    pub source: PathBuf,
    /// A C++ name expression.
    pub kernel: Template,
    /// The number of blocks that the grid has.
    pub grid: GridSpec,
    /// The number of threads that each block has.
    pub block: BlockSpec,
    /// The numbers and switches that the launch sets.
    pub settings: LaunchSettings<Expression>,
    /// The arguments in the order of the kernel's parameters.
    pub args: Vec<ArgSpec>,
    /// How often it is launched; `nth` is the number of the repetition, from 0.
    pub repeat: Option<Expression>,
    /// The blocks per cluster, in one to three dimensions.
    pub cluster: Option<Vec<Expression>>,
    /// What stays in the L2.
    pub persist: Option<Persist<String, Expression>>,
    /// The bindings that are evaluated for every launch, in order, over the bindings of the variant.
    pub lets: Vec<LetBinding>,
    /// The options that NVRTC gets.
    pub compile: CompileSpec,
}

impl LaunchSpec {
    /// Allowed repetitions of a launch: a run queues a limited number.
    pub const REPEATS: RangeInclusive<u64> = 1..=1024;
}

/// The number of blocks that a launch has.
#[derive(Debug, Clone, PartialEq)]
pub enum GridSpec {
    /// The manifest gives one to three dimensions.
    Dims(Vec<Expression>),
    /// The grid has as many blocks as are resident on the whole device at once.
    Occupancy,
}

/// The number of threads that each block has.
#[derive(Debug, Clone, PartialEq)]
pub enum BlockSpec {
    /// The manifest gives one to three dimensions.
    Dims(Vec<Expression>),
    /// The block size with the most resident threads; expressions of `grid` may name it `occupancy_block`.
    Occupancy,
}

/// An argument of a kernel.
#[derive(Debug, Clone, PartialEq)]
pub enum ArgSpec {
    /// The address of a buffer.
    Buffer(String),
    /// The argument is an address within a buffer, such as `input + 4`.
    Offset {
        /// The name of the buffer.
        buffer: String,
        /// The number of elements before the address.
        offset: Expression,
    },
    /// A struct by value, or one in a struct, with the alignment that C gives its fields.
    Struct(Vec<ArgSpec>),
    /// A struct by value, or one in it, by the names of its fields; `[0]` is the name of an element of an array.
    Named(Vec<(String, ArgSpec)>),
    /// An array in a struct, all of whose elements are alike.
    Array {
        /// The element.
        of: Box<ArgSpec>,
        /// The number of elements.
        count: Expression,
        /// The bytes of which its place and its size are multiples; 1 for those of its elements.
        align: u64,
    },
    /// A texture or surface object of a buffer.
    Texture(Box<TextureSpec>),
    /// The argument is a number of a type, such as `u32(n)`.
    Scalar {
        /// The type of the parameter.
        element: Template,
        /// The number, converted to that type.
        value: Expression,
    },
}

impl ArgSpec {
    /// Returns the argument, or for a struct its fields and theirs.
    pub fn parts(&self) -> Vec<&Self> {
        match self {
            Self::Struct(fields) => fields.iter().flat_map(Self::parts).collect(),
            Self::Named(fields) => fields.iter().flat_map(|(_, field)| field.parts()).collect(),
            Self::Array { of, .. } => [self].into_iter().chain(of.parts()).collect(),
            Self::Buffer(_) | Self::Offset { .. } | Self::Texture(_) | Self::Scalar { .. } => vec![self],
        }
    }

    /// Returns the buffers whose addresses it is or holds.
    pub fn buffers(&self) -> impl Iterator<Item = &String> {
        self.parts().into_iter().filter_map(|part| match part {
            Self::Buffer(name) | Self::Offset { buffer: name, .. } => Some(name),
            Self::Texture(texture) => Some(&texture.buffer),
            Self::Scalar { .. } | Self::Struct(_) | Self::Named(_) | Self::Array { .. } => None,
        })
    }
}

/// A buffer as a texture or a surface.
#[derive(Debug, Clone, PartialEq)]
pub struct TextureSpec {
    /// The name of the buffer, whose type gives the channels of a texel.
    pub buffer: String,
    /// How its elements are arranged.
    pub kind: TextureKind,
    /// The extents, as many as the kind has.
    pub size: Vec<Expression>,
    /// How it is read; `None` for a surface.
    pub sampler: Option<TextureSampler>,
}

/// How a source is compiled.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CompileSpec {
    /// Macros: `NAME` → `VALUE`.
    pub defines: Vec<(String, Template)>,
    /// The other options of the compiler, in order.
    pub options: Vec<Template>,
    /// Folders to search for included files, resolved as `source` is.
    pub include_paths: Vec<PathBuf>,
    /// The numbers and switches that the compiler gets.
    pub settings: CompileSettings<Expression>,
    /// What compiles it.
    pub compiler: KernelCompiler,
    /// Further sources, compiled alike and linked with it.
    pub linked: Vec<PathBuf>,
}

impl Manifest {
    /// Returns the manifest with the values that a search has in place of those of its axes.
    #[must_use]
    pub fn with_searched_axes(mut self) -> Self {
        for axis in &mut self.axes {
            if let Some(searched) = self.search.axes.iter().find(|searched| searched.name == axis.name) {
                axis.clone_from(searched);
            }
        }
        self
    }

    /// Returns the shared axes as `backend` runs them.
    pub fn axes_on(&self, backend: BackendKind) -> Vec<Axis> {
        let replaced = self.on.get(&backend).map(|o| o.axes.as_slice()).unwrap_or_default();
        self.axes.iter().map(|axis| replaced.iter().find(|r| r.name == axis.name).unwrap_or(axis).clone()).collect()
    }
}

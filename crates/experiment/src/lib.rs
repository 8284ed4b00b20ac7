//! The validated experiment: the content of a manifest with every text parsed.
//!
//! `manifest::load` builds it, and no later stage parses anything again. It is separate from `manifest` so that later
//! stages do not depend on the reading of TOML.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::Arc;

use runner_files::project::Project;
use runner_types::{
    BackendKind, Claim, ComparisonRules, CompileSettings, KernelCompiler, LaunchSettings, Persist, Regime, SourceText,
    Span, TextureKind, TextureSampler, Unsanitized, Value,
};

mod buffers;
mod changes;
mod checks;
mod function;
mod located;
mod on_backend;
mod packages;
mod search;
mod steps;

pub use buffers::{BufferSpec, FileSpec, FillSpec, StructureSpec, TensorSpec};
pub use changes::changes;
pub use checks::{CheckSpec, Expectation, PrintedSpec, ToleranceSpec};
pub use function::{FunctionParameter, FunctionSpec};
pub use located::{Expression, Located, Reference, Template, fault, place};
pub use on_backend::{ExpectedFailure, OnBackend};
pub use packages::{PackageSpec, Registry};
pub use search::SearchSpec;
pub use steps::{LoopSpec, StepSpec, Times};

#[derive(Debug, Clone, PartialEq)]
pub struct Manifest {
    /// Source text, for messages and the report.
    pub source: Arc<SourceText>,
    /// Folders that its files may be in.
    pub project: Project,
    /// SHA-256 of the text, hexadecimal.
    pub hash: String,
    /// Name of the experiment and of its reports folder.
    pub name: String,
    pub title: String,
    /// Question at the beginning of the report; a paragraph of Markdown.
    pub question: Option<String>,
    /// Report template: a path relative to the manifest, with its place.
    pub template: Option<(PathBuf, Span)>,
    /// Cell that others are compared with, if any.
    pub baseline: Option<Baseline>,
    /// Axes that are compared besides the variant.
    pub compare: Vec<String>,
    /// Whether each variant is a step after the one before it.
    pub steps: bool,
    /// Published packages that sources may be in.
    pub packages: Vec<PackageSpec>,
    /// Shared axes of the matrix, in the manifest's order.
    pub axes: Vec<Axis>,
    /// Groups of axes that advance together. Each has at least two axes, of equal lengths.
    pub zip: Vec<Vec<String>>,
    /// Rules that remove cells of the product.
    pub exclude: Vec<ExcludeRule>,
    /// Points added to the product. Each gives every shared axis a value.
    pub include: Vec<BTreeMap<String, Value>>,
    /// Overrides for one backend.
    pub on: BTreeMap<BackendKind, AxisOverride>,
    /// Bindings that all variants share.
    pub lets: Vec<LetBinding>,
    /// Buffers that all variants share.
    pub buffers: Vec<BufferSpec>,
    /// Checks of results; empty if nothing is compared.
    pub checks: Vec<CheckSpec>,
    /// Expected output of kernels, if it is checked.
    pub printed: Option<PrintedSpec>,
    pub work: WorkSpec,
    pub measure: MeasureSpec,
    pub search: SearchSpec,
    pub variants: Vec<VariantSpec>,
    /// The author's claims about the results. Records keep the texts, and `analyse` judges them.
    pub claims: Vec<Claim>,
    pub comparison: ComparisonRules,
}

/// The cell of a group that the others are compared with.
#[derive(Debug, Clone, PartialEq)]
pub struct Baseline {
    /// Variant name after expansion of its axes.
    pub variant: String,
    pub at: BTreeMap<String, Value>,
    /// Place of `baseline` in the manifest.
    pub span: Span,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    pub name: String,
    /// Values in the manifest's order, without duplicates.
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
    /// Condition: cells for which it holds are excluded.
    pub when: Expression,
    pub why: String,
}

/// A line of `[let]`. The order of bindings does not matter; cycles are refused.
#[derive(Debug, Clone, PartialEq)]
pub struct LetBinding {
    pub name: Arc<str>,
    pub value: Expression,
}

/// Least work that the job requires, from which rates are computed.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct WorkSpec {
    /// Bytes that must be read or written per run of the body.
    pub bytes: Option<Expression>,
    /// Floating-point operations per run of the body.
    pub flops: Option<Expression>,
}

/// How long and how precisely to measure, with defaults filled in.
#[derive(Debug, Clone, PartialEq)]
pub struct MeasureSpec {
    /// Cache states, each with its own samples.
    pub regimes: Vec<Regime>,
    /// Requested half-width of the median's interval, as a fraction of the median.
    pub precision: f64,
    /// Time limit of each step of a case, in seconds.
    pub timeout: f64,
    pub warmup: u32,
    pub min_samples: u32,
    pub max_samples: u32,
    /// Device time for the samples of one case, in seconds.
    pub budget: f64,
    /// Whether to measure energy, in a pass of its own.
    pub energy: bool,
    /// Number of processes that measure each group, one after the other; `None` for as many as the precision requires.
    pub processes: Option<u32>,
    /// Additional counters, by the profiler's names.
    pub metrics: Vec<String>,
}

/// One implementation under comparison, before its own axes are expanded.
#[derive(Debug, Clone, PartialEq)]
pub struct VariantSpec {
    /// Contains every value of `axes`, so that names are distinct.
    pub name: Template,
    /// Axes of this variant only. Each combination of their values is a variant.
    pub axes: Vec<Axis>,
    /// Conditions that a case must meet. The first that fails excludes the case, with its text as the reason.
    pub requires: Vec<Expression>,
    /// Bindings that this variant adds or overrides.
    pub lets: Vec<LetBinding>,
    /// Buffers that this variant adds or overrides.
    pub buffers: Vec<BufferSpec>,
    /// Replaces the shared work as a whole.
    pub work: Option<WorkSpec>,
    /// Replaces the shared checks as a whole.
    pub checks: Option<Vec<CheckSpec>>,
    /// Replaces the shared printed lines; set together with `checks`.
    pub printed: Option<PrintedSpec>,
    /// Expected failures; empty for a variant that should be right.
    pub fails: Vec<ExpectedFailure>,
    pub on: BTreeMap<BackendKind, OnBackend>,
    /// What the simulator's sanitizer ignores; `None` if it is fully on.
    pub unsanitized: Option<Unsanitized>,
    /// Whether the simulator runs only a sample of the blocks.
    pub sampled: bool,
    pub body: BodySpec,
    pub span: Span,
}

#[derive(Debug, Clone, PartialEq)]
pub enum BodySpec {
    /// One kernel, or a sequence of them.
    Launches {
        /// How often the sequence runs. `nth` is the index of the round, from 0.
        rounds: Option<Expression>,
        /// Launches of one round, in order.
        launches: Vec<LaunchSpec>,
        /// Order of the launches, if there are loops or operations between them.
        steps: Option<Vec<StepSpec>>,
    },
    /// An operation of the driver, without a kernel.
    Builtin(BuiltinSpec),
    /// A reference function timed on the host.
    Cpu(Reference),
    /// A host function that queues work on the device.
    Host(Box<HostSpec>),
}

#[derive(Debug, Clone, PartialEq)]
pub struct HostSpec {
    /// File below `kernels/`, resolved against the manifest.
    pub source: PathBuf,
    /// C name of the function.
    pub function: Template,
    pub args: Vec<ArgSpec>,
    /// Libraries to link, by the linker's names.
    pub libraries: Vec<Template>,
    pub compile: CompileSpec,
}

#[derive(Debug, Clone, PartialEq)]
pub enum BuiltinSpec {
    /// Device copies in order, each `(from, to)`.
    Memcpy(Vec<(String, String)>),
}

#[derive(Debug, Clone, PartialEq)]
pub struct LaunchSpec {
    /// Name in the report; by default the kernel's name.
    pub label: Option<String>,
    /// File below `kernels/`, resolved against the manifest.
    pub source: PathBuf,
    /// C++ name expression.
    pub kernel: Template,
    pub grid: GridSpec,
    pub block: BlockSpec,
    pub settings: LaunchSettings<Expression>,
    pub args: Vec<ArgSpec>,
    /// Number of repetitions. `nth` is the index of the repetition, from 0.
    pub repeat: Option<Expression>,
    /// Blocks per cluster, in one to three dimensions.
    pub cluster: Option<Vec<Expression>>,
    pub persist: Option<Persist<String, Expression>>,
    /// Bindings evaluated for every launch, in order. They override the variant's.
    pub lets: Vec<LetBinding>,
    pub compile: CompileSpec,
}

impl LaunchSpec {
    /// Allowed repetitions of a launch. A run queues only a limited number.
    pub const REPEATS: RangeInclusive<u64> = 1..=1024;
}

/// Blocks per grid.
#[derive(Debug, Clone, PartialEq)]
pub enum GridSpec {
    Dims(Vec<Expression>),
    /// As many blocks as are resident on the whole device at once.
    Occupancy,
}

/// Threads per block.
#[derive(Debug, Clone, PartialEq)]
pub enum BlockSpec {
    Dims(Vec<Expression>),
    /// The block size with the most resident threads, which expressions of `grid` may name `occupancy_block`.
    Occupancy,
}

#[derive(Debug, Clone, PartialEq)]
pub enum ArgSpec {
    Buffer(String),
    /// Address within a buffer, such as `input + 4`.
    Offset {
        buffer: String,
        /// Offset in elements.
        offset: Expression,
    },
    /// A struct by value or nested in one, with C's field alignment.
    Struct(Vec<ArgSpec>),
    /// A struct by value or nested in one, by field names. `[0]` names an array's element.
    Named(Vec<(String, ArgSpec)>),
    /// An array in a struct, with equal elements.
    Array {
        of: Box<ArgSpec>,
        count: Expression,
        /// Alignment of the array in bytes; 1 for its elements' alignment.
        align: u64,
    },
    Texture(Box<TextureSpec>),
    /// A number of a type, such as `u32(n)`.
    Scalar {
        /// Type of the parameter.
        element: Template,
        /// Number to convert to that type.
        value: Expression,
    },
}

impl ArgSpec {
    /// The argument itself, or for a struct its fields, recursively.
    pub fn parts(&self) -> Vec<&Self> {
        match self {
            Self::Struct(fields) => fields.iter().flat_map(Self::parts).collect(),
            Self::Named(fields) => fields.iter().flat_map(|(_, field)| field.parts()).collect(),
            Self::Array { of, .. } => [self].into_iter().chain(of.parts()).collect(),
            Self::Buffer(_) | Self::Offset { .. } | Self::Texture(_) | Self::Scalar { .. } => vec![self],
        }
    }

    /// Buffers whose addresses the argument is or contains.
    pub fn buffers(&self) -> impl Iterator<Item = &String> {
        self.parts().into_iter().filter_map(|part| match part {
            Self::Buffer(name) | Self::Offset { buffer: name, .. } => Some(name),
            Self::Texture(texture) => Some(&texture.buffer),
            Self::Scalar { .. } | Self::Struct(_) | Self::Named(_) | Self::Array { .. } => None,
        })
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct TextureSpec {
    /// Buffer whose type gives the channels of a texel.
    pub buffer: String,
    pub kind: TextureKind,
    /// Extents, as many as the kind has.
    pub size: Vec<Expression>,
    /// How to read it; `None` for a surface.
    pub sampler: Option<TextureSampler>,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct CompileSpec {
    /// Macros: `NAME` → `VALUE`.
    pub defines: Vec<(String, Template)>,
    /// Other compiler options, in order.
    pub options: Vec<Template>,
    /// Folders to search for included files, resolved like `source`.
    pub include_paths: Vec<PathBuf>,
    pub settings: CompileSettings<Expression>,
    pub compiler: KernelCompiler,
    /// Further sources, compiled alike and linked with this one.
    pub linked: Vec<PathBuf>,
}

impl Manifest {
    /// The manifest with the values of searched axes instead of its own.
    #[must_use]
    pub fn with_searched_axes(mut self) -> Self {
        for axis in &mut self.axes {
            if let Some(searched) = self.search.axes.iter().find(|searched| searched.name == axis.name) {
                axis.clone_from(searched);
            }
        }
        self
    }

    /// Shared axes as `backend` runs them.
    pub fn axes_on(&self, backend: BackendKind) -> Vec<Axis> {
        let replaced = self.on.get(&backend).map(|o| o.axes.as_slice()).unwrap_or_default();
        self.axes.iter().map(|axis| replaced.iter().find(|r| r.name == axis.name).unwrap_or(axis).clone()).collect()
    }
}

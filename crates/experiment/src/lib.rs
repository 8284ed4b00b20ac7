//! The validated experiment: the content of a manifest with all expressions parsed.
//!
//! `manifest::load` builds it, and no later stage parses anything again. Separate from `manifest`, so that later stages
//! do not depend on TOML parsing.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::Arc;

use runner_files::project::Project;
use runner_types::{
    BackendKind, Claim, ComparisonRules, CompileSettings, Failure, KernelCompiler, LaunchSettings, Persist, Regime,
    SourceText, Span, TextureKind, TextureSampler, Unsanitized, Value,
};

mod buffers;
mod changes;
mod checks;
mod located;
mod packages;
mod steps;

pub use buffers::{BufferSpec, FileSpec, FillSpec, StructureSpec, TensorSpec};
pub use changes::{changes, rename_in_claims};
pub use checks::{CheckSpec, Expectation, FunctionParameter, FunctionSpec, PrintedSpec, ToleranceSpec};
pub use located::{Expression, Located, Reference, Template, fault, place};
pub use packages::{PackageSpec, Registry};
pub use steps::{LoopSpec, StepSpec, Times};

#[derive(Debug, Clone, PartialEq)]
pub struct Manifest {
    /// Source text, for messages and the report.
    pub source: Arc<SourceText>,
    /// Folders that may contain its files.
    pub project: Project,
    /// Files and folders that validation looked up, including those of variants without a case. They must exist wherever
    /// the manifest is loaded.
    pub files: BTreeSet<PathBuf>,
    /// SHA-256 of the text in hexadecimal.
    pub hash: String,
    /// Name of the experiment and of its reports folder.
    pub name: String,
    pub title: String,
    /// Question shown at the start of the report: a paragraph of Markdown.
    pub question: Option<String>,
    /// Report template: a path relative to the manifest, with its location in the text.
    pub template: Option<(PathBuf, Span)>,
    pub baseline: Option<Baseline>,
    /// Axes that are compared in addition to the variant.
    pub compare: Vec<String>,
    /// Whether each variant is also compared with the previous one.
    pub steps: bool,
    /// Published packages that may contain sources.
    pub packages: Vec<PackageSpec>,
    /// Shared axes of the matrix, in the manifest's order.
    pub axes: Vec<Axis>,
    /// Groups of axes that advance in lockstep. Each has at least two axes of equal length.
    pub zip: Vec<Vec<String>>,
    /// Rules that remove cells of the product.
    pub exclude: Vec<ExcludeRule>,
    /// Points added to the product. Each has a value for every shared axis.
    pub include: Vec<BTreeMap<String, Value>>,
    /// Overrides per backend.
    pub on: BTreeMap<BackendKind, AxisOverride>,
    /// Bindings that all variants share.
    pub lets: Vec<LetBinding>,
    /// Buffers that all variants share.
    pub buffers: Vec<BufferSpec>,
    /// Checks of results; empty if nothing is compared.
    pub checks: Vec<CheckSpec>,
    /// Expected output of kernels, if checked.
    pub printed: Option<PrintedSpec>,
    pub work: WorkSpec,
    pub measure: MeasureSpec,
    pub search: SearchSpec,
    pub variants: Vec<VariantSpec>,
    /// The author's claims about the results. Records keep their text, and `analyse` judges them.
    pub claims: Vec<Claim>,
    pub comparison: ComparisonRules,
}

/// The cell that the others in its group are compared with.
#[derive(Debug, Clone, PartialEq)]
pub struct Baseline {
    /// Name of the variant after expanding its axes.
    pub variant: String,
    pub at: BTreeMap<String, Value>,
    /// Location of `baseline` in the manifest.
    pub span: Span,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    pub name: String,
    /// Values in the manifest's order, without duplicates.
    pub values: Vec<Value>,
    pub span: Span,
}

/// Axes (by name) and bindings that override the manifest's on one backend.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct AxisOverride {
    pub axes: Vec<Axis>,
    pub lets: Vec<LetBinding>,
}

/// A rule that excludes cells, with its reason.
#[derive(Debug, Clone, PartialEq)]
pub struct ExcludeRule {
    /// Cells for which this is true are excluded.
    pub when: Expression,
    pub why: String,
}

/// An entry of `[let]`. The order of bindings does not matter; cycles are rejected.
#[derive(Debug, Clone, PartialEq)]
pub struct LetBinding {
    pub name: Arc<str>,
    pub value: Expression,
}

/// Minimum work that the job requires, from which rates are computed.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct WorkSpec {
    /// Bytes that each run of the body must read or write.
    pub bytes: Option<Expression>,
    /// Floating-point operations per run of the body.
    pub flops: Option<Expression>,
}

/// How long and how precisely to measure, including defaults.
#[derive(Debug, Clone, PartialEq)]
pub struct MeasureSpec {
    /// Cache states, each sampled separately.
    pub regimes: Vec<Regime>,
    /// Requested half-width of the median's confidence interval, as a fraction of the median.
    pub precision: f64,
    /// Time limit of each step of a case, in seconds.
    pub timeout: f64,
    pub warmup: u32,
    pub min_samples: u32,
    pub max_samples: u32,
    /// Device time for the samples of one case, in seconds.
    pub budget: f64,
    /// Whether to measure energy, in a separate pass.
    pub energy: bool,
    /// Number of processes that measure each group one after another; `None` for as many as the precision requires.
    pub processes: Option<u32>,
    /// Additional counters, by their names in the profiler.
    pub metrics: Vec<String>,
}

/// One of the implementations under comparison, before its own axes are expanded.
#[derive(Debug, Clone, PartialEq)]
pub struct VariantSpec {
    /// Contains the values of all `axes`, so that expanded names are distinct.
    pub name: Template,
    /// Axes that only this variant has. Each combination of their values becomes a variant.
    pub axes: Vec<Axis>,
    /// Conditions that a case must meet. The first that is false excludes the case; its text is the reason.
    pub requires: Vec<Expression>,
    /// Bindings that this variant adds or overrides.
    pub lets: Vec<LetBinding>,
    /// Buffers that this variant adds or overrides.
    pub buffers: Vec<BufferSpec>,
    /// Replaces all of the shared work.
    pub work: Option<WorkSpec>,
    /// Replaces all shared checks.
    pub checks: Option<Vec<CheckSpec>>,
    /// Replaces all shared printed lines; set together with `checks`.
    pub printed: Option<PrintedSpec>,
    /// Expected failures; empty if the variant should succeed.
    pub fails: Vec<ExpectedFailure>,
    pub on: BTreeMap<BackendKind, OnBackend>,
    /// Sanitizer findings to ignore in the simulator; `None` to report all.
    pub unsanitized: Option<Unsanitized>,
    /// Whether the simulator runs only a sample of the blocks.
    pub sampled: bool,
    pub body: BodySpec,
    pub span: Span,
}

impl VariantSpec {
    /// Expected failures on a backend; empty if the variant should succeed.
    pub fn fails_on(&self, backend: BackendKind) -> &[ExpectedFailure] {
        self.on.get(&backend).and_then(|own| own.fails.as_deref()).unwrap_or(&self.fails)
    }
}

/// Overrides of a variant on one backend.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct OnBackend {
    /// Conditions in addition to the variant's.
    pub requires: Vec<Expression>,
    /// Replaces the expected failures; empty if the variant should succeed.
    pub fails: Option<Vec<ExpectedFailure>>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct ExpectedFailure {
    pub failure: Failure,
    /// Condition on the axes that selects the cases; `None` for all.
    pub condition: Option<Expression>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum BodySpec {
    /// One kernel or a sequence of kernels.
    Launches {
        /// Number of times that the sequence runs. `nth` is the 0-based index of the round.
        rounds: Option<Expression>,
        /// Launches of one round, in order.
        launches: Vec<LaunchSpec>,
        /// Order of the launches, if there are loops or operations between them.
        steps: Option<Vec<StepSpec>>,
    },
    /// A driver operation instead of a kernel.
    Builtin(BuiltinSpec),
    /// A reference function timed on the host.
    Cpu(Reference),
    /// A host function that queues work on the device.
    Host(Box<HostSpec>),
}

#[derive(Debug, Clone, PartialEq)]
pub struct HostSpec {
    /// File in `kernels/`, resolved against the manifest.
    pub source: PathBuf,
    /// C name of the function.
    pub function: Template,
    pub args: Vec<ArgSpec>,
    /// Libraries to link, as the linker names them.
    pub libraries: Vec<Template>,
    pub compile: CompileSpec,
}

#[derive(Debug, Clone, PartialEq)]
pub enum BuiltinSpec {
    /// Copies between device buffers in order, each as `(from, to)`.
    Memcpy(Vec<(String, String)>),
}

#[derive(Debug, Clone, PartialEq)]
pub struct LaunchSpec {
    /// Name in the report; the kernel's name by default.
    pub label: Option<String>,
    /// File in `kernels/`, resolved against the manifest.
    pub source: PathBuf,
    /// C++ name expression of the kernel.
    pub kernel: Template,
    pub grid: GridSpec,
    pub block: BlockSpec,
    pub settings: LaunchSettings<Expression>,
    pub args: Vec<ArgSpec>,
    /// Number of repetitions. `nth` is the 0-based index of the repetition.
    pub repeat: Option<Expression>,
    /// Blocks per cluster, in one to three dimensions.
    pub cluster: Option<Vec<Expression>>,
    pub persist: Option<Persist<String, Expression>>,
    /// Bindings evaluated for every launch, in order. They override the variant's.
    pub lets: Vec<LetBinding>,
    pub compile: CompileSpec,
}

impl LaunchSpec {
    /// Allowed number of repetitions. A run can queue only a limited number of launches.
    pub const REPEATS: RangeInclusive<u64> = 1..=1024;
}

/// Blocks per grid.
#[derive(Debug, Clone, PartialEq)]
pub enum GridSpec {
    Dims(Vec<Expression>),
    /// As many blocks as can be resident on the whole device at once.
    Occupancy,
}

/// Threads per block.
#[derive(Debug, Clone, PartialEq)]
pub enum BlockSpec {
    Dims(Vec<Expression>),
    /// The block size with the most resident threads, available as `occupancy_block` in expressions of `grid`.
    Occupancy,
}

#[derive(Debug, Clone, PartialEq)]
pub enum ArgSpec {
    Buffer(String),
    /// An address within a buffer, such as `input + 4`.
    Offset {
        buffer: String,
        /// Offset in elements.
        offset: Expression,
    },
    /// A struct, passed by value or nested in one, in C layout.
    Struct(Vec<ArgSpec>),
    /// A struct, passed by value or nested in one, with named fields. `[0]` names an element of an array.
    Named(Vec<(String, ArgSpec)>),
    /// An array in a struct, whose elements have the same type.
    Array {
        of: Box<ArgSpec>,
        count: Expression,
        /// Alignment of the array in bytes; 1 to use the alignment of its elements.
        align: u64,
    },
    Texture(Box<TextureSpec>),
    /// A number of a given type, such as `u32(n)`.
    Scalar {
        element: Template,
        /// Number to convert to that type.
        value: Expression,
    },
}

impl ArgSpec {
    /// The argument itself or, for a struct, its fields, recursively.
    pub fn parts(&self) -> Vec<&Self> {
        match self {
            Self::Struct(fields) => fields.iter().flat_map(Self::parts).collect(),
            Self::Named(fields) => fields.iter().flat_map(|(_, field)| field.parts()).collect(),
            Self::Array { of, .. } => [self].into_iter().chain(of.parts()).collect(),
            Self::Buffer(_) | Self::Offset { .. } | Self::Texture(_) | Self::Scalar { .. } => vec![self],
        }
    }

    /// Buffers whose addresses the argument contains.
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
    /// Buffer whose element type determines the channels of a texel.
    pub buffer: String,
    pub kind: TextureKind,
    /// As many extents as the kind has.
    pub size: Vec<Expression>,
    /// `None` for a surface.
    pub sampler: Option<TextureSampler>,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct CompileSpec {
    /// Macros, as pairs of `NAME` and `VALUE`.
    pub defines: Vec<(String, Template)>,
    /// Other compiler options, in order.
    pub options: Vec<Template>,
    /// Folders to search for included files, resolved like `source`.
    pub include_paths: Vec<PathBuf>,
    pub settings: CompileSettings<Expression>,
    pub compiler: KernelCompiler,
    /// Additional sources, compiled with the same options and linked with this one.
    pub linked: Vec<PathBuf>,
}

impl Manifest {
    /// Replaces the values of axes with the values in `[search]`.
    #[must_use]
    pub fn with_searched_axes(mut self) -> Self {
        for axis in &mut self.axes {
            if let Some(searched) = self.search.axes.iter().find(|searched| searched.name == axis.name) {
                axis.clone_from(searched);
            }
        }
        self
    }

    /// Shared axes with the overrides of `backend`.
    pub fn axes_on(&self, backend: BackendKind) -> Vec<Axis> {
        let replaced = self.on.get(&backend).map(|o| o.axes.as_slice()).unwrap_or_default();
        self.axes.iter().map(|axis| replaced.iter().find(|r| r.name == axis.name).unwrap_or(axis).clone()).collect()
    }
}

/// Settings of `[search]`; omitted ones are chosen by the program.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SearchSpec {
    pub strategy: Option<String>,
    /// Number of configurations to evaluate, or a percentage of the search space, as written in the manifest.
    pub budget: Option<String>,
    pub seed: Option<u64>,
    /// What to minimise; if empty, the program chooses.
    pub objectives: Vec<String>,
    /// Number of best configurations to measure at the end.
    pub finalists: Option<u32>,
    /// Maximum number of samples of a configuration before the final measurement.
    pub samples: Option<u32>,
    /// Factor over the best time. Sampling of a configuration ends if all its samples exceed that.
    pub drop_above: Option<f64>,
    /// Axes to search instead of the manifest's.
    pub axes: Vec<Axis>,
}

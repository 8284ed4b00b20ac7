//! Cases that are ready to run: every expression evaluated, every path resolved.
//!
//! This is what a worker process receives. The corresponding types of `experiment` still contain expressions.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{
    Access, Allocation, Bytes, Case, CaseHashes, CompileUnit, Compiled, ElementType, FieldAddress, FilePart, FillPlan,
    Fingerprint, GroupKey, LaunchSettings, NamedField, Persist, RefExpr, Regime, ScalarValue, Spread, StepsPlan,
    Texture, Tolerance, Unsanitized, Value, Vary, WholeTolerance,
};

/// Size of the guard zones before and after every buffer, which detect stray writes.
pub const GUARD_BYTES: u64 = 64 * 1024;

/// A worker's unit of work: cases that are compared with each other.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GroupJob {
    pub ordinal: u32,
    pub key: GroupKey,
    pub cases: Vec<CaseJob>,
    /// Index into `cases`; `None` if the baseline was filtered out, was excluded or has already failed.
    pub baseline: Option<usize>,
    /// Seed for the random order in which variants are interleaved.
    pub seed: u64,
    #[serde(default)]
    pub sharing: Sharing,
}

/// Whether more processes measure a group after the one that receives the job.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sharing {
    /// This process takes all the requested samples.
    #[default]
    Alone,
    /// This process is the first and takes only its share of the samples. The cases state how many processes follow;
    /// otherwise the number follows from the spread between processes.
    First { spread: Option<Spread> },
}

/// Number of launches, with the events between them, that are sure to fit behind a gate. A longer body may wait for the
/// host.
const GATED_LAUNCHES: usize = 64;

impl GroupJob {
    /// Whether the host's speed affects the measured times: the host's clock is used, or queued launches may wait for
    /// the host. Includes host functions, whose launches are unknown before they run.
    pub fn needs_host(&self) -> bool {
        self.cases.iter().any(|case| {
            let steps = case.steps.as_ref();
            case.measure.regimes.contains(&Regime::Host)
                || steps.is_some_and(|plan| plan.has_loop() || plan.steps.len() > GATED_LAUNCHES)
                || match &case.body {
                    BodyPlan::Cpu(_) => false,
                    BodyPlan::Host(_) => true,
                    BodyPlan::Launches(launches) => launches.len() > GATED_LAUNCHES,
                    BodyPlan::Memcpy(copies) => copies.len() > GATED_LAUNCHES,
                }
        })
    }

    pub fn is_timed_by_host(&self) -> bool {
        self.cases.iter().any(|case| case.measure.regimes.contains(&Regime::Host))
    }

    pub fn times_host(&self) -> bool {
        self.cases.iter().any(|case| matches!(case.body, BodyPlan::Cpu(_)))
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CaseJob {
    pub case: Case,
    /// Set once the compiled code is known.
    pub fingerprint: Option<Fingerprint>,
    /// Set together with `fingerprint`.
    #[serde(default)]
    pub hashes: Option<CaseHashes>,
    /// Buffers used by the body and the checks.
    pub buffers: Vec<BufferPlan>,
    pub body: BodyPlan,
    /// Order of the launches; `None` to run each launch once, in order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steps: Option<StepsPlan>,
    /// Checks after a run; empty if nothing is compared.
    pub checks: Vec<CheckPlan>,
    /// Expected printed lines; `None` to skip the check.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub printed: Option<PrintedPlan>,
    /// Minimum work, from which rates are computed.
    pub work: WorkAmount,
    pub measure: MeasurePlan,
    /// Folder that receives the buffers and output of the first run, for inspection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outputs: Option<PathBuf>,
    /// Folder that receives the counts of each PTX line, for the source page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line_counts: Option<PathBuf>,
    /// Sanitizer findings to ignore in the simulator; `None` to report all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unsanitized: Option<Unsanitized>,
    /// Whether the simulator runs only a sample of the blocks.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub sampled: bool,
    /// Whether to keep counts by source line too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub lines: bool,
    /// Whether the simulator checks a second set of inputs, whatever the cost.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub thorough: bool,
}

impl CaseJob {
    /// Whether the kernels are linked with the device runtime, so that they can launch kernels.
    pub fn has_device_runtime(&self) -> bool {
        match &self.body {
            BodyPlan::Launches(launches) => launches.iter().any(|launch| launch.unit.settings.relocatable),
            BodyPlan::Memcpy(_) | BodyPlan::Cpu(_) | BodyPlan::Host(_) => false,
        }
    }

    /// Device memory of the case's buffers, without guard zones and restore copies.
    pub fn buffer_bytes(&self) -> Bytes {
        Bytes(self.buffers.iter().map(BufferPlan::bytes).map(|b| b.0).fold(0, u64::saturating_add))
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BufferPlan {
    pub name: String,
    pub element: ElementType,
    pub len: u64,
    /// Content before every launch; `None` for `out` and `scratch`.
    pub fill: Option<FillPlan>,
    pub access: Access,
    /// `__device__` variable that provides the memory; `None` for an allocation.
    pub symbol: Option<SymbolPlan>,
    /// When the memory is allocated and freed. Only times of the host's clock include this.
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub allocate: Allocation,
    /// How the second set of inputs differs from the first if the fill has no seed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vary: Option<Vary>,
    /// Whether to poison `scratch` memory before every launch.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub poison: bool,
}

impl BufferPlan {
    /// Size in bytes. Saturates, so that an overflowing length is rejected as out of memory.
    pub fn bytes(&self) -> Bytes {
        Bytes(self.len.saturating_mul(self.element.size() as u64))
    }
}

/// A `__device__` variable that provides the memory of a buffer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SymbolPlan {
    /// C++ name, a key of `Compiled::symbols`.
    pub name: String,
    /// Index of the launch whose module contains the variable.
    pub launch: usize,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BodyPlan {
    Launches(Vec<LaunchPlan>),
    /// Copies between device buffers in order, each as `(from, to)`.
    Memcpy(Vec<(String, String)>),
    /// A reference function timed on the host.
    Cpu(RefExpr),
    /// A host function that queues work on the device.
    Host(Box<HostPlan>),
}

impl BodyPlan {
    pub fn units(&self) -> Vec<&CompileUnit> {
        match self {
            Self::Launches(launches) => launches.iter().map(|launch| &launch.unit).collect(),
            Self::Host(host) => vec![&host.unit],
            Self::Memcpy(_) | Self::Cpu(_) => Vec::new(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HostPlan {
    pub unit: CompileUnit,
    /// Set by the compile stage.
    pub compiled: Option<Compiled>,
    /// C name, the only element of `unit.kernels`.
    pub function: String,
    pub args: Vec<ArgPlan>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LaunchPlan {
    pub label: String,
    pub unit: CompileUnit,
    /// Set by the compile stage.
    pub compiled: Option<Compiled>,
    /// Name expression, an element of `unit.kernels`.
    pub kernel: String,
    pub grid: GridPlan,
    pub block: BlockPlan,
    #[serde(flatten)]
    pub settings: LaunchSettings,
    pub args: Vec<ArgPlan>,
    /// Blocks per cluster; `None` for the kernel's compiled-in cluster size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<[u32; 3]>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub persist: Option<Persist>,
}

impl LaunchPlan {
    /// Mangled name of the kernel, or its name expression if it is not compiled.
    pub fn mangled(&self) -> &str {
        let known = self.compiled.as_ref().and_then(|code| code.kernels.get(&self.kernel));
        known.unwrap_or(&self.kernel)
    }
}

/// Blocks per grid.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GridPlan {
    /// Fixed extents. 64 bits, so that a grid above the device's limit is reported instead of overflowing.
    Fixed([u64; 3]),
    /// As many blocks as can be resident on the whole device at once.
    Occupancy,
    /// Expressions that use `occupancy_block`.
    AfterBlock {
        dims: Vec<String>,
        /// Values of the other names in the expressions.
        scope: BTreeMap<String, Value>,
    },
}

/// Threads per block.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BlockPlan {
    /// Fixed extents, 64 bits as in [`GridPlan::Fixed`].
    Fixed([u64; 3]),
    Occupancy,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ArgPlan {
    Buffer(String),
    Offset {
        buffer: String,
        bytes: u64,
    },
    Struct(Vec<u8>),
    /// A struct, passed by value, that contains buffer addresses.
    Addressed {
        /// Bytes of the struct, with zeros in place of addresses.
        bytes: Vec<u8>,
        /// Addresses, in field order.
        addresses: Vec<FieldAddress>,
    },
    /// A struct, passed by value, with named fields.
    Named {
        /// Variable whose mangled name encodes the field offsets.
        layout: String,
        /// Fields with nonzero values.
        fields: Vec<NamedField>,
    },
    Scalar(ScalarValue),
    Texture(Texture),
}

impl ArgPlan {
    /// Maximum size of a struct passed by value, in bytes: the limit for kernel parameters since CUDA 12.1.
    pub const MOST_STRUCT_BYTES: usize = 32_764;

    /// Buffers that the argument points to.
    pub fn buffers(&self) -> Vec<&str> {
        match self {
            Self::Buffer(name) | Self::Offset { buffer: name, .. } => vec![name],
            Self::Texture(texture) => vec![&texture.buffer],
            Self::Addressed { addresses, .. } => addresses.iter().map(|address| address.buffer.as_str()).collect(),
            Self::Named { fields, .. } => {
                let addresses = fields.iter().flat_map(|field| &field.addresses);
                addresses.map(|address| address.buffer.as_str()).collect()
            }
            Self::Scalar(_) | Self::Struct(_) => Vec::new(),
        }
    }

    /// Mutable names of the buffers that the argument points to, for renaming.
    pub fn buffers_mut(&mut self) -> Vec<&mut String> {
        match self {
            Self::Buffer(name) | Self::Offset { buffer: name, .. } => vec![name],
            Self::Texture(texture) => vec![&mut texture.buffer],
            Self::Addressed { addresses, .. } => addresses.iter_mut().map(|address| &mut address.buffer).collect(),
            Self::Named { fields, .. } => {
                let addresses = fields.iter_mut().flat_map(|field| &mut field.addresses);
                addresses.map(|address| &mut address.buffer).collect()
            }
            Self::Scalar(_) | Self::Struct(_) => Vec::new(),
        }
    }
}

/// A comparison of a result with its expected value, with its numbers evaluated.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CheckPlan {
    /// The check as written in the manifest, for messages.
    pub text: String,
    /// Computed side of the comparison.
    pub actual: RefExpr,
    pub expect: ExpectPlan,
    pub tolerance: Tolerance,
    /// Tolerance for the array as a whole, if elements exceed theirs.
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub whole: WholeTolerance,
    /// Mask of the comparison: only elements where it is nonzero are compared. An arithmetic expression over [`INDEX`]
    /// and the buffers' contents before the launch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mask: Option<RefExpr>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub error: bool,
}

/// Name of the element index (0-based) in a check's `where`, unless a buffer has this name.
pub const INDEX: &str = "index";

/// Lines that the checked launch must print, in any order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PrintedPlan {
    Lines(Vec<String>),
    File(PathBuf),
}

/// Source of the expected values.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExpectPlan {
    /// Reference functions over the buffers' contents before the launch, computed on the host.
    Reference(RefExpr),
    /// The same value, computed by this variant of the group.
    Variant(String),
    /// Elements of an `.npy` file.
    Npy(PathBuf),
    /// Elements of a binary file, little-endian.
    Raw(PathBuf),
    /// Elements of a section of a binary file, little-endian.
    Part(FilePart),
    List(Vec<Value>),
    Python(FunctionPlan),
    Cpp(FunctionPlan),
}

/// A call of a user-defined reference function.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FunctionPlan {
    pub path: PathBuf,
    pub function: String,
    pub arguments: Vec<FunctionArgument>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FunctionArgument {
    /// The content of a buffer before the launch, as an array.
    Buffer(String),
    /// Value of an axis or a binding.
    Value(Value),
}

impl ExpectPlan {
    pub fn file(&self) -> Option<&Path> {
        match self {
            Self::Npy(path) | Self::Raw(path) => Some(path),
            Self::Part(part) => Some(&part.path),
            Self::Python(function) | Self::Cpp(function) => Some(&function.path),
            Self::Reference(_) | Self::Variant(_) | Self::List(_) => None,
        }
    }

    pub const fn file_mut(&mut self) -> Option<&mut PathBuf> {
        match self {
            Self::Npy(path) | Self::Raw(path) => Some(path),
            Self::Part(part) => Some(&mut part.path),
            Self::Python(function) | Self::Cpp(function) => Some(&mut function.path),
            Self::Reference(_) | Self::Variant(_) | Self::List(_) => None,
        }
    }
}

/// Minimum work that the job requires.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct WorkAmount {
    /// Bytes that each run of the body must read or write, if stated.
    pub bytes: Option<u64>,
    /// Floating-point operations per run of the body, if stated.
    #[serde(default, with = "super::real")]
    pub flops: Option<f64>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MeasurePlan {
    pub regimes: Vec<Regime>,
    /// Requested half-width of the median's confidence interval, as a fraction of the median.
    #[serde(with = "super::real")]
    pub precision: f64,
    /// Time limit of each step of the case, in seconds.
    #[serde(with = "super::real")]
    pub timeout: f64,
    pub warmup: u32,
    pub min_samples: u32,
    pub max_samples: u32,
    /// Device time for the case's samples, in seconds.
    #[serde(with = "super::real")]
    pub budget: f64,
    /// Whether to measure energy too. Not serialized if false, so that case hashes stay the same as before this field
    /// existed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub energy: bool,
    /// Number of processes that take the samples one after another; `None` for as many as the precision requires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processes: Option<u32>,
    /// Time in nanoseconds. A search stops sampling a case once it has two or more samples that all exceed this.
    #[serde(with = "super::real", default, skip_serializing_if = "Option::is_none")]
    pub drop_above: Option<f64>,
}

//! Cases that are ready to run: every expression evaluated, every path resolved.
//!
//! This is what a worker process receives. The corresponding types of `experiment` still have expressions.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{
    Access, Allocation, Bytes, Case, CaseHashes, CompileUnit, Compiled, ElementType, FieldAddress, FilePart, FillPlan,
    Fingerprint, GroupKey, LaunchSettings, NamedField, Persist, RefExpr, Regime, ScalarValue, Spread, StepsPlan,
    Texture, Unsanitized, Value, Vary, WholeTolerance,
};

/// Size of the guard zones before and after every buffer, which detect stray writes.
pub const GUARD_BYTES: u64 = 64 * 1024;

/// Unit of work of a worker: cases that are compared with each other.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GroupJob {
    pub ordinal: u32,
    pub key: GroupKey,
    pub cases: Vec<CaseJob>,
    /// Index into `cases`; `None` if the baseline was filtered out, excluded or failed before.
    pub baseline: Option<usize>,
    /// Seed of the random order in which variants are interleaved.
    pub seed: u64,
    #[serde(default)]
    pub sharing: Sharing,
}

/// Whether other processes measure a group after the one that gets the job.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sharing {
    /// This process takes all samples that the job asks for.
    #[default]
    Alone,
    /// This is the first process, and takes its share of the samples: as many processes follow as the cases state, or as
    /// the difference between processes requires.
    First { spread: Option<Spread> },
}

/// Number of launches that certainly fit behind a gate, with the events between them. A longer body may wait for the
/// host.
const GATED_LAUNCHES: usize = 64;

impl GroupJob {
    /// Whether the host's speed affects the device's times: the host's clock takes them, or queued launches may wait
    /// for the host. A host function counts, since its launches are unknown before it has run.
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
    /// Buffers that the body and the checks use.
    pub buffers: Vec<BufferPlan>,
    pub body: BodyPlan,
    /// Order of the launches; `None` if each is made once, in order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steps: Option<StepsPlan>,
    /// Checks after a run; empty if nothing is compared.
    pub checks: Vec<CheckPlan>,
    /// Expected printed lines; `None` if they are not checked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub printed: Option<PrintedPlan>,
    /// Least work, from which rates are computed.
    pub work: WorkAmount,
    pub measure: MeasurePlan,
    /// Folder for the buffers and output of the first run, for inspection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outputs: Option<PathBuf>,
    /// Folder for the counts of each PTX line, for a page with the sources.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line_counts: Option<PathBuf>,
    /// What the simulator's sanitizer ignores in this case; `None` if it is fully on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unsanitized: Option<Unsanitized>,
    /// Whether the simulator runs only a sample of the blocks.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub sampled: bool,
    /// Whether to keep counts by source line too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub lines: bool,
    /// Whether the simulator checks a second set of inputs at any cost.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub thorough: bool,
}

impl CaseJob {
    /// Whether its kernels are linked with the device runtime, with which kernels launch kernels.
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
    /// `__device__` variable that is its memory; `None` for an allocation.
    pub symbol: Option<SymbolPlan>,
    /// When the memory is allocated and freed, which shows only in times of the host's clock.
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub allocate: Allocation,
    /// How the second set of inputs differs from the first, if a seed does not change it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vary: Option<Vary>,
    /// Whether `scratch` memory is poisoned before every launch.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub poison: bool,
}

impl BufferPlan {
    /// Size, which saturates, so that an overflowing length is refused as out of memory.
    pub fn bytes(&self) -> Bytes {
        Bytes(self.len.saturating_mul(self.element.size() as u64))
    }
}

/// A static `__device__` variable that is the memory of a buffer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SymbolPlan {
    /// C++ name, which is a key of `Compiled::symbols`.
    pub name: String,
    /// Index into the launches of the case, whose module holds the variable.
    pub launch: usize,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BodyPlan {
    Launches(Vec<LaunchPlan>),
    /// Device copies in order, each `(from, to)`.
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
    /// C name, which is the only one of `unit.kernels`.
    pub function: String,
    pub args: Vec<ArgPlan>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LaunchPlan {
    pub label: String,
    pub unit: CompileUnit,
    /// Set by the compile stage.
    pub compiled: Option<Compiled>,
    /// Name expression, which is an element of `unit.kernels`.
    pub kernel: String,
    pub grid: GridPlan,
    pub block: BlockPlan,
    #[serde(flatten)]
    pub settings: LaunchSettings,
    pub args: Vec<ArgPlan>,
    /// Blocks per cluster; `None` for those that the kernel was compiled for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<[u32; 3]>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub persist: Option<Persist>,
}

impl LaunchPlan {
    /// Mangled name of the kernel; its name expression if there is no code.
    pub fn mangled(&self) -> &str {
        let known = self.compiled.as_ref().and_then(|code| code.kernels.get(&self.kernel));
        known.unwrap_or(&self.kernel)
    }
}

/// Blocks per grid.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GridPlan {
    /// A fixed number. It has 64 bits so that a grid above the device's limit is reported instead of overflowing.
    Fixed([u64; 3]),
    /// As many blocks as are resident on the whole device at once.
    Occupancy,
    /// Expressions that name `occupancy_block`.
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
    /// A fixed number, with 64 bits for the reason at [`GridPlan::Fixed`].
    Fixed([u64; 3]),
    Occupancy,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ArgPlan {
    Buffer(String),
    Offset {
        buffer: String,
        /// Offset in bytes.
        bytes: u64,
    },
    Struct(Vec<u8>),
    /// A struct, passed by value, that contains addresses of buffers.
    Addressed {
        /// Bytes of the struct, zero at the addresses.
        bytes: Vec<u8>,
        /// Addresses, in the order of the fields.
        addresses: Vec<FieldAddress>,
    },
    /// A struct, passed by value, whose fields have names.
    Named {
        /// Variable whose mangled name gives the offsets of the fields.
        layout: String,
        /// Fields that are not zero.
        fields: Vec<NamedField>,
    },
    Scalar(ScalarValue),
    Texture(Texture),
}

impl ArgPlan {
    /// Largest struct passed by value, in bytes: the limit for kernel parameters from CUDA 12.1 on.
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

    /// Names of those buffers, to be replaced.
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

/// A comparison of a result with its expected value, with numbers evaluated.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CheckPlan {
    /// Text of the manifest, for messages.
    pub text: String,
    /// Computed side of the comparison.
    pub actual: RefExpr,
    pub expect: ExpectPlan,
    pub tolerance: Tolerance,
    /// Tolerance for the array as a whole, if elements differ more.
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub whole: WholeTolerance,
    /// Mask of the comparison: only elements where it is not 0 are compared. It is arithmetic on [`INDEX`] and on
    /// buffers as they were before the launch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mask: Option<RefExpr>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub error: bool,
}

/// Name of an element's index in a check's `where`, from 0, unless a buffer has this name.
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
    /// Reference functions over the buffers as they were before the launch, computed on the host.
    Reference(RefExpr),
    /// Value of `actual` in this case of the group.
    Variant(String),
    /// Elements of an `.npy` file.
    Npy(PathBuf),
    /// File of little-endian elements.
    Raw(PathBuf),
    /// Little-endian elements within a file.
    Part(FilePart),
    List(Vec<Value>),
    Python(FunctionPlan),
    Cpp(FunctionPlan),
}

/// A call of a user's function.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FunctionPlan {
    pub path: PathBuf,
    pub function: String,
    pub arguments: Vec<FunctionArgument>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FunctionArgument {
    /// A buffer as it was before the launch, as an array.
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

/// Permitted difference of a float from its reference: it passes if any of these allows it, or if it is what the
/// reference rounds to in its type.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Tolerance {
    /// Absolute difference.
    #[serde(with = "super::real")]
    pub abs: f64,
    /// Difference as a fraction of the reference.
    #[serde(with = "super::real")]
    pub rel: f64,
    /// Units in the last place of the element type, from what the reference rounds to.
    pub ulp: u64,
    /// Whether an absolute difference that follows from the terms of the reference is allowed, as without a tolerance in
    /// the manifest. Left out if not, so that hashes of cases stay the same as before this field existed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub derived: bool,
}

impl Tolerance {
    /// Exactly what the reference rounds to.
    pub const EXACT: Self = Self { abs: 0.0, rel: 0.0, ulp: 0, derived: false };

    /// Default tolerance of a type. Integers are exact. A float may be some roundings away from the reference, relative
    /// to it: a tree of additions over 2^28 elements of one sign stays within that. The absolute part follows from the
    /// data, because a constant would let zeros pass when the expected values are small.
    pub const fn default_for(element: ElementType) -> Self {
        let rel = match element {
            ElementType::F64 => 1e-12,
            ElementType::F32 => 1e-5,
            ElementType::F16 => 2e-3,
            ElementType::Bf16 => 2e-2,
            _ => 0.0,
        };
        if rel > 0.0 { Self { rel, ulp: 1, derived: true, ..Self::EXACT } } else { Self::EXACT }
    }

    /// Whether no part is negative, infinite or NaN, with which everything or nothing would pass.
    pub fn is_sound(&self) -> bool {
        [self.abs, self.rel].iter().all(|part| part.is_finite() && *part >= 0.0)
    }
}

/// Least work that the job requires.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct WorkAmount {
    /// Bytes that must be read or written per run of the body; `None` if not stated.
    pub bytes: Option<u64>,
    /// Floating-point operations per run of the body; `None` if not stated.
    #[serde(default, with = "super::real")]
    pub flops: Option<f64>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MeasurePlan {
    pub regimes: Vec<Regime>,
    /// Requested half-width of the median's interval, as a fraction of the median.
    #[serde(with = "super::real")]
    pub precision: f64,
    /// Time limit of each step of the case, in seconds.
    #[serde(with = "super::real")]
    pub timeout: f64,
    pub warmup: u32,
    pub min_samples: u32,
    pub max_samples: u32,
    /// Device time for the samples of the case, in seconds.
    #[serde(with = "super::real")]
    pub budget: f64,
    /// Whether to measure energy too. Omitted if not, so that hashes of cases stay the same as before this field
    /// existed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub energy: bool,
    /// Number of processes that take the samples, one after the other; `None` for as many as the precision requires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processes: Option<u32>,
    /// Time in nanoseconds. A search stops sampling a case after two or more samples, if all of them exceed this.
    #[serde(with = "super::real", default, skip_serializing_if = "Option::is_none")]
    pub drop_above: Option<f64>,
}

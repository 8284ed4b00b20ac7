//! Cases that are ready to run: every expression evaluated, every path resolved. This is what a worker gets.

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

/// The unit of work of a worker: cases that are compared with each other.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GroupJob {
    /// The position among the groups of the plan.
    pub ordinal: u32,
    /// The values of the axes that its cases share.
    pub key: GroupKey,
    /// The cases in the manifest's order.
    pub cases: Vec<CaseJob>,
    /// Index into `cases`; `None` if it was filtered out, excluded or failed before.
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

/// Launches of a body that certainly fit behind a gate, with the events between them. A longer body may wait for the
/// host.
const GATED_LAUNCHES: usize = 64;

impl GroupJob {
    /// Whether the host's speed affects the times of the device: the host's clock takes them, or queued launches may
    /// wait for the host. For a host function this is not known before it has run.
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

    /// Whether the host's clock takes times of the device.
    pub fn is_timed_by_host(&self) -> bool {
        self.cases.iter().any(|case| case.measure.regimes.contains(&Regime::Host))
    }

    /// Whether functions of the host are timed.
    pub fn times_host(&self) -> bool {
        self.cases.iter().any(|case| matches!(case.body, BodyPlan::Cpu(_)))
    }
}

/// A case with all that is needed to run it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CaseJob {
    /// The cell of the matrix.
    pub case: Case,
    /// Filled in once the compiled code is known.
    pub fingerprint: Option<Fingerprint>,
    /// The hashes, which are filled in with the fingerprint.
    #[serde(default)]
    pub hashes: Option<CaseHashes>,
    /// The buffers of device memory that the body and the checks use.
    pub buffers: Vec<BufferPlan>,
    /// What is run and timed.
    pub body: BodyPlan,
    /// How the launches of the body follow each other; `None` if each is made once, in order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steps: Option<StepsPlan>,
    /// What must hold after a run; empty if nothing is compared.
    pub checks: Vec<CheckPlan>,
    /// What it must print; `None` if that is not checked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub printed: Option<PrintedPlan>,
    /// The least work, from which rates are computed.
    pub work: WorkAmount,
    /// How often and how precisely it is measured.
    pub measure: MeasurePlan,
    /// The folder to which the outputs of the first run are written, for a look at them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outputs: Option<PathBuf>,
    /// The folder to which the counts of each line of the PTX are written, for a page with the sources.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line_counts: Option<PathBuf>,
    /// What the simulator's sanitizer does not look for in this case; `None` if it is on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unsanitized: Option<Unsanitized>,
    /// Whether the simulator runs a sample of the blocks of its launch.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub sampled: bool,
    /// Whether counts are also kept by the lines of the sources.
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

    /// Returns the device memory of the case's buffers, without guard zones and restore copies.
    pub fn buffer_bytes(&self) -> Bytes {
        Bytes(self.buffers.iter().map(BufferPlan::bytes).map(|b| b.0).fold(0, u64::saturating_add))
    }
}

/// One buffer, sized.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BufferPlan {
    /// The buffer's name in the manifest.
    pub name: String,
    /// The type that an element has.
    pub element: ElementType,
    /// The number of elements.
    pub len: u64,
    /// The content that the buffer has before every launch; `None` for `out` and `scratch`.
    pub fill: Option<FillPlan>,
    /// What happens to it before every launch.
    pub access: Access,
    /// The `__device__` variable that is its memory; `None` for an allocation.
    pub symbol: Option<SymbolPlan>,
    /// When the memory is allocated and freed, which shows only in times of the host's clock.
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub allocate: Allocation,
    /// How the second set of inputs differs from the first, where a seed does not change it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vary: Option<Vary>,
    /// Whether `scratch` memory is poisoned before every launch.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub poison: bool,
}

impl BufferPlan {
    /// Returns the size, which saturates, so that a length that overflows is refused as out of memory.
    pub fn bytes(&self) -> Bytes {
        Bytes(self.len.saturating_mul(self.element.size() as u64))
    }
}

/// A static `__device__` variable that is the memory of a buffer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SymbolPlan {
    /// The C++ name, which is a key of `Compiled::symbols`.
    pub name: String,
    /// Index into the launches of the case: the module that holds it.
    pub launch: usize,
}

/// What the case does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BodyPlan {
    /// Kernel launches, in order.
    Launches(Vec<LaunchPlan>),
    /// The device copies one buffer after the other, each `(from, to)`.
    Memcpy(Vec<(String, String)>),
    /// A reference function timed on the host.
    Cpu(RefExpr),
    /// A host function, which queues work on the device.
    Host(Box<HostPlan>),
}

impl BodyPlan {
    /// Returns the translation units that it is compiled from.
    pub fn units(&self) -> Vec<&CompileUnit> {
        match self {
            Self::Launches(launches) => launches.iter().map(|launch| &launch.unit).collect(),
            Self::Host(host) => vec![&host.unit],
            Self::Memcpy(_) | Self::Cpu(_) => Vec::new(),
        }
    }
}

/// A call of a host function.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HostPlan {
    /// The unit that nvcc builds.
    pub unit: CompileUnit,
    /// The result of the compile stage, which fills it in.
    pub compiled: Option<Compiled>,
    /// The C name, which is the only one of `unit.kernels`.
    pub function: String,
    /// The arguments in the order of the function's parameters.
    pub args: Vec<ArgPlan>,
}

/// A launch of a kernel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LaunchPlan {
    /// The launch's name in the report.
    pub label: String,
    /// The unit that NVRTC compiles.
    pub unit: CompileUnit,
    /// The result of the compile stage, which fills it in.
    pub compiled: Option<Compiled>,
    /// The name expression, which is an element of `unit.kernels`.
    pub kernel: String,
    /// The number of blocks that the grid has.
    pub grid: GridPlan,
    /// The number of threads that each block has.
    pub block: BlockPlan,
    /// The numbers and switches that the launch sets.
    #[serde(flatten)]
    pub settings: LaunchSettings,
    /// The arguments in the order of the kernel's parameters.
    pub args: Vec<ArgPlan>,
    /// Blocks per cluster; `None` for those that the kernel was compiled for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<[u32; 3]>,
    /// What stays in the L2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub persist: Option<Persist>,
}

impl LaunchPlan {
    /// Returns the kernel's mangled name; its name expression if the code is missing.
    pub fn mangled(&self) -> &str {
        let known = self.compiled.as_ref().and_then(|code| code.kernels.get(&self.kernel));
        known.unwrap_or(&self.kernel)
    }
}

/// The number of blocks that a launch has.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GridPlan {
    /// The number is as written; it has 64 bits, so that a grid above the device's limit is reported and does not
    /// overflow.
    Fixed([u64; 3]),
    /// The grid has as many blocks as are resident on the whole device at once.
    Occupancy,
    /// Expressions that name `occupancy_block`, with the other names that they may use.
    AfterBlock {
        /// The expressions of the blocks along x, y and z, of which there are one to three.
        dims: Vec<String>,
        /// The values of the other names in the expressions.
        scope: BTreeMap<String, Value>,
    },
}

/// The number of threads that each block has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BlockPlan {
    /// The number is as written; it has 64 bits for the reason that [`GridPlan::Fixed`] gives.
    Fixed([u64; 3]),
    /// The block size with the most resident threads.
    Occupancy,
}

/// An argument of a kernel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ArgPlan {
    /// The address of a buffer, by name.
    Buffer(String),
    /// An address within a buffer.
    Offset {
        /// The name of the buffer.
        buffer: String,
        /// The number of bytes before the address.
        bytes: u64,
    },
    /// The bytes of a struct, passed by value.
    Struct(Vec<u8>),
    /// A struct, passed by value, that holds addresses of buffers.
    Addressed {
        /// The bytes of the struct, zero where an address is.
        bytes: Vec<u8>,
        /// The addresses, in the order of the fields.
        addresses: Vec<FieldAddress>,
    },
    /// A struct, passed by value, whose fields have names.
    Named {
        /// The variable whose mangled name says where the fields lie.
        layout: String,
        /// The fields that are not zero.
        fields: Vec<NamedField>,
    },
    /// A number, passed by value.
    Scalar(ScalarValue),
    /// A texture or surface object of a buffer.
    Texture(Texture),
}

impl ArgPlan {
    /// The longest struct that is passed by value, bytes: what a kernel may have as parameters from CUDA 12.1 on.
    pub const MOST_STRUCT_BYTES: usize = 32_764;

    /// Returns the buffers that the argument points to.
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

    /// Returns the names of those buffers, to be replaced.
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

/// A comparison of a result with its expected value, numbers evaluated.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CheckPlan {
    /// The text that the manifest writes, for messages.
    pub text: String,
    /// What the launches computed.
    pub actual: RefExpr,
    /// What it is compared with.
    pub expect: ExpectPlan,
    /// The difference that is allowed.
    pub tolerance: Tolerance,
    /// What is allowed of the array as a whole where elements differ more.
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub whole: WholeTolerance,
    /// The mask of the comparison: an element is compared where it is not 0. It is arithmetic on buffers as they were before
    /// the launch, and on [`INDEX`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mask: Option<RefExpr>,
    /// Whether the report shows the greatest error.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub error: bool,
}

/// The name in a check's `where` of each element's index, from 0, unless a buffer has this name.
pub const INDEX: &str = "index";

/// The lines that the checked launch must print, in any order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PrintedPlan {
    /// The plan has the lines themselves.
    Lines(Vec<String>),
    /// A text file with the lines.
    File(PathBuf),
}

/// Where the expected value comes from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExpectPlan {
    /// Reference functions over the buffers as they were before the launch, computed on the host.
    Reference(RefExpr),
    /// What this case of the group computes for `actual` is expected.
    Variant(String),
    /// The elements of an `.npy` file.
    Npy(PathBuf),
    /// The bytes of a file, little-endian elements.
    Raw(PathBuf),
    /// The elements are bytes within a file, little-endian.
    Part(FilePart),
    /// The elements are these.
    List(Vec<Value>),
    /// A Python function returns the elements.
    Python(FunctionPlan),
    /// A C++ function returns the elements.
    Cpp(FunctionPlan),
}

/// A call of a function in a file beside the manifest.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FunctionPlan {
    /// The script or source.
    pub path: PathBuf,
    /// A function that it defines.
    pub function: String,
    /// What the function gets, in the order of its parameters.
    pub arguments: Vec<FunctionArgument>,
}

/// An argument of a Python or C++ function.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FunctionArgument {
    /// A buffer as it was before the launch, as an array.
    Buffer(String),
    /// The value of an axis or a binding.
    Value(Value),
}

impl ExpectPlan {
    /// Returns the file that holds the expected elements.
    pub fn file(&self) -> Option<&Path> {
        match self {
            Self::Npy(path) | Self::Raw(path) => Some(path),
            Self::Part(part) => Some(&part.path),
            Self::Python(function) | Self::Cpp(function) => Some(&function.path),
            Self::Reference(_) | Self::Variant(_) | Self::List(_) => None,
        }
    }

    /// Returns the path of that file.
    pub const fn file_mut(&mut self) -> Option<&mut PathBuf> {
        match self {
            Self::Npy(path) | Self::Raw(path) => Some(path),
            Self::Part(part) => Some(&mut part.path),
            Self::Python(function) | Self::Cpp(function) => Some(&mut function.path),
            Self::Reference(_) | Self::Variant(_) | Self::List(_) => None,
        }
    }
}

/// How far a float may be from its reference: it passes if any of the three allows it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Tolerance {
    /// The largest absolute difference.
    #[serde(with = "super::real")]
    pub abs: f64,
    /// The largest difference as a fraction of the reference.
    #[serde(with = "super::real")]
    pub rel: f64,
    /// Units in the last place of the element type.
    pub ulp: u64,
}

impl Tolerance {
    /// Returns the tolerance of a type if the manifest has none. Integers are exact. A float may be some roundings away
    /// from the reference, relative to it: a tree of additions over 2^28 elements of one sign stays within that. There
    /// is no absolute part, because it would let zeros pass where the expected values are small.
    pub const fn default_for(element: ElementType) -> Self {
        let rel = match element {
            ElementType::F64 => 1e-12,
            ElementType::F32 => 1e-5,
            ElementType::F16 => 2e-3,
            ElementType::Bf16 => 2e-2,
            _ => 0.0,
        };
        Self { abs: 0.0, rel, ulp: 0 }
    }

    /// Whether the tolerance has no negative, infinite or NaN part, with which everything or nothing would pass.
    pub fn is_sound(&self) -> bool {
        [self.abs, self.rel].iter().all(|part| part.is_finite() && *part >= 0.0)
    }
}

/// The least work that the job requires.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct WorkAmount {
    /// Bytes that must be read or written, per run of the body; `None` if not stated.
    pub bytes: Option<u64>,
    /// The number of floating-point operations per run of the body; `None` if not stated.
    #[serde(default, with = "super::real")]
    pub flops: Option<f64>,
}

/// How to measure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MeasurePlan {
    /// The states of the caches, each of which has its own samples.
    pub regimes: Vec<Regime>,
    /// Half-width of the median's interval to reach, as a fraction of the median.
    #[serde(with = "super::real")]
    pub precision: f64,
    /// The time limit of each step of the case, in seconds.
    #[serde(with = "super::real")]
    pub timeout: f64,
    /// Runs before the first sample of each regime.
    pub warmup: u32,
    /// The fewest samples per regime.
    pub min_samples: u32,
    /// The most samples per regime.
    pub max_samples: u32,
    /// The device time for the samples of the case, in seconds.
    #[serde(with = "super::real")]
    pub budget: f64,
    /// Whether energy is measured too. Left out if not, so that hashes of cases stay the same as before this field
    /// existed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub energy: bool,
    /// The number of processes over which the samples are spread, one after the other. `None` for as many as the
    /// precision asks for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processes: Option<u32>,
    /// Nanoseconds: a search takes no more samples of a case of which two or more are all longer than this.
    #[serde(with = "super::real", default, skip_serializing_if = "Option::is_none")]
    pub drop_above: Option<f64>,
}

//! The manifest as written in the file: the single definition of its keys.
//!
//! Readers, known keys and the JSON Schema are derived from these types. They contain every value with its location;
//! `validate` checks what the values mean.

mod argument;
mod data;
mod settings;
mod values;
mod variant;

use schemars::JsonSchema;
use search::strategy::NAMES;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

pub use argument::Arg;
pub use data::{
    FILLS, RawBuffer, RawCheck, RawExpect, RawExpectTable, RawFill, RawFillTable, RawPrinted, RawTolerance, RawWork,
};
pub use settings::{RawCompileSettings, RawLaunchSettings};
pub use values::{ClaimText, Expr, Literal, Ref, Text, TextOrNumber};
pub use variant::OF_HOST;
use variant::without_defaults;
pub use variant::{
    RawBlocks, RawBuiltin, RawExtent, RawFails, RawLaunch, RawLaunchEntry, RawOff, RawPersist, RawSanitize, RawVariant,
    RawVariantOn,
};

use runner_types::{KernelCompiler, Regime, Span};

use super::read::{At, Named, Read, Reader, Required, Table as _, read_by_kind, table};

table! {
    /// An experiment: which implementation of a GPU kernel is faster, by how much, and is its result correct?
    #[schemars(title = "runner experiment", extend("if" = { "required": ["defaults"] }, "else" = without_defaults()))]
    pub struct RawManifest {
        /// The question and how to answer it.
        pub experiment: Required<At<RawExperiment>>,
        /// Published packages. A source `NAME:PATH` is a file in one of them.
        pub packages: Option<Named<At<RawPackage>>>,
        /// Named lists of values; the matrix is their Cartesian product.
        pub axes: Option<Named<At<RawAxis>>>,
        /// Rules that exclude points from the product or add points to it.
        pub matrix: Option<At<RawMatrix>>,
        /// Overrides for one backend: `cuda` or `sim`.
        #[schemars(extend("propertyNames" = { "enum": ["cuda", "sim"] }))]
        pub on: Option<Named<At<RawOn>>>,
        /// Names for expressions, in any order.
        pub r#let: Option<Named<Expr>>,
        /// Buffers in device memory.
        pub buffers: Option<Named<At<RawBuffer>>>,
        /// Which results to compare with which expected values: one table, or an array of tables.
        pub check: Option<OneOrMany<At<RawCheck>>>,
        /// Minimum work that the job requires.
        pub work: Option<At<RawWork>>,
        /// Regimes, precision and limits of the measurement.
        pub measure: Option<At<RawMeasure>>,
        /// How `runner tune` searches the compared axes. Command-line options override these keys.
        pub search: Option<At<RawSearch>>,
        /// Launch keys for every variant that does not set them itself.
        pub defaults: Option<At<RawLaunch>>,
        /// Implementations to compare.
        #[schemars(extend("minItems" = 1))]
        pub variant: Required<Vec<At<RawVariant>>>,
        /// Statements about the results, which every run judges.
        pub claim: Option<Vec<At<RawClaim>>>,
        /// Intended slowdowns, which comparisons accept until the base has them, too.
        pub accept: Option<Vec<At<RawAccept>>>,
    }
    later {
        "profile": "hardware counters",
    }
}

impl RawManifest {
    /// Reads a manifest and applies its defaults to the variants.
    pub fn from_document(document: &DeTable<'_>, reader: &mut Reader<'_>) -> Self {
        let mut raw = Self::from_table(document, None, reader);
        if let Some(defaults) = &raw.defaults {
            for variant in raw.variant.0.iter_mut().flatten() {
                variant.value.inherit(&defaults.value);
            }
        }
        raw
    }
}

table! {
    /// The question and how to answer it.
    pub struct RawExperiment {
        /// Name of the experiment and of its report folder: letters, digits, `-` and `_`.
        #[schemars(extend("pattern" = "^[A-Za-z0-9_-]+$"))]
        pub name: Required<At<String>>,
        /// Title of the report; by default the name.
        pub title: Option<At<String>>,
        /// Question at the beginning of the report: a paragraph of Markdown.
        pub question: Option<At<String>>,
        /// Template of `report.md`, a file in the project, relative to the manifest's folder; by default the template
        /// of `runner`.
        pub template: Option<At<String>>,
        /// What to compare the others with: a variant's name after expansion (`unrolled2`), or a table with that name
        /// and a value for each compared axis. Without a baseline there are no speedups.
        pub baseline: Option<RawBaseline>,
        /// Shared axes whose values are compared with each other, like the variants.
        #[schemars(extend("uniqueItems" = true))]
        pub compare: Option<Vec<At<String>>>,
        /// Compiler for the kernels of variants without their own `compiler`; `"nvrtc"` by default.
        pub compiler: Option<At<KernelCompiler>>,
        /// Whether each variant is also compared with the previous one; true by default.
        pub steps: Option<At<bool>>,
        /// Smallest change that comparisons report, as in `"2%"`; by default each row has its own. `--threshold`
        /// overrides it.
        pub threshold: Option<At<RawPrecision>>,
    }
}

table! {
    /// One version of a published package. It is downloaded once, and its hash is checked.
    #[schemars(extend("oneOf" = [{ "required": ["crate"] }, { "required": ["wheel"] }]))]
    pub struct RawPackage {
        /// Name of a crate, which cargo (1.82 or newer) downloads. Paths of its files are relative to the folder of its
        /// `Cargo.toml`.
        #[schemars(rename = "crate", extend("pattern" = PACKAGE_WORD))]
        pub crate_: Option<At<String>>,
        /// Name of a Python package with a wheel, which pip downloads. Paths of its files are those in the wheel.
        #[schemars(extend("pattern" = PACKAGE_WORD))]
        pub wheel: Option<At<String>>,
        /// Exact version.
        #[schemars(extend("pattern" = PACKAGE_WORD))]
        pub version: Required<At<String>>,
        /// SHA-256 of the archive (the `.crate` or `.whl` file) in hexadecimal.
        #[schemars(extend("pattern" = "^[0-9a-f]{64}$"))]
        pub sha256: Required<At<String>>,
        /// Its licence, shown before the download.
        pub license: Option<At<String>>,
        /// Size of the archive in bytes, shown before the download and checked.
        pub bytes: Option<At<u64>>,
    }
}

/// Pattern of package names and versions.
const PACKAGE_WORD: &str = "^[A-Za-z0-9][A-Za-z0-9._+-]*$";

/// A variant's name, or a table with that name and a value for each compared axis.
#[derive(Debug, Clone, JsonSchema)]
#[schemars(untagged)]
pub enum RawBaseline {
    Name(At<String>),
    Table(At<Named<At<Literal>>>),
}

read_by_kind! {
    RawBaseline, "a variant's name, or a table with that name and values of compared axes";
    String => Name, Table => Table
}

/// A list of values, or how to generate one.
#[derive(Debug, Clone, JsonSchema)]
#[schemars(untagged)]
pub enum RawAxis {
    #[schemars(extend("minItems" = 1, "uniqueItems" = true))]
    List(Vec<At<Literal>>),
    Made(RawAxisTable),
}

table! {
    /// How to generate the values: exactly one of the keys.
    #[schemars(extend("oneOf" = [
        { "required": ["pow2"], "maxProperties": 1 },
        { "required": ["range"], "maxProperties": 1 },
        { "required": ["int"], "maxProperties": 1 },
        { "required": ["npy"], "maxProperties": 2 }
    ]))]
    pub struct RawAxisTable {
        /// Powers of two: first exponent, last exponent (up to 62), step of the exponent (1 by default). `[20, 28, 4]`
        /// is 2^20, 2^24, 2^28.
        #[schemars(extend(
            "minItems" = 2, "maxItems" = 3,
            "items" = { "type": "integer", "minimum": 0, "maximum": 62 }
        ))]
        pub pow2: Option<At<Vec<At<i64>>>>,
        /// Integers: first, last (included if a step reaches it), step (1 by default).
        #[schemars(extend("minItems" = 2, "maxItems" = 3))]
        pub range: Option<At<Vec<At<i64>>>>,
        /// Integers as expressions without names: `["2**24", "3 * 2**20"]`.
        #[schemars(extend("minItems" = 1, "uniqueItems" = true))]
        pub int: Option<At<Vec<Expr>>>,
        /// One or several `.npy` files, relative to the manifest's folder; the values are an extent of each array.
        pub npy: Option<OneOrMany<At<String>>>,
        /// With `npy`: 0-based index of the dimension; 0 by default.
        pub dim: Option<At<u64>>,
    }
}

read_by_kind! {
    RawAxis, "a list of values, or a table with `pow2`, `range`, `int` or `npy`";
    Array => List, Table => Made
}

table! {
    /// Rules that exclude points from the product of the axes or add points to it.
    pub struct RawMatrix {
        /// Lists of axes that advance together; all axes of a list must be equally long, on every backend.
        #[schemars(extend(
            "items" = { "type": "array", "items": { "type": "string" }, "minItems": 2, "uniqueItems": true }
        ))]
        pub zip: Option<Vec<At<Vec<At<String>>>>>,
        /// Cells to exclude from the product, and why.
        pub exclude: Option<Vec<At<RawExclude>>>,
        /// Points to add to the product: a value for every axis.
        pub include: Option<Vec<At<Named<At<Literal>>>>>,
    }
}

table! {
    /// Cells to exclude, and why.
    pub struct RawExclude {
        /// An expression that is true for the cells to exclude.
        pub when: Required<Expr>,
        /// Reason, shown in the report.
        pub why: Required<At<String>>,
    }
}

table! {
    /// Overrides for one backend.
    pub struct RawOn {
        /// Values that replace those of the axis with the same name; they must be of the same kind.
        pub axes: Option<Named<At<RawAxis>>>,
        /// Expressions that replace the binding with the same name.
        pub r#let: Option<Named<Expr>>,
    }
}

table! {
    /// Regimes, precision and limits of the measurement.
    pub struct RawMeasure {
        /// How to time a case: `cold` (the default), `warm`, `graph`, `rotate`, `host`.
        #[schemars(extend("minItems" = 1, "uniqueItems" = true, "items" = { "enum": Regime::NAMES }))]
        pub regimes: Option<At<Vec<At<String>>>>,
        /// Half-width of the median's confidence interval to reach: `"0.5%"` (the default), or the fraction `0.005`.
        pub precision: Option<At<RawPrecision>>,
        /// Time limit for each step of a case; `"30s"` by default.
        #[schemars(extend("pattern" = DURATION))]
        pub timeout: Option<At<String>>,
        /// Launches before the first sample; 2 by default.
        pub warmup: Option<At<u32>>,
        /// Minimum number of samples; by default 15, or `max_samples` if that is less.
        #[schemars(extend("minimum" = 1))]
        pub min_samples: Option<At<u32>>,
        /// Maximum number of samples; 2000 by default.
        #[schemars(extend("minimum" = 1))]
        pub max_samples: Option<At<u32>>,
        /// Time for the samples of one case in one regime; `"500ms"` by default.
        #[schemars(extend("pattern" = DURATION))]
        pub budget: Option<At<String>>,
        /// Number of processes that measure each group, one after the other; by default as many as the precision needs,
        /// at most five.
        #[schemars(extend("minimum" = 1, "maximum" = 64))]
        pub processes: Option<At<u32>>,
        /// Whether to measure the energy of a run, in a pass of about two seconds per case after the timings.
        pub energy: Option<At<bool>>,
        /// Nsight Compute metrics with their roll-up (`"dram__bytes_read.sum"`), in addition to those that `--counters`
        /// and `profile` always collect.
        #[schemars(extend(
            "uniqueItems" = true,
            "items" = { "type": "string", "pattern": "^[A-Za-z0-9_]*__[A-Za-z0-9_.]*$" }
        ))]
        pub metrics: Option<At<Vec<At<String>>>>,
    }
    later {
        "clocks": "locked clocks",
    }
    instead {
        "cold": "`cold` is a regime: write regimes = [\"cold\"]",
        "warm": "`warm` is a regime: write regimes = [\"warm\"]",
        "graph": "`graph` is a regime: write regimes = [\"graph\"]",
        "rotate": "`rotate` is a regime: write regimes = [\"rotate\"]",
        "host": "`host` is a regime: write regimes = [\"host\"]",
    }
}

table! {
    /// How `runner tune` searches the compared axes. Command-line options override these keys.
    pub struct RawSearch {
        /// How configurations are proposed; `"portfolio"` by default.
        #[schemars(extend("enum" = NAMES.map(|(name, _)| name)))]
        pub strategy: Option<At<String>>,
        /// How many configurations to evaluate: a number, or a share of the space; `"5%"` by default.
        pub budget: Option<At<RawBudget>>,
        /// Seed of the strategy; 1 by default.
        pub seed: Option<At<u64>>,
        /// What to minimise: on a GPU `"time"`, `"energy"` or an error of the results such as `"error_rel"`; on the
        /// simulator a counter or an error. With a list of several, the result is the configurations that no other one
        /// beats. By default `"time"`, on the simulator `"inst_executed"`.
        pub objective: Option<OneOrMany<At<String>>>,
        /// How many of the best configurations to measure at the end, in the same rounds as the baseline; 5 by default.
        #[schemars(extend("minimum" = 1))]
        pub finalists: Option<At<u32>>,
        /// Maximum number of samples of a configuration before the end; 7 by default.
        #[schemars(extend("minimum" = 1))]
        pub samples: Option<At<u32>>,
        /// Sampling of a configuration stops once two or more samples are all longer than the best time multiplied by
        /// this factor; 1.25 by default.
        #[schemars(extend("minimum" = 1))]
        pub drop_above: Option<At<f64>>,
        /// Values to search instead of those of the axis with the same name; they must be of the same kind. `runner
        /// run` keeps the values of the axis.
        pub axes: Option<Named<At<RawAxis>>>,
    }
}

/// A number of configurations, or a share of the space.
#[derive(Debug, Clone, JsonSchema)]
#[schemars(untagged)]
pub enum RawBudget {
    #[schemars(extend("minimum" = 1))]
    Count(u64),
    #[schemars(extend("pattern" = "^ *[0-9.]*[1-9][0-9.]* *%$"))]
    Share(String),
}

read_by_kind! {
    RawBudget, "a number of configurations, or a share of the space such as \"5%\"";
    Integer => Count, String => Share
}

table! {
    /// A statement about the results, which every run judges.
    pub struct RawClaim {
        /// A comparison of results: `speedup("vector", "neighbored") >= 5`.
        #[schemars(with = "String")]
        pub that: Required<ClaimText>,
        /// A condition on the axes that a group shares; by default the claim applies to every group.
        pub r#where: Option<Expr>,
        /// Regime to which the claim applies; by default every measured one.
        #[schemars(extend("enum" = Regime::NAMES))]
        pub regime: Option<At<String>>,
        /// Backend to which the claim applies, `cuda` or `sim`; by default every one that can judge it.
        #[schemars(extend("enum" = ["cuda", "sim"]))]
        pub on: Option<At<String>>,
    }
}

table! {
    /// An intended slowdown, which comparisons accept until the base has the same table.
    pub struct RawAccept {
        /// Variant that may be slower; by default every one.
        pub variant: Option<At<String>>,
        /// A condition on the shared axes; by default every case may be slower.
        pub r#where: Option<Expr>,
        /// By how much a time or a count may grow, as in `"10%"`.
        pub by: Required<At<RawPrecision>>,
        /// Why the slowdown is intended.
        #[schemars(extend("minLength" = 1))]
        pub reason: Required<At<String>>,
        /// Commit that makes it slower, or the last one before it: 7 to 40 hexadecimal digits.
        #[schemars(extend("pattern" = "^[0-9a-f]{7,40}$"))]
        pub commit: Required<At<String>>,
    }
}

/// Pattern for the schema: a positive number and a unit.
const DURATION: &str =
    r"^\s*([0-9]*[1-9][0-9]*(\.[0-9]*)?|[0-9]*\.[0-9]*[1-9][0-9]*)([eE][+-]?[0-9]+)?\s*(us|ms|s|min)\s*$";

/// A percentage or a fraction.
#[derive(Debug, Clone, JsonSchema)]
#[schemars(untagged)]
pub enum RawPrecision {
    #[schemars(extend("exclusiveMinimum" = 0, "exclusiveMaximum" = 1))]
    Fraction(f64),
    #[schemars(extend("pattern" = "^ *[0-9.]*[1-9][0-9.]* *%$"))]
    Percent(String),
}

read_by_kind! {
    RawPrecision, "a percentage in a string such as \"0.5%\", or a fraction";
    String => Percent, Integer | Float => Fraction
}

/// One value, or a list of values.
#[derive(Debug, Clone, JsonSchema)]
#[schemars(untagged, inline)]
pub enum OneOrMany<T> {
    One(T),
    Many(Vec<T>),
}

impl<T> OneOrMany<T> {
    pub fn as_slice(&self) -> &[T] {
        match self {
            Self::One(one) => std::slice::from_ref(one),
            Self::Many(many) => many,
        }
    }
}

impl<T: Read> Read for OneOrMany<T> {
    const EXPECTED: &'static str = T::EXPECTED;

    fn place(&self) -> Option<Span> {
        self.as_slice().first().and_then(T::place)
    }

    fn read(value: &Spanned<DeValue<'_>>, reader: &mut Reader<'_>) -> Option<Self> {
        match value.get_ref() {
            DeValue::Array(_) => Vec::read(value, reader).map(Self::Many),
            _ => T::read(value, reader).map(Self::One),
        }
    }
}

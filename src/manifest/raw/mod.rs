//! The manifest as the file writes it: the single definition of its keys.
//!
//! Readers, lists of known keys and the JSON Schema follow from these types. They hold every value with its place and
//! say nothing of what a value means; `validate` does.

mod bodies;
mod data;
mod values;
mod variant;

use schemars::JsonSchema;
use toml::Spanned;
use toml::de::DeValue;

pub use data::{RawBuffer, RawCheck, RawExpect, RawFill, RawFillTable, RawPrinted, RawTolerance, RawWork};
pub use values::{Arg, Expr, Literal, Ref, Text, TextOrNumber};
pub use variant::{RawBuiltin, RawExtent, RawLaunch, RawVariant};

use crate::model::Regime;

use super::read::{At, Must, Named, Read, Reader, table};

table! {
    /// An experiment: which way of writing a GPU kernel is faster, by how much, and is it still right?
    #[schemars(title = "runner experiment")]
    pub struct RawManifest {
        /// What is asked.
        pub experiment: Must<At<RawExperiment>>,
        /// Named lists of values; the matrix is their Cartesian product.
        pub axes: Option<Named<At<RawAxis>>>,
        /// How the product is cut and extended.
        pub matrix: Option<At<RawMatrix>>,
        /// What another backend runs instead, by backend: `cuda` or `sim`.
        #[schemars(extend("propertyNames" = { "enum": ["cuda", "sim"] }))]
        pub on: Option<Named<At<RawOn>>>,
        /// Names for expressions; order does not matter.
        pub r#let: Option<Named<Expr>>,
        /// Device memory.
        pub buffers: Option<Named<At<RawBuffer>>>,
        /// What is compared with what: one table, or an array of tables.
        pub check: Option<OneOrMany<At<RawCheck>>>,
        /// The least work that the job asks for.
        pub work: Option<At<RawWork>>,
        /// How long and how exactly to measure.
        pub measure: Option<At<RawMeasure>>,
        /// The implementations under comparison.
        #[schemars(extend("minItems" = 1))]
        pub variant: Must<Vec<At<RawVariant>>>,
    }
    later {
        "claim": "statements that the run must bear out",
        "profile": "hardware counters",
    }
}

table! {
    /// What is asked.
    pub struct RawExperiment {
        /// Names the experiment's folder of reports: letters, digits, `-` and `_`.
        #[schemars(extend("pattern" = "^[A-Za-z0-9_-]+$"))]
        pub name: Must<At<String>>,
        /// Heads the report; by default the name.
        pub title: Option<At<String>>,
        /// The question that the report opens with: a paragraph of Markdown.
        pub question: Option<At<String>>,
        /// What the others are compared with: a variant's name, or a table of it and a value of each compared axis.
        pub baseline: Option<RawBaseline>,
        /// Axes that are compared besides the variant.
        #[schemars(extend("uniqueItems" = true))]
        pub compare: Option<Vec<At<String>>>,
        /// Whether each variant is a step on from the one before it, to be compared with that; true by default.
        pub steps: Option<At<bool>>,
    }
}

/// A variant's name, or a table of it and a value of each compared axis.
#[derive(Debug, Clone, JsonSchema)]
#[schemars(untagged)]
pub enum RawBaseline {
    Name(At<String>),
    Table(At<Named<At<Literal>>>),
}

impl Read for RawBaseline {
    const EXPECTED: &'static str = "a variant's name, or a table of it and values of compared axes";

    fn read(value: &Spanned<DeValue<'_>>, reader: &mut Reader<'_>) -> Option<Self> {
        match value.get_ref() {
            DeValue::String(_) => At::read(value, reader).map(Self::Name),
            DeValue::Table(_) => At::read(value, reader).map(Self::Table),
            _ => reader.wrong_type(value, Self::EXPECTED),
        }
    }
}

/// A list of values, or how to make one.
#[derive(Debug, Clone, JsonSchema)]
#[schemars(untagged)]
pub enum RawAxis {
    #[schemars(extend("minItems" = 1, "uniqueItems" = true))]
    List(Vec<At<Literal>>),
    Made(RawAxisTable),
}

table! {
    /// How an axis is made: exactly one of the keys.
    #[schemars(extend("minProperties" = 1, "maxProperties" = 1))]
    pub struct RawAxisTable {
        /// Powers of two: first and last exponent, and the step of the exponent (1 where it is left out).
        #[schemars(extend("minItems" = 2, "maxItems" = 3, "items" = { "type": "integer", "minimum": 0, "maximum": 62 }))]
        pub pow2: Option<At<Vec<At<i64>>>>,
        /// Integers: first, last (included where the step meets it), step (1 where it is left out).
        #[schemars(extend("minItems" = 2, "maxItems" = 3))]
        pub range: Option<At<Vec<At<i64>>>>,
        /// Integers as expressions of numbers: `["2**24", "3 * 2**20"]`.
        #[schemars(extend("minItems" = 1, "uniqueItems" = true))]
        pub int: Option<At<Vec<Expr>>>,
    }
}

impl Read for RawAxis {
    const EXPECTED: &'static str = "a list of values, or a table with `pow2`, `range` or `int`";

    fn read(value: &Spanned<DeValue<'_>>, reader: &mut Reader<'_>) -> Option<Self> {
        match value.get_ref() {
            DeValue::Array(_) => Vec::read(value, reader).map(Self::List),
            DeValue::Table(_) => RawAxisTable::read(value, reader).map(Self::Made),
            _ => reader.wrong_type(value, Self::EXPECTED),
        }
    }
}

table! {
    /// How the product of the axes is cut and extended.
    pub struct RawMatrix {
        /// Lists of axes that advance together.
        #[schemars(extend("items" = { "type": "array", "items": { "type": "string" }, "minItems": 2, "uniqueItems": true }))]
        pub zip: Option<Vec<At<Vec<At<String>>>>>,
        /// Cells that are left out, and why.
        pub exclude: Option<Vec<At<RawExclude>>>,
        /// Points added to the product: a value for every axis.
        pub include: Option<Vec<At<Named<At<Literal>>>>>,
    }
}

table! {
    /// Cells that are left out, and why.
    pub struct RawExclude {
        /// Which cells: an expression that is true for them.
        pub when: Must<Expr>,
        /// The reason, for the report.
        pub why: Must<At<String>>,
    }
}

table! {
    /// What another backend runs instead.
    pub struct RawOn {
        /// Axes in place of those of the same name.
        pub axes: Option<Named<At<RawAxis>>>,
        /// Bindings in place of those of the same name.
        pub r#let: Option<Named<Expr>>,
    }
}

table! {
    /// How long and how exactly to measure.
    pub struct RawMeasure {
        /// States of the caches before each launch: `cold` (the default), `warm`, `graph`, `rotate`.
        #[schemars(extend("minItems" = 1, "uniqueItems" = true, "items" = { "enum": Regime::ALL.map(Regime::name) }))]
        pub regimes: Option<At<Vec<At<String>>>>,
        /// Half-width of the median's interval to reach: `"0.5%"` (the default) or a fraction.
        pub precision: Option<At<RawPrecision>>,
        /// No step of a case may take longer: `"30s"` is the default.
        #[schemars(extend("pattern" = DURATION))]
        pub timeout: Option<At<String>>,
        /// Launches before the first sample; 2 by default.
        pub warmup: Option<At<u32>>,
        /// Fewest samples; 15 by default.
        #[schemars(extend("minimum" = 1))]
        pub min_samples: Option<At<u32>>,
        /// Most samples; 2000 by default.
        #[schemars(extend("minimum" = 1))]
        pub max_samples: Option<At<u32>>,
        /// Device time that the samples of one case may take: `"500ms"` is the default.
        #[schemars(extend("pattern" = DURATION))]
        pub budget: Option<At<String>>,
        /// Whether the energy of a run is taken too, in a pass of its own after the timings; about two seconds a case.
        pub energy: Option<At<bool>>,
        /// Hardware counters by Nsight Compute's names, with their roll-up (`"dram__bytes_read.sum"`), besides those
        /// that `--counters` and `profile` always take.
        #[schemars(extend("uniqueItems" = true, "items" = { "type": "string", "pattern": "^[A-Za-z0-9_]*__[A-Za-z0-9_.]*$" }))]
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

/// A positive number and a unit, for the schema.
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

impl Read for RawPrecision {
    const EXPECTED: &'static str = "a percentage in a string such as \"0.5%\", or a fraction";

    fn read(value: &Spanned<DeValue<'_>>, reader: &mut Reader<'_>) -> Option<Self> {
        match value.get_ref() {
            DeValue::String(_) => String::read(value, reader).map(Self::Percent),
            DeValue::Integer(_) | DeValue::Float(_) => f64::read(value, reader).map(Self::Fraction),
            _ => reader.wrong_type(value, Self::EXPECTED),
        }
    }
}

/// One, or a list of them.
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

    fn read(value: &Spanned<DeValue<'_>>, reader: &mut Reader<'_>) -> Option<Self> {
        match value.get_ref() {
            DeValue::Array(_) => Vec::read(value, reader).map(Self::Many),
            _ => T::read(value, reader).map(Self::One),
        }
    }
}

//! Keys of buffers, checks and work.

use schemars::JsonSchema;
use toml::Spanned;
use toml::de::DeValue;

use super::{Expr, Ref, Text};
use crate::read::{At, Read, Reader, Required, read_by_kind, read_word, table};
use runner_types::{Access, Allocation, ElementType, Vary};

table! {
    /// A buffer in device memory.
    #[schemars(extend("allOf" = [
        { "if": { "required": ["access"], "properties": { "access": { "enum": ["in", "inout"] } } },
          "then": { "required": ["fill"] } },
        { "if": { "required": ["access"], "properties": { "access": { "enum": ["out", "scratch"] } } },
          "then": { "properties": { "fill": false } } },
        { "if": { "required": ["vary"] },
          "then": { "required": ["fill"], "properties": { "access": { "enum": ["in", "inout"] } } } },
        { "if": { "required": ["poison"], "properties": { "poison": { "const": true } } },
          "then": { "required": ["access"], "properties": { "access": { "enum": ["scratch"] },
                                                            "allocate": { "enum": ["once"] } } } },
        { "if": { "required": ["allocate"], "properties": { "allocate": { "enum": ["each_run", "each_run_async"] } } },
          "then": { "required": ["access"], "properties": { "access": { "enum": ["scratch"] }, "symbol": false } } }
    ]))]
    pub struct RawBuffer {
        /// Element type: i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64, a vector such as `float4`, or a
        /// template that yields one of these.
        #[schemars(extend("pattern" = element_pattern()))]
        pub r#type: Required<Text>,
        /// Number of elements, at least 1; by default the length of the file or list in `fill`.
        #[schemars(extend("type" = ["string", "integer"], "minimum" = 1))]
        pub len: Option<Expr>,
        /// Initial contents; required for `in` and `inout`, refused for `out` and `scratch`.
        pub fill: Option<At<RawFill>>,
        /// What happens to the buffer before every launch. `in` (the default with a fill): nothing, and a kernel that
        /// changes it fails; `out` (the default without a fill): poisoned; `inout`: restored; `scratch`: poisoned if
        /// another case has used it since, and never checked.
        pub access: Option<At<Access>>,
        /// C++ name of a static `__device__` array whose memory the buffer uses.
        pub symbol: Option<Text>,
        /// When the memory of a `scratch` buffer is allocated and freed: `once` (the default), or in every run that the
        /// regime `host` times, synchronously (`each_run`) or in stream order (`each_run_async`).
        pub allocate: Option<At<Allocation>>,
        /// `permute`: in the second set of inputs, the elements of `iota`, a list or a file are in a different order.
        /// Random contents always differ.
        pub vary: Option<At<Vary>>,
        /// Whether `scratch` memory is poisoned before every launch; false by default.
        pub poison: Option<At<bool>>,
    }
}

/// Pattern for the schema: the name of an element type, or a template that yields one.
fn element_pattern() -> String {
    let names = ElementType::NAMES.join("|");
    format!("\\{{|^\\s*({names}|{})\\s*$", ElementType::VECTORS)
}

read_word!(Allocation, "\"once\", \"each_run\" or \"each_run_async\"");

read_word!(Vary, "\"permute\"");

read_word!(Access, "\"in\", \"out\", \"inout\" or \"scratch\"");

/// A constant (a number or an expression), `"iota"`, a list of all elements, or a table that says how to generate the
/// contents.
#[derive(Debug, Clone, JsonSchema)]
#[schemars(untagged)]
pub enum RawFill {
    /// A constant; `"iota"` is 0, 1, 2, …
    Constant(Expr),
    /// Every element.
    #[schemars(extend("minItems" = 1))]
    List(Vec<Expr>),
    Table(Box<RawFillTable>),
}

table! {
    /// How to generate the contents: exactly one of the keys, apart from `seed`.
    #[schemars(extend("oneOf" = one_way_to_fill()))]
    pub struct RawFillTable {
        /// `[start, step]`: start + step × index; integers wrap as their type does.
        pub iota: Option<At<RawIota>>,
        /// Uniform between low and high. Integers include high, floats exclude it. A longer buffer begins with the
        /// elements of a shorter one.
        pub uniform: Option<At<[Expr; 2]>>,
        /// Normal with this mean and standard deviation; float types only. A longer buffer begins with the elements of
        /// a shorter one.
        pub normal: Option<At<[Expr; 2]>>,
        /// Ascending and evenly spaced from low to high, which is excluded.
        pub sorted: Option<At<[Expr; 2]>>,
        /// Each of 0, 1, …, length - 1 once, in random order.
        pub permutation: Option<At<bool>>,
        /// Rows of this many elements, one of which is 1 and the others 0.
        pub one_hot: Option<At<Expr>>,
        /// A matrix with this many columns: 1 on the diagonal, 0 elsewhere.
        pub identity: Option<At<Expr>>,
        /// A matrix with this many columns: that number on the diagonal, and random numbers from -1 to 1 elsewhere; not
        /// for unsigned integers.
        pub diagonally_dominant: Option<At<Expr>>,
        /// `[values, exponent]`: ranks from 0 to values - 1; the probability of rank r is proportional to 1/(r +
        /// 1)^exponent.
        pub zipf: Option<At<[Expr; 2]>>,
        /// `[nonzeros, columns]`: row offsets of a sparse matrix, one element more than rows; the last is `nonzeros`. A
        /// row has from 0 to twice the mean number of nonzeros.
        pub csr_rows: Option<At<[Expr; 2]>>,
        /// Column indices of a sparse matrix whose row offsets are in this buffer, ascending in each row.
        pub csr_columns: Option<At<String>>,
        /// Seed of random contents; 1 by default. `like` and `csr_columns` use the seed of the other buffer.
        pub seed: Option<At<u64>>,
        /// The contents of another buffer of the same type.
        pub like: Option<At<String>>,
        /// An `.npy` file, relative to the manifest's folder: exactly `len` elements of the same type (bf16 as `V2`), in C
        /// order.
        pub npy: Option<Text>,
        /// A file of little-endian elements without a header, relative to the manifest's folder.
        pub raw: Option<Text>,
        /// A safetensors file, relative to the manifest's folder.
        pub safetensors: Option<Text>,
        /// Name of the tensor in the file given by `safetensors`; it must have the same type and length.
        pub tensor: Option<Text>,
    }
}

/// Keys of a fill, of which a table has exactly one, and whether `seed` applies to it.
pub const FILLS: [(&str, bool); 15] = [
    ("iota", false),
    ("uniform", true),
    ("normal", true),
    ("sorted", true),
    ("permutation", true),
    ("one_hot", true),
    ("identity", false),
    ("diagonally_dominant", true),
    ("zipf", true),
    ("csr_rows", true),
    ("csr_columns", false),
    ("like", false),
    ("npy", false),
    ("raw", false),
    ("safetensors", false),
];

fn one_way_to_fill() -> serde_json::Value {
    let way = |(key, seeded): (&str, bool)| match (key, seeded) {
        ("safetensors", _) => {
            serde_json::json!({ "required": [key, "tensor"], "properties": { "seed": false } })
        }
        (_, true) => serde_json::json!({ "required": [key], "properties": { "tensor": false } }),
        _ => serde_json::json!({ "required": [key], "properties": { "seed": false, "tensor": false } }),
    };
    FILLS.into_iter().map(way).collect()
}

/// `[start, step]`.
pub type RawIota = [Expr; 2];

read_by_kind! {
    RawFill,
    "a number, an expression, \"iota\", a list of all elements, or a table such as { uniform = [0, 1] }";
    Table => Table, Array => List, String | Integer | Float => Constant
}

table! {
    /// Which result to compare with which expected value.
    #[schemars(extend("oneOf" = [
        { "required": ["actual", "expect"] },
        { "required": ["printed"], "maxProperties": 1 }
    ]))]
    pub struct RawCheck {
        /// A reference function of buffers as they are after the launch: `"sum(partial)"`, `"output"`. At least one
        /// buffer must not be `in`, and none may be `scratch`.
        pub actual: Option<Ref>,
        /// The expected value: a reference function of `in` and `inout` buffers as they were before the launch, a
        /// number, a list of all elements, another variant, a file, or a function in Python or C++.
        pub expect: Option<At<RawExpect>>,
        /// Largest difference of floats that passes; the default depends on the element type. Integers must be equal.
        pub tolerance: Option<At<RawTolerance>>,
        /// Condition on the elements to compare: arithmetic on buffers as they were before the launch, and on `index`,
        /// an element's index: `"index % columns < valid"`.
        pub r#where: Option<Ref>,
        /// Whether the report shows the error of floats that passed; false by default.
        pub error: Option<At<bool>>,
        /// Instead of the other keys: the lines that kernels must print, in any order, or a file that contains them.
        pub printed: Option<At<RawPrinted>>,
    }
}

/// Lines, or the file that contains them.
#[derive(Debug, Clone, JsonSchema)]
#[schemars(untagged)]
pub enum RawPrinted {
    Lines(Vec<Text>),
    File(RawPrintedFile),
}

table! {
    /// A file of lines.
    pub struct RawPrintedFile {
        /// A text file, relative to the manifest's folder. Kernels must print each of its lines.
        pub file: Required<Text>,
    }
}

read_by_kind! {
    RawPrinted, "a list of lines, or { file = \"…\" }";
    Array => Lines, Table => File
}

/// Where the expected value comes from.
#[derive(Debug, Clone, JsonSchema)]
#[schemars(untagged)]
pub enum RawExpect {
    Reference(Ref),
    /// Every element.
    #[schemars(extend("minItems" = 1))]
    List(Vec<Expr>),
    Table(Box<RawExpectTable>),
}

table! {
    /// Another source of the expected value: exactly one of the keys.
    #[schemars(extend("oneOf" = [
        { "required": ["variant"], "maxProperties": 1 },
        { "required": ["npy"], "maxProperties": 1 },
        { "required": ["raw"], "maxProperties": 1 },
        { "required": ["python"], "maxProperties": 1 },
        { "required": ["cpp"], "maxProperties": 1 },
        { "required": ["safetensors", "tensor"], "maxProperties": 2 }
    ]))]
    pub struct RawExpectTable {
        /// Variant whose result in the same group is expected.
        pub variant: Option<At<String>>,
        /// An `.npy` file, relative to the manifest's folder.
        pub npy: Option<Text>,
        /// A file of little-endian elements without a header, relative to the manifest's folder.
        pub raw: Option<Text>,
        /// A safetensors file, relative to the manifest's folder.
        pub safetensors: Option<Text>,
        /// Name of the tensor in the file given by `safetensors`.
        pub tensor: Option<Text>,
        /// A Python function, as in `"golden.py:softmax"`. Its parameters have the names of buffers, axes and bindings,
        /// and it returns an array.
        pub python: Option<At<String>>,
        /// A C++ function, as in `"golden.cpp:softmax"`. Its parameters have the names of buffers, axes and bindings,
        /// and it returns a `std::vector` or a number.
        pub cpp: Option<At<String>>,
    }
}

read_by_kind! {
    RawExpect,
    "an expression, a list of all elements, { variant = \"…\" }, { npy = \"…\" }, { raw = \"…\" }, { safetensors = \
     \"…\", tensor = \"…\" }, { python = \"…\" } or { cpp = \"…\" }";
    Table => Table, Array => List, String | Integer | Float => Reference
}

table! {
    /// Tolerances. A result passes if any of them allows it.
    pub struct RawTolerance {
        /// Largest absolute difference.
        #[schemars(extend("minimum" = 0))]
        pub abs: Option<At<f64>>,
        /// Largest difference as a fraction of the expected value.
        #[schemars(extend("minimum" = 0))]
        pub rel: Option<At<f64>>,
        /// Largest difference in units in the last place.
        pub ulp: Option<At<u64>>,
        /// Largest fraction of elements that may be wrong; also applies to integers.
        #[schemars(extend("minimum" = 0, "maximum" = 1))]
        pub fraction: Option<At<f64>>,
        /// Largest error of the whole array in the Frobenius norm, as a fraction of the norm of the expected array.
        #[schemars(extend("minimum" = 0))]
        pub norm: Option<At<f64>>,
        /// Largest error of an element, as a fraction of the largest expected absolute value.
        #[schemars(extend("minimum" = 0))]
        pub max_norm: Option<At<f64>>,
    }
}

table! {
    /// Minimum work that the job requires. The report computes rates from it.
    pub struct RawWork {
        /// Minimum number of bytes that must be moved, an integer.
        pub bytes: Option<Expr>,
        /// Number of arithmetic operations.
        pub flops: Option<Expr>,
    }
}

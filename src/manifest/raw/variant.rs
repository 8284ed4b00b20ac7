//! Keys of variants and launches.

use schemars::JsonSchema;
use toml::Spanned;
use toml::de::DeValue;

use super::{Arg, Expr, OneOrMany, RawAxis, RawBuffer, RawCheck, RawWork, Ref, Text, TextOrNumber};
use crate::manifest::read::{At, Inline, Must, Named, Read, Reader, table};
use crate::experiment::{CompileSpec, LaunchSpec};
use crate::model::Failure;

table! {
    /// One implementation: a kernel, a sequence of launches, an operation of the driver, a function of the host that
    /// queues work on the device, or a reference on the host.
    #[schemars(extend("oneOf" = super::bodies::bodies()))]
    pub struct RawVariant {
        /// Names every axis of the variant: `"unroll{u}"`.
        pub name: Must<Text>,
        /// Axes of this variant alone: each of their points is a variant.
        pub axes: Option<Named<At<RawAxis>>>,
        /// What must hold, else the case is excluded with this text.
        pub requires: Option<OneOrMany<Expr>>,
        /// Bindings of this variant, over the shared ones.
        pub r#let: Option<Named<Expr>>,
        /// Buffers that only this variant has, or has in another form.
        pub buffers: Option<Named<At<RawBuffer>>>,
        /// The least work, in place of the shared one.
        pub work: Option<At<RawWork>>,
        /// What its results are compared with, in place of the shared checks; `[]` for none.
        pub check: Option<OneOrMany<At<RawCheck>>>,
        /// How the variant is to fail, where it is a lesson: the run passes only if it ends in one of these ways.
        pub fails: Option<OneOrMany<At<Failure>>>,
        /// A sequence of kernels; what an entry leaves out it takes from the variant.
        #[schemars(extend("minItems" = 1))]
        pub launch: Option<At<Vec<At<RawLaunchEntry>>>>,
        /// An operation of the driver.
        pub builtin: Option<At<RawBuiltin>>,
        /// A reference function timed on the host: `"sum(input)"`.
        pub cpu: Option<Ref>,
        /// A C function of `source`, built by nvcc, that queues work on the device: `"cub_sum_{type}"`.
        pub host: Option<Text>,
        /// Libraries that `host` is linked with: `["cublas"]`.
        pub libraries: Option<Vec<Text>>,
        #[schemars(flatten)]
        pub kernel: Inline<RawLaunch>,
    }
    later {
        "regimes": "measuring a variant in its own regimes",
    }
}

table! {
    /// One launch of a sequence.
    pub struct RawLaunchEntry {
        /// What the report calls it; by default the kernel's name.
        pub label: Option<At<String>>,
        #[schemars(flatten)]
        pub kernel: Inline<RawLaunch>,
    }
}

table! {
    /// A kernel, its launch and how it is compiled.
    pub struct RawLaunch {
        /// The CUDA C++ file: looked for in `kernels/` beside the manifest's folder, then in the folder itself.
        #[schemars(extend("not" = { "pattern": "\\.ptx$" }))]
        pub source: Option<At<String>>,
        /// A C++ name expression: `"reduce<{type}, {block}>"`.
        pub kernel: Option<Text>,
        /// Blocks: a list of one to three expressions, or `"occupancy"`.
        pub grid: Option<At<RawExtent>>,
        /// Threads a block: a list of one to three expressions, or `"occupancy"`.
        pub block: Option<At<RawExtent>>,
        /// Dynamic shared memory, bytes.
        #[schemars(extend("type" = ["string", "integer"], "minimum" = 0))]
        pub shared: Option<Expr>,
        /// Buffers by name, and scalars by type: `"u32(n)"`.
        pub args: Option<At<Vec<Arg>>>,
        /// Whether the grid synchronises as a whole.
        pub cooperative: Option<At<bool>>,
        /// How often it is launched; which one it is, from 0, is `nth` in the launch's expressions.
        #[schemars(extend("type" = ["string", "integer"], "minimum" = LaunchSpec::REPEATS.start(), "maximum" = LaunchSpec::REPEATS.end()))]
        pub repeat: Option<Expr>,
        /// The stream that it is launched in, from 0; launches of several streams may run beside each other.
        #[schemars(extend("type" = ["string", "integer"], "minimum" = LaunchSpec::STREAMS.start(), "maximum" = LaunchSpec::STREAMS.end()))]
        pub stream: Option<Expr>,
        /// Macros and their values.
        pub defines: Option<Named<TextOrNumber>>,
        /// Further options of the compiler.
        #[schemars(extend("items" = { "type": "string", "pattern": "^(-|\\{)" }))]
        pub options: Option<Vec<Text>>,
        /// Folders for `#include`, looked for as `source` is.
        pub include_paths: Option<Vec<At<String>>>,
        /// Compile for a debugger (`-G`).
        pub debug: Option<At<bool>>,
        /// Most registers a thread.
        #[schemars(extend("type" = ["string", "integer"], "minimum" = CompileSpec::REGISTERS.start(), "maximum" = CompileSpec::REGISTERS.end()))]
        pub max_registers: Option<Expr>,
        /// Compile for linking with the device runtime: kernels that launch kernels need it.
        pub relocatable: Option<At<bool>>,
        /// Launches from kernels that may be at a time; 2048 by default.
        #[schemars(extend("type" = ["string", "integer"], "minimum" = LaunchSpec::PENDING_LAUNCHES.start(), "maximum" = LaunchSpec::PENDING_LAUNCHES.end()))]
        pub pending_launches: Option<Expr>,
    }
}

impl Read for Failure {
    const EXPECTED: &'static str =
        "\"wrong\", \"invalid\", \"compile_error\", \"launch_error\", \"crashed\", \"timed_out\" or \"trap\"";

    fn read(value: &Spanned<DeValue<'_>>, reader: &mut Reader<'_>) -> Option<Self> {
        let DeValue::String(text) = value.get_ref() else { return reader.wrong_type(value, Self::EXPECTED) };
        Self::ALL.into_iter().find(|failure| failure.name() == text.as_ref()).or_else(|| {
            let rule = format!("must be {}, not \"{text}\"", Self::EXPECTED);
            reader.wrong_value(value.span(), &rule)
        })
    }
}

/// A list of one to three expressions, or `"occupancy"`.
#[derive(Debug, Clone, JsonSchema)]
#[schemars(untagged)]
pub enum RawExtent {
    #[schemars(extend(
        "minItems" = 1, "maxItems" = 3, "items" = { "type": ["string", "integer"], "minLength": 1, "minimum": 1 }
    ))]
    Dims(Vec<Expr>),
    #[schemars(extend("enum" = ["occupancy"]))]
    Word(String),
}

impl Read for RawExtent {
    const EXPECTED: &'static str = "a list of one to three expressions, or \"occupancy\"";

    fn read(value: &Spanned<DeValue<'_>>, reader: &mut Reader<'_>) -> Option<Self> {
        match value.get_ref() {
            DeValue::Array(_) => Vec::read(value, reader).map(Self::Dims),
            DeValue::String(word) => Some(Self::Word(word.to_string())),
            _ => reader.wrong_type(value, Self::EXPECTED),
        }
    }
}

table! {
    /// An operation of the driver.
    pub struct RawBuiltin {
        /// Device-to-device copies, one after the other: `[["from", "to"], …]`.
        #[schemars(extend("minItems" = 1))]
        pub memcpy: Must<At<Vec<At<[At<String>; 2]>>>>,
    }
    later {
        "memset": "filling memory through the driver",
    }
}

//! Keys of variants and launches.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use toml::Spanned;
use toml::de::DeValue;

use super::{
    Arg, Expr, OneOrMany, RawAxis, RawBuffer, RawCheck, RawCompileSettings, RawLaunchSettings, RawWork, Ref, Text,
    TextOrNumber,
};
use crate::read::{At, Inline, Named, Read, Reader, Required, Table as _, read_word, table};
use runner_experiment::{Expression, LaunchSpec, LoopSpec};
use runner_types::{Failure, KernelCompiler, SanitizerClass};

table! {
    /// One implementation: a kernel, a sequence of launches, a driver operation, a host function that queues work on
    /// the device, or a reference function on the host.
    #[schemars(extend("oneOf" = bodies()))]
    pub struct RawVariant {
        /// Name of the variant, which must use every axis of the variant and no other name: `"unroll{u}"`.
        pub name: Required<Text>,
        /// Axes of this variant only. Each point on them is a variant, and all are in one group.
        pub axes: Option<Named<At<RawAxis>>>,
        /// Conditions that must be true. Otherwise the case is excluded, with the condition as the reason.
        pub requires: Option<OneOrMany<Expr>>,
        /// Bindings of this variant, which replace shared ones with the same name.
        pub r#let: Option<Named<Expr>>,
        /// Buffers of this variant, which replace shared ones with the same name.
        pub buffers: Option<Named<At<RawBuffer>>>,
        /// Minimum work of this variant, instead of the shared value.
        pub work: Option<At<RawWork>>,
        /// Checks of this variant, instead of the shared ones. With `[]`, its results are `unchecked`.
        pub check: Option<OneOrMany<At<RawCheck>>>,
        /// Ways in which the variant is expected to fail. Its cases pass only if they fail in one of them.
        pub fails: Option<RawFails>,
        /// Conditions and expected failures on one backend: `on.sim` or `on.cuda`.
        pub on: Option<Named<At<RawVariantOn>>>,
        /// Turns off the simulator's sanitizer for this variant, or some classes of its findings, and says why.
        /// Out-of-bounds accesses are always detected.
        pub sanitize: Option<At<RawSanitize>>,
        /// Which blocks of its launch the simulator runs.
        pub simulate: Option<At<RawSimulate>>,
        /// A sequence of kernels. Keys that an entry omits are taken from the variant.
        #[schemars(extend("minItems" = 1))]
        pub launch: Option<At<Vec<At<RawLaunchEntry>>>>,
        /// A driver operation.
        pub builtin: Option<At<RawBuiltin>>,
        /// A reference function to time on one thread of the host: `"sum(input)"`.
        pub cpu: Option<Ref>,
        /// A C function of `source`, built by nvcc, that queues work on the device: `"cub_sum_{type}"`.
        pub host: Option<Text>,
        /// Libraries to link with `host`: `["cublas"]`.
        pub libraries: Option<Vec<Text>>,
        #[schemars(flatten)]
        pub kernel: Inline<RawLaunch>,
    }
    later {
        "regimes": "measuring a variant in its own regimes",
    }
}

impl RawVariant {
    /// Takes from the manifest's defaults the applicable keys that the variant omits.
    pub(super) fn inherit(&mut self, defaults: &RawLaunch) {
        if self.builtin.is_some() || self.cpu.is_some() {
            return;
        }
        let own = std::mem::take(&mut self.kernel.0);
        self.kernel.0 = if self.host.is_some() { own.or_shared(&defaults.of_host()) } else { own.or_shared(defaults) };
    }
}

table! {
    /// Differences of a variant on one backend.
    pub struct RawVariantOn {
        /// Further conditions. If one is false, the case is excluded on this backend.
        pub requires: Option<OneOrMany<Expr>>,
        /// Ways in which the variant is expected to fail on this backend, instead of the variant's own `fails`; `[]` if
        /// it must be right.
        pub fails: Option<RawFails>,
    }
}

/// Ways to fail, either for all cases or each with a condition.
#[derive(Debug, Clone, JsonSchema)]
#[schemars(untagged)]
pub enum RawFails {
    Ways(OneOrMany<At<Failure>>),
    Where(Box<At<RawFailsWhere>>),
}

impl Read for RawFails {
    const EXPECTED: &'static str = Failure::EXPECTED;

    fn read(value: &Spanned<DeValue<'_>>, reader: &mut Reader<'_>) -> Option<Self> {
        match value.get_ref() {
            DeValue::Table(_) => At::read(value, reader).map(Box::new).map(Self::Where),
            _ => OneOrMany::read(value, reader).map(Self::Ways),
        }
    }
}

table! {
    /// Ways to fail, each with a condition on the axes: only the cases for which it holds are expected to fail.
    #[schemars(extend("minProperties" = 1))]
    pub struct RawFailsWhere {
        /// Cases with a wrong result.
        pub wrong: Option<Expr>,
        /// Cases whose launch the device does not allow.
        pub invalid: Option<Expr>,
        /// Cases whose source does not compile.
        pub compile_error: Option<Expr>,
        /// Cases whose launch the driver refuses or aborts.
        pub launch_error: Option<Expr>,
        /// Cases that end the worker.
        pub crashed: Option<Expr>,
        /// Cases that do not end in time.
        pub timed_out: Option<Expr>,
        /// Cases with a fault that the simulator or compute-sanitizer detects.
        pub trap: Option<Expr>,
    }
}

impl RawFailsWhere {
    /// Condition of each given way to fail.
    pub fn conditions(&self) -> Vec<(Failure, &Expression)> {
        let given = [
            (Failure::Wrong, &self.wrong),
            (Failure::Invalid, &self.invalid),
            (Failure::CompileError, &self.compile_error),
            (Failure::LaunchError, &self.launch_error),
            (Failure::Crashed, &self.crashed),
            (Failure::TimedOut, &self.timed_out),
            (Failure::Trap, &self.trap),
        ];
        given.into_iter().filter_map(|(way, raw)| raw.as_ref().map(|Expr(condition)| (way, condition))).collect()
    }
}

table! {
    /// What the sanitizer ignores in a variant.
    pub struct RawSanitize {
        /// Classes to turn off; or, for all of them, the reason.
        pub off: Required<At<RawOff>>,
        /// Why these classes are off, shown in the report.
        pub reason: Option<At<String>>,
    }
}

/// Classes of findings, or the reason why all are off.
#[derive(Debug, Clone, JsonSchema)]
#[schemars(untagged)]
pub enum RawOff {
    Reason(String),
    #[schemars(extend("minItems" = 1))]
    Classes(Vec<SanitizerClass>),
}

impl Read for RawOff {
    const EXPECTED: &'static str = "a list of classes, or the reason why all are off";

    fn read(value: &Spanned<DeValue<'_>>, reader: &mut Reader<'_>) -> Option<Self> {
        match value.get_ref() {
            DeValue::Array(_) => Vec::read(value, reader).map(Self::Classes),
            DeValue::String(reason) => Some(Self::Reason(reason.to_string())),
            _ => reader.wrong_type(value, Self::EXPECTED),
        }
    }
}

read_word!(SanitizerClass, "\"race\", \"uninitialised\", \"asynchronous\" or \"shuffle\"");

table! {
    /// How the simulator runs a variant. A GPU always runs it completely.
    pub struct RawSimulate {
        /// All blocks, or a sample of them. What a sample writes is checked, and its counts are scaled.
        pub blocks: Required<At<RawBlocks>>,
    }
}

/// Blocks of a launch that the simulator runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RawBlocks {
    /// Every block.
    All,
    /// A stratified sample.
    Sample,
}

read_word!(RawBlocks, "\"sample\" or \"all\"");

table! {
    /// One step of a sequence: a launch, a loop over steps, or an operation on buffers.
    pub struct RawLaunchEntry {
        /// Name in the report; by default the kernel's name.
        pub label: Option<At<String>>,
        /// Steps to repeat: `repeat` times (1 to 16,384), or until a condition holds.
        #[schemars(extend("minItems" = 1))]
        pub r#loop: Option<At<Vec<At<RawLaunchEntry>>>>,
        /// With `loop`: condition that ends the loop when it holds after an iteration. A buffer's name means its first
        /// element.
        pub until: Option<Expr>,
        /// With `until`: maximum number of iterations, up to 2^20. It is an error if the condition does not hold after
        /// them.
        #[schemars(extend(
            "type" = ["string", "integer"],
            "minimum" = LoopSpec::BOUNDS.start(), "maximum" = LoopSpec::BOUNDS.end()
        ))]
        pub at_most: Option<Expr>,
        /// Two buffers that exchange their names in everything that follows, including checks.
        pub swap: Option<At<[At<String>; 2]>>,
        /// A device-to-device copy of a whole buffer: `["from", "to"]`.
        pub copy: Option<At<[At<String>; 2]>>,
        /// Buffer whose elements are all set to `value`.
        pub memset: Option<At<String>>,
        /// With `memset`: the number, 0 by default.
        pub value: Option<Expr>,
        /// Bindings of this launch or loop, in order. They may use `nth`; bindings of the variant that use one of them
        /// are re-evaluated.
        pub r#let: Option<Named<Expr>>,
        #[schemars(flatten)]
        pub kernel: Inline<RawLaunch>,
    }
}

table! {
    /// A kernel, its launch and how it is compiled.
    pub struct RawLaunch {
        /// CUDA C++ file, or code of another compiler (`.ptx`, `.cubin`, `.fatbin`), in `kernels/` next to the
        /// manifest's folder or in the folder itself. In a list, the first file contains the kernel and is linked with
        /// the others.
        pub source: Option<OneOrMany<At<String>>>,
        /// A C++ name expression: `"reduce<{type}, {block}>"`; in code of another compiler, the name of the entry
        /// point.
        pub kernel: Option<Text>,
        /// Blocks per grid: a list of one to three expressions, or `"occupancy"` for as many as are resident on the
        /// device at once.
        pub grid: Option<At<RawExtent>>,
        /// Threads per block: a list of one to three expressions, or `"occupancy"` for the size with the most resident
        /// threads, which `grid` may use as `occupancy_block`.
        pub block: Option<At<RawExtent>>,
        /// Buffers by name, and numbers by type: `["input", "u32(n)", "{type}(0.5)"]`.
        pub args: Option<At<Vec<Arg>>>,
        /// Number of launches, 1 to 1,024; in the launch's expressions, `nth` is the 0-based index of the launch. In a
        /// variant with a `launch` list: how often the whole list runs (A, B, A, B).
        #[schemars(extend(
            "type" = ["string", "integer"],
            "minimum" = LaunchSpec::REPEATS.start(), "maximum" = LaunchSpec::REPEATS.end()
        ))]
        pub repeat: Option<Expr>,
        #[schemars(flatten)]
        pub settings: Inline<RawLaunchSettings>,
        /// Blocks per cluster, at most 8 in total: a list of one to three expressions, for a kernel that was compiled
        /// without a cluster size (`__cluster_dims__`).
        #[schemars(extend("minItems" = 1, "maxItems" = 3))]
        pub cluster: Option<At<Vec<Expr>>>,
        /// Buffer whose lines stay in L2 during the launch, as far as there is room.
        pub persist: Option<At<RawPersist>>,
        /// Macros and their values: `{ TILE = "{tile}", LEVEL = 3 }`. They replace the source's own `#define`.
        pub defines: Option<Named<TextOrNumber>>,
        /// Further compiler options, one per string: `["--use_fast_math"]`.
        #[schemars(extend("items" = { "type": "string", "pattern": "^(-|\\{)" }))]
        pub options: Option<Vec<Text>>,
        /// Folders of included headers, looked up like `source` and searched after the source's own folder.
        pub include_paths: Option<Vec<At<String>>>,
        #[schemars(flatten)]
        pub compile: Inline<RawCompileSettings>,
        /// Compiler of `source`: the toolkit's library, or an installed program. By default that of `[experiment]`.
        pub compiler: Option<At<KernelCompiler>>,
    }
}

impl RawLaunch {
    /// Values of the keys in [`OF_HOST`].
    fn of_host(&self) -> Self {
        let RawLaunch { source, args, defines, options, include_paths, .. } = self.clone();
        let compile =
            Inline(RawCompileSettings { debug: self.compile.0.debug.clone(), ..RawCompileSettings::default() });
        Self { source, args, defines, options, include_paths, compile, ..Self::default() }
    }
}

table! {
    /// A buffer that stays in L2 during a launch.
    pub struct RawPersist {
        /// The buffer.
        pub buffer: Required<At<String>>,
        /// Fraction of its lines to which this applies; 1 by default.
        pub ratio: Option<Expr>,
    }
}

read_word!(KernelCompiler, "\"nvrtc\", \"nvcc\" or \"clang\"");

read_word!(
    Failure,
    "\"wrong\", \"invalid\", \"compile_error\", \"launch_error\", \"crashed\", \"timed_out\" or \"trap\""
);

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
    /// A driver operation.
    pub struct RawBuiltin {
        /// Device-to-device copies, one after the other: `[["from", "to"], …]`.
        #[schemars(extend("minItems" = 1))]
        pub memcpy: Required<At<Vec<At<[At<String>; 2]>>>>,
    }
    later {
        "memset": "filling memory through the driver",
    }
}

/// Keys of a launch that also apply to a host function: it has arguments and is compiled, but has no grid.
pub const OF_HOST: [&str; 6] = ["source", "args", "defines", "options", "include_paths", "debug"];

/// Schema alternatives of a variant, one per body.
pub fn bodies() -> Value {
    let keys = RawLaunch::keys();
    let of_launches: Vec<&str> = keys.iter().copied().filter(|key| *key != "kernel").collect();
    let not_of_host: Vec<&str> = of_launches.iter().copied().filter(|key| !OF_HOST.contains(key)).collect();
    let bodies = ["kernel", "launch", "builtin", "cpu", "host"];
    let one_of = |required: &[&str], refused: &[&[&str]]| {
        let others = bodies.iter().filter(|body| !required.contains(body));
        let keys = others.chain(refused.iter().copied().flatten());
        let refused: Map<String, Value> = keys.map(|key| ((*key).to_owned(), Value::Bool(false))).collect();
        json!({ "required": required, "properties": refused })
    };
    let mut sequence = one_of(&["launch"], &[&["libraries"]]);
    // Keys that an entry of a sequence omits, including the kernel, are taken from the variant.
    if let Some(refused) = sequence["properties"].as_object_mut() {
        refused.remove("kernel");
    }
    // Omitted keys are in the manifest's defaults.
    let mut launch = one_of(&["kernel"], &[&["libraries"]]);
    launch["required"] = json!([]);
    json!([
        launch,
        sequence,
        one_of(&["builtin"], &[&of_launches, &["libraries"]]),
        one_of(&["cpu"], &[&of_launches, &["libraries"]]),
        one_of(&["host"], &[&not_of_host]),
    ])
}

/// What a manifest without defaults requires of each variant.
pub fn without_defaults() -> Value {
    let whole = ["launch", "builtin", "cpu"].map(|body| json!({ "required": [body] }));
    let any: Vec<Value> = [json!({ "required": ["kernel", "source", "grid", "block"] })]
        .into_iter()
        .chain(whole)
        .chain([json!({ "required": ["host", "source"] })])
        .collect();
    json!({ "properties": { "variant": { "items": { "anyOf": any } } } })
}

//! Shared types of `runner`.
//!
//! Every stage imports these types; none of them imports a stage. They carry data and the rules that make the data
//! valid. They read no files, use no device and only format names, for `Display`.

mod buffer;
mod calendar;
mod case;
mod claim;
mod commit;
mod comparison_rules;
mod compiled;
mod compiler_option;
mod counter;
mod device;
mod digest;
mod dim3;
mod element;
mod event;
mod fill;
mod job;
pub mod limits;
mod line_counts;
mod machine;
mod manifest_change;
mod measurement;
mod mutant;
mod narrow;
mod note;
mod operations;
mod outcome;
pub mod real;
mod record;
mod reference;
mod settings;
mod shard;
mod source_text;
mod steps;
mod struct_fields;
mod texture;
mod tolerance;
mod units;
mod unsanitized;
mod value;

pub use buffer::{Access, Allocation, Persist, Vary};
pub use calendar::calendar_time;
pub use case::{Case, CaseHashes, CaseKey, Fingerprint, GroupKey, axes_text, axis_value, case_name};
pub use claim::Claim;
pub use commit::Commit;
pub use comparison_rules::{Acceptance, ComparisonRules};
pub use compiled::{
    CodeKind, CodePart, CompileFailure, CompileKey, CompileUnit, Compiled, KernelCompiler, KernelResources, ListedCode,
    Plugin, SourceForm, ToolkitInfo,
};
pub use compiler_option::RefusedOption;
pub use counter::{
    CounterInfo, CounterKind, CounterName, CounterTheme, CounterUnit, Counters, VOCABULARY, counter_name,
};
pub use device::h100;
pub use device::{
    BackendKind, Capabilities, DeviceId, DeviceInfo, Environment, Occupancy, OccupancyLimiter, RunContext,
};
pub use digest::{hex, sha256_hex};
pub use dim3::Dim3;
pub use element::{ElementType, UnknownElementType};
pub use event::{Activity, Event, KernelCode, MarkedLaunch, Phase};
pub use fill::{FilePart, FillPlan, Sparse, Structure};
pub use job::{
    ArgPlan, BlockPlan, BodyPlan, BufferPlan, CaseJob, CheckPlan, ExpectPlan, FunctionArgument, FunctionPlan,
    GUARD_BYTES, GridPlan, GroupJob, HostPlan, INDEX, LaunchPlan, MeasurePlan, PrintedPlan, Sharing, SymbolPlan,
    WorkAmount,
};
pub use line_counts::{CountedLine, LineCounts};
pub use machine::{
    Calibration, CalibrationPoint, Ceilings, Clock, DeviceState, Machine, ReferenceTimes, Settings, Spread, Survey,
    SurveyRequest, ThrottleReason,
};
pub use manifest_change::{Effect, Held, ManifestChange, ManifestComparison, ManifestPart, ManifestState};
pub use measurement::{BodyCounters, Energy, Estimate, FormedRatios, Look, Measurement, Regime, Round, Unit};
pub use mutant::{Mutant, WeakCheck};
pub use narrow::{nearest_bf16, nearest_f16};
pub use note::{FixedInputsReason, Note, RanAloneReason, Skipped};
pub use operations::{
    ListedOperation, list_of, listed_operations, operation_counts, with_lists, write_list, write_operations,
};
pub use outcome::{Allowed, Failure, Mismatch, Outcome, Roof, Unchecked, Verdict};
pub use real::Real;
pub use record::{
    AxisColumn, CaseRecord, FINALISTS, LaunchRecord, NoiseFloor, PageTemplate, Processes, Ratio, Records, RegimeResult,
    ResultError, RunHeader, SmClock, can_name_experiment, experiment_name,
};
pub use reference::{Elementwise, Map, Reduction, RefExpr, RefFunction, RefKind, Signature};
pub use settings::{CompileSettings, Kind, LaunchSettings, Number, Setting, Switch};
pub use shard::{GroupPlace, Shard};
pub use source_text::{SourceText, Span};
pub use steps::{ConditionPlan, IterationPlan, LoopPlan, ReadPlan, Renamed, ScalarValue, StepPlan, StepsPlan};
pub use struct_fields::{FieldAddress, NamedField, describe_layout, lay_out, layout_definitions, layout_symbol};
pub use texture::{Texture, TextureAddress, TextureFilter, TextureKind, TextureSampler};
pub use tolerance::{Tolerance, WholeTolerance};
pub use units::{Bytes, Joules, Nanoseconds, Watts};
pub use unsanitized::{SanitizerClass, Unsanitized};
pub use value::Value;

/// Whether a field has its default value, so that JSON can omit it.
pub fn is_default<T: Default + PartialEq>(field: &T) -> bool {
    *field == T::default()
}

//! Possible causes of a case's change, as far as its records show them.

use serde::Serialize;

use super::differences::differing;
use super::{Differs, Fact, Pair};
use runner_types::{CaseRecord, Dim3, LaunchRecord, Outcome};

/// Something that may have changed a case's time or counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CauseKind {
    Variant,
    /// How a case fails that is expected to fail.
    Failure,
    /// Version of the kernel compiler.
    Toolkit,
    /// Version of the compiler for host functions.
    HostCompiler,
    /// Version of the program that measured and simulated.
    Runner,
    /// Hash of the sources, unless the compiled code is known to be the same.
    Source,
    /// Hash of the compiler options, unless the compiled code is known to be the same.
    Options,
    /// Hash of the machine code, if neither source nor options differ.
    Code,
    /// Scalar arguments of the launches.
    Arguments,
    /// The case changed, but its records have no hashes that would tell how.
    Fingerprint,
    Launches,
    /// Blocks per grid.
    Grid,
    /// Threads per block.
    Block,
    /// Bytes of dynamic shared memory per block.
    SharedDynamic,
    /// Bytes of static shared memory per block.
    SharedStatic,
    /// Registers per thread.
    Registers,
    /// Bytes of local memory per thread.
    Local,
    /// Bytes per thread that registers spill to local memory.
    SpillStores,
    /// Bytes per thread that spilled registers load from local memory.
    SpillLoads,
    Occupancy,
    /// Median SM clock during the samples, in MHz.
    SmClock,
}

/// Differences between the reports as a whole.
pub(super) fn of_reports(pair: Pair<'_>) -> Vec<Differs<CauseKind>> {
    let [base, new] = [pair.base, pair.new].map(|records| &records.environment);
    let toolkit = |toolkit: &runner_types::ToolkitInfo| {
        let (major, minor) = toolkit.version;
        Fact::Text(toolkit.build.clone().unwrap_or_else(|| format!("{major}.{minor}")))
    };
    let text = |text: Option<&String>| text.map_or(Fact::Absent, |text| Fact::Text(text.clone()));
    differing([
        (CauseKind::Toolkit, toolkit(&base.toolkit), toolkit(&new.toolkit)),
        (CauseKind::HostCompiler, text(base.host_compiler.as_ref()), text(new.host_compiler.as_ref())),
        (CauseKind::Runner, text(Some(&base.runner)), text(Some(&new.runner))),
    ])
}

/// Differences between two records of a case. A difference shared by several launches is listed once.
pub(super) fn find_causes(base: &CaseRecord, new: &CaseRecord) -> Vec<Differs<CauseKind>> {
    let variant = |record: &CaseRecord| Fact::Text(record.case.key.variant.clone());
    let mut found = differing([(CauseKind::Variant, variant(base), variant(new))]);
    let failure = |record: &CaseRecord| match &record.outcome {
        Outcome::FailedAsExpected { end } => Fact::Text(end.name().replace('_', " ")),
        _ => Fact::Absent,
    };
    found.extend(known([(CauseKind::Failure, (failure(base), failure(new)))]));
    found.extend(hashes(base, new));
    if base.launches.len() == new.launches.len() {
        for (base, new) in base.launches.iter().zip(&new.launches) {
            for cause in launch(base, new) {
                if !found.contains(&cause) {
                    found.push(cause);
                }
            }
        }
    } else if !base.launches.is_empty() && !new.launches.is_empty() {
        let count = |record: &CaseRecord| Fact::Number(record.launches.len() as f64);
        found.push(Differs { what: CauseKind::Launches, base: count(base), new: count(new) });
    }
    let clock = |record: &CaseRecord| record.result.as_ref().and_then(|result| result.sm_clock);
    if let (Some(base), Some(new)) = (clock(base), clock(new)) {
        found.extend(differing([(CauseKind::SmClock, Some(base.median).into(), Some(new.median).into())]));
    }
    found
}

/// Whether both sides ran the same code in the same way, as far as the records show.
pub(super) fn is_same_code(sides: [&CaseRecord; 2], causes: &[Differs<CauseKind>]) -> bool {
    let is_of_code = |cause: &Differs<CauseKind>| {
        !matches!(cause.what, CauseKind::Variant | CauseKind::Failure | CauseKind::SmClock)
    };
    sides.iter().all(|side| side.hashes.is_some()) && !causes.iter().any(is_of_code)
}

/// How the compiled code of both sides compares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Code {
    /// Same code, source and options.
    Same,
    /// Same code, although source or options differ.
    SameDespite { source: bool, options: bool },
    /// Different code.
    Changed,
}

/// Compares the compiled code: machine code, or PTX on the simulator. `None` if it is unknown on either side.
pub(super) fn compare_code(base: &CaseRecord, new: &CaseRecord) -> Option<Code> {
    let (base, new) = (base.hashes.as_ref()?, new.hashes.as_ref()?);
    let (of_base, of_new) = (base.code.as_ref()?, new.code.as_ref()?);
    Some(match (base.source != new.source, base.options != new.options) {
        _ if of_base != of_new => Code::Changed,
        (false, false) => Code::Same,
        (source, options) => Code::SameDespite { source, options },
    })
}

fn hashes(base: &CaseRecord, new: &CaseRecord) -> Vec<Differs<CauseKind>> {
    let text = |text: &str| Fact::Text(text.to_owned());
    let code = compare_code(base, new);
    match (&base.hashes, &new.hashes) {
        (Some(_), Some(_)) if matches!(code, Some(Code::SameDespite { .. })) => Vec::new(),
        (Some(base), Some(new)) => {
            let mut found = differing([
                (CauseKind::Source, text(&base.source), text(&new.source)),
                (CauseKind::Options, text(&base.options), text(&new.options)),
            ]);
            if let (true, Some(of_base), Some(of_new)) = (found.is_empty(), &base.code, &new.code) {
                found.extend(differing([(CauseKind::Code, text(of_base), text(of_new))]));
            }
            found
        }
        _ => match (&base.fingerprint, &new.fingerprint) {
            (Some(base), Some(new)) => differing([(CauseKind::Fingerprint, text(&base.0), text(&new.0))]),
            _ => Vec::new(),
        },
    }
}

fn launch(base: &LaunchRecord, new: &LaunchRecord) -> Vec<Differs<CauseKind>> {
    let number = |pick: fn(&LaunchRecord) -> Option<f64>| (pick(base).into(), pick(new).into());
    let extent = |pick: fn(&LaunchRecord) -> Dim3| (Fact::Extent(pick(base)), Fact::Extent(pick(new)));
    let facts = [
        (CauseKind::Grid, extent(|l| l.grid)),
        (CauseKind::Block, extent(|l| l.block)),
        (CauseKind::SharedDynamic, number(|l| Some(l.shared.into()))),
        (CauseKind::SharedStatic, number(|l| l.resources.shared_static.map(f64::from))),
        (CauseKind::Registers, number(|l| l.resources.registers.map(f64::from))),
        (CauseKind::Local, number(|l| l.resources.local.map(f64::from))),
        (CauseKind::SpillStores, number(|l| l.resources.spill_stores.map(f64::from))),
        (CauseKind::SpillLoads, number(|l| l.resources.spill_loads.map(f64::from))),
        (CauseKind::Occupancy, number(|l| l.occupancy.map(|occupancy| occupancy.fraction))),
    ];
    known(facts)
}

/// The facts that differ. A fact that is unknown on one side is not a difference.
fn known(facts: impl IntoIterator<Item = (CauseKind, (Fact, Fact))>) -> Vec<Differs<CauseKind>> {
    let known = facts.into_iter().filter(|(_, (base, new))| *base != Fact::Absent && *new != Fact::Absent);
    differing(known.map(|(what, (base, new))| (what, base, new)))
}

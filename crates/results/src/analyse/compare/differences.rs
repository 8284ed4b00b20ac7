//! Differences that make two records incomparable, because they did not measure the same thing.

use serde::Serialize;

use super::{Differs, Fact, Pair};
use runner_types::{BackendKind, CaseRecord, Clock, Environment, Unit, WorkAmount};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, strum::IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum DifferenceKind {
    /// A GPU or the simulator.
    Backend,
    /// GPU model or simulator profile.
    Device,
    /// Two different GPUs of the same model. These are still compared, but changes below
    /// [`BETWEEN_GPUS`](super::BETWEEN_GPUS) are not reported.
    Gpu,
    Driver,
    /// Timing method, and whether the clock was calibrated.
    Timing,
    /// State of the caches.
    Regime,
    /// Whether times come from the device's or the host's clock.
    Clock,
    /// One side has a time, the other has counters or an expected failure.
    Quantity,
    /// Which blocks were counted: all, or a sample.
    Sample,
    /// Minimum work of the case.
    Work,
    /// Expected result or tolerance.
    Check,
    /// Buffers, their fills, or the arguments of the launches.
    Inputs,
}

impl DifferenceKind {
    /// Name in reports.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// Differences between two reports as a whole.
pub(super) fn of_reports(pair: Pair<'_>) -> Vec<Differs<DifferenceKind>> {
    let [base, new] = [pair.base, pair.new].map(|records| &records.environment);
    if base.device.backend != new.device.backend {
        let name = |backend: BackendKind| Fact::Text(backend.to_string());
        let (base, new) = (name(base.device.backend), name(new.device.backend));
        return vec![Differs { what: DifferenceKind::Backend, base, new }];
    }
    let text = |text: Option<&String>| text.map_or(Fact::Absent, |text| Fact::Text(text.clone()));
    let facts = [
        (DifferenceKind::Device, text(Some(&base.device.name)), text(Some(&new.device.name))),
        (DifferenceKind::Driver, text(base.driver.as_ref()), text(new.driver.as_ref())),
        (DifferenceKind::Timing, timing(base), timing(new)),
    ];
    differing(facts)
}

fn timing(environment: &Environment) -> Fact {
    let Some(method) = &environment.timing_method else { return Fact::Absent };
    let calibrated = match environment.machine.clock {
        Some(Clock::Calibrated(_)) => "calibrated",
        Some(Clock::Uncalibrated { .. }) | None => "not calibrated",
    };
    Fact::Text(format!("{method} ({calibrated})"))
}

pub(super) fn of_case([base, new]: [&CaseRecord; 2]) -> Vec<Differs<DifferenceKind>> {
    let mut found = of_measurements([base, new]);
    found.extend(differing([
        (DifferenceKind::Sample, sample(base), sample(new)),
        (DifferenceKind::Work, work(base.work), work(new.work)),
    ]));
    if let (Some(base), Some(new)) = (&base.hashes, &new.hashes) {
        let hash = |hash: &str| Fact::Hash(hash.to_owned());
        found.extend(differing([
            (DifferenceKind::Check, hash(&base.check), hash(&new.check)),
            (DifferenceKind::Inputs, hash(&base.inputs), hash(&new.inputs)),
        ]));
    }
    found
}

fn of_measurements([base, new]: [&CaseRecord; 2]) -> Vec<Differs<DifferenceKind>> {
    let text = |text: &str| Fact::Text(text.to_owned());
    match (&base.result, &new.result) {
        (Some(base), Some(new)) => {
            let clock = |unit: Unit| match unit {
                Unit::DeviceNanoseconds => text("device"),
                Unit::HostNanoseconds => text("host"),
            };
            differing([
                (DifferenceKind::Regime, text(base.regime.name()), text(new.regime.name())),
                (DifferenceKind::Clock, clock(base.unit), clock(new.unit)),
            ])
        }
        (None, None) if base.counters.is_some() == new.counters.is_some() => Vec::new(),
        _ => differing([(DifferenceKind::Quantity, quantity(base), quantity(new))]),
    }
}

fn quantity(record: &CaseRecord) -> Fact {
    let name = match (&record.result, &record.counters) {
        (Some(_), _) => "time",
        (None, Some(_)) => "counters",
        (None, None) => record.outcome.name(),
    };
    Fact::Text(name.to_owned())
}

/// Describes a sample, such as `256 of 65536 blocks`. The grid's extents determine the total, and the total determines
/// which blocks are sampled.
fn sample(record: &CaseRecord) -> Fact {
    let blocks = record.counters.as_ref().and_then(|_| record.sample());
    let extents: Vec<String> = record.launches.iter().map(|launch| launch.grid.to_string()).collect();
    blocks.map_or(Fact::Absent, |(ran, of)| Fact::Text(format!("{ran} of {of} blocks ({})", extents.join(", "))))
}

/// Describes an amount of work, such as `4194304 bytes, 1048575 operations`.
fn work(work: WorkAmount) -> Fact {
    let bytes = work.bytes.map(|bytes| format!("{bytes} bytes"));
    let operations = work.flops.map(|flops| format!("{flops} operations"));
    let parts: Vec<String> = bytes.into_iter().chain(operations).collect();
    if parts.is_empty() { Fact::Absent } else { Fact::Text(parts.join(", ")) }
}

/// The facts that differ between the two sides.
pub(super) fn differing<T>(facts: impl IntoIterator<Item = (T, Fact, Fact)>) -> Vec<Differs<T>> {
    let differ = facts.into_iter().filter(|(_, base, new)| base != new);
    differ.map(|(what, base, new)| Differs { what, base, new }).collect()
}

//! What a search can minimise. The value of an objective is read from events during the search, and from records
//! afterwards.

use runner_stats::median;
use runner_types::{BackendKind, CaseJob, CaseRecord, CounterInfo, Event, Outcome, ResultError};

/// A quantity that a search minimises.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Objective {
    /// Time per run of the body.
    Time,
    /// Board energy per run of the body.
    Energy,
    /// Error of a correct result relative to its reference.
    Error(Error),
    /// A counter of the simulator.
    Counter(String),
}

/// A measure of error, as in the columns of `results.csv`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Error {
    /// Maximum absolute difference.
    Abs,
    /// Maximum difference relative to the expected value.
    Rel,
    /// Mean difference relative to the expected value.
    RelMean,
    /// Maximum difference in units in the last place (ulp).
    Ulp,
}

const ERRORS: [(&str, Error); 4] = [
    ("error_rel", Error::Rel),
    ("error_abs", Error::Abs),
    ("error_rel_mean", Error::RelMean),
    ("error_ulp", Error::Ulp),
];

/// The default objective for a device without a clock.
const COUNTER: &str = "inst_executed";

impl Objective {
    /// Looks up objectives by name; the device's default if no names are given.
    pub fn resolve(names: &[String], backend: BackendKind) -> Result<Vec<Self>, String> {
        let simulates = backend == BackendKind::Sim;
        if names.is_empty() {
            return Ok(vec![if simulates { Self::Counter(COUNTER.to_owned()) } else { Self::Time }]);
        }
        let mut found = Vec::new();
        for name in names {
            let error = ERRORS.iter().find(|(known, _)| known == name).map(|(_, error)| Self::Error(*error));
            let objective = match (name.as_str(), error) {
                (_, Some(error)) => error,
                ("time" | "energy", None) if simulates => {
                    return Err(format!(
                        "objective `{name}`: the simulator has no clock and no meter; name a counter, such as {COUNTER}"
                    ));
                }
                ("time", None) => Self::Time,
                ("energy", None) => Self::Energy,
                (_, None) if simulates => Self::Counter(name.clone()),
                (_, None) => {
                    let errors = ERRORS.map(|(name, _)| name).join(", ");
                    return Err(format!(
                        "objective `{name}`: on a GPU it is time, energy or one of {errors}; counters need the \
                        simulator"
                    ));
                }
            };
            if found.contains(&objective) {
                return Err(format!("objective `{name}` is named twice"));
            }
            found.push(objective);
        }
        Ok(found)
    }

    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Time => "time",
            Self::Energy => "energy",
            Self::Error(error) => ERRORS.iter().find(|(_, known)| known == error).map_or("error", |(name, _)| name),
            Self::Counter(name) => name,
        }
    }

    /// Unit of the values; empty if there is none.
    #[must_use]
    pub const fn unit(&self) -> &'static str {
        match self {
            Self::Time => "ms",
            Self::Energy => "mJ",
            Self::Error(_) | Self::Counter(_) => "",
        }
    }

    /// Name and unit, for a column heading.
    #[must_use]
    pub fn column(&self) -> String {
        match self.unit() {
            "" => self.name().to_owned(),
            unit => format!("{}_{}", self.name(), unit.to_lowercase()),
        }
    }

    /// The corresponding PTX count, which the simulator has even if it cannot derive the machine code count.
    #[must_use]
    pub fn of_ptx(&self) -> Option<Self> {
        match self {
            Self::Counter(name) => Some(Self::Counter(CounterInfo::named(name)?.of_ptx()?.to_owned())),
            _ => None,
        }
    }

    /// The objective by which to compare records: the PTX count if some correct record has only that.
    pub(crate) fn common_to<'r>(&self, records: impl IntoIterator<Item = &'r CaseRecord>) -> Self {
        let Some(of_ptx) = self.of_ptx() else { return self.clone() };
        let lacks = |record: &CaseRecord| self.value_of(record).is_none() && of_ptx.value_of(record).is_some();
        if records.into_iter().any(lacks) { of_ptx } else { self.clone() }
    }

    /// Converts a value to a positive one, since strategies take its logarithm. A count of 0 becomes 0.5; an exact
    /// result gets an error below all others.
    #[must_use]
    pub fn level(&self, value: f64) -> f64 {
        match self {
            Self::Counter(_) => value.max(0.5),
            Self::Error(_) => value.max(f64::EPSILON / 256.0),
            Self::Time | Self::Energy => value,
        }
    }

    /// Value of the objective in an event, if it reports one.
    pub(crate) fn value_in(&self, event: &Event) -> Option<f64> {
        match (self, event) {
            (Self::Time, Event::CaseMeasured { measurement, .. }) => {
                let times: Vec<f64> = measurement.rounds.iter().map(|round| round.whole / 1e6).collect();
                median(&times)
            }
            (Self::Energy, Event::CaseMetered { energy, .. }) => Some(energy.per_run.0 * 1e3),
            (Self::Error(kind), Event::CaseErred { error, .. }) => Some(kind.pick(error)),
            (Self::Counter(name), Event::CaseCounted { counters, .. }) => counters.get(name),
            _ => None,
        }
    }

    /// Value of the objective in a record; `None` unless the case is correct.
    pub(crate) fn value_of(&self, record: &CaseRecord) -> Option<f64> {
        if !matches!(record.outcome, Outcome::Measured | Outcome::Unstable { .. }) {
            return None;
        }
        match self {
            Self::Time => record.result.as_ref().map(|result| result.time.point / 1e6),
            Self::Energy => record.energy.map(|energy| energy.per_run.0 * 1e3),
            Self::Error(kind) => record.error.as_ref().map(|error| kind.pick(error)),
            Self::Counter(name) => record.counters.as_ref().and_then(|counters| counters.get(name)),
        }
    }
}

/// Comma-separated names of objectives.
pub fn names(objectives: &[Objective]) -> String {
    objectives.iter().map(Objective::name).collect::<Vec<_>>().join(", ")
}

/// Sets up a case to measure these objectives. Times and counters are always measured.
pub fn measure_by(objectives: &[Objective], case: &mut CaseJob) {
    case.measure.energy |= objectives.contains(&Objective::Energy);
    if objectives.iter().any(|objective| matches!(objective, Objective::Error(_))) {
        case.checks.iter_mut().for_each(|check| check.error = true);
    }
}

impl Error {
    const fn pick(self, error: &ResultError) -> f64 {
        match self {
            Self::Abs => error.abs,
            Self::Rel => error.rel,
            Self::RelMean => error.mean_rel,
            Self::Ulp => error.ulp,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objectives_are_what_the_device_can_measure() {
        let resolve = |names: &[&str], backend| {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            Objective::resolve(&names, backend).map(|found| found.iter().map(Objective::column).collect::<Vec<_>>())
        };
        let ok = |columns: &[&str]| Ok(columns.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
        assert_eq!(resolve(&[], BackendKind::Cuda), ok(&["time_ms"]));
        assert_eq!(resolve(&[], BackendKind::Sim), ok(&["inst_executed"]));
        assert_eq!(
            resolve(&["time", "energy", "error_ulp"], BackendKind::Cuda),
            ok(&["time_ms", "energy_mj", "error_ulp"])
        );
        let why = |found: Result<Vec<String>, String>| found.err().unwrap_or_default();
        assert!(why(resolve(&["time"], BackendKind::Sim)).contains("the simulator has no clock"));
        assert!(why(resolve(&["inst_executed"], BackendKind::Cuda)).contains("counters need the simulator"));
        assert!(why(resolve(&["x", "x"], BackendKind::Sim)).contains("`x` is named twice"));
    }
}

//! Compares simulated and hardware counts of the same cases.
//!
//! Cases are matched by experiment, variant and axis values, so both sides must have run the same sizes. The difference
//! for a variant's counter is that of its worst case. Differences are not judged here: causes are data, written by hand
//! after reading the machine code, and a difference without a cause is unexplained.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::Deserialize;

use runner_types::{Case, CaseKey, CaseRecord, CounterInfo, Counters, Outcome, Records, VOCABULARY, Value};

/// Maximum difference between counts that are called close, as a fraction of the larger one.
pub const CLOSE: f64 = 0.01;

/// Maximum difference that rounding may cause between equal ratios of integers.
const ROUNDING: f64 = 1e-9;

/// Why a count differs, as stated in the causes file. Omitted fields match everything.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cause {
    /// Experiment in which it applies; `None` for all.
    #[serde(default)]
    pub experiment: Option<String>,
    #[serde(default)]
    pub variants: Vec<String>,
    #[serde(default)]
    pub counters: Vec<String>,
    /// Axis values for which it applies.
    #[serde(default)]
    pub at: BTreeMap<String, Value>,
    /// Explanation in one sentence.
    pub because: String,
}

impl Cause {
    fn explains(&self, case: &Case, counter: &str) -> bool {
        let includes = |names: &[String], name: &str| names.is_empty() || names.iter().any(|known| known == name);
        self.experiment.as_ref().is_none_or(|wanted| *wanted == case.key.experiment)
            && includes(&self.variants, &case.key.variant)
            && includes(&self.counters, counter)
            && self.at.iter().all(|(axis, wanted)| case.key.axes.iter().any(|(a, value)| a == axis && value == wanted))
    }
}

/// How closely two counts agree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Agreement {
    /// Equal to the last digit.
    Equal,
    /// Differ by at most [`CLOSE`].
    Close,
    /// Differ by more than [`CLOSE`].
    Different,
}

/// Both counts of one case.
#[derive(Debug, Clone, PartialEq)]
pub struct Pair {
    pub case: Case,
    pub simulated: f64,
    pub hardware: f64,
}

impl Pair {
    /// Difference as a fraction of the larger count.
    pub fn distance(&self) -> f64 {
        let larger = self.simulated.abs().max(self.hardware.abs());
        if larger > 0.0 { (self.simulated - self.hardware).abs() / larger } else { 0.0 }
    }

    pub fn agreement(&self) -> Agreement {
        match self.distance() {
            d if d <= ROUNDING => Agreement::Equal,
            d if d <= CLOSE => Agreement::Close,
            _ => Agreement::Different,
        }
    }
}

/// A counter of a variant, compared over all cases that both sides have.
#[derive(Debug, Clone, PartialEq)]
pub struct Compared {
    /// Variant, with the values of axes that only it has.
    pub variant: String,
    /// Name in the vocabulary of counters.
    pub counter: &'static str,
    /// Number of cases that have this counter on both sides.
    pub cases: usize,
    /// Agreement in the worst case.
    pub agreement: Agreement,
    /// The case with the largest difference.
    pub worst: Pair,
    /// Number of differing cases without a cause.
    pub unexplained: usize,
    /// Indices of the causes of the other differing cases, in file order.
    pub causes: Vec<usize>,
}

/// Comparison of an experiment's counts on the simulator and on hardware.
#[derive(Debug, Clone, PartialEq)]
pub struct Fidelity {
    pub experiment: String,
    pub title: String,
    pub simulated_device: String,
    pub hardware_device: String,
    /// How hardware counters were collected, in one sentence.
    pub counting_method: Option<String>,
    /// Number of cases with counters on both sides.
    pub cases: usize,
    /// Number of cases with counters on one side only: on the simulator, on hardware.
    pub alone: (usize, usize),
    /// Sorted by variant in the manifest's order, then by counter in the vocabulary's order.
    pub compared: Vec<Compared>,
}

/// Compares the counters of two runs.
pub fn fidelity(simulated: &Records, hardware: &Records, causes: &[Cause]) -> Fidelity {
    let (of_sim, of_gpu) = (counted(simulated), counted(hardware));
    let mut pairs: Vec<(&Case, &Counters, &Counters)> = Vec::new();
    for (name, (case, counters)) in &of_sim {
        pairs.extend(of_gpu.get(name).map(|(_, other)| (*case, *counters, *other)));
    }
    pairs.sort_by_key(|(case, ..)| case.ordinal);
    let compared = simulated.header.variants.iter().flat_map(|variant| {
        let own: Vec<_> = pairs.iter().filter(|(case, ..)| case.key.variant == *variant).copied().collect();
        VOCABULARY.iter().filter_map(move |info| compare(variant, info, &own, causes)).collect::<Vec<_>>()
    });
    Fidelity {
        experiment: simulated.header.experiment.clone(),
        title: simulated.header.title.clone(),
        simulated_device: simulated.environment.device.name.clone(),
        hardware_device: hardware.environment.device.name.clone(),
        counting_method: hardware.environment.counting_method.clone(),
        cases: pairs.len(),
        alone: (of_sim.len() - pairs.len(), of_gpu.len() - pairs.len()),
        compared: compared.collect(),
    }
}

/// Causes that explain no difference, because they were written for different counts.
pub fn idle_causes<'c>(compared: &[Fidelity], causes: &'c [Cause]) -> Vec<&'c Cause> {
    let used: BTreeSet<usize> = compared.iter().flat_map(|f| &f.compared).flat_map(|c| c.causes.clone()).collect();
    causes.iter().enumerate().filter(|(index, _)| !used.contains(index)).map(|(_, cause)| cause).collect()
}

/// Counters of the correct cases, by key.
fn counted(records: &Records) -> HashMap<&CaseKey, (&Case, &Counters)> {
    let right = |record: &&CaseRecord| matches!(record.outcome, Outcome::Measured | Outcome::Unstable { .. });
    let of = records.cases.iter().filter(right);
    of.filter_map(|record| Some((&record.case.key, (&record.case, record.counters.as_ref()?)))).collect()
}

fn compare(
    variant: &str,
    info: &CounterInfo,
    cases: &[(&Case, &Counters, &Counters)],
    causes: &[Cause],
) -> Option<Compared> {
    let pairs: Vec<Pair> = cases
        .iter()
        .filter_map(|(case, simulated, hardware)| {
            let (simulated, hardware) = (simulated.get(info.name)?, hardware.get(info.name)?);
            Some(Pair { case: (*case).clone(), simulated, hardware })
        })
        .collect();
    let worst = pairs.iter().max_by(|a, b| a.distance().total_cmp(&b.distance()))?.clone();
    let mut found: BTreeSet<usize> = BTreeSet::new();
    let mut unexplained = 0;
    for pair in pairs.iter().filter(|pair| pair.agreement() != Agreement::Equal) {
        let explaining: Vec<usize> = (0..causes.len()).filter(|i| causes[*i].explains(&pair.case, info.name)).collect();
        unexplained += usize::from(explaining.is_empty());
        found.extend(explaining);
    }
    let agreement = worst.agreement();
    let (variant, counter) = (variant.to_owned(), info.name);
    Some(Compared {
        variant,
        counter,
        cases: pairs.len(),
        agreement,
        worst,
        unexplained,
        causes: found.into_iter().collect(),
    })
}

//! The best variants, per group and over all groups.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::contender::{contender, is_baseline};
use super::exactness::{Exactness, exactness};
use super::expected_failures::ExpectedFailures;
use super::ranking::{self, Basis, Best};
use runner_types::{CaseRecord, Estimate, GroupKey, Outcome, Ratio, Records, Regime};

/// The main results of a report.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    /// Number of cases per outcome, sorted by the outcomes' names.
    pub outcomes: BTreeMap<&'static str, usize>,
    /// Number of planned cases; a case measured in several regimes counts once.
    pub cases: usize,
    /// In the manifest's order.
    pub groups: Vec<GroupSummary>,
    /// Standing of each contender in each regime, in the manifest's order. Includes only those measured in some group.
    pub standings: Vec<Standing>,
    /// Indices of the records with failures.
    pub failures: Vec<usize>,
    /// Set if the experiment expects failures, so that variants are not ranked.
    pub expected_failures: Option<ExpectedFailures>,
    /// Set if the experiment is about the accuracy of results, which then ranks the variants.
    pub exactness: Option<Vec<Exactness>>,
    /// Whether cases are compared: they are not expected to fail, and a baseline or the stated work shows that they do
    /// the same job.
    pub is_ranked: bool,
}

/// Summary of a group; indices refer to the records.
#[derive(Debug, Clone, PartialEq)]
pub struct GroupSummary {
    /// Axis values that its cases share.
    pub key: GroupKey,
    /// Indices of the group's records.
    pub members: Vec<usize>,
    pub baseline: BaselineState,
    pub basis: Basis,
    /// The best case of each regime that has measurements.
    pub best: Vec<Best>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum BaselineState {
    /// The manifest has no baseline.
    Unnamed,
    Measured,
    /// The baseline was filtered out of this group.
    Absent,
    /// The baseline has no time; this is the index of its record.
    Failed(usize),
}

/// Results of a contender over all groups.
#[derive(Debug, Clone, PartialEq)]
pub struct Standing {
    /// Variant, with the values of compared axes if any.
    pub contender: String,
    /// Name of the variant, without compared axes.
    pub variant: String,
    pub regime: Regime,
    pub is_baseline: bool,
    /// Whether the times come from the host's clock and are not ranked.
    pub on_host: bool,
    /// Number of groups in which it is the only best one.
    pub alone: usize,
    /// Number of groups in which it is tied for the best.
    pub tied: usize,
    /// Number of groups in which it was measured.
    pub measured: usize,
    pub speedup: Option<SpeedupRange>,
    /// Speedup over the previous variant in the manifest.
    pub step: Option<SpeedupRange>,
    /// The contender that `step` refers to.
    pub previous: Option<String>,
}

/// Speedups over groups: the other's time divided by this one's, or this one's rate divided by the other's.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SpeedupRange {
    /// Geometric mean over the groups. Its interval is the mean of the groups' intervals, which is valid for any
    /// dependence between them.
    pub geomean: Estimate,
    /// Minimum over the groups.
    pub least: f64,
    /// Maximum over the groups.
    pub greatest: f64,
    /// Number of groups that have a speedup.
    pub groups: usize,
}

pub fn summary(records: &Records) -> Summary {
    let mut outcomes: BTreeMap<&'static str, usize> = BTreeMap::new();
    let mut failures = Vec::new();
    // The records of a case measured in several regimes are adjacent.
    let is_first = |i: usize| i == 0 || records.cases[i - 1].case.key != records.cases[i].case.key;
    let firsts: Vec<usize> = (0..records.cases.len()).filter(|i| is_first(*i)).collect();
    for i in &firsts {
        let outcome = &records.cases[*i].outcome;
        *outcomes.entry(outcome.name()).or_default() += 1;
        if outcome.is_failure() && !matches!(outcome, Outcome::NotRun { .. }) {
            failures.push(*i);
        }
    }
    let expected_failures = ExpectedFailures::count(records, firsts.iter().map(|i| &records.cases[*i].outcome));
    let states_work = || records.cases.iter().any(|r| r.work.bytes.is_some() || r.work.flops.is_some());
    let is_ranked = expected_failures.is_none() && (records.header.baseline.is_some() || states_work());
    let groups = groups(records, is_ranked);
    let standings = if is_ranked { standings(records, &groups) } else { Vec::new() };
    let exactness = exactness(records);
    Summary { outcomes, cases: firsts.len(), groups, standings, failures, expected_failures, exactness, is_ranked }
}

/// The groups; `ranked` is whether their variants are ranked.
fn groups(records: &Records, ranked: bool) -> Vec<GroupSummary> {
    let mut members: Vec<(&GroupKey, Vec<usize>)> = Vec::new();
    let mut places: HashMap<&GroupKey, usize> = HashMap::new();
    for (i, record) in records.cases.iter().enumerate() {
        let key = &record.case.group;
        let place = *places.entry(key).or_insert_with(|| {
            members.push((key, Vec::new()));
            members.len() - 1
        });
        members[place].1.push(i);
    }
    let finish = |(key, members): (&GroupKey, Vec<usize>)| {
        let basis = Basis::choose(records, &members);
        let best = if ranked { ranking::best(records, &members, basis) } else { Vec::new() };
        GroupSummary { key: key.clone(), baseline: baseline(records, &members), basis, best, members }
    };
    members.into_iter().map(finish).collect()
}

fn baseline(records: &Records, members: &[usize]) -> BaselineState {
    if records.header.baseline.is_none() {
        return BaselineState::Unnamed;
    }
    let found = members.iter().find(|i| is_baseline(&records.header, &records.cases[**i].case));
    match found {
        None => BaselineState::Absent,
        Some(i) if records.cases[*i].result.is_none() => BaselineState::Failed(*i),
        Some(_) => BaselineState::Measured,
    }
}

/// A speedup in a group or, if the group is ranked by rate, a ratio of rates. `None` if the other's work is unknown.
pub fn gain(records: &Records, group: &GroupSummary, record: &CaseRecord, ratio: &Ratio) -> Option<Ratio> {
    if group.basis == Basis::Time {
        return Some(ratio.clone());
    }
    let members = group.members.iter().map(|i| &records.cases[*i]);
    let other = members.into_iter().find(|other| contender(&records.header, &other.case) == ratio.against)?;
    let factor = group.basis.work(record)? / group.basis.work(other)?;
    let scaled = |estimate: Estimate| Estimate {
        point: estimate.point * factor,
        low: estimate.low * factor,
        high: estimate.high * factor,
        ..estimate
    };
    let reproducible = ratio.reproducible.map(scaled);
    Some(Ratio { speedup: scaled(ratio.speedup), reproducible, ..ratio.clone() })
}

/// A standing under construction, with its speedups over the baseline and over the previous step.
struct Gathered {
    standing: Standing,
    speedups: Vec<Estimate>,
    steps: Vec<Estimate>,
}

fn standings(records: &Records, groups: &[GroupSummary]) -> Vec<Standing> {
    let bests = || groups.iter().flat_map(|group| &group.best);
    let alone: HashSet<usize> = bests().filter(|best| best.tied.is_empty()).map(|best| best.index).collect();
    let several = bests().filter(|best| !best.tied.is_empty());
    let tied: HashSet<usize> = several.flat_map(|best| best.tied.iter().chain([&best.index])).copied().collect();
    let mut found: Vec<Gathered> = Vec::new();
    let mut places: HashMap<(String, Regime), usize> = HashMap::new();
    for group in groups {
        for i in &group.members {
            let record = &records.cases[*i];
            let Some(result) = &record.result else { continue };
            let name = contender(&records.header, &record.case);
            let place = *places.entry((name.clone(), result.regime)).or_insert_with(|| {
                let standing = blank(records, record, name, result.regime);
                found.push(Gathered { standing, speedups: Vec::new(), steps: Vec::new() });
                found.len() - 1
            });
            let Gathered { standing, speedups, steps } = &mut found[place];
            standing.measured += 1;
            standing.alone += usize::from(alone.contains(i));
            standing.tied += usize::from(tied.contains(i));
            let gained = |ratio: &Option<Ratio>| gain(records, group, record, ratio.as_ref()?);
            let interval = |ratio: Ratio| ratio.reproducible.unwrap_or(ratio.speedup);
            speedups.extend(gained(&result.against_baseline).map(interval));
            if let Some(step) = gained(&result.against_previous).filter(|_| records.header.has_steps()) {
                // In groups where the previous variant is missing, the ratio refers to an earlier one and is not used.
                if steps.is_empty() || standing.previous.as_ref() == Some(&step.against) {
                    standing.previous = Some(step.against.clone());
                    steps.push(interval(step));
                }
            }
        }
    }
    let finish = |Gathered { standing, speedups, steps }| Standing {
        speedup: SpeedupRange::summarise(&speedups),
        step: SpeedupRange::summarise(&steps),
        ..standing
    };
    let mut standings: Vec<Standing> = found.into_iter().map(finish).collect();
    standings.sort_by_key(|s| (s.regime, records.header.variants.iter().position(|v| *v == s.variant)));
    standings
}

fn blank(records: &Records, record: &CaseRecord, contender: String, regime: Regime) -> Standing {
    Standing {
        contender,
        variant: record.case.key.variant.clone(),
        regime,
        is_baseline: is_baseline(&records.header, &record.case),
        on_host: record.result.as_ref().is_some_and(|r| r.unit != r.regime.unit()),
        alone: 0,
        tied: 0,
        measured: 0,
        speedup: None,
        step: None,
        previous: None,
    }
}

impl SpeedupRange {
    fn summarise(speedups: &[Estimate]) -> Option<Self> {
        let points: Vec<f64> = speedups.iter().map(|s| s.point).collect();
        let point = runner_stats::geometric_mean(&points)?;
        let mean =
            |end: fn(&Estimate) -> f64| runner_stats::geometric_mean(&speedups.iter().map(end).collect::<Vec<_>>());
        let (low, high) = (mean(|s| s.low).unwrap_or(0.0), mean(|s| s.high)?);
        let confidence = speedups.iter().map(|s| s.confidence).reduce(f64::min)?;
        Some(Self {
            geomean: Estimate { point, low, high, confidence },
            least: points.iter().copied().reduce(f64::min)?,
            greatest: points.iter().copied().reduce(f64::max)?,
            groups: points.len(),
        })
    }
}

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
    /// How many cases have each outcome, in order of the outcomes' names.
    pub outcomes: BTreeMap<&'static str, usize>,
    /// Planned cases; a case measured in several regimes is one.
    pub cases: usize,
    /// The summaries of the groups, in the manifest's order.
    pub groups: Vec<GroupSummary>,
    /// The standing of each contender in each regime, in the manifest's order; only those measured in some group have
    /// one.
    pub standings: Vec<Standing>,
    /// Indices of the records that are failures.
    pub failures: Vec<usize>,
    /// The result of an experiment of expected failures, which ranks no variant.
    pub expected_failures: Option<ExpectedFailures>,
    /// The result of an experiment that asks how exact its results are, which ranks variants by that.
    pub exactness: Option<Vec<Exactness>>,
    /// Whether cases are compared: they fail not by design, and a baseline or the work says that they do the same job.
    pub is_ranked: bool,
}

/// One group: indices are into the records.
#[derive(Debug, Clone, PartialEq)]
pub struct GroupSummary {
    /// The values of the axes that its cases share.
    pub key: GroupKey,
    /// The indices of the records that belong to the group.
    pub members: Vec<usize>,
    /// The cell that the others are compared with.
    pub baseline: BaselineState,
    /// What its cases are ranked by.
    pub basis: Basis,
    /// The best of each regime that has measurements.
    pub best: Vec<Best>,
}

/// The state of the cell that the others are compared with.
#[derive(Debug, Clone, PartialEq)]
pub enum BaselineState {
    /// The manifest names none.
    Unnamed,
    /// The baseline is in the group and has a time.
    Measured,
    /// The baseline was filtered out of this group.
    Absent,
    /// The baseline has no time; its record has this index.
    Failed(usize),
}

/// The results of a contender over all groups.
#[derive(Debug, Clone, PartialEq)]
pub struct Standing {
    /// The variant, with the values of compared axes if there are any.
    pub contender: String,
    /// The variant's name, without compared axes.
    pub variant: String,
    /// The regime in which all times were taken.
    pub regime: Regime,
    /// Whether the others are compared with it.
    pub is_baseline: bool,
    /// Whether the times are of the host, which are not ranked.
    pub on_host: bool,
    /// Groups in which it is the best and no other is tied with it.
    pub alone: usize,
    /// Groups in which it is one of several that cannot be told apart.
    pub tied: usize,
    /// Groups in which it was measured.
    pub measured: usize,
    /// The speedup over the baseline.
    pub speedup: Option<SpeedupRange>,
    /// The speedup over the variant that is before it in the manifest.
    pub step: Option<SpeedupRange>,
    /// The contender that precedes it in every group, if it is the same one.
    pub previous: Option<String>,
}

/// Speedups over groups: the other's time over this one's, or this one's rate over the other's.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SpeedupRange {
    /// The geometric mean over the groups. Its interval is the mean of the groups' intervals, which holds however they
    /// depend on each other.
    pub geomean: Estimate,
    /// The least speedup of a group.
    pub least: f64,
    /// The greatest speedup of a group.
    pub greatest: f64,
    /// The number of groups that have a speedup.
    pub groups: usize,
}

/// Summarises what the records say.
pub fn summary(records: &Records) -> Summary {
    let mut outcomes: BTreeMap<&'static str, usize> = BTreeMap::new();
    let mut failures = Vec::new();
    // The records of a case that was measured in several regimes are adjacent.
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

/// Returns the groups; `ranked` says whether the variants are ranked in them.
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

/// Returns a speedup of the group; where it is ranked by rate, as a ratio of rates. `None` if the other's work is
/// unknown.
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

/// A standing while it is being collected, with the speedups over the baseline and over the step before.
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
                // A variant that is missing in some groups leaves its place to the one before it.
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

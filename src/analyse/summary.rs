//! The fastest variants, per group and over all groups.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::expected_failures::ExpectedFailures;
use crate::model::{Case, CaseRecord, GroupKey, Outcome, Records, Regime, RunHeader, Value};
use crate::stats;

/// The main results of a report.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    /// Cases by the name of their outcome, in order of name.
    pub outcomes: BTreeMap<&'static str, usize>,
    /// Planned cases; a case measured in several regimes is one.
    pub cases: usize,
    /// In the manifest's order.
    pub groups: Vec<GroupSummary>,
    /// One per contender and regime, in the manifest's order; only those measured in some group.
    pub standings: Vec<Standing>,
    /// Indices of the records that are failures.
    pub failures: Vec<usize>,
    /// For an experiment of expected failures, which ranks no variant.
    pub expected_failures: Option<ExpectedFailures>,
}

/// One group: indices are into the records.
#[derive(Debug, Clone, PartialEq)]
pub struct GroupSummary {
    /// The values of the axes that its cases share.
    pub key: GroupKey,
    /// Its records.
    pub members: Vec<usize>,
    /// The cell that the others are compared with.
    pub baseline: BaselineState,
    /// One per regime with measurements.
    pub best: Vec<Best>,
}

/// The state of the cell that the others are compared with.
#[derive(Debug, Clone, PartialEq)]
pub enum BaselineState {
    /// The manifest names none.
    Unnamed,
    /// Present, with a time.
    Measured,
    /// Not in this group: filtered out.
    Absent,
    /// Present without a time: the index of its record.
    Failed(usize),
}

/// The fastest on the device's clock.
#[derive(Debug, Clone, PartialEq)]
pub struct Best {
    /// The regime in which it is the fastest.
    pub regime: Regime,
    /// Its record.
    pub index: usize,
    /// Others whose interval overlaps the best one's.
    pub tied: Vec<usize>,
}

/// The results of a contender over all groups.
#[derive(Debug, Clone, PartialEq)]
pub struct Standing {
    /// The variant, with the values of compared axes if there are any.
    pub contender: String,
    /// The variant's name, without compared axes.
    pub variant: String,
    /// The regime of all its times.
    pub regime: Regime,
    /// Whether the others are compared with it.
    pub is_baseline: bool,
    /// Timed on the host: not ranked.
    pub on_host: bool,
    /// Groups in which it is the fastest.
    pub wins: usize,
    /// Groups in which it was measured.
    pub measured: usize,
    /// Geometric mean of its speedups over the baseline, the least and the greatest, and the number of groups.
    pub speedup: Option<SpeedupRange>,
}

/// Speedups over groups.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SpeedupRange {
    /// The geometric mean: the baseline's time over this one's.
    pub geomean: f64,
    /// The least speedup of a group.
    pub least: f64,
    /// The greatest speedup of a group.
    pub greatest: f64,
    /// Groups with a speedup.
    pub groups: usize,
}

/// What is compared within a group: the variant, with the compared axes if there are any (`sum[bx=32, by=8]`).
pub fn contender(header: &RunHeader, case: &Case) -> String {
    let compared: Vec<String> = compared_axes(header, case).map(|(name, value)| format!("{name}={value}")).collect();
    if compared.is_empty() {
        case.key.variant.clone()
    } else {
        format!("{}[{}]", case.key.variant, compared.join(", "))
    }
}

/// Whether the case is the cell that its group is compared with.
pub fn is_baseline(header: &RunHeader, case: &Case) -> bool {
    header.baseline.as_ref().is_some_and(|(variant, at)| {
        case.key.variant == *variant && at.iter().all(|wanted| case.key.axes.contains(wanted))
    })
}

fn compared_axes<'a>(header: &'a RunHeader, case: &'a Case) -> impl Iterator<Item = &'a (String, Value)> {
    case.key.axes.iter().filter(|(name, _)| header.axes.iter().any(|axis| axis.compared && axis.name == *name))
}

/// Summarises records.
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
    let expected_failures = ExpectedFailures::of(records, firsts.iter().map(|i| &records.cases[*i].outcome));
    let groups = groups(records, expected_failures.is_none());
    let standings = if expected_failures.is_none() { standings(records, &groups) } else { Vec::new() };
    Summary { outcomes, cases: firsts.len(), groups, standings, failures, expected_failures }
}

/// The groups; `ranked` says whether the variants are ranked in them.
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
    let finish = |(key, members): (&GroupKey, Vec<usize>)| GroupSummary {
        key: key.clone(),
        baseline: baseline(records, &members),
        best: if ranked { best(records, &members) } else { Vec::new() },
        members,
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

fn best(records: &Records, members: &[usize]) -> Vec<Best> {
    let timed = |regime: Regime| {
        let times = members.iter().filter_map(move |i| Some((*i, records.cases[*i].result.as_ref()?)));
        times.filter(move |(_, r)| r.regime == regime && r.unit == regime.unit())
    };
    let ahead = |regime: Regime| {
        let (index, first) = timed(regime).min_by(|a, b| a.1.time.point.total_cmp(&b.1.time.point))?;
        let overlaps = |other: f64| other <= first.time.high;
        let tied = timed(regime).filter(|(i, r)| *i != index && overlaps(r.time.low)).map(|(i, _)| i).collect();
        Some(Best { regime, index, tied })
    };
    Regime::ALL.into_iter().filter_map(ahead).collect()
}

fn standings(records: &Records, groups: &[GroupSummary]) -> Vec<Standing> {
    let winners: HashSet<usize> = groups.iter().flat_map(|g| &g.best).map(|b| b.index).collect();
    let mut found: Vec<(Standing, Vec<f64>)> = Vec::new();
    let mut places: HashMap<(String, Regime), usize> = HashMap::new();
    for (i, record) in records.cases.iter().enumerate() {
        let Some(result) = &record.result else { continue };
        let name = contender(&records.header, &record.case);
        let place = *places.entry((name.clone(), result.regime)).or_insert_with(|| {
            found.push((blank(records, record, name, result.regime), Vec::new()));
            found.len() - 1
        });
        let (standing, speedups) = &mut found[place];
        standing.measured += 1;
        standing.wins += usize::from(winners.contains(&i));
        speedups.extend(result.against_baseline.as_ref().map(|r| r.speedup.point));
    }
    let mut standings: Vec<Standing> = found.into_iter().map(with_speedups).collect();
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
        wins: 0,
        measured: 0,
        speedup: None,
    }
}

fn with_speedups((standing, speedups): (Standing, Vec<f64>)) -> Standing {
    let extreme = |pick: fn(f64, f64) -> f64| speedups.iter().copied().reduce(pick);
    let speedup = (|| {
        Some(SpeedupRange {
            geomean: stats::geometric_mean(&speedups)?,
            least: extreme(f64::min)?,
            greatest: extreme(f64::max)?,
            groups: speedups.len(),
        })
    })();
    Standing { speedup, ..standing }
}

//! Matches the base's records with the new report's, and interprets their outcomes.

use std::collections::{HashMap, HashSet};

use super::{Kind, Pair};
use runner_types::{CaseKey, CaseRecord, Dim3, Outcome, Records, Regime, Value};

/// Both records of a case in one regime; at least one is present.
#[derive(Debug, Clone, Copy)]
pub(super) struct Matched<'a> {
    pub base: Option<&'a CaseRecord>,
    pub new: Option<&'a CaseRecord>,
}

impl<'a> Matched<'a> {
    const fn new(base: Option<&'a CaseRecord>, new: &'a CaseRecord) -> Self {
        Self { base, new: Some(new) }
    }

    /// The new record or, if there is none, the base's.
    #[expect(clippy::expect_used, reason = "one of the two is always there")]
    pub fn record(&self) -> &'a CaseRecord {
        self.new.or(self.base).expect("a match has a record")
    }
}

/// The cases of both reports in the new one's order, followed by those that only the base has.
pub(super) fn matched(pair: Pair<'_>) -> Vec<Matched<'_>> {
    let mut of_base: HashMap<&CaseKey, &[CaseRecord]> = by_key(&pair.base.cases).collect();
    let renamed = find_renamed(pair);
    let mut found = Vec::with_capacity(pair.new.cases.len());
    for (key, new) in by_key(&pair.new.cases) {
        let before = renamed.get(key.variant.as_str());
        let before = before.map(|variant| CaseKey { variant: (*variant).to_owned(), ..key.clone() });
        match of_base.remove(before.as_ref().unwrap_or(key)) {
            Some(base) => regimes(base, new, &mut found),
            None => found.extend(new.iter().map(|new| Matched::new(None, new))),
        }
    }
    let gone = by_key(&pair.base.cases).filter(|(key, _)| of_base.contains_key(key)).flat_map(|(_, records)| records);
    found.extend(gone.map(|base| Matched { base: Some(base), new: None }));
    found
}

/// The records of each case, which are adjacent.
fn by_key(records: &[CaseRecord]) -> impl Iterator<Item = (&CaseKey, &[CaseRecord])> {
    records.chunk_by(|a, b| a.case.key == b.case.key).map(|records| (&records[0].case.key, records))
}

/// First record of each case of a variant, by axis values.
type Points<'a> = HashMap<Vec<(&'a str, &'a Value)>, &'a CaseRecord>;

/// Maps each renamed variant to its name in the base. A variant is renamed if it runs the same code as an unmatched
/// base variant wherever both have a case, and no other unmatched variant runs that code.
fn find_renamed(pair: Pair<'_>) -> HashMap<&str, &str> {
    let [base, new] = [pair.base, pair.new].map(variants);
    let [gone, added] = [(pair.base, &new), (pair.new, &base)].map(|(records, others)| points(records, others));
    let mut found: Vec<(&str, &str)> = Vec::new();
    for (name, points) in &added {
        let alike = gone.iter().filter(|(_, before)| runs_the_same(before, points));
        found.extend(alike.map(|(before, _)| (*name, *before)));
    }
    let is_alone = |(new, base): &(&str, &str)| found.iter().filter(|(n, b)| n == new || b == base).count() == 1;
    found.iter().filter(|both| is_alone(both)).copied().collect()
}

fn variants(records: &Records) -> HashSet<&str> {
    records.cases.iter().map(|record| record.case.key.variant.as_str()).collect()
}

/// The cases of variants whose names are not in `others`.
fn points<'a>(records: &'a Records, others: &HashSet<&str>) -> HashMap<&'a str, Points<'a>> {
    let mut found: HashMap<&str, Points<'_>> = HashMap::new();
    for (key, cases) in by_key(&records.cases).filter(|(key, _)| !others.contains(key.variant.as_str())) {
        let mut axes: Vec<(&str, &Value)> = key.axes.iter().map(|(name, value)| (name.as_str(), value)).collect();
        axes.sort_by_key(|(name, _)| *name);
        found.entry(&key.variant).or_default().insert(axes, &cases[0]);
    }
    found
}

/// Whether two variants have a case in common with known code, and run the same code in all such cases.
fn runs_the_same(base: &Points<'_>, new: &Points<'_>) -> bool {
    let common = new.iter().filter_map(|(axes, new)| Some((code(base.get(axes)?)?, code(new)?)));
    let mut same = common.map(|(base, new)| base == new).peekable();
    same.peek().is_some() && same.all(|same| same)
}

/// Identity of a launch: its label (which names the kernel), grid and block, shared memory and stream.
type Launched<'a> = (&'a str, [Dim3; 2], [u32; 2]);

/// Identity of a case's code: the hashes of its source, options and inputs, and its launches.
fn code(record: &CaseRecord) -> Option<([&str; 3], Vec<Launched<'_>>)> {
    let hashes = record.hashes.as_ref()?;
    let launched = record.launches.iter();
    let launched = launched.map(|of| (of.label.as_str(), [of.grid, of.block], [of.shared, of.stream]));
    Some(([&hashes.source, &hashes.options, &hashes.inputs], launched.collect()))
}

/// Matches the regimes of one case. If they have none in common, pairs the first record of each side: either their
/// regimes differ, or one was not timed.
fn regimes<'a>(base: &'a [CaseRecord], new: &'a [CaseRecord], found: &mut Vec<Matched<'a>>) {
    let in_regime =
        |records: &'a [CaseRecord], regime: Option<Regime>| records.iter().find(|record| regime_of(record) == regime);
    let shares = new.iter().any(|new| in_regime(base, regime_of(new)).is_some());
    if !shares {
        found.push(Matched::new(base.first(), &new[0]));
        return;
    }
    found.extend(new.iter().map(|new| Matched::new(in_regime(base, regime_of(new)), new)));
    let gone = base.iter().filter(|base| in_regime(new, regime_of(base)).is_none());
    found.extend(gone.map(|base| Matched { base: Some(base), new: None }));
}

fn regime_of(record: &CaseRecord) -> Option<Regime> {
    record.result.as_ref().map(|result| result.regime)
}

/// Meaning of an outcome for a comparison.
enum Standing {
    Right,
    Failed,
    /// Excluded, invalid on the device, or not run.
    Absent,
}

const fn standing(outcome: &Outcome) -> Standing {
    match outcome {
        Outcome::Excluded { .. } | Outcome::Invalid { .. } | Outcome::NotRun { .. } => Standing::Absent,
        other if other.is_failure() => Standing::Failed,
        _ => Standing::Right,
    }
}

/// Kind of change according to the outcomes alone; [`Kind::Same`] if both are correct. `None` if neither side measured
/// the case.
pub(super) fn by_outcome(matched: &Matched<'_>) -> Option<Kind> {
    let standing_of = |record: Option<&CaseRecord>| record.map_or(Standing::Absent, |record| standing(&record.outcome));
    Some(match (standing_of(matched.base), standing_of(matched.new)) {
        (Standing::Right, Standing::Right) => Kind::Same,
        (Standing::Right | Standing::Absent, Standing::Failed) => Kind::NewlyWrong,
        (Standing::Failed, Standing::Right) => Kind::Fixed,
        (Standing::Failed, Standing::Failed) => Kind::StillWrong,
        (Standing::Absent, Standing::Right) => Kind::New,
        (Standing::Right | Standing::Failed, Standing::Absent) => Kind::Gone,
        (Standing::Absent, Standing::Absent) => return None,
    })
}

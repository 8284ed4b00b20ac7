//! Matches the records of the base with those of the new report, and says what their outcomes alone mean.

use std::collections::HashMap;

use super::{Kind, Pair};
use crate::model::{CaseKey, CaseRecord, Outcome, Regime};

/// The records of a case in one regime; at least one is there.
#[derive(Debug, Clone, Copy)]
pub(super) struct Matched<'a> {
    pub base: Option<&'a CaseRecord>,
    pub new: Option<&'a CaseRecord>,
}

impl<'a> Matched<'a> {
    const fn new(base: Option<&'a CaseRecord>, new: &'a CaseRecord) -> Self {
        Self { base, new: Some(new) }
    }

    /// Returns the new record, else that of the base.
    #[expect(clippy::expect_used, reason = "one of the two is always there")]
    pub fn record(&self) -> &'a CaseRecord {
        self.new.or(self.base).expect("a match has a record")
    }
}

/// Returns every case of both, in the new report's order, what is only in the base at the end.
pub(super) fn matched(pair: Pair<'_>) -> Vec<Matched<'_>> {
    let mut of_base: HashMap<&CaseKey, &[CaseRecord]> = by_key(&pair.base.cases).collect();
    let mut found = Vec::with_capacity(pair.new.cases.len());
    for (key, new) in by_key(&pair.new.cases) {
        match of_base.remove(key) {
            Some(base) => regimes(base, new, &mut found),
            None => found.extend(new.iter().map(|new| Matched::new(None, new))),
        }
    }
    let gone = by_key(&pair.base.cases).filter(|(key, _)| of_base.contains_key(key)).flat_map(|(_, records)| records);
    found.extend(gone.map(|base| Matched { base: Some(base), new: None }));
    found
}

/// Returns the records of each case, which follow each other.
fn by_key(records: &[CaseRecord]) -> impl Iterator<Item = (&CaseKey, &[CaseRecord])> {
    records.chunk_by(|a, b| a.case.key == b.case.key).map(|records| (&records[0].case.key, records))
}

/// Matches the regimes of one case. Where they have none in common, the first record of each are a pair, whose regimes
/// differ or of which one was not timed.
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

/// What an outcome means for a comparison.
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

/// Returns what the outcomes say; [`Kind::Same`] for a case that is right in both. `None` where neither measured it.
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

//! What is already done according to a journal, for `--resume`.

use std::collections::{HashMap, HashSet};

use super::History;
use runner_types::{CaseKey, Event, Fingerprint, Outcome};

/// The cases whose stored result is kept, each with the fingerprint under which it was made.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Held {
    done: HashMap<CaseKey, Stored>,
    settled: HashSet<CaseKey>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Stored {
    fingerprint: Fingerprint,
    /// Whether the case was measured and every check passed.
    is_good: bool,
    is_counted: bool,
}

impl Held {
    /// Whether the stored result of `key` was made under `fingerprint` and so still applies.
    pub fn holds(&self, key: &CaseKey, fingerprint: &Fingerprint) -> bool {
        self.done.get(key).is_some_and(|stored| stored.fingerprint == *fingerprint)
    }

    /// Whether `key` has a stored result, which may no longer apply.
    pub fn knows(&self, key: &CaseKey) -> bool {
        self.done.contains_key(key)
    }

    /// Whether `key` has an outcome, which may not be kept.
    pub fn has_settled(&self, key: &CaseKey) -> bool {
        self.settled.contains(key)
    }

    /// Whether the case passed but the journal has no counters for it.
    pub fn lacks_counters(&self, key: &CaseKey) -> bool {
        self.done.get(key).is_some_and(|stored| stored.is_good && !stored.is_counted)
    }

    pub fn len(&self) -> usize {
        self.done.len()
    }

    pub fn is_empty(&self) -> bool {
        self.done.is_empty()
    }
}

impl FromIterator<Held> for Held {
    /// Joins the results of groups that were folded separately.
    fn from_iter<T: IntoIterator<Item = Self>>(groups: T) -> Self {
        let mut all = Self::default();
        for group in groups {
            all.done.extend(group.done);
            all.settled.extend(group.settled);
        }
        all
    }
}

impl History {
    /// Returns the results that would be the same again.
    ///
    /// These are measured cases (stable or not) and wrong ones. Cases that crashed, hung, ran out of memory or were
    /// refused by the driver are not kept, since they may end differently. Nor are cases that never used the device
    /// (excluded, invalid, not compiled), since planning them again costs nothing, and expected failures, since no
    /// fingerprint says whether the manifest still expects them. Ratios are formed within rounds, so a group should be
    /// kept whole or measured whole.
    pub fn held(&self) -> Held {
        let mut held = Held::default();
        for (key, mut events) in self.settled() {
            held.settled.insert(key.clone());
            let is_counted = events.clone().any(|event| matches!(event, Event::CaseCounted { .. }));
            let end = events.rfind(|event| matches!(event, Event::CaseSettled { .. }));
            let Some(Event::CaseSettled { fingerprint: Some(fingerprint), outcome, .. }) = end else { continue };
            let is_good = matches!(outcome, Outcome::Measured | Outcome::Unstable { .. });
            if is_good || matches!(outcome, Outcome::Wrong { .. }) {
                let fingerprint = fingerprint.clone();
                held.done.insert(key.clone(), Stored { fingerprint, is_good, is_counted });
            }
        }
        held
    }
}

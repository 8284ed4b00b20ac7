//! Results in a journal that `--resume` can keep.

use std::collections::{HashMap, HashSet};

use super::History;
use runner_types::{CaseKey, Event, Fingerprint, Outcome};

/// Cases whose stored result can be kept, with the fingerprint of each result.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Held {
    done: HashMap<CaseKey, Stored>,
    settled: HashSet<CaseKey>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Stored {
    fingerprint: Fingerprint,
    /// Whether the case was measured and passed every check.
    is_good: bool,
    is_counted: bool,
}

impl Held {
    /// Whether `key` has a stored result with this fingerprint, which is therefore current.
    pub fn holds(&self, key: &CaseKey, fingerprint: &Fingerprint) -> bool {
        self.done.get(key).is_some_and(|stored| stored.fingerprint == *fingerprint)
    }

    /// Whether `key` has a stored result, even if it is not current.
    pub fn knows(&self, key: &CaseKey) -> bool {
        self.done.contains_key(key)
    }

    /// Whether `key` has an outcome, even if it cannot be kept.
    pub fn has_settled(&self, key: &CaseKey) -> bool {
        self.settled.contains(key)
    }

    /// Whether the case passed, but the journal has no counters for it.
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
    /// Combines the results of groups that were folded separately.
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
    /// Results that can be kept because another run would reproduce them.
    ///
    /// These are measured cases (stable or not) and wrong ones. Cases that crashed, hung, ran out of memory or were
    /// rejected by the driver are not kept, since they may end differently. Cases that never used the device (excluded,
    /// invalid, not compiled) are not kept either, since planning them again costs nothing. Neither are expected
    /// failures, since no fingerprint tells whether the manifest still expects them. Ratios are formed within rounds,
    /// so a group should be kept as a whole or measured as a whole.
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

//! What is already done according to a journal, for `--resume`.

use std::collections::{HashMap, HashSet};

use crate::model::{CaseKey, Event, Fingerprint, Outcome};

/// The cases whose stored result is kept, each with the fingerprint under which it was made.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Held {
    done: HashMap<CaseKey, Stored>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Stored {
    fingerprint: Fingerprint,
    /// Right and measured.
    is_good: bool,
    is_counted: bool,
}

impl Held {
    /// Whether the stored result of `key` was made under `fingerprint` and so still applies.
    pub fn holds(&self, key: &CaseKey, fingerprint: &Fingerprint) -> bool {
        self.done.get(key).is_some_and(|stored| stored.fingerprint == *fingerprint)
    }

    /// Whether there is a stored result of `key`, which may no longer apply.
    pub fn knows(&self, key: &CaseKey) -> bool {
        self.done.contains_key(key)
    }

    /// Whether `key` was right and its counters are missing in the journal.
    pub fn lacks_counters(&self, key: &CaseKey) -> bool {
        self.done.get(key).is_some_and(|stored| stored.is_good && !stored.is_counted)
    }

    /// How many cases there are.
    pub fn len(&self) -> usize {
        self.done.len()
    }

    /// Whether there are no cases.
    pub fn is_empty(&self) -> bool {
        self.done.is_empty()
    }
}

/// Collects what is done.
///
/// Results that would be the same again are kept: measured (stable or not) and wrong. Not kept are cases that crashed,
/// hung, ran out of memory or were refused by the driver, since they may end differently; cases that never used the
/// device (excluded, invalid, not compiled), since planning them again costs nothing; and expected failures, since no
/// fingerprint says whether the manifest still expects them. Ratios are formed within rounds, so a group should be kept
/// whole or measured whole.
pub fn resume_state(events: &[Event]) -> Held {
    let mut done: HashMap<CaseKey, Stored> = HashMap::new();
    let mut counted: HashSet<CaseKey> = HashSet::new();
    for event in events {
        match event {
            Event::CasesPlanned { todo, .. } => {
                for case in todo {
                    done.remove(&case.key);
                    counted.remove(&case.key);
                }
            }
            // Before the case's end by a device that counts itself, after it by a profiler.
            Event::CaseCounted { case, .. } => {
                let name = case.key.clone();
                if let Some(stored) = done.get_mut(&name) {
                    stored.is_counted = true;
                }
                counted.insert(name);
            }
            Event::CaseSettled { case, fingerprint, outcome, .. } => {
                let name = case.key.clone();
                let is_good = matches!(outcome, Outcome::Measured | Outcome::Unstable { .. });
                let lasting = is_good || matches!(outcome, Outcome::Wrong { .. });
                let is_counted = counted.contains(&name);
                let store = |fingerprint: &Fingerprint| {
                    let fingerprint = fingerprint.clone();
                    Stored { fingerprint, is_good, is_counted }
                };
                match fingerprint {
                    Some(fingerprint) if lasting => done.insert(name, store(fingerprint)),
                    _ => done.remove(&name),
                };
            }
            _ => {}
        }
    }
    Held { done }
}

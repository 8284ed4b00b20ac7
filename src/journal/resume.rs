//! What a journal says is done, for `--resume`.

use std::collections::HashMap;

use crate::model::{CaseKey, Event, Fingerprint, Outcome};

/// The cases whose stored result is worth keeping, each with the fingerprint under which it was made.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Held {
    done: HashMap<String, Fingerprint>,
}

impl Held {
    /// Whether the stored result of `key` was made under `fingerprint` and so still holds.
    pub fn holds(&self, key: &CaseKey, fingerprint: &Fingerprint) -> bool {
        self.done.get(&name_of(key)) == Some(fingerprint)
    }

    /// How many cases there are.
    pub fn len(&self) -> usize {
        self.done.len()
    }

    pub fn is_empty(&self) -> bool {
        self.done.is_empty()
    }
}

/// Collects what is done.
///
/// Kept are answers that would come out the same: measured (stably or not) and wrong. Not kept are cases that crashed,
/// hung, ran out of memory or were refused by the driver, since running them again may end otherwise, and those that
/// never touched the device (excluded, invalid, not compiled), since planning them again costs nothing. Ratios are
/// formed within rounds, so a group should be held whole or measured whole.
pub fn resume_state(events: &[Event]) -> Held {
    let mut done = HashMap::new();
    for event in events {
        match event {
            Event::CasesPlanned { todo, .. } => {
                for case in todo {
                    done.remove(&name_of(&case.key));
                }
            }
            Event::CaseSettled { case, fingerprint, outcome, .. } => {
                let name = name_of(&case.key);
                let lasting = matches!(outcome, Outcome::Measured | Outcome::Unstable { .. } | Outcome::Wrong { .. });
                match fingerprint {
                    Some(fingerprint) if lasting => done.insert(name, fingerprint.clone()),
                    _ => done.remove(&name),
                };
            }
            _ => {}
        }
    }
    Held { done }
}

/// The key's debug form: equal exactly when the keys are, down to the types of their values.
fn name_of(key: &CaseKey) -> String {
    format!("{key:?}")
}

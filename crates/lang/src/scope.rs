//! Names and their values.

use std::sync::Arc;

use runner_types::Value;

/// Values by name. There are few entries, so a lookup searches linearly, latest first.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Scope {
    entries: Vec<(Arc<str>, Value)>,
}

impl Scope {
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets a value, replacing any earlier one.
    pub fn set(&mut self, name: impl AsRef<str> + Into<Arc<str>>, value: Value) {
        match self.entries.iter_mut().find(|(known, _)| **known == *name.as_ref()) {
            Some(entry) => entry.1 = value,
            None => self.entries.push((name.into(), value)),
        }
    }

    pub fn get(&self, name: &str) -> Option<&Value> {
        self.entries.iter().rev().find(|(known, _)| **known == *name).map(|(_, value)| value)
    }

    /// Names and values, in the order in which the names were first set.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.entries.iter().map(|(name, value)| (&**name, value))
    }

    /// Removes every name after the first `len`, to reuse the scope for the next case.
    pub fn truncate(&mut self, len: usize) {
        self.entries.truncate(len);
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

impl<N: Into<Arc<str>>> FromIterator<(N, Value)> for Scope {
    fn from_iter<I: IntoIterator<Item = (N, Value)>>(iter: I) -> Self {
        let mut scope = Self::new();
        for (name, value) in iter {
            let name: Arc<str> = name.into();
            scope.set(name, value);
        }
        scope
    }
}

//! Names and their values.

use std::sync::Arc;

use crate::model::Value;

/// The values of names. There are few entries, so a lookup is a linear search, latest first.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Scope {
    entries: Vec<(Arc<str>, Value)>,
}

impl Scope {
    /// Returns a scope without names.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the value of a name, replacing an earlier one.
    pub fn set(&mut self, name: impl AsRef<str> + Into<Arc<str>>, value: Value) {
        match self.entries.iter_mut().find(|(known, _)| **known == *name.as_ref()) {
            Some(entry) => entry.1 = value,
            None => self.entries.push((name.into(), value)),
        }
    }

    /// Returns the value of a name; `None` if it has none.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.entries.iter().rev().find(|(known, _)| **known == *name).map(|(_, value)| value)
    }

    /// Returns the names with their values, in the order in which the names were first set.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.entries.iter().map(|(name, value)| (&**name, value))
    }

    /// Removes every name after the first `len`, between two cases of a loop.
    pub fn truncate(&mut self, len: usize) {
        self.entries.truncate(len);
    }

    /// Returns how many names have a value.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether no name has a value.
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

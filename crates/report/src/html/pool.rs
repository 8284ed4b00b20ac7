//! Deduplicates strings and tables that many rows of a page share.

use std::collections::HashMap;
use std::hash::Hash;

/// Distinct values, in the order of their first use.
#[derive(Debug)]
pub(super) struct Pool<T> {
    pub list: Vec<T>,
    places: HashMap<T, usize>,
}

impl<T: Clone + Eq + Hash> Pool<T> {
    pub fn new() -> Self {
        Self { list: Vec::new(), places: HashMap::new() }
    }

    pub fn place(&mut self, value: T) -> usize {
        *self.places.entry(value).or_insert_with_key(|value| {
            self.list.push(value.clone());
            self.list.len() - 1
        })
    }
}

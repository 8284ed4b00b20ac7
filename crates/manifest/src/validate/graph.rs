//! Dependencies among bindings, and the cycles in them.
//!
//! Separate from `lets`, which reports the cycles: this is only a graph algorithm, without messages.

use std::collections::BTreeMap;

use runner_experiment::Expression;

pub type Bindings<'b> = BTreeMap<&'b str, &'b Expression>;

/// Bindings and their dependencies, by index.
#[derive(Debug)]
pub struct Graph<'b> {
    names: Vec<&'b str>,
    needs: Vec<Vec<usize>>,
}

/// A binding on the search path, with the position of its next dependency.
#[derive(Debug)]
struct Visit {
    at: usize,
    next: usize,
}

impl<'b> Graph<'b> {
    pub fn new(bindings: &Bindings<'b>) -> Self {
        let names: Vec<&str> = bindings.keys().copied().collect();
        let number = |name: &String| names.binary_search(&name.as_str()).ok();
        let needs = bindings.values().map(|value| value.names().iter().filter_map(number).collect()).collect();
        Self { names, needs }
    }

    /// Sets of mutually dependent bindings, including single bindings that depend on themselves.
    ///
    /// Tarjan's algorithm without recursion: a chain of bindings could overflow the stack.
    pub fn components(&self) -> Vec<Vec<&'b str>> {
        let count = self.names.len();
        let (mut order, mut lowest, mut is_open) = (vec![usize::MAX; count], vec![0; count], vec![false; count]);
        let (mut open, mut found, mut seen) = (Vec::new(), Vec::new(), 0);
        for start in 0..count {
            let mut path = if order[start] == usize::MAX { vec![Visit { at: start, next: 0 }] } else { Vec::new() };
            while let Some(Visit { at, next }) = path.last_mut() {
                let at = *at;
                if *next == 0 && order[at] == usize::MAX {
                    (order[at], lowest[at], is_open[at]) = (seen, seen, true);
                    seen += 1;
                    open.push(at);
                }
                if let Some(&need) = self.needs[at].get(*next) {
                    *next += 1;
                    if order[need] == usize::MAX {
                        path.push(Visit { at: need, next: 0 });
                    } else if is_open[need] {
                        lowest[at] = lowest[at].min(order[need]);
                    }
                    continue;
                }
                path.pop();
                if let Some(Visit { at: above, .. }) = path.last() {
                    lowest[*above] = lowest[*above].min(lowest[at]);
                }
                if lowest[at] == order[at] {
                    let from = open.iter().rposition(|other| *other == at).unwrap_or(0);
                    let members = open.split_off(from);
                    for &member in &members {
                        is_open[member] = false;
                    }
                    if members.len() > 1 || self.needs[at].contains(&at) {
                        found.push(members);
                    }
                }
            }
        }
        let name = |mut members: Vec<usize>| {
            members.sort_unstable();
            members.into_iter().map(|member| self.names[member]).collect()
        };
        found.into_iter().map(name).collect()
    }
}

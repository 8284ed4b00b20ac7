//! The valid points of a space as a decision diagram: an acyclic graph with one level per parameter.
//!
//! Each node stores the number of valid points below it, which gives every point an index. One walk from the root
//! converts an index to a point or back, and uniform sampling needs no rejection.

use std::collections::HashMap;

/// The node after the last parameter. Nodes are numbered from the last level up to the root.
pub(super) const END: u32 = 0;

/// An edge: one value of a node's parameter.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Arc {
    /// Index of the value.
    pub value: u16,
    /// Node on the next level.
    pub child: u32,
    /// Number of valid points below the preceding arcs.
    before: u64,
}

/// A decision diagram. The arcs of each node are sorted by value.
#[derive(Debug, Clone)]
pub(super) struct Diagram {
    /// Parameter of each level.
    order: Vec<usize>,
    nodes: Vec<Node>,
    root: u32,
}

#[derive(Debug, Clone)]
struct Node {
    arcs: Box<[Arc]>,
    count: u64,
}

/// Builds a diagram, merging nodes with equal arcs.
#[derive(Debug)]
pub(super) struct Builder {
    nodes: Vec<Node>,
    known: HashMap<Box<[Arc]>, u32>,
}

impl Builder {
    pub fn new() -> Self {
        Self { nodes: vec![Node { arcs: Box::new([]), count: 1 }], known: HashMap::new() }
    }

    /// Node with these choices; `None` if there are none. Fails if the number of points overflows.
    pub fn node(&mut self, choices: &[(u16, u32)]) -> Result<Option<u32>, ()> {
        let mut count = 0_u64;
        let mut arcs = Vec::with_capacity(choices.len());
        for &(value, child) in choices {
            arcs.push(Arc { value, child, before: count });
            count = count.checked_add(self.nodes[child as usize].count).ok_or(())?;
        }
        if arcs.is_empty() {
            return Ok(None);
        }
        let arcs = arcs.into_boxed_slice();
        if let Some(&node) = self.known.get(&arcs) {
            return Ok(Some(node));
        }
        let node = self.nodes.len() as u32;
        self.nodes.push(Node { arcs: arcs.clone(), count });
        self.known.insert(arcs, node);
        Ok(Some(node))
    }

    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    pub fn finish(self, order: Vec<usize>, root: u32) -> Diagram {
        Diagram { order, nodes: self.nodes, root }
    }
}

impl Diagram {
    /// Builds the diagram of a list of points, ignoring duplicates.
    pub fn list(parameters: usize, mut points: Vec<Box<[u16]>>) -> Option<Self> {
        points.sort_unstable();
        points.dedup();
        let mut builder = Builder::new();
        let root = list(&mut builder, &points, 0, parameters)?;
        Some(builder.finish((0..parameters).collect(), root))
    }

    pub fn len(&self) -> u64 {
        self.nodes[self.root as usize].count
    }

    /// Writes the point with index `number`, which must be below `len`.
    pub fn write_point(&self, mut number: u64, point: &mut [u16]) {
        let mut node = self.root;
        for &parameter in &self.order {
            let arcs = &self.nodes[node as usize].arcs;
            let arc = &arcs[arcs.partition_point(|arc| arc.before <= number) - 1];
            number -= arc.before;
            point[parameter] = arc.value;
            node = arc.child;
        }
    }

    /// Writes the point at the given fraction of each level's points. `shares` has one fraction per parameter.
    pub fn write_at(&self, shares: &[f64], point: &mut [u16]) {
        let mut node = self.root;
        for &parameter in &self.order {
            let Node { arcs, count } = &self.nodes[node as usize];
            let number = ((shares[parameter] * *count as f64) as u64).min(count - 1);
            let arc = &arcs[arcs.partition_point(|arc| arc.before <= number) - 1];
            point[parameter] = arc.value;
            node = arc.child;
        }
    }

    /// Replaces each invalid value, starting at the first level, with the nearest one that has a valid completion.
    pub fn repair(&self, point: &mut [u16]) {
        let mut node = self.root;
        for &parameter in &self.order {
            let wanted = point[parameter];
            let nearest = self.nodes[node as usize].arcs.iter().min_by_key(|arc| arc.value.abs_diff(wanted));
            let Some(arc) = nearest else { return };
            point[parameter] = arc.value;
            node = arc.child;
        }
    }

    /// Index of a point; `None` if it is invalid.
    pub fn number(&self, point: &[u16]) -> Option<u64> {
        let mut node = self.root;
        let mut number = 0;
        for &parameter in &self.order {
            let arcs = &self.nodes[node as usize].arcs;
            let arc = &arcs[arcs.binary_search_by_key(&point[parameter], |arc| arc.value).ok()?];
            number += arc.before;
            node = arc.child;
        }
        Some(number)
    }
}

/// Node for points that have the same values for all parameters before `level`.
fn list(builder: &mut Builder, points: &[Box<[u16]>], level: usize, levels: usize) -> Option<u32> {
    if level == levels {
        return (!points.is_empty()).then_some(END);
    }
    let mut choices = Vec::new();
    for group in points.chunk_by(|a, b| a[level] == b[level]) {
        choices.push((group[0][level], list(builder, group, level + 1, levels)?));
    }
    // The number of points in a list cannot overflow.
    builder.node(&choices).ok().flatten()
}

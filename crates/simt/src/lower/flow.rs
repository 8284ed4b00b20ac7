//! The control-flow graph, and the points where diverged lanes reconverge.

use crate::mir;
use crate::mir::{Body, Flow};

/// A basic block: a range of instructions, and the blocks that may follow it.
#[derive(Debug, Clone)]
pub struct Node {
    pub start: usize,
    pub end: usize,
    pub next: Vec<usize>,
}

/// Control-flow graph of a function. Node 0 is the entry.
#[derive(Debug)]
pub struct Graph {
    pub nodes: Vec<Node>,
    /// The node of each instruction.
    pub node_of: Vec<usize>,
}

impl Graph {
    pub fn new(body: &Body) -> Self {
        let n = body.insts.len();
        let mut leader = vec![false; n + 1];
        leader[0] = true;
        for &at in &body.labels {
            leader[at.min(n)] = true;
        }
        for (at, inst) in body.insts.iter().enumerate() {
            if inst.flow != Flow::Next {
                leader[at + 1] = true;
            }
        }
        let starts: Vec<usize> = (0..n).filter(|&at| leader[at]).collect();
        let mut node_of = vec![0; n];
        let mut nodes = Vec::with_capacity(starts.len());
        for (k, &start) in starts.iter().enumerate() {
            let end = starts.get(k + 1).copied().unwrap_or(n);
            node_of[start..end].fill(k);
            nodes.push(Node { start, end, next: Vec::new() });
        }
        for k in 0..nodes.len() {
            let target = |label: &mir::Label| node_of.get(body.labels[label.0 as usize]).copied();
            let fall = (k + 1 < nodes.len()).then_some(k + 1);
            nodes[k].next = match &body.insts[nodes[k].end - 1].flow {
                Flow::Next | Flow::Call => fall.into_iter().collect(),
                Flow::Jump(label) => target(label).into_iter().collect(),
                Flow::Branch(label) => fall.into_iter().chain(target(label)).collect(),
                Flow::Table(labels) => labels.iter().filter_map(target).collect(),
                Flow::End => Vec::new(),
            };
        }
        Self { nodes, node_of }
    }

    /// Returns the immediate post-dominator of every node; `None` if that is the end of the function.
    ///
    /// Uses the iterative algorithm of Cooper, Harvey and Kennedy on the reversed graph, starting at a virtual exit.
    pub fn post_dominators(&self) -> Vec<Option<usize>> {
        let n = self.nodes.len();
        let exit = n;
        let order = self.reverse_order();
        let mut rank = vec![usize::MAX; n + 1];
        for (r, &node) in order.iter().enumerate() {
            rank[node] = r;
        }
        let mut idom = vec![usize::MAX; n + 1];
        idom[exit] = exit;
        let mut changed = true;
        while changed {
            changed = false;
            for &node in order.iter().skip(1) {
                let exits = self.nodes[node].next.is_empty().then_some(exit);
                let mut common = usize::MAX;
                for next in self.nodes[node].next.iter().copied().chain(exits) {
                    if rank[next] == usize::MAX || idom[next] == usize::MAX {
                        continue;
                    }
                    common = if common == usize::MAX { next } else { intersect(&idom, &rank, common, next) };
                }
                if common != usize::MAX && idom[node] != common {
                    idom[node] = common;
                    changed = true;
                }
            }
        }
        (0..n).map(|node| Some(idom[node]).filter(|&d| d < n)).collect()
    }

    /// Returns the reverse post-order of the reversed graph, starting at the virtual exit (index `nodes.len()`).
    fn reverse_order(&self) -> Vec<usize> {
        let n = self.nodes.len();
        let mut previous = vec![Vec::new(); n + 1];
        for (k, node) in self.nodes.iter().enumerate() {
            for &next in &node.next {
                previous[next].push(k);
            }
            if node.next.is_empty() {
                previous[n].push(k);
            }
        }
        let mut seen = vec![false; n + 1];
        let mut order = Vec::with_capacity(n + 1);
        let mut stack = vec![(n, 0)];
        seen[n] = true;
        while let Some((node, at)) = stack.last_mut() {
            if let Some(&p) = previous[*node].get(*at) {
                *at += 1;
                if !seen[p] {
                    seen[p] = true;
                    stack.push((p, 0));
                }
            } else {
                order.push(*node);
                stack.pop();
            }
        }
        order.reverse();
        order
    }

    /// Returns, for each node, whether it only leads to the end of the function.
    pub fn exits(&self, body: &Body) -> Vec<bool> {
        let mut exits = vec![false; self.nodes.len()];
        // Each round adds the nodes that lead to nodes of earlier rounds, until none are added.
        let mut changed = true;
        while changed {
            changed = false;
            for (k, node) in self.nodes.iter().enumerate() {
                let alone = node.end - node.start == 1;
                let leads = match &body.insts[node.start].flow {
                    Flow::End => true,
                    Flow::Jump(_) => node.next.iter().all(|&next| exits[next]),
                    _ => false,
                };
                if alone && leads && !exits[k] {
                    (exits[k], changed) = (true, true);
                }
            }
        }
        exits
    }

    /// Returns, for each node, whether it is on a cycle.
    pub fn in_loops(&self) -> Vec<bool> {
        let n = self.nodes.len();
        (0..n)
            .map(|from| {
                let mut seen = vec![false; n];
                let mut work = self.nodes[from].next.clone();
                while let Some(node) = work.pop() {
                    if node == from {
                        return true;
                    }
                    if !std::mem::replace(&mut seen[node], true) {
                        work.extend(&self.nodes[node].next);
                    }
                }
                false
            })
            .collect()
    }
}

fn intersect(idom: &[usize], rank: &[usize], mut a: usize, mut b: usize) -> usize {
    while a != b {
        while rank[a] > rank[b] {
            a = idom[a];
        }
        while rank[b] > rank[a] {
            b = idom[b];
        }
    }
    a
}

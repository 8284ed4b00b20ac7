//! A forest of extremely randomised trees over points of a discrete space.

use crate::random::Random;
use crate::space::{Scale, Space};

/// How many trees vote.
const TREES: usize = 30;
/// A node with fewer points is a leaf.
const LEAST: usize = 4;

/// Trees that predict the mean of what they were given.
#[derive(Debug, Clone)]
pub struct Forest {
    trees: Vec<Vec<Node>>,
}

#[derive(Debug, Clone, Copy)]
enum Node {
    Leaf(f32),
    /// A split: values below `bound`, or the values whose bits are set, go to the next node; others to `other`.
    Below {
        parameter: u16,
        bound: u16,
        other: u32,
    },
    Among {
        parameter: u16,
        values: u64,
        other: u32,
    },
}

impl Forest {
    /// Grows a forest from points and their targets, of which there must be at least one.
    #[must_use]
    pub fn grow(space: &Space, points: &[Box<[u16]>], targets: &[f64], random: &mut Random) -> Self {
        let trees = (0..TREES)
            .map(|_| {
                let mut members: Vec<usize> = (0..points.len()).collect();
                let mut tree = Vec::new();
                grow(space, points, targets, &mut members, random, &mut tree);
                tree
            })
            .collect();
        Self { trees }
    }

    /// Predicts the mean of the trees at a point, and their standard deviation.
    #[must_use]
    pub fn predict(&self, point: &[u16]) -> (f64, f64) {
        let (mut sum, mut squares) = (0.0, 0.0);
        for tree in &self.trees {
            let value = f64::from(descend(tree, point));
            sum += value;
            squares += value * value;
        }
        let n = self.trees.len() as f64;
        let mean = sum / n;
        (mean, (squares / n - mean * mean).max(0.0).sqrt())
    }
}

fn descend(tree: &[Node], point: &[u16]) -> f32 {
    let mut place = 0;
    loop {
        let (own, other) = match tree[place] {
            Node::Leaf(value) => return value,
            Node::Below { parameter, bound, other } => (point[usize::from(parameter)] < bound, other),
            Node::Among { parameter, values, other } => {
                (values >> (point[usize::from(parameter)] % 64) & 1 == 1, other)
            }
        };
        place = if own { place + 1 } else { other as usize };
    }
}

fn grow(
    space: &Space,
    points: &[Box<[u16]>],
    targets: &[f64],
    members: &mut [usize],
    random: &mut Random,
    tree: &mut Vec<Node>,
) {
    let mean = members.iter().map(|&member| targets[member]).sum::<f64>() / members.len() as f64;
    let place = tree.len();
    tree.push(Node::Leaf(mean as f32));
    if members.len() < LEAST {
        return;
    }
    let mut best: Option<(f64, Node)> = None;
    for parameter in 0..space.parameters().len() {
        let (least, most) = members.iter().fold((u16::MAX, 0), |(least, most), &member| {
            let value = points[member][parameter];
            (least.min(value), most.max(value))
        });
        if least == most {
            continue;
        }
        let node = if space.parameters()[parameter].scale == Scale::Ordered {
            let bound = least + 1 + random.below(u64::from(most - least)) as u16;
            Node::Below { parameter: parameter as u16, bound, other: 0 }
        } else {
            // One of the values that occur is apart from another, the rest is divided at random.
            let values = random.below(u64::MAX) | 1 << (least % 64);
            Node::Among { parameter: parameter as u16, values: values & !(1 << (most % 64)), other: 0 }
        };
        let (mut sums, mut counts) = ([0.0; 2], [0.0; 2]);
        for &member in &*members {
            let side = usize::from(goes_on(node, &points[member]));
            sums[side] += targets[member];
            counts[side] += 1.0;
        }
        if counts[0] == 0.0 || counts[1] == 0.0 {
            continue;
        }
        let score = sums[0] * sums[0] / counts[0] + sums[1] * sums[1] / counts[1];
        if best.is_none_or(|(known, _)| score > known) {
            best = Some((score, node));
        }
    }
    let Some((_, node)) = best else { return };
    let mut own = 0;
    for next in 0..members.len() {
        if goes_on(node, &points[members[next]]) {
            members.swap(own, next);
            own += 1;
        }
    }
    let (left, right) = members.split_at_mut(own);
    grow(space, points, targets, left, random, tree);
    let after = tree.len() as u32;
    tree[place] = match node {
        Node::Below { parameter, bound, .. } => Node::Below { parameter, bound, other: after },
        Node::Among { parameter, values, .. } => Node::Among { parameter, values, other: after },
        leaf @ Node::Leaf(_) => leaf,
    };
    grow(space, points, targets, right, random, tree);
}

/// Says whether a point goes to the next node of a split.
fn goes_on(node: Node, point: &[u16]) -> bool {
    match node {
        Node::Leaf(_) => true,
        Node::Below { parameter, bound, .. } => point[usize::from(parameter)] < bound,
        Node::Among { parameter, values, .. } => values >> (point[usize::from(parameter)] % 64) & 1 == 1,
    }
}

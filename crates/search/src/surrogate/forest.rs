//! A forest of extremely randomised trees over points of a discrete space.

use super::features::Features;
use crate::random::Random;
use crate::space::Space;

const TREES: usize = 30;
/// Number of points below which a node becomes a leaf.
const LEAST: usize = 4;

/// Regression trees that predict the mean of their training targets.
#[derive(Debug, Clone)]
pub struct Forest {
    trees: Vec<Vec<Node>>,
    features: Features,
}

#[derive(Debug, Clone, Copy)]
enum Node {
    Leaf(f32),
    /// Splits. The walk continues at the next node if a weighted sum of two coordinates is below `bound` or, for
    /// `Among`, if the value's bit is set; otherwise at `other`.
    Below {
        pair: [u16; 2],
        weight: f32,
        bound: f32,
        other: u32,
    },
    Among {
        parameter: u16,
        values: u64,
        other: u32,
    },
}

#[derive(Debug, Clone)]
struct Placed<'a> {
    point: &'a [u16],
    coordinates: Vec<f32>,
}

impl<'a> Placed<'a> {
    fn new(features: &Features, point: &'a [u16]) -> Self {
        Self { point, coordinates: features.coordinates(point) }
    }
}

/// Evaluated points and their targets, from which trees are grown.
struct Lessons<'a> {
    features: &'a Features,
    points: Vec<Placed<'a>>,
    targets: &'a [f64],
}

impl Forest {
    /// Grows a forest from points and their targets, at least one of each.
    #[must_use]
    pub fn grow(space: &Space, points: &[Box<[u16]>], targets: &[f64], random: &mut Random) -> Self {
        let features = Features::new(space);
        let points = points.iter().map(|point| Placed::new(&features, point)).collect();
        let lessons = Lessons { features: &features, points, targets };
        let trees = (0..TREES)
            .map(|_| {
                let mut members: Vec<usize> = (0..targets.len()).collect();
                if std::env::var("FB").is_ok() {
                    for member in &mut members {
                        *member = random.index(targets.len());
                    }
                }
                let mut tree = Vec::new();
                grow(&lessons, &mut members, random, &mut tree);
                tree
            })
            .collect();
        Self { trees, features }
    }

    /// Mean and standard deviation of the trees' predictions for a point.
    #[must_use]
    pub fn predict(&self, point: &[u16]) -> (f64, f64) {
        let point = Placed::new(&self.features, point);
        let (mut sum, mut squares) = (0.0, 0.0);
        for tree in &self.trees {
            let value = f64::from(descend(tree, &point));
            sum += value;
            squares += value * value;
        }
        let n = self.trees.len() as f64;
        let mean = sum / n;
        (mean, (squares / n - mean * mean).max(0.0).sqrt())
    }
}

fn descend(tree: &[Node], point: &Placed<'_>) -> f32 {
    let mut place = 0;
    loop {
        let node = tree[place];
        let other = match node {
            Node::Leaf(value) => return value,
            Node::Below { other, .. } | Node::Among { other, .. } => other,
        };
        place = if goes_on(node, point) { place + 1 } else { other as usize };
    }
}

fn grow(lessons: &Lessons<'_>, members: &mut [usize], random: &mut Random, tree: &mut Vec<Node>) {
    let mean = members.iter().map(|&member| lessons.targets[member]).sum::<f64>() / members.len() as f64;
    let place = tree.len();
    tree.push(Node::Leaf(mean as f32));
    if members.len() < LEAST {
        return;
    }
    let splits = draw_splits(lessons, members, random);
    let scored = splits.into_iter().filter_map(|node| Some((score(lessons, members, node)?, node)));
    let Some((_, node)) = scored.max_by(|a, b| a.0.total_cmp(&b.0)) else { return };
    let mut own = 0;
    for next in 0..members.len() {
        if goes_on(node, &lessons.points[members[next]]) {
            members.swap(own, next);
            own += 1;
        }
    }
    let (left, right) = members.split_at_mut(own);
    grow(lessons, left, random, tree);
    let after = tree.len() as u32;
    tree[place] = node;
    if let Node::Below { other, .. } | Node::Among { other, .. } = &mut tree[place] {
        *other = after;
    }
    grow(lessons, right, random, tree);
}

/// Draws one split on each categorical parameter, on each coordinate that varies, and on sums or differences of two
/// coordinates (random linear combinations; Breiman, 2001). With logarithmic coordinates, a sum is a product, such as
/// the threads per block.
fn draw_splits(lessons: &Lessons<'_>, members: &[usize], random: &mut Random) -> Vec<Node> {
    let mut splits = Vec::new();
    let (first, others) = (&lessons.points[members[0]], &members[1..]);
    for parameter in (0..first.point.len()).filter(|&parameter| !lessons.features.has_coordinates(parameter)) {
        let values = || members.iter().map(|&member| lessons.points[member].point[parameter]);
        let (least, most) = values().fold((u16::MAX, 0), |(least, most), value| (least.min(value), most.max(value)));
        if least < most {
            // Separate two values that occur; divide the rest at random.
            let values = (random.below(u64::MAX) | 1 << (least % 64)) & !(1 << (most % 64));
            splits.push(Node::Among { parameter: parameter as u16, values, other: 0 });
        }
    }
    let differs = |member: usize, place: usize| {
        (lessons.points[member].coordinates[place] - first.coordinates[place]).abs() > 0.0
    };
    let varied = (0..first.coordinates.len()).filter(|&place| others.iter().any(|&member| differs(member, place)));
    let varied: Vec<u16> = varied.map(|place| place as u16).collect();
    for (place, &first) in varied.iter().enumerate() {
        let second = varied[(place + random.index(varied.len())) % varied.len()];
        let sign = if random.chance(0.5) { 1.0 } else { -1.0 };
        for weight in [0.0, if first == second { 0.0 } else { sign }] {
            let sums = members.iter().map(|&member| sum(&lessons.points[member], [first, second], weight));
            let (least, most) = sums.fold((f32::MAX, f32::MIN), |(least, most), sum| (least.min(sum), most.max(sum)));
            let bound = least + (most - least) * random.unit() as f32;
            splits.push(Node::Below { pair: [first, second], weight, bound, other: 0 });
        }
    }
    splits
}

/// Quality of a split: the reduction in variance, up to a constant. `None` if it does not separate any points.
fn score(lessons: &Lessons<'_>, members: &[usize], node: Node) -> Option<f64> {
    let (mut sums, mut counts) = ([0.0; 2], [0.0; 2]);
    for &member in members {
        let side = usize::from(goes_on(node, &lessons.points[member]));
        sums[side] += lessons.targets[member];
        counts[side] += 1.0;
    }
    let divides = counts[0] > 0.0 && counts[1] > 0.0;
    divides.then(|| sums[0] * sums[0] / counts[0] + sums[1] * sums[1] / counts[1])
}

fn sum(point: &Placed<'_>, pair: [u16; 2], weight: f32) -> f32 {
    point.coordinates[usize::from(pair[0])] + weight * point.coordinates[usize::from(pair[1])]
}

/// Whether a point continues at the node that follows a split.
fn goes_on(node: Node, point: &Placed<'_>) -> bool {
    match node {
        Node::Leaf(_) => true,
        Node::Below { pair, weight, bound, .. } => sum(point, pair, weight) < bound,
        Node::Among { parameter, values, .. } => values >> (point.point[usize::from(parameter)] % 64) & 1 == 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::space::{Parameter, Value};

    #[test]
    fn a_product_of_two_parameters_is_learned_from_few_points() {
        let powers = |name: &str| Parameter::new(name, (0..16).map(|n| Value::Int(1 << n)).collect());
        let Ok(space) = Space::new(vec![powers("x"), powers("y")], &[]) else { panic!("256 points") };
        // Blocks above a certain size are slow.
        let target = |point: &[u16]| f64::from(u8::from(point[0] + point[1] >= 16));
        let (known, others): (Vec<u64>, Vec<u64>) = (0..256).partition(|number| number * 37 % 256 < 64);
        let points: Vec<_> = known.iter().map(|&number| space.point(number)).collect();
        let targets: Vec<f64> = points.iter().map(|point| target(point)).collect();
        let wrong = |seed| {
            let forest = Forest::grow(&space, &points, &targets, &mut Random::new(seed));
            let is_wrong = |point: &[u16]| (forest.predict(point).0 - target(point)).abs() > 0.5;
            others.iter().filter(|&&number| is_wrong(&space.point(number))).count()
        };
        // Number of wrong predictions among 5 × 192. With splits only on single parameters, it is about 76.
        let wrong: usize = (1..6).map(wrong).sum();
        assert!(wrong < 65, "{wrong}");
    }
}

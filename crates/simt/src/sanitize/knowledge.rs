//! What threads know about other blocks: how many releases of each block they know.
//!
//! A block that takes part in a grid barrier, or in a count over all blocks, knows about thousands of others and passes
//! all of this knowledge on. So sets are numbered trees that share common parts, and unions are cached.

use std::collections::HashMap;
use std::sync::Arc;

const BITS: u32 = 5;
const WIDTH: usize = 1 << BITS;

pub type SetId = u32;

/// The empty set, of a thread that knows about no release.
pub const NOTHING: SetId = 0;

#[derive(Debug, Clone)]
enum Node {
    /// Number of known releases of each block.
    Leaf([u32; WIDTH]),
    Inner([Option<Arc<Self>>; WIDTH]),
}

/// All knowledge sets of a launch.
#[derive(Debug)]
pub struct Knowledge {
    /// Number of tree levels below the root.
    levels: u32,
    sets: Vec<Option<Arc<Node>>>,
    joined: HashMap<(SetId, SetId), SetId>,
}

impl Knowledge {
    pub fn new(blocks: u64) -> Self {
        let bits = 64 - blocks.saturating_sub(1).leading_zeros();
        Self { levels: bits.div_ceil(BITS).max(1) - 1, sets: vec![None], joined: HashMap::new() }
    }

    /// Returns how many of a block's releases a set contains.
    pub fn of(&self, set: SetId, block: u32) -> u32 {
        let mut node = self.sets.get(set as usize).and_then(Option::as_ref);
        let mut level = self.levels;
        loop {
            let at = (block >> (BITS * level)) as usize % WIDTH;
            match node.map(AsRef::as_ref) {
                None => return 0,
                Some(Node::Leaf(releases)) => return releases[at],
                Some(Node::Inner(children)) => node = children[at].as_ref(),
            }
            level = level.saturating_sub(1);
        }
    }

    /// Returns the set with a block's releases up to number `release` added.
    pub fn with(&mut self, set: SetId, block: u32, release: u32) -> SetId {
        if self.of(set, block) >= release {
            return set;
        }
        let root = self.sets[set as usize].clone();
        self.add(Some(inserted(root.as_deref(), self.levels, block, release)))
    }

    /// Returns the union of two sets.
    pub fn join(&mut self, a: SetId, b: SetId) -> SetId {
        if a == b || b == NOTHING {
            return a;
        }
        if a == NOTHING {
            return b;
        }
        let pair = (a.min(b), a.max(b));
        if let Some(known) = self.joined.get(&pair) {
            return *known;
        }
        let (Some(x), Some(y)) = (self.sets[a as usize].clone(), self.sets[b as usize].clone()) else {
            return a.max(b);
        };
        let both = united(&x, &y);
        let set = if Arc::ptr_eq(&both, &x) {
            a
        } else if Arc::ptr_eq(&both, &y) {
            b
        } else {
            self.add(Some(both))
        };
        self.joined.insert(pair, set);
        set
    }

    fn add(&mut self, root: Option<Arc<Node>>) -> SetId {
        self.sets.push(root);
        self.sets.len() as u32 - 1
    }
}

fn inserted(node: Option<&Node>, level: u32, block: u32, release: u32) -> Arc<Node> {
    let at = (block >> (BITS * level)) as usize % WIDTH;
    if level == 0 {
        let mut releases = match node {
            Some(Node::Leaf(releases)) => *releases,
            _ => [0; WIDTH],
        };
        releases[at] = release;
        return Arc::new(Node::Leaf(releases));
    }
    let mut children = match node {
        Some(Node::Inner(children)) => children.clone(),
        _ => [const { None }; WIDTH],
    };
    children[at] = Some(inserted(children[at].as_deref(), level - 1, block, release));
    Arc::new(Node::Inner(children))
}

/// Returns the union of two trees of equal height. If one contains the other, returns that one.
fn united(a: &Arc<Node>, b: &Arc<Node>) -> Arc<Node> {
    if Arc::ptr_eq(a, b) {
        return Arc::clone(a);
    }
    match (a.as_ref(), b.as_ref()) {
        (Node::Leaf(x), Node::Leaf(y)) => {
            let both: [u32; WIDTH] = std::array::from_fn(|k| x[k].max(y[k]));
            match (both == *x, both == *y) {
                (true, _) => Arc::clone(a),
                (_, true) => Arc::clone(b),
                _ => Arc::new(Node::Leaf(both)),
            }
        }
        (Node::Inner(x), Node::Inner(y)) => {
            let both: [Option<Arc<Node>>; WIDTH] = std::array::from_fn(|k| match (&x[k], &y[k]) {
                (Some(x), Some(y)) => Some(united(x, y)),
                (x, y) => x.as_ref().or(y.as_ref()).cloned(),
            });
            let is = |of: &[Option<Arc<Node>>; WIDTH]| {
                both.iter().zip(of).all(|(a, b)| a.as_ref().map(Arc::as_ptr) == b.as_ref().map(Arc::as_ptr))
            };
            match (is(x), is(y)) {
                (true, _) => Arc::clone(a),
                (_, true) => Arc::clone(b),
                _ => Arc::new(Node::Inner(both)),
            }
        }
        _ => Arc::clone(a),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_union_knows_the_later_release_of_each_block() {
        for blocks in [2, 32, 33, 5000] {
            let mut sets = Knowledge::new(blocks);
            let last = blocks as u32 - 1;
            let a = sets.with(NOTHING, 0, 3);
            let b = sets.with(NOTHING, last, 2);
            let b = sets.with(b, 0, 1);
            let both = sets.join(a, b);
            assert_eq!([sets.of(both, 0), sets.of(both, last)], [3, 2], "{blocks} blocks");
            assert_eq!([sets.of(a, last), sets.of(b, 0), sets.of(NOTHING, 0)], [0, 1, 0]);
            assert_eq!([sets.join(b, a), sets.join(both, a), sets.join(b, both)], [both; 3], "a union is remembered");
        }
    }
}

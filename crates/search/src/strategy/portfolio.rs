//! A combination of several strategies that share their evaluations.

use super::proposal::{Strategy, draw};
use super::sample::Even;
use super::surrogate::{Goal, Process, initial, propose_by_trees};
use crate::history::History;
use crate::random::Random;
use crate::space::Space;

/// A Gaussian process with several goals, and a forest, which take turns proposing.
///
/// Each member has its own weakness. Expected improvement stays where the model is wrong but certain; a confidence
/// bound explores too long; a forest misses small basins; neighbours of the best are only a local search. All members
/// learn from all evaluations.
#[derive(Debug, Default)]
pub struct Portfolio {
    even: Even,
    process: Process,
    proposed: usize,
}

#[derive(Debug, Clone, Copy)]
enum Member {
    Process(Goal),
    Trees,
    Draw,
}

/// Members in the order in which they propose.
const MEMBERS: [Member; 12] = [
    Member::Process(Goal::Improvement),
    Member::Process(Goal::Bound(1.0)),
    Member::Process(Goal::Near(0.5)),
    Member::Process(Goal::Improvement),
    Member::Process(Goal::Bound(1.0)),
    Member::Trees,
    Member::Process(Goal::Improvement),
    Member::Process(Goal::Bound(2.0)),
    Member::Process(Goal::Near(0.5)),
    Member::Process(Goal::Improvement),
    Member::Process(Goal::Bound(1.0)),
    Member::Draw,
];

impl Strategy for Portfolio {
    fn propose(&mut self, space: &Space, history: &History, random: &mut Random) -> Option<u64> {
        if history.len() + history.pending().len() < initial(space) {
            return self.even.propose(space, history, random);
        }
        let member = MEMBERS[self.proposed % MEMBERS.len()];
        self.proposed += 1;
        let proposal = match member {
            Member::Process(goal) => self.process.propose(space, history, goal, random),
            Member::Trees => propose_by_trees(space, history, random),
            Member::Draw => None,
        };
        proposal.or_else(|| draw(space, history, random))
    }
}

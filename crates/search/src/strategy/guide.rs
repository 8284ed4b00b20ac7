//! Shared part of the walks and populations: an even initial sample, and a Gaussian process that ranks their next steps
//! and now and then proposes a point itself.

use super::proposal::{Strategy as _, draw};
use super::sample::Even;
use super::surrogate::{Goal, Process, candidates, initial, near_elite};
use crate::history::History;
use crate::random::Random;
use crate::space::Space;

/// Chooses where a strategy goes next.
#[derive(Debug, Default)]
pub(super) struct Guide {
    even: Even,
    process: Process,
    asked: usize,
}

/// One in this many proposals comes from the process itself. This reaches basins that the strategy's own steps do not
/// lead to, and takes the last step from a nearly optimal point. SMAC (Hutter et al., 2011) interleaves random points
/// for the same reason.
const EVERY: usize = 3;
/// Goals of these proposals, in turn.
const OWN: [Goal; 3] = [Goal::Bound(1.0), Goal::Bound(2.0), Goal::Near(0.5)];

/// Number of random points among the candidates for the start of a walk.
const STARTS: usize = 1000;
/// Number of candidates that are close to one of the best points. Such kicks are used in iterated local search
/// (Lourenço et al., 2003).
const KICKS: usize = 100;
/// Number of parameters that a kick changes.
const KICKED: usize = 2;
/// Number of best points that are kicked.
const ELITE: usize = 6;
/// Number of standard deviations in the confidence bound that selects the start. A large value favours unknown regions.
const FAR: f64 = 2.0;

impl Guide {
    /// Proposes a point of the initial sample or from the process; `None` if the strategy should propose one.
    pub fn propose(&mut self, space: &Space, history: &History, random: &mut Random) -> Option<u64> {
        if history.len() + history.pending().len() < initial(space) {
            return self.even.propose(space, history, random);
        }
        self.asked += 1;
        if !self.asked.is_multiple_of(EVERY) {
            return None;
        }
        let goal = OWN[self.asked / EVERY % OWN.len()];
        let pool = match goal {
            Goal::Near(_) => near_elite(space, history, random)?,
            _ => candidates(space, history, random),
        };
        self.choose(space, history, (&pool, goal), random)
    }

    /// Selects the free point that is best for a goal.
    pub fn choose(
        &mut self,
        space: &Space,
        history: &History,
        choice: (&[u64], Goal),
        random: &mut Random,
    ) -> Option<u64> {
        self.process.choose(space, history, choice, random)
    }

    /// Selects the start of a walk.
    pub fn start(&mut self, space: &Space, history: &History, random: &mut Random) -> Option<u64> {
        let mut starts: Vec<u64> = (0..STARTS).map(|_| random.below(space.len())).collect();
        let elite: Vec<u64> = history.ranked().take(ELITE).map(|(point, _)| point).collect();
        for _ in elite.iter().cycle().take(KICKS) {
            let mut point = space.point(elite[random.index(elite.len())]);
            for _ in 0..KICKED {
                let place = random.index(point.len());
                point[place] = random.index(space.parameters()[place].values.len()) as u16;
            }
            starts.push(space.nearest(&point));
        }
        let start = self.choose(space, history, (&starts, Goal::Bound(FAR)), random);
        start.or_else(|| draw(space, history, random))
    }
}

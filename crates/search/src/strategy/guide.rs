//! What walks and populations have in common: an even sample before anything else, and a Gaussian process that says which
//! of several next steps is tried, and that proposes points itself now and then.

use super::proposal::{Strategy as _, draw};
use super::sample::Even;
use super::surrogate::{Goal, Process, candidates, initial, near_elite};
use crate::history::History;
use crate::random::Random;
use crate::space::Space;

/// Chooses where a strategy goes.
#[derive(Debug, Default)]
pub(super) struct Guide {
    even: Even,
    process: Process,
    asked: usize,
}

/// One of so many proposals is the process's own, for one of these goals in turn: so a strategy comes to a basin that its own
/// steps do not lead to, and takes the last step beside a point that is nearly the best. SMAC (Hutter and others, 2011)
/// interleaves random points for the same reason.
const EVERY: usize = 3;
const OWN: [Goal; 3] = [Goal::Bound(1.0), Goal::Bound(2.0), Goal::Near(0.5)];

/// A walk begins anew at one of so many random points, or at a point that differs in a few parameters from one of the best
/// few: a kick, as iterated local search has it (Lourenço and others, 2003).
const STARTS: usize = 1000;
const KICKS: usize = 100;
const KICKED: usize = 2;
const ELITE: usize = 6;
/// The start is chosen by a bound of so many deviations: where little is known.
const FAR: f64 = 2.0;

impl Guide {
    /// Proposes a point of the sample that comes before anything else, or one of the process; `None` where it is the
    /// strategy's turn.
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

    /// Chooses the free point of some that is best for a goal.
    pub fn choose(
        &mut self,
        space: &Space,
        history: &History,
        choice: (&[u64], Goal),
        random: &mut Random,
    ) -> Option<u64> {
        self.process.choose(space, history, choice, random)
    }

    /// Chooses a point at which a walk begins.
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

//! Strategies that walk from point to point: hill climbing with restarts, simulated annealing and tabu search.

use std::collections::VecDeque;

use super::guide::Guide;
use super::proposal::{Strategy, height};
use super::surrogate::Goal;
use crate::history::History;
use crate::random::Random;
use crate::space::Space;

/// Climbs until none of the most promising neighbours is better, then restarts elsewhere.
#[derive(Debug, Default)]
pub struct LocalSearch {
    current: Option<u64>,
    /// Number of the current point's neighbours proposed so far.
    tried: usize,
    guide: Guide,
    has_begun: bool,
}

/// Maximum number of neighbours to propose per point.
const CLIMBED: usize = 10;

impl Strategy for LocalSearch {
    fn propose(&mut self, space: &Space, history: &History, random: &mut Random) -> Option<u64> {
        if let Some(point) = self.guide.propose(space, history, random) {
            return Some(point);
        }
        if !std::mem::replace(&mut self.has_begun, true) {
            self.current = history.best().map(|(point, _)| point);
        }
        // Each iteration climbs to a better known neighbour or restarts.
        while let Some(current) = self.current {
            if history.outcome(current).is_none() {
                break;
            }
            let neighbours = space.neighbours(current);
            let best = best(history, &neighbours);
            if let Some(best) = best.filter(|&best| height(history.outcome(best)) < height(history.outcome(current))) {
                self.current = Some(best);
                self.tried = 0;
                continue;
            }
            if self.tried < CLIMBED
                && let Some(free) = self.guide.choose(space, history, (&neighbours, Goal::Improvement), random)
            {
                self.tried += 1;
                return Some(free);
            }
            if neighbours.iter().any(|&point| history.is_pending(point)) {
                break;
            }
            self.current = None;
            self.tried = 0;
        }
        let start = self.guide.start(space, history, random)?;
        // Do not interrupt a running climb: the start is just an additional point to evaluate.
        if self.current.is_none() {
            self.current = Some(start);
        }
        Some(start)
    }
}

/// Best of the points that have been evaluated.
fn best(history: &History, points: &[u64]) -> Option<u64> {
    points
        .iter()
        .copied()
        .filter(|&point| history.outcome(point).is_some())
        .min_by(|&a, &b| height(history.outcome(a)).total_cmp(&height(history.outcome(b))))
}

/// Simulated annealing: a random walk that accepts worse points less and less often.
#[derive(Debug, Default)]
pub struct Annealing {
    current: Option<u64>,
    /// Proposed points that the walk has not yet accepted or rejected.
    next: VecDeque<u64>,
    /// Best level of this walk, and the number of evaluations when it was found.
    best: Option<(f64, usize)>,
    /// Number of evaluations when the walk started.
    begun: usize,
    guide: Guide,
    has_begun: bool,
}

/// Factor by which a point must be worse to be accepted with probability 1/e at the start.
const HEAT: f64 = 1.5;
/// Number of evaluations after which the temperature is halved.
const COOLING: f64 = 15.0;
/// Number of evaluations without improvement before the walk restarts elsewhere, at the initial temperature.
const PATIENCE: usize = 12;
/// Maximum number of consecutive steps to known points, which need no evaluation.
const FREE_STEPS: usize = 50;

impl Annealing {
    /// Moves to a point, or rejects it.
    fn step(&mut self, next: u64, history: &History, random: &mut Random) {
        let warmth = HEAT.ln() / (1.0 + (history.len() - self.begun) as f64 / COOLING);
        let level = height(history.outcome(next));
        let climb = self.current.map_or(0.0, |current| level - height(history.outcome(current)));
        if climb <= 0.0 || random.chance((-climb / warmth).exp()) {
            self.current = Some(next);
        }
        if self.best.is_none_or(|(best, _)| level < best) {
            self.best = Some((level, history.len()));
        }
    }
}

impl Strategy for Annealing {
    fn propose(&mut self, space: &Space, history: &History, random: &mut Random) -> Option<u64> {
        if let Some(point) = self.guide.propose(space, history, random) {
            return Some(point);
        }
        if !std::mem::replace(&mut self.has_begun, true) {
            self.begun = history.len();
            self.next.extend(history.best().map(|(point, _)| point));
        }
        if self.best.is_some_and(|(_, found)| history.len() > found + PATIENCE) {
            (self.current, self.best, self.begun) = (None, None, history.len());
            self.next.clear();
        }
        // Several points may have been evaluated at once.
        while let Some(next) = self.next.front().copied().filter(|&next| history.outcome(next).is_some()) {
            self.next.pop_front();
            self.step(next, history, random);
        }
        for _ in 0..FREE_STEPS {
            let Some(current) = self.current else { break };
            let neighbours = space.neighbours(current);
            if let Some(next) = self.guide.choose(space, history, (&neighbours, Goal::Improvement), random) {
                self.next.push_back(next);
                return Some(next);
            }
            let known: Vec<u64> = neighbours.into_iter().filter(|&point| history.outcome(point).is_some()).collect();
            if known.is_empty() {
                break;
            }
            self.step(known[random.index(known.len())], history, random);
        }
        let start = self.guide.start(space, history, random)?;
        self.next.push_back(start);
        Some(start)
    }
}

/// Tabu search: moves to the best neighbour even if it is worse, but not to recently visited points. Evaluates
/// neighbours until one is better, up to a limit: a candidate list, as Glover and Laguna (1997) recommend for large
/// neighbourhoods.
#[derive(Debug, Default)]
pub struct Tabu {
    current: Option<u64>,
    visited: VecDeque<u64>,
    /// Number of the current point's neighbours proposed so far.
    tried: usize,
    /// Best level of this walk, and the number of evaluations when it was found.
    best: Option<(f64, usize)>,
    guide: Guide,
    has_begun: bool,
}

/// Length of the tabu list. A walk over as many known points restarts elsewhere, since it could otherwise cycle forever
/// if all points are known.
const MEMORY: usize = 50;
/// Number of neighbours to propose before accepting a worse one.
const LISTED: usize = 8;

impl Strategy for Tabu {
    fn propose(&mut self, space: &Space, history: &History, random: &mut Random) -> Option<u64> {
        if let Some(point) = self.guide.propose(space, history, random) {
            return Some(point);
        }
        if !std::mem::replace(&mut self.has_begun, true) {
            self.current = history.best().map(|(point, _)| point);
        }
        if self.best.is_some_and(|(_, found)| history.len() > found + PATIENCE) {
            (self.current, self.best) = (None, None);
        }
        let mut walked = 0;
        while let Some(current) = self.current {
            if history.outcome(current).is_none() {
                break;
            }
            let level = height(history.outcome(current));
            if self.best.is_none_or(|(best, _)| level < best) {
                self.best = Some((level, history.len()));
            }
            let neighbours = space.neighbours(current);
            let open: Vec<u64> = neighbours.iter().copied().filter(|point| !self.visited.contains(point)).collect();
            let better =
                best(history, &open).filter(|&best| height(history.outcome(best)) < height(history.outcome(current)));
            if better.is_none() {
                if self.tried < LISTED
                    && let Some(free) = self.guide.choose(space, history, (&open, Goal::Improvement), random)
                {
                    self.tried += 1;
                    return Some(free);
                }
                if open.iter().any(|&point| history.is_pending(point)) {
                    break;
                }
            }
            self.visited.push_back(current);
            if self.visited.len() > MEMORY {
                self.visited.pop_front();
            }
            walked += 1;
            self.tried = 0;
            self.current = better.or_else(|| best(history, &open)).filter(|_| walked <= MEMORY);
        }
        let start = self.guide.start(space, history, random)?;
        if self.current.is_none() {
            self.current = Some(start);
            self.tried = 0;
        }
        Some(start)
    }
}

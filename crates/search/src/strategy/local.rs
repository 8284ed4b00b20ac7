//! Strategies that walk from point to point: hill climbing with restarts, annealing and tabu search.

use std::collections::VecDeque;

use super::proposal::{Strategy, draw, height};
use crate::history::History;
use crate::random::Random;
use crate::space::Space;

/// Climbs from random points to local optima.
#[derive(Debug, Default)]
pub struct LocalSearch {
    current: Option<u64>,
}

impl Strategy for LocalSearch {
    fn propose(&mut self, space: &Space, history: &History, random: &mut Random) -> Option<u64> {
        // Each pass climbs to a better known neighbour, or begins anew.
        while let Some(current) = self.current {
            if history.outcome(current).is_none() {
                break;
            }
            let neighbours = space.neighbours(current);
            let best = best(history, &neighbours);
            if let Some(best) = best.filter(|&best| height(history.outcome(best)) < height(history.outcome(current))) {
                self.current = Some(best);
                continue;
            }
            let free: Vec<u64> = neighbours.iter().copied().filter(|&point| !history.is_taken(point)).collect();
            if !free.is_empty() {
                return Some(free[random.index(free.len())]);
            }
            if neighbours.iter().any(|&point| history.outcome(point).is_none()) {
                break;
            }
            self.current = None;
        }
        let start = draw(space, history, random)?;
        // While a climb waits for outcomes, the point is only one more that is known later.
        if self.current.is_none() {
            self.current = Some(start);
        }
        Some(start)
    }
}

/// Returns the best of some points whose outcomes are known.
fn best(history: &History, points: &[u64]) -> Option<u64> {
    points
        .iter()
        .copied()
        .filter(|&point| history.outcome(point).is_some())
        .min_by(|&a, &b| height(history.outcome(a)).total_cmp(&height(history.outcome(b))))
}

/// Walks at random; the more points are known, the more rarely to a worse one.
#[derive(Debug, Default)]
pub struct Annealing {
    current: Option<u64>,
    next: Option<u64>,
}

/// A point that is worse by this factor is accepted with a probability of 1/e at the beginning.
const HEAT: f64 = 1.5;
/// After so many points the walk is half as warm.
const COOLING: f64 = 15.0;
/// Steps to known points cost nothing; so many are made at once at most.
const FREE_STEPS: usize = 50;

impl Strategy for Annealing {
    fn propose(&mut self, space: &Space, history: &History, random: &mut Random) -> Option<u64> {
        let warmth = HEAT.ln() / (1.0 + history.len() as f64 / COOLING);
        let Some(mut current) = self.current else {
            self.current = draw(space, history, random);
            return self.current;
        };
        for _ in 0..FREE_STEPS {
            if let Some(next) = self.next.filter(|&next| history.outcome(next).is_some()) {
                let climb = height(history.outcome(next)) - height(history.outcome(current));
                if climb <= 0.0 || random.chance((-climb / warmth).exp()) {
                    current = next;
                    self.current = Some(next);
                }
                self.next = None;
            }
            let neighbours = space.neighbours(current);
            if neighbours.is_empty() {
                break;
            }
            let next = neighbours[random.index(neighbours.len())];
            self.next = Some(next);
            if !history.is_taken(next) {
                return Some(next);
            }
        }
        draw(space, history, random)
    }
}

/// Moves to the best neighbour even if it is worse, and not back to where it was lately.
#[derive(Debug, Default)]
pub struct Tabu {
    current: Option<u64>,
    visited: VecDeque<u64>,
}

/// So many visited points are closed. A walk over as many known points begins elsewhere: where all is known, it would go
/// round for ever.
const MEMORY: usize = 50;

impl Strategy for Tabu {
    fn propose(&mut self, space: &Space, history: &History, random: &mut Random) -> Option<u64> {
        let mut walked = 0;
        while let Some(current) = self.current {
            if history.outcome(current).is_none() {
                break;
            }
            let steps = space.steps(current);
            let free: Vec<u64> = steps.iter().copied().filter(|&point| !history.is_taken(point)).collect();
            if !free.is_empty() {
                return Some(free[random.index(free.len())]);
            }
            if steps.iter().any(|&point| history.outcome(point).is_none()) {
                break;
            }
            self.visited.push_back(current);
            if self.visited.len() > MEMORY {
                self.visited.pop_front();
            }
            let open: Vec<u64> = steps.into_iter().filter(|step| !self.visited.contains(step)).collect();
            walked += 1;
            self.current = best(history, &open).filter(|_| walked <= MEMORY);
        }
        let start = draw(space, history, random)?;
        if self.current.is_none() {
            self.current = Some(start);
        }
        Some(start)
    }
}

//! Strategies that do not learn: all points, random points, and an even cover.

use super::proposal::{Strategy, draw};
use crate::history::History;
use crate::random::Random;
use crate::space::Space;

/// Proposes all points in order.
#[derive(Debug, Default)]
pub struct Exhaustive {
    next: u64,
}

impl Strategy for Exhaustive {
    fn propose(&mut self, space: &Space, history: &History, _: &mut Random) -> Option<u64> {
        // Start over after the end, since earlier points may have been held back.
        let point = (self.next..space.len()).chain(0..self.next).find(|&point| !history.is_taken(point))?;
        self.next = point + 1;
        Some(point)
    }
}

/// Draws points uniformly.
#[derive(Debug, Default)]
pub struct Uniform;

impl Strategy for Uniform {
    fn propose(&mut self, space: &Space, history: &History, random: &mut Random) -> Option<u64> {
        draw(space, history, random)
    }
}

/// Covers the space more evenly than random points: an additive recurrence with powers of the generalised golden ratio,
/// starting at a random position.
#[derive(Debug, Default)]
pub struct Even {
    start: Vec<f64>,
    steps: Vec<f64>,
    next: u32,
}

/// Number of consecutive taken points after which a random one is proposed.
const ATTEMPTS: usize = 100;

impl Strategy for Even {
    fn propose(&mut self, space: &Space, history: &History, random: &mut Random) -> Option<u64> {
        let dimensions = space.parameters().len();
        if self.start.is_empty() {
            // Solves x^(d + 1) = x + 1 by fixed-point iteration.
            let ratio = (0..40).fold(2.0_f64, |x, _| (1.0 + x).powf(1.0 / (dimensions as f64 + 1.0)));
            self.start = (0..dimensions).map(|_| random.unit()).collect();
            self.steps = (0..dimensions).map(|place| ratio.powi(-(place as i32 + 1))).collect();
        }
        for _ in 0..ATTEMPTS {
            self.next += 1;
            let places = self.start.iter().zip(&self.steps);
            let position: Vec<f64> =
                places.map(|(start, step)| (start + f64::from(self.next) * step).fract()).collect();
            let point = space.number_at(&position);
            if !history.is_taken(point) {
                return Some(point);
            }
        }
        draw(space, history, random)
    }
}

//! Strategies with a population: a genetic algorithm and differential evolution.

use super::proposal::{Strategy, draw, height};
use crate::history::History;
use crate::random::Random;
use crate::space::{Point, Scale, Space};

/// How many points a population has.
const POPULATION: usize = 20;
/// After so many children that are taken already, a random point is proposed.
const ATTEMPTS: usize = 50;

/// Crosses and mutates the best points.
#[derive(Debug, Default)]
pub struct Genetic;

impl Strategy for Genetic {
    fn propose(&mut self, space: &Space, history: &History, random: &mut Random) -> Option<u64> {
        let population: Vec<u64> = history.ranked().take(POPULATION).map(|(point, _)| point).collect();
        if history.len() < POPULATION || population.len() < 2 {
            return draw(space, history, random);
        }
        let dimensions = space.parameters().len() as f64;
        for _ in 0..ATTEMPTS {
            // The better one of two is a parent.
            let [mother, father] = [(); 2].map(|()| {
                let place = random.index(population.len()).min(random.index(population.len()));
                space.point(population[place])
            });
            let child: Point = mother
                .iter()
                .zip(&father)
                .zip(space.parameters())
                .map(|((&a, &b), parameter)| {
                    if random.chance(1.0 / dimensions) {
                        random.index(parameter.values.len()) as u16
                    } else if random.chance(0.5) {
                        a
                    } else {
                        b
                    }
                })
                .collect();
            let child = space.nearest(&child);
            if !history.is_taken(child) {
                return Some(child);
            }
        }
        draw(space, history, random)
    }
}

/// Adds differences of two members to a third one.
#[derive(Debug, Default)]
pub struct DifferentialEvolution {
    members: Vec<u64>,
    trials: Vec<(usize, u64)>,
    next: usize,
}

/// The share of a difference that is added.
const DIFFERENCE: f64 = 0.7;
/// How likely a parameter comes from the mutant.
const CROSSING: f64 = 0.7;

impl Strategy for DifferentialEvolution {
    fn propose(&mut self, space: &Space, history: &History, random: &mut Random) -> Option<u64> {
        if self.members.len() < POPULATION {
            let point = draw(space, history, random)?;
            self.members.push(point);
            return Some(point);
        }
        self.trials.retain(|&(place, trial)| {
            let ended = history.outcome(trial).is_some();
            if ended && height(history.outcome(trial)) <= height(history.outcome(self.members[place])) {
                self.members[place] = trial;
            }
            !ended
        });
        for _ in 0..ATTEMPTS {
            let place = self.next % self.members.len();
            self.next += 1;
            let [a, b, c] = [(); 3].map(|()| space.point(self.members[random.index(self.members.len())]));
            let own = space.point(self.members[place]);
            let sure = random.index(own.len());
            let trial: Point = space
                .parameters()
                .iter()
                .enumerate()
                .map(|(i, parameter)| {
                    if i != sure && !random.chance(CROSSING) {
                        return own[i];
                    }
                    match parameter.scale {
                        Scale::Ordered => {
                            let moved = f64::from(a[i]) + DIFFERENCE * (f64::from(b[i]) - f64::from(c[i]));
                            moved.round().clamp(0.0, (parameter.values.len() - 1) as f64) as u16
                        }
                        // Where the two differ, the mutant has any value.
                        Scale::Categorical if b[i] != c[i] => random.index(parameter.values.len()) as u16,
                        Scale::Categorical => a[i],
                    }
                })
                .collect();
            let trial = space.nearest(&trial);
            if !history.is_taken(trial) {
                self.trials.push((place, trial));
                return Some(trial);
            }
        }
        draw(space, history, random)
    }
}

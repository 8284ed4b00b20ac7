//! Strategies with a population: a genetic algorithm and differential evolution. Only the child with the best
//! prediction of a Gaussian process is evaluated, which is known as pre-selection (Jin, 2011).

use super::guide::Guide;
use super::proposal::{Strategy, draw, height};
use super::surrogate::Goal;
use crate::history::History;
use crate::random::Random;
use crate::space::{Point, Scale, Space};

const POPULATION: usize = 20;
/// Number of children from which one is proposed. If all of them are taken, a random point is proposed.
const CHILDREN: usize = 50;

/// Genetic algorithm: crosses and mutates the best points.
#[derive(Debug, Default)]
pub struct Genetic {
    guide: Guide,
}

impl Strategy for Genetic {
    fn propose(&mut self, space: &Space, history: &History, random: &mut Random) -> Option<u64> {
        if let Some(point) = self.guide.propose(space, history, random) {
            return Some(point);
        }
        let population: Vec<u64> = history.ranked().take(POPULATION).map(|(point, _)| point).collect();
        if population.is_empty() {
            return draw(space, history, random);
        }
        let dimensions = space.parameters().len() as f64;
        let mut child = || {
            // Binary tournament selection.
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
            space.nearest(&child)
        };
        let children: Vec<u64> = (0..CHILDREN).map(|_| child()).collect();
        self.guide
            .choose(space, history, (&children, Goal::Bound(1.0)), random)
            .or_else(|| draw(space, history, random))
    }
}

/// Differential evolution: moves each member towards one of the best points and by the difference of two other members,
/// like JADE (Zhang and Sanderson, 2009).
#[derive(Debug, Default)]
pub struct DifferentialEvolution {
    /// Points of the initial sample, and those that have replaced them.
    members: Vec<u64>,
    trials: Vec<(usize, u64)>,
    next: usize,
    guide: Guide,
}

/// Number of best points from which a leader is drawn.
const LEADERS: usize = 5;
/// Scale factor of the differences.
const DIFFERENCE: f64 = 0.7;
/// Crossover rate: probability that a parameter is taken from the mutant.
const CROSSING: f64 = 0.7;

impl Strategy for DifferentialEvolution {
    fn propose(&mut self, space: &Space, history: &History, random: &mut Random) -> Option<u64> {
        if let Some(point) = self.guide.propose(space, history, random) {
            return Some(point);
        }
        if self.members.is_empty() {
            let sample = history.evaluations().iter().map(|evaluation| evaluation.point).chain(history.pending());
            self.members.extend(sample.take(POPULATION));
        }
        self.trials.retain(|&(place, trial)| {
            let ended = history.outcome(trial).is_some();
            if ended && height(history.outcome(trial)) <= height(history.outcome(self.members[place])) {
                self.members[place] = trial;
            }
            !ended
        });
        let leaders: Vec<u64> = history.ranked().take(LEADERS).map(|(point, _)| point).collect();
        if leaders.is_empty() || self.members.is_empty() {
            return draw(space, history, random);
        }
        let place = self.next % self.members.len();
        self.next += 1;
        let own = space.point(self.members[place]);
        let dimensions = own.len() as f64;
        let mut child = || {
            let leader = space.point(leaders[random.index(leaders.len())]);
            let [a, b] = [(); 2].map(|()| space.point(self.members[random.index(self.members.len())]));
            let sure = random.index(own.len());
            let trial: Point = space
                .parameters()
                .iter()
                .enumerate()
                .map(|(i, parameter)| {
                    // If all members agree, differences are zero.
                    if random.chance(1.0 / dimensions) {
                        return random.index(parameter.values.len()) as u16;
                    }
                    if i != sure && !random.chance(CROSSING) {
                        return own[i];
                    }
                    let [x, lead, a, b] = [own[i], leader[i], a[i], b[i]].map(f64::from);
                    match parameter.scale {
                        Scale::Ordered => {
                            let moved = x + DIFFERENCE * (lead - x) + DIFFERENCE * (a - b);
                            moved.round().clamp(0.0, (parameter.values.len() - 1) as f64) as u16
                        }
                        // If the two members differ, the mutant takes a random value.
                        Scale::Categorical if a.to_bits() != b.to_bits() => random.index(parameter.values.len()) as u16,
                        Scale::Categorical if random.chance(DIFFERENCE) => leader[i],
                        Scale::Categorical => own[i],
                    }
                })
                .collect();
            space.nearest(&trial)
        };
        let children: Vec<u64> = (0..CHILDREN).map(|_| child()).collect();
        let trial = self.guide.choose(space, history, (&children, Goal::Bound(1.0)), random);
        self.trials.extend(trial.map(|trial| (place, trial)));
        trial.or_else(|| draw(space, history, random))
    }
}

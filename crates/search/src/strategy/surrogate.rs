//! Strategies that model the objective: a Gaussian process and a forest.

use std::collections::HashSet;

use super::proposal::{Strategy, draw};
use super::sample::Even;
use crate::history::{History, Outcome};
use crate::random::Random;
use crate::space::{Point, Space};
use crate::surrogate::features::Features;
use crate::surrogate::forest;
use crate::surrogate::gaussian::{Field, Weights};

/// Maximum number of candidates. A model sees all points of a space up to this size, and a selection from a larger one.
const CANDIDATES: usize = 6000;
/// Number of evaluations after which new candidates are selected in a large space.
const STALE: usize = 50;
/// Maximum number of evaluations that a model learns from.
const LEARNED: usize = 400;
/// Factor by which the number of evaluations must grow before the model is refitted.
const GROWTH: f64 = 1.15;
/// Steps of the first fit of the weights.
const FIRST_STEPS: usize = 40;
/// Steps of later fits, which start from the previous weights.
const STEPS: usize = 10;

/// Acquisition function for selecting a candidate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Goal {
    /// Expected improvement.
    Improvement,
    /// Lower confidence bound: the mean minus this many standard deviations.
    Bound(f64),
    /// Lower confidence bound, only for neighbours of one of the best points.
    Near(f64),
}

/// Number of points to evaluate before using a model.
pub(super) fn initial(space: &Space) -> usize {
    (3 * space.parameters().len()).clamp(12, 24).min((space.len() / 4) as usize)
}

/// Logarithms of the objectives, capped at the worst good one, since only good values must be predicted accurately.
pub(super) struct Levels {
    cap: f64,
    pub best: f64,
}

impl Levels {
    pub fn new(history: &History) -> Option<Self> {
        let (_, best) = history.best()?;
        Some(Self { cap: history.worst_good()?.ln(), best: best.ln() })
    }

    pub fn level(&self, outcome: Option<Outcome>) -> f64 {
        match outcome {
            Some(Outcome::Value(value)) => value.ln().min(self.cap),
            _ => self.cap,
        }
    }
}

/// Candidates for a model: all points of a small space; neighbours of the best points and random points of a large one.
pub(super) fn candidates(space: &Space, history: &History, random: &mut Random) -> Vec<u64> {
    if space.len() <= CANDIDATES as u64 {
        return (0..space.len()).collect();
    }
    let mut chosen = HashSet::new();
    for (point, _) in history.ranked().take(8) {
        chosen.extend(space.neighbours(point));
    }
    for (point, _) in history.ranked().take(2) {
        let mut second = space.second_neighbours(point);
        random.shuffle(&mut second);
        chosen.extend(second.into_iter().take(CANDIDATES / 5));
    }
    while chosen.len() < CANDIDATES {
        chosen.insert(random.below(space.len()));
    }
    let mut chosen: Vec<u64> = chosen.into_iter().collect();
    chosen.sort_unstable();
    chosen
}

/// Evaluations that a model learns from: all, or the best and a random selection of the others.
pub(super) fn lessons(history: &History, random: &mut Random) -> Vec<u64> {
    if history.len() <= LEARNED {
        return history.evaluations().iter().map(|evaluation| evaluation.point).collect();
    }
    let mut lessons: Vec<u64> = history.ranked().take(LEARNED / 2).map(|(point, _)| point).collect();
    let mut known: HashSet<u64> = lessons.iter().copied().collect();
    while lessons.len() < LEARNED {
        let point = history.evaluations()[random.index(history.len())].point;
        if known.insert(point) {
            lessons.push(point);
        }
    }
    lessons
}

/// Neighbours of one of the best six points, preferring better ones.
pub(super) fn near_elite(space: &Space, history: &History, random: &mut Random) -> Option<Vec<u64>> {
    let place = ((random.unit().powi(2) * 6.0) as usize).min(history.right().checked_sub(1)?);
    history.ranked().nth(place).map(|(point, _)| space.neighbours(point))
}

/// A Gaussian process that is kept between proposals.
#[derive(Debug, Default)]
pub(super) struct Process {
    weights: Option<Weights>,
    field: Option<Field>,
    /// Points added to the field, in order.
    known: Vec<u64>,
    members: HashSet<u64>,
    candidates: Vec<u64>,
    /// Numbers of evaluations when candidates were last selected and when the weights were last fitted.
    learned: usize,
    fitted: usize,
    best: Option<u64>,
}

impl Process {
    pub fn propose(&mut self, space: &Space, history: &History, goal: Goal, random: &mut Random) -> Option<u64> {
        let near: Option<HashSet<u64>> = match goal {
            Goal::Near(_) => Some(near_elite(space, history, random)?.into_iter().collect()),
            _ => None,
        };
        self.learn_new(space, history, None, random)?;
        let scored = self.score(history, goal)?;
        // If no neighbour is free, any point will do.
        let scored = scored.map(|(score, point)| {
            (if near.as_ref().is_some_and(|near| !near.contains(&point)) { score - 1e6 } else { score }, point)
        });
        scored.max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, point)| point)
    }

    /// Selects the free point that is best for a goal, or a random one while little is known.
    pub fn choose(
        &mut self,
        space: &Space,
        history: &History,
        (pool, goal): (&[u64], Goal),
        random: &mut Random,
    ) -> Option<u64> {
        let free: Vec<u64> = pool.iter().copied().filter(|&point| !history.is_taken(point)).collect();
        let any = (!free.is_empty()).then(|| free[random.index(free.len())])?;
        if history.right() < initial(space) / 2 || self.learn_new(space, history, Some(&free), random).is_none() {
            return Some(any);
        }
        let chosen: HashSet<u64> = free.into_iter().collect();
        let scored = self.score(history, goal)?.filter(|(_, point)| chosen.contains(point));
        scored.max_by(|a, b| a.0.total_cmp(&b.0)).map_or(Some(any), |(_, point)| Some(point))
    }

    /// Adds new evaluations to the field. In a large space, uses `pool` as the candidates, if given.
    fn learn_new(&mut self, space: &Space, history: &History, pool: Option<&[u64]>, random: &mut Random) -> Option<()> {
        let levels = Levels::new(history)?;
        let due = self.field.is_none() || history.len() as f64 >= self.fitted as f64 * GROWTH;
        // The candidates of a large space follow the best point, and are renewed from time to time.
        let stale = self.best != history.best().map(|(point, _)| point) || history.len() >= self.learned + STALE;
        let is_large = space.len() > CANDIDATES as u64;
        if let Some(pool) = pool.filter(|_| is_large) {
            self.candidates = pool.to_vec();
            self.learn(space, history, &levels, due, random);
        } else if due || (is_large && stale) {
            if self.candidates.is_empty() || is_large {
                self.candidates = candidates(space, history, random);
            }
            self.learn(space, history, &levels, due, random);
        }
        let field = self.field.as_mut()?;
        let evaluated = history.evaluations()[self.learned..].iter().map(|evaluation| evaluation.point);
        let new: Vec<u64> = evaluated.chain(history.pending()).filter(|&point| self.members.insert(point)).collect();
        field.add(&new.iter().map(|&point| space.point(point)).collect::<Vec<_>>());
        self.known.extend(new);
        Some(())
    }

    fn score<'h>(&self, history: &'h History, goal: Goal) -> Option<impl Iterator<Item = (f64, u64)> + use<'_, 'h>> {
        let levels = Levels::new(history)?;
        let field = self.field.as_ref()?;
        // A pending point reduces the uncertainty around it, but does not change the mean.
        let done: Vec<bool> = self.known.iter().map(|&point| history.outcome(point).is_some()).collect();
        let objectives: Vec<f64> = self.known.iter().map(|&point| levels.level(history.outcome(point))).collect();
        let prediction = field.predict(&objectives, &done);
        let free = self.candidates.iter().enumerate().filter(move |(_, point)| !history.is_taken(**point));
        Some(free.map(move |(place, &point)| {
            let (mean, deviation) = (prediction.mean[place], field.deviation(place) * prediction.unit);
            let score = match goal {
                Goal::Improvement => improvement(levels.best - mean, deviation),
                Goal::Bound(width) | Goal::Near(width) => width * deviation - mean,
            };
            (score, point)
        }))
    }

    fn learn(&mut self, space: &Space, history: &History, levels: &Levels, fit: bool, random: &mut Random) {
        let features = Features::new(space);
        self.known = lessons(history, random);
        self.members = self.known.iter().copied().collect();
        let points: Vec<Point> = self.known.iter().map(|&point| space.point(point)).collect();
        let mut weights = self.weights.take();
        if fit || weights.is_none() {
            self.fitted = history.len();
            let steps = if weights.is_none() { FIRST_STEPS } else { STEPS };
            let objectives: Vec<f64> = self.known.iter().map(|&point| levels.level(history.outcome(point))).collect();
            weights.get_or_insert_with(|| Weights::prior(&features)).fit(&features, &points, &objectives, steps);
        }
        if let Some(weights) = weights {
            let candidates = self.candidates.iter().map(|&point| space.point(point)).collect();
            let mut field = Field::new(&features, &weights, candidates);
            field.add(&points);
            self.field = Some(field);
            self.weights = Some(weights);
        }
        self.learned = history.len();
        self.best = history.best().map(|(point, _)| point);
    }
}

/// Strategy that maximises the expected improvement under a Gaussian process.
#[derive(Debug, Default)]
pub struct Gaussian {
    even: Even,
    process: Process,
}

impl Strategy for Gaussian {
    fn propose(&mut self, space: &Space, history: &History, random: &mut Random) -> Option<u64> {
        if history.len() + history.pending().len() < initial(space) {
            return self.even.propose(space, history, random);
        }
        self.process.propose(space, history, Goal::Improvement, random).or_else(|| draw(space, history, random))
    }
}

/// Strategy that maximises the expected improvement under extremely randomised trees.
#[derive(Debug, Default)]
pub struct Forest {
    even: Even,
}

impl Strategy for Forest {
    fn propose(&mut self, space: &Space, history: &History, random: &mut Random) -> Option<u64> {
        if history.len() + history.pending().len() < initial(space) {
            return self.even.propose(space, history, random);
        }
        propose_by_trees(space, history, random).or_else(|| draw(space, history, random))
    }
}

/// Number of best points whose neighbours are candidates for a forest.
const ELITE: usize = 8;
/// Number of random points that are candidates for a forest.
const DRAWN: usize = 800;

/// Proposes the point with the largest expected improvement under a forest grown for this proposal.
pub(super) fn propose_by_trees(space: &Space, history: &History, random: &mut Random) -> Option<u64> {
    let levels = Levels::new(history)?;
    // A pending point counts as a bad one, so that the next proposal is elsewhere: a constant liar (Ginsbourger et al.,
    // 2010).
    let lessons: Vec<u64> = lessons(history, random).into_iter().chain(history.pending()).collect();
    let points: Vec<Point> = lessons.iter().map(|&point| space.point(point)).collect();
    let targets: Vec<f64> = lessons.iter().map(|&point| levels.level(history.outcome(point))).collect();
    let forest = forest::Forest::grow(space, &points, &targets, random);
    let near = history.ranked().take(ELITE).flat_map(|(point, _)| space.neighbours(point));
    let mut free: Vec<u64> = near.chain((0..DRAWN).map(|_| random.below(space.len()))).collect();
    free.retain(|&point| !history.is_taken(point));
    let scored = free.into_iter().map(|point| {
        let (mean, deviation) = forest.predict(&space.point(point));
        (improvement(levels.best - mean, deviation.max(1e-6)), point)
    });
    scored.max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, point)| point)
}

/// Logarithm of the expected improvement for a normally distributed gain.
fn improvement(gain: f64, deviation: f64) -> f64 {
    let z = gain / deviation;
    if z < -6.0 {
        // Leading term of the tail, which distinguishes candidates whose improvement would underflow to zero.
        return deviation.ln() - 0.5 * z * z - 2.0 * (-z).ln() - 0.919;
    }
    let density = (-0.5 * z * z).exp() / 2.506_628_274_631;
    (gain * normal(z) + deviation * density).max(1e-300).ln()
}

/// Cumulative normal distribution: Abramowitz and Stegun, 26.2.17, accurate to 8e-8.
fn normal(z: f64) -> f64 {
    let t = 1.0 / (1.0 + 0.231_641_9 * z.abs());
    let series =
        t * (0.319_381_530 + t * (-0.356_563_782 + t * (1.781_477_937 + t * (-1.821_255_978 + t * 1.330_274_429))));
    let tail = (-0.5 * z * z).exp() / 2.506_628_274_631 * series;
    if z > 0.0 { 1.0 - tail } else { tail }
}

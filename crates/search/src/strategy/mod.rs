//! Strategies: which point to evaluate next.

mod local;
mod population;
mod portfolio;
mod sample;
mod surrogate;

use std::fmt::Debug;

pub use local::{Annealing, LocalSearch, Tabu};
pub use population::{DifferentialEvolution, Genetic};
pub use portfolio::Portfolio;
pub use sample::{Even, Exhaustive, Uniform};
pub use surrogate::{Forest, Gaussian};

use crate::history::{History, Outcome};
use crate::random::Random;
use crate::space::Space;

/// Proposes points to evaluate.
pub trait Strategy: Debug + Send {
    /// Proposes a point that has neither been evaluated nor is being evaluated. All that a strategy knows of the
    /// objective is in the history, so that points can be evaluated at once, and can fail. `None` ends the search.
    fn propose(&mut self, space: &Space, history: &History, random: &mut Random) -> Option<u64>;
}

/// The names of all strategies with what they are; the first one is the default.
pub const NAMES: [(&str, &str); 11] = [
    ("portfolio", "a Gaussian process with several goals, a forest and a local search together"),
    ("gaussian", "a Gaussian process, by expected improvement"),
    ("forest", "extremely randomised trees, by a lower confidence bound"),
    ("genetic", "crosses and mutates the best points"),
    ("evolution", "differential evolution"),
    ("annealing", "simulated annealing"),
    ("tabu", "tabu search"),
    ("local", "hill climbing with random restarts"),
    ("even", "a low-discrepancy sequence"),
    ("random", "uniform draws"),
    ("exhaustive", "all points in their order"),
];

/// Makes the strategy of a name.
#[must_use]
pub fn named(name: &str) -> Option<Box<dyn Strategy>> {
    Some(match name {
        "portfolio" => Box::<Portfolio>::default(),
        "gaussian" => Box::<Gaussian>::default(),
        "forest" => Box::<Forest>::default(),
        "genetic" => Box::<Genetic>::default(),
        "evolution" => Box::<DifferentialEvolution>::default(),
        "annealing" => Box::<Annealing>::default(),
        "tabu" => Box::<Tabu>::default(),
        "local" => Box::<LocalSearch>::default(),
        "even" => Box::<Even>::default(),
        "random" => Box::<Uniform>::default(),
        "exhaustive" => Box::<Exhaustive>::default(),
        _ => return None,
    })
}

/// A draw that hits taken points so often in a row is followed by a walk over all points.
const DRAWS: usize = 64;

/// Draws uniformly from the free points, if there is one.
fn draw(space: &Space, history: &History, random: &mut Random) -> Option<u64> {
    let size = space.len();
    let free = |&point: &u64| !history.is_taken(point);
    if history.untouched(size) == 0 {
        return None;
    }
    (0..DRAWS).map(|_| random.below(size)).find(free).or_else(|| {
        let start = random.below(size);
        (start..size).chain(0..start).find(free)
    })
}

/// Returns the points that did not fail, best first.
fn ranked(history: &History) -> Vec<(f64, u64)> {
    let mut values: Vec<(f64, u64)> = history
        .evaluations()
        .iter()
        .filter_map(|evaluation| evaluation.outcome.value().map(|value| (value, evaluation.point)))
        .collect();
    values.sort_by(|a, b| a.0.total_cmp(&b.0));
    values
}

/// Returns the logarithm of an outcome's objective; a failure is higher than any.
fn height(outcome: Option<Outcome>) -> f64 {
    outcome.and_then(Outcome::value).map_or(1e9, f64::ln)
}

//! Strategies, which choose the next point to evaluate. They learn only from the history, so several points can be
//! evaluated at once.

mod guide;
mod local;
mod population;
mod portfolio;
mod proposal;
mod sample;
mod surrogate;

pub use local::{Annealing, LocalSearch, Tabu};
pub use population::{DifferentialEvolution, Genetic};
pub use portfolio::Portfolio;
pub use proposal::Strategy;
pub use sample::{Even, Exhaustive, Uniform};
pub use surrogate::{Forest, Gaussian};

/// Names and descriptions of all strategies; the first is the default.
pub const NAMES: [(&str, &str); 11] = [
    ("portfolio", "a Gaussian process with several goals, a forest and a local search together"),
    ("gaussian", "a Gaussian process, by expected improvement"),
    ("forest", "extremely randomised trees, by expected improvement"),
    ("genetic", "crosses and mutates the best points"),
    ("evolution", "differential evolution"),
    ("annealing", "simulated annealing"),
    ("tabu", "tabu search"),
    ("local", "hill climbing with random restarts"),
    ("even", "a low-discrepancy sequence"),
    ("random", "uniform draws"),
    ("exhaustive", "all points in their order"),
];

/// Whether a strategy ignores results, so that any number of its points can be evaluated at once.
#[must_use]
pub fn is_blind(name: &str) -> bool {
    ["even", "random", "exhaustive"].contains(&name)
}

/// Creates a strategy by name.
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

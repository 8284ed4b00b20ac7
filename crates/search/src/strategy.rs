//! Strategies, which choose the next point to evaluate. They learn only from the history, so several points can be
//! evaluated at once.

mod guide;
mod local;
mod names;
mod population;
mod portfolio;
mod proposal;
mod sample;
mod surrogate;

pub use local::{Annealing, LocalSearch, Tabu};
pub use names::{NAMES, is_blind, named};
pub use population::{DifferentialEvolution, Genetic};
pub use portfolio::Portfolio;
pub use proposal::Strategy;
pub use sample::{Even, Exhaustive, Uniform};
pub use surrogate::{Forest, Gaussian};

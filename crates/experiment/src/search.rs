//! The manifest table `[search]`: how `runner tune` explores the search space.

use super::Axis;

/// Settings of `[search]`; omitted ones are chosen by the program.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SearchSpec {
    pub strategy: Option<String>,
    /// Number of configurations to evaluate, or a percentage of the search space, as written in the manifest.
    pub budget: Option<String>,
    pub seed: Option<u64>,
    /// What to minimise; if empty, the program chooses.
    pub objectives: Vec<String>,
    /// Number of best configurations to measure at the end.
    pub finalists: Option<u32>,
    /// Maximum number of samples of a configuration before the final measurement.
    pub samples: Option<u32>,
    /// Factor over the best time. Sampling of a configuration ends if all its samples exceed that.
    pub drop_above: Option<f64>,
    /// Axes to search instead of the manifest's.
    pub axes: Vec<Axis>,
}

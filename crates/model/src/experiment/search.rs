//! The table `[search]` of a manifest, which says how `runner tune` searches its space.

use super::Axis;

/// The settings of `[search]`; `None` where the manifest leaves the choice to the program.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SearchSpec {
    /// The name of the strategy.
    pub strategy: Option<String>,
    /// How many configurations are evaluated: a number, or a share in percent, as text.
    pub budget: Option<String>,
    /// The seed of the strategy.
    pub seed: Option<u64>,
    /// The names of what the search minimises; empty where the manifest leaves the choice to the program.
    pub objectives: Vec<String>,
    /// How many of the best configurations are measured at the end.
    pub finalists: Option<u32>,
    /// The most samples of a configuration before the end.
    pub samples: Option<u32>,
    /// A configuration whose samples are all longer than the best time by this factor has no more of them.
    pub drop_above: Option<f64>,
    /// The axes whose values are searched in place of the manifest's.
    pub axes: Vec<Axis>,
}

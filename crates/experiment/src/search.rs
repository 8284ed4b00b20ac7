//! The manifest's table `[search]`: how `runner tune` searches the space.

use super::Axis;

/// Settings of `[search]`; `None` leaves the choice to the program.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SearchSpec {
    pub strategy: Option<String>,
    /// Number of configurations to evaluate, or a share in percent, as text.
    pub budget: Option<String>,
    pub seed: Option<u64>,
    /// What to minimise; empty leaves the choice to the program.
    pub objectives: Vec<String>,
    /// Number of best configurations to measure at the end.
    pub finalists: Option<u32>,
    /// Maximum number of samples of a configuration before the final measurement.
    pub samples: Option<u32>,
    /// Ends the sampling of a configuration whose samples all exceed the best time by this factor.
    pub drop_above: Option<f64>,
    /// Axes to search instead of the manifest's.
    pub axes: Vec<Axis>,
}

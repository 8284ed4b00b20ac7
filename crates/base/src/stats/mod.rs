//! Computes statistics over slices of f64, without side effects.
//!
//! The functions know neither units nor the types of the model. Their only randomness has a fixed seed, so that the
//! same numbers always have the same statistics. An empty slice, or one with a value that is not a number, has no
//! statistic: `None`, never `NaN`.

mod bootstrap;
mod change_points;
mod correction;
mod mean;
mod meter;
mod quantile;
mod ranks;
mod series;
mod spread;
mod student;

pub use bootstrap::paired_ratio;
pub use change_points::{ChangePoint, FEWEST_READINGS, Reading, change_points};
pub use correction::{benjamini_hochberg, holm, holm_levels};
pub use mean::{geometric_mean, trimmed_error, trimmed_half_width, trimmed_mean};
pub use meter::{Gain, Look, Meter, Patience};
pub use quantile::{Interval, median, median_interval};
pub use ranks::{MannWhitney, mann_whitney, normal_tail, normal_two_sided};
pub use series::{AUTOCORRELATION_OF_NOISE, Modes, Trend, autocorrelation, trend, two_modes};
pub use spread::{Deviation, pooled_deviation};
pub use student::student_two_sided;

/// A normal distribution has 95 % of its mass within this many standard deviations.
pub const NORMAL_TWO_SIDED: f64 = 1.959_963_984_540_054;

#[cfg(test)]
mod tests;

//! Pure statistics over slices of f64.
//!
//! Functions of numbers alone: no units, no nouns of the model, no randomness but what a fixed seed gives, so that the
//! same numbers always have the same statistics. Whoever calls them says what the numbers are. A slice with nothing in
//! it, or with a value that is not a number, has no statistic: `None`, never `NaN`.

mod bootstrap;
mod correction;
mod mean;
mod meter;
mod quantile;
mod ranks;
mod series;
mod spread;

pub use bootstrap::paired_ratio;
pub use correction::{benjamini_hochberg, holm};
pub use mean::{geometric_mean, trimmed_error, trimmed_half_width, trimmed_mean};
pub use meter::{Gain, Look, Meter, Patience};
pub use quantile::{Interval, median, median_interval};
pub use ranks::{MannWhitney, mann_whitney, normal_tail};
pub use series::{AUTOCORRELATION_OF_NOISE, Modes, Trend, autocorrelation, trend, two_modes};
pub use spread::{Deviation, pooled_deviation};

/// Standard deviations to either side that hold 95 % of a normal distribution.
pub const NORMAL_TWO_SIDED: f64 = 1.959_963_984_540_054;

#[cfg(test)]
mod tests;

//! Statistics over slices of f64, without side effects.
//!
//! This crate knows neither units nor the types of the model. All randomness has a fixed seed, so equal data has equal
//! statistics. For an empty slice, or one with a NaN, the result is `None`, never `NaN`.

mod bootstrap;
mod change_points;
mod correction;
mod mean;
mod meter;
mod normal;
mod quantile;
mod series;
mod spread;
mod student;

pub use bootstrap::paired_ratio;
pub use change_points::{ChangePoint, FEWEST_READINGS, Reading, change_points};
pub use correction::benjamini_hochberg_level;
pub use mean::{geometric_mean, trimmed_error, trimmed_half_width, trimmed_mean};
pub use meter::{Gain, Look, Meter, MeterLimits};
pub use normal::{NORMAL_TWO_SIDED, normal_tail, normal_two_sided};
pub use quantile::{Interval, median, median_interval};
pub use series::{AUTOCORRELATION_OF_NOISE, Modes, Trend, autocorrelation, trend, two_modes};
pub use spread::{Deviation, pooled_deviation};
pub use student::{student_quantile, student_two_sided};

#[cfg(test)]
mod tests;

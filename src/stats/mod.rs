//! Pure statistics over slices of f64.
//!
//! Functions of numbers alone: no units, no nouns of the model, no randomness. Whoever calls them says what the numbers
//! are. A slice with nothing in it, or with a value that is not a number, has no statistic: `None`, never `NaN`.

mod mean;
mod quantile;

pub use mean::geometric_mean;
pub use quantile::{Interval, median, median_interval};

//! Models of the objective, learned from the evaluated points.

pub mod features;
pub mod forest;
pub mod gaussian;

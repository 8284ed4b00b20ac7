//! Runs the cases of a group on a device, and measures devices themselves.

pub mod execute;
pub mod machine;

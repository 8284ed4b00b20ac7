//! Pure statistics over slices of f64.

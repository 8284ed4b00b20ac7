//! From a manifest's text to the matrix and to jobs, through the public seam.

mod fixture;

mod changes;
mod expansion;
mod fingerprints;
mod narrowing;
mod parts;
mod properties;
mod resolution;
mod waiting;

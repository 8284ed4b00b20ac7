//! From the text of a manifest to the matrix and to jobs, through the public interface.

#![expect(clippy::unwrap_used, reason = "a test panics to fail")]

mod fixture;

mod changes;
mod expansion;
mod narrowing;
mod parts;
mod properties;
mod resolution;
mod waiting;

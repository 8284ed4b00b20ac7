//! From a manifest to ordered work: expand, filter, resolve, estimate.

pub mod link;

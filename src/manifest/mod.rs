//! From TOML to a validated `Manifest`, with every fault reported at its place.

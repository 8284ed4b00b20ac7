//! The arithmetic of the manifest.

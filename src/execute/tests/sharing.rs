//! What the cases of a group share, and what one case may not do to another.

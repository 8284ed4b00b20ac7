//! Rounds, stopping rules, and the ways in which a device ends a case.

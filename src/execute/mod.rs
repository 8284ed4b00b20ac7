//! How one group runs: inputs, check, measure in rounds, check again, outcomes.

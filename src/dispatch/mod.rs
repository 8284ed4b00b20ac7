//! Where a plan runs: in this process, or in a pool of worker processes that can be killed.

//! Everything that a search works with. Passed as one value, because proposing, compiling and recording all need it.

use std::fmt::Debug;

use crate::problem::Problem;
use runner_types::{CompileFailure, CompileUnit, Compiled, Environment, Shard};
use runner_workers::Interrupt;

/// The compiled unit, or why it does not compile.
pub type UnitResult = Result<Compiled, CompileFailure>;

/// Compiles the units of configurations in parallel.
pub trait Compiler: Debug + Sync {
    /// Number of units to compile at once when one device is in use.
    fn jobs(&self) -> usize;
    /// Allows compiling again after an earlier search stopped it.
    fn begin(&self);
    /// Compiles one unit and returns the result with the seconds taken.
    fn compile(&self, unit: &CompileUnit) -> (UnitResult, f64);
    /// Terminates running compilers.
    fn stop(&self);
    /// Why nothing more can be compiled, if so.
    fn fault(&self) -> Option<String>;
}

/// Everything that a search works with.
#[derive(Debug, Clone, Copy)]
pub struct SearchContext<'a> {
    pub problem: &'a Problem<'a>,
    pub compiler: &'a dyn Compiler,
    /// Device and software that results depend on.
    pub environment: &'a Environment,
    pub interrupt: &'a Interrupt,
    /// Number of configurations to evaluate, including those of an earlier search but not those of other shards.
    pub budget: u64,
    /// Whether the strategy learns from results. If so, few configurations should be in flight.
    pub learns: bool,
    /// Points to evaluate first, because they were good elsewhere.
    pub first: &'a [u64],
    pub devices: usize,
    /// Part of the space that this process evaluates; `None` for the whole space.
    pub shard: Option<Shard>,
}

impl SearchContext<'_> {
    /// Number of units to compile at once. For each device after the first, one core is left to its worker.
    pub fn jobs(&self) -> usize {
        jobs_beside(self.compiler.jobs(), self.devices)
    }
}

fn jobs_beside(jobs: usize, devices: usize) -> usize {
    (jobs + 1).saturating_sub(devices).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_device_has_a_core_beside_the_threads_that_compile() {
        // With 16 cores and one device, 15 threads compile.
        assert_eq!([1, 2, 4].map(|devices| jobs_beside(15, devices)), [15, 14, 12]);
        assert_eq!(jobs_beside(1, 8), 1);
    }
}

//! What a search is about and where it runs.

use std::fmt::Debug;

use crate::dispatch::Interrupt;
use crate::model::{CompileFailure, CompileUnit, Compiled, Environment, Shard};
use crate::problem::Problem;

/// The code of a unit, or why there is none.
pub type UnitResult = Result<Compiled, CompileFailure>;

/// Compiles the units of configurations, many at once.
pub trait Compiler: Debug + Sync {
    /// Returns how many units are compiled at once beside one device.
    fn jobs(&self) -> usize;
    /// Lets units be compiled, after a search that has ended.
    fn begin(&self);
    /// Compiles one unit; returns the seconds that it took, too.
    fn compile(&self, unit: &CompileUnit) -> (UnitResult, f64);
    /// Ends compilers that still run.
    fn stop(&self);
    /// Returns why nothing can be compiled any more.
    fn fault(&self) -> Option<String>;
}

/// What a search is about and where it runs.
#[derive(Debug, Clone, Copy)]
pub struct Seat<'a> {
    /// The space.
    pub problem: &'a Problem<'a>,
    /// Compiles the code of configurations.
    pub compiler: &'a dyn Compiler,
    /// The device and the programs that results depend on.
    pub environment: &'a Environment,
    /// The user's wish to end.
    pub interrupt: &'a Interrupt,
    /// How many configurations are evaluated, those of an earlier search included, and those of other shards not.
    pub budget: u64,
    /// Whether the strategy learns from results, so that few configurations should be on their way.
    pub learns: bool,
    /// The points that are evaluated first: those that are good elsewhere.
    pub first: &'a [u64],
    /// How many devices evaluate configurations.
    pub devices: usize,
    /// The part of the space that this process evaluates; `None` for all of it.
    pub shard: Option<Shard>,
}

impl Seat<'_> {
    /// Returns how many units are compiled at once: each further device has a core for its worker.
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
        // On 16 cores, 15 threads compile beside one device.
        assert_eq!([1, 2, 4].map(|devices| jobs_beside(15, devices)), [15, 14, 12]);
        assert_eq!(jobs_beside(1, 8), 1);
    }
}

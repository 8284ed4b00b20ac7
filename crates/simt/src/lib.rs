//! A SIMT machine that executes PTX.
//!
//! [`Machine`] has the memory and the limits of a [`DeviceProfile`]; it loads modules, keeps allocations, and launches
//! kernels over all cores of the host. The outcome of a launch, its results, its [`Counters`], its output, is the same
//! for any number of cores. It has no clock: nothing here says how long a GPU would take. It knows nothing of the
//! program around it.

mod counters;
mod error;
mod exec;
mod isa;
mod launch;
mod lower;
mod machine;
mod memory;
mod profile;
mod sanitize;

pub use counters::{Counters, SharedTraffic, Traffic};
pub use error::{SimError, Site, Trap, TrapKind};
pub use machine::{KernelFacts, LaunchError, LaunchReport, LaunchSpec, Machine, ModuleId, Options};
pub use profile::{DeviceProfile, Limiter, OccupancyFacts, profiles};

/// The opcodes that are simulated: name, forms, meaning.
pub fn operations() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    isa::OPS.iter().map(|op| (op.name, op.forms, op.about))
}

#![doc = include_str!("../README.md")]

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

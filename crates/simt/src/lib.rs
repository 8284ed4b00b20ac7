#![doc = include_str!("../README.md")]
#![warn(missing_docs)]
#![expect(clippy::inline_always, reason = "the code of a lane must be compiled into the loop of each instruction set")]

mod counters;
mod error;
mod exec;
mod image;
mod isa;
mod launch;
mod link;
mod lower;
mod machine;
mod memory;
mod mir;
pub mod printed;
mod profile;
mod program;
mod runtime;
mod sample;
mod sanitize;
mod schedule;

pub use counters::{Counters, LineCounts, SharedTraffic, Traffic};
pub use error::{SimError, Site, Trap, TrapKind};
pub use image::{AddressMode, Channel, Geometry, Image, Sampler};
pub use launch::{LaunchError, LaunchReport, Options, Sampled};
pub use link::Part;
pub use machine::{KernelFacts, LaunchSpec, Machine, ModuleId};
pub use profile::{DeviceProfile, Limiter, OccupancyFacts, profiles};
pub use sanitize::{Class as FindingClass, Ignored};

/// A simulated opcode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Operation {
    /// Opcode without modifiers, e.g. `add`.
    pub name: &'static str,
    /// Short description.
    pub about: &'static str,
    /// Accepted modifiers, in the notation of the PTX ISA: `{.rnd}{.ftz}{.sat}.f32`. Braces make a modifier optional,
    /// `|` separates alternatives, and a name in [`modifier_classes`] stands for several modifiers.
    pub forms: &'static [&'static str],
}

/// Returns the simulated opcodes, sorted by name.
pub fn operations() -> impl Iterator<Item = Operation> {
    isa::OPS.iter().map(|op| Operation { name: op.name, about: op.about, forms: op.forms })
}

/// Returns the names in [`Operation::forms`] that stand for several modifiers, with these modifiers.
pub fn modifier_classes() -> impl Iterator<Item = (&'static str, &'static [&'static str])> {
    isa::CLASSES.iter().copied()
}

/// Whether an opcode with all its modifiers, e.g. `add.rn.f32`, matches one of its operation's forms.
pub fn is_form(form: &str, opcode: &str) -> bool {
    isa::takes(form, &opcode.split('.').skip(1).collect::<Vec<_>>())
}

//! The interface between running cases and the machine that executes kernels.
//!
//! A [`Backend`] lists and opens devices. A [`Device`] holds memory, loads compiled code and runs batches, and provides
//! its other capabilities: a [`Clock`], a [`Counter`], a [`Monitor`], an [`EnergyMeter`], [`HostFunctions`]. `execute`
//! drives a device only through these traits and does not know which backend it has. A backend does not judge results:
//! poison, guard patterns and checks belong to `execute`.

mod argument;
mod condition;
pub mod cuda;
mod device;
mod error;
pub mod host_memory;
mod ids;
pub mod sim;
mod variables;
mod views;
mod work;

pub use argument::{LaunchArg, Struct};
pub use condition::{Condition, Read};
pub use device::{
    Backend, Clock, CountReport, Counter, Device, DriverVersion, EnergyMeter, EnergyReading, HostFunctions, Monitor,
    RunReport, Samples, Timing,
};
pub use error::DeviceError;
pub use ids::{BufferId, FunctionId, KernelId, ModuleId};
pub use work::{
    Batch, HostCall, Iteration, Launch, Loop, Prepare, Series, Step, TimedBatch, has_textures, nodes, operations,
    streams,
};

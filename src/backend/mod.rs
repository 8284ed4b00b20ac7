//! The interface between running cases and the machine that executes kernels.
//!
//! A [`Backend`] lists and opens devices; a [`Device`] holds memory, loads compiled code and runs batches, and hands out
//! what else it can do: a [`Clock`], a [`Counter`], a [`Monitor`], an [`EnergyMeter`], [`HostFunctions`]. `execute` drives
//! a device through these traits alone and does not know which backend it has. A backend does not judge results: poison,
//! guard patterns and checks belong to `execute`.

pub mod cuda;
mod device;
mod error;
pub mod fake;
pub(crate) mod host_memory;
mod repeated;
pub mod sim;
mod variables;
mod work;

pub use device::{
    Backend, Clock, CountReport, Counter, Device, DriverVersion, EnergyMeter, EnergyReading, HostFunctions, Monitor,
    RunReport, Samples, Timing,
};
pub use error::DeviceError;
pub use repeated::{Condition, Iteration, Loop, Read};
pub use work::{
    Batch, BufferId, FunctionId, HostCall, KernelId, Launch, LaunchArg, ModuleId, Prepare, Series, Step, Struct,
    TimedBatch, nodes, operations, streams,
};

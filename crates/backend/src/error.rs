use std::time::Duration;

use super::FunctionId;
use runner_lang::format::bytes;

/// Why a device could not do what it was asked to.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DeviceError {
    /// No driver, no device, or a device that cannot be opened; says what to do.
    #[error("{0}")]
    Unavailable(String),
    /// The launch exceeds a limit of the device; nothing ran.
    #[error("{0}")]
    InvalidLaunch(String),
    #[error("needs {}, {} free on the device", bytes(*needed), bytes(*available))]
    OutOfMemory {
        /// Bytes to allocate, including guard zones.
        needed: u64,
        available: u64,
    },
    /// A kernel was aborted. The context is gone and the process must exit.
    #[error("{0}")]
    ContextLost(String),
    /// A fault that the simulator detected; the device remains usable.
    #[error("{message}")]
    Trap {
        /// The fault, with kernel, source line, block and thread.
        message: String,
        /// Output of the batch before the fault.
        printed: String,
    },
    /// A kernel exceeded its [time limit](super::Device::set_time_limit). The device remains usable.
    #[error("{message}")]
    TimedOut {
        limit: Duration,
        /// Message that says where the kernel was.
        message: String,
        /// Output of the batch so far.
        printed: String,
    },
    #[error("{summary}")]
    NotLinked {
        /// First error of the linker, in one line.
        summary: String,
        /// Output of the linker.
        log: String,
    },
    /// Any other driver error; the context remains usable.
    #[error("{call}: {message}")]
    Driver {
        /// Driver function, e.g. `cuLaunchKernel`.
        call: &'static str,
        /// The driver's name and description of the error.
        message: String,
    },
}

impl DeviceError {
    /// Kernel output of a failed batch, if the device captures it.
    pub fn printed(&self) -> &str {
        match self {
            Self::Trap { printed, .. } | Self::TimedOut { printed, .. } => printed,
            _ => "",
        }
    }

    pub fn unknown_function(id: FunctionId) -> Self {
        Self::Driver { call: "lookup", message: format!("the device has no host function {}", id.0) }
    }
}

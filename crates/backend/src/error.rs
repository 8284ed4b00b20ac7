use std::time::Duration;

use super::FunctionId;
use runner_lang::format::bytes;

/// Why a device did not do what it was asked.
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
    /// A kernel was aborted. The context is gone and the process must end.
    #[error("{0}")]
    ContextLost(String),
    /// A fault that the simulator detected; the device remains usable.
    #[error("{message}")]
    Trap {
        /// The fault, with kernel, source line, block and thread.
        message: String,
        /// What the batch had printed before the fault.
        printed: String,
    },
    /// A kernel exceeded its [time limit](super::Device::set_time_limit). The device remains usable.
    #[error("{message}")]
    TimedOut {
        limit: Duration,
        /// Message that says where the kernel was.
        message: String,
        /// What the batch had printed before.
        printed: String,
    },
    /// Code that cannot be linked.
    #[error("{summary}")]
    NotLinked {
        /// First error of the linker, in one line.
        summary: String,
        /// Output of the linker.
        log: String,
    },
    /// Any other refusal of the driver; the context remains usable.
    #[error("{call}: {message}")]
    Driver {
        /// Function of the driver, e.g. `cuLaunchKernel`.
        call: &'static str,
        /// The driver's name and description of the error.
        message: String,
    },
}

impl DeviceError {
    /// What the kernels of a failed batch had printed, if the device captures it.
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

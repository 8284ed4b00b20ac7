//! The errors of a device.

use std::time::Duration;

use super::FunctionId;
use crate::format::bytes;

/// Why a device did not do what it was asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DeviceError {
    /// No driver, no device, or a device that cannot be opened; says what to do.
    #[error("{0}")]
    Unavailable(String),
    /// The launch exceeds a limit of the device; nothing ran.
    #[error("{0}")]
    InvalidLaunch(String),
    /// The device cannot allocate the memory of a buffer.
    #[error("needs {}, {} free on the device", bytes(*needed), bytes(*available))]
    OutOfMemory {
        /// Bytes to allocate, with the guard zones.
        needed: u64,
        /// Bytes that are free.
        available: u64,
    },
    /// A kernel was aborted. After this the context is gone and the process must end.
    #[error("{0}")]
    ContextLost(String),
    /// A fault that the simulator detected; the device lives on. `printed` is what the batch had printed before it.
    #[error("{message}")]
    Trap {
        /// The fault, with kernel, source line, block and thread.
        message: String,
        /// What the kernels of the batch had printed before.
        printed: String,
    },
    /// A kernel exceeded its [time limit](super::Device::set_time_limit); the message says where. The device lives on.
    #[error("{message}")]
    TimedOut {
        /// The limit that the time exceeded.
        limit: Duration,
        /// The message, which says where the kernel was.
        message: String,
        /// What the kernels of the batch had printed before.
        printed: String,
    },
    /// Code that cannot be linked; `log` is the linker's output.
    #[error("{summary}")]
    NotLinked {
        /// The first error of the linker, in one line.
        summary: String,
        /// What the linker printed.
        log: String,
    },
    /// Any other refusal of the driver; the context lives on.
    #[error("{call}: {message}")]
    Driver {
        /// The function of the driver, for example `cuLaunchKernel`.
        call: &'static str,
        /// The name and description that the driver gives the error.
        message: String,
    },
}

impl DeviceError {
    /// Returns what the kernels of a failed batch had printed, where the device captures that.
    pub fn printed(&self) -> &str {
        match self {
            Self::Trap { printed, .. } | Self::TimedOut { printed, .. } => printed,
            _ => "",
        }
    }

    /// Refuses a call of a host function that the device has not loaded.
    pub fn unknown_function(id: FunctionId) -> Self {
        Self::Driver { call: "lookup", message: format!("the device has no host function {}", id.0) }
    }
}

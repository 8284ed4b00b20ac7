//! The ways in which a step of a case fails.

use runner_backend::DeviceError;
use runner_types::Outcome;

/// The device context is gone, so this process can run nothing more. The case that destroyed it is settled.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the device's context is lost: {message}")]
pub struct Lost {
    pub message: String,
}

/// Why a step failed.
#[derive(Debug, Clone, PartialEq)]
pub enum Stop {
    /// The case ends here; the device remains usable.
    Case(Outcome),
    /// The case ends here and the device is lost.
    Lost(Lost),
}

impl Stop {
    /// Stops because a manifest expression has no value for this case.
    pub fn unresolved(message: impl Into<String>) -> Self {
        Self::Case(Outcome::Unresolved { message: message.into() })
    }

    pub fn launch_error(message: impl Into<String>) -> Self {
        Self::Case(Outcome::LaunchError { message: message.into() })
    }
}

impl From<String> for Stop {
    /// A bare message from a lower level means that the manifest is wrong for this case.
    fn from(message: String) -> Self {
        Self::unresolved(message)
    }
}

impl From<DeviceError> for Stop {
    fn from(error: DeviceError) -> Self {
        match error {
            DeviceError::ContextLost(message) => Self::Lost(Lost { message }),
            DeviceError::InvalidLaunch(limit) => Self::Case(Outcome::Invalid { limit }),
            DeviceError::OutOfMemory { needed, available } => Self::Case(Outcome::OutOfMemory { needed, available }),
            DeviceError::Trap { message, .. } => Self::Case(Outcome::Trap { message }),
            DeviceError::TimedOut { limit, message, .. } => {
                Self::Case(Outcome::TimedOut { limit_seconds: limit.as_secs_f64(), message: Some(message) })
            }
            DeviceError::NotLinked { summary, log } => Self::Case(Outcome::CompileError { summary, log }),
            other @ (DeviceError::Unavailable(_) | DeviceError::Driver { .. }) => Self::launch_error(other.to_string()),
        }
    }
}

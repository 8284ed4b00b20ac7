use crate::DeviceError;
use simt::SimError;

/// Converts an error of the simulated machine.
pub fn host_error(error: SimError) -> DeviceError {
    match error {
        SimError::OutOfMemory { needed, available } => DeviceError::OutOfMemory { needed, available },
        SimError::Link(message) => {
            DeviceError::NotLinked { summary: format!("the sources do not link: {message}"), log: message }
        }
        SimError::Launch(message) => DeviceError::InvalidLaunch(message),
        SimError::Arguments(message) => DeviceError::Driver { call: "launch", message },
        SimError::Host(message) => DeviceError::Unavailable(message),
        SimError::Load { ref message, .. } if message.contains("not simulated") => {
            let message = format!("{error}; with `on.sim = {{ requires = \"false\" }}` the variant runs only on GPUs");
            DeviceError::Driver { call: "simulator", message }
        }
        other => DeviceError::Driver { call: "simulator", message: other.to_string() },
    }
}

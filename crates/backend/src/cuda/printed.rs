//! Captures kernel output: the driver writes it to the process's standard output when it synchronises.
//!
//! While a [`Capture`] exists, descriptor 1 refers to a file in memory. Other output of the process is captured, too,
//! so the process should serve a single device. The output of a failed launch is passed on to standard output.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::fd::OwnedFd;

use crate::DeviceError;
use runner_process::stdout;

/// Standard output, redirected into memory.
pub(super) struct Capture {
    /// The process's standard output, until it is restored.
    original: Option<OwnedFd>,
    memory: File,
}

impl Capture {
    pub fn begin() -> Result<Self, DeviceError> {
        let (original, memory) = stdout::redirect().map_err(|error| failed(&error))?;
        Ok(Self { original: Some(original), memory })
    }

    /// Ends the capture and returns the text.
    pub fn end(mut self) -> Result<String, DeviceError> {
        self.take().map_err(|error| failed(&error))
    }

    /// Ends the capture and writes the text to standard output.
    pub fn pass_on(mut self) {
        // A failed write loses the text; the launch's error is reported anyway.
        if let Ok(text) = self.take() {
            let mut stdout = io::stdout();
            let _ = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
        }
    }

    fn take(&mut self) -> io::Result<String> {
        self.restore()?;
        let mut bytes = Vec::new();
        self.memory.rewind()?;
        self.memory.read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn restore(&mut self) -> io::Result<()> {
        self.original.take().map_or(Ok(()), |original| stdout::restore(&original))
    }
}

impl Drop for Capture {
    fn drop(&mut self) {
        // A destructor cannot report an error.
        let _ = self.restore();
    }
}

fn failed(error: &io::Error) -> DeviceError {
    DeviceError::Driver { call: "printf", message: format!("the output of kernels cannot be captured: {error}") }
}

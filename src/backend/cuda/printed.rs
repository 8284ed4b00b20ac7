//! Catches what kernels print: the driver writes it to the process's standard output when it synchronises.
//!
//! For as long as a [`Catch`] lives, descriptor 1 leads into memory. Whatever else the process writes there meanwhile is
//! caught too: this is for a process that serves one device. Text of a launch that failed is written on to where it
//! would have gone.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};

use rustix::fs::MemfdFlags;

use crate::backend::DeviceError;

/// Standard output, led into memory.
pub(super) struct Catch {
    /// Where it led before; gone once it leads there again.
    before: Option<OwnedFd>,
    memory: File,
}

impl Catch {
    pub fn begin() -> Result<Self, DeviceError> {
        Self::install().map_err(|error| failed(&error))
    }

    fn install() -> io::Result<Self> {
        // What was written before belongs to where it was written to.
        flush_c_streams();
        let before = rustix::io::fcntl_dupfd_cloexec(io::stdout().as_fd(), 3)?;
        let memory = File::from(rustix::fs::memfd_create("runner-printed", MemfdFlags::CLOEXEC)?);
        rustix::stdio::dup2_stdout(&memory)?;
        Ok(Self { before: Some(before), memory })
    }

    /// Ends it, and gives what was written.
    pub fn end(mut self) -> Result<String, DeviceError> {
        self.take().map_err(|error| failed(&error))
    }

    /// Ends it, and passes on what was written.
    pub fn pass_on(mut self) {
        // Text that cannot be written any more is lost; the error that this follows is told in any case.
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
        let Some(before) = self.before.take() else { return Ok(()) };
        flush_c_streams();
        Ok(rustix::stdio::dup2_stdout(&before)?)
    }
}

impl Drop for Catch {
    fn drop(&mut self) {
        // Without it the process could say nothing more; there is nobody to tell.
        let _ = self.restore();
    }
}

/// The driver prints through C's `stdout`, which is buffered where it leads to a file.
pub fn flush_c_streams() {
    // SAFETY: a null stream asks for every open output stream; `fflush` locks each, so other threads may print.
    let _ = unsafe { libc::fflush(std::ptr::null_mut()) };
}

fn failed(error: &io::Error) -> DeviceError {
    DeviceError::Driver { call: "printf", message: format!("what kernels print cannot be caught: {error}") }
}

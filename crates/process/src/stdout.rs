//! Redirects the process's standard output into memory, below the buffers of Rust and C.
//!
//! Drivers and libraries print to the descriptor itself, so redirecting at a higher level would miss their output.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};

use rustix::fs::{MemfdFlags, OFlags};

/// Points descriptor 1 to an in-memory file. Returns a duplicate of the original descriptor, and the file.
///
/// The file is in append mode, so it may be truncated after a read.
pub fn redirect() -> io::Result<(OwnedFd, File)> {
    flush_c_streams();
    let original = rustix::io::fcntl_dupfd_cloexec(io::stdout().as_fd(), 3)?;
    let memory = rustix::fs::memfd_create("runner-stdout", MemfdFlags::CLOEXEC)?;
    let flags = rustix::fs::fcntl_getfl(&memory)?;
    rustix::fs::fcntl_setfl(&memory, flags | OFlags::APPEND)?;
    rustix::stdio::dup2_stdout(&memory)?;
    Ok((original, File::from(memory)))
}

/// Points descriptor 1 to `original` again.
pub fn restore(original: &OwnedFd) -> io::Result<()> {
    flush_c_streams();
    Ok(rustix::stdio::dup2_stdout(original)?)
}

/// Flushes C's output streams, which drivers and libraries print to. C's `stdout` is fully buffered unless it is a
/// terminal.
pub fn flush_c_streams() {
    // SAFETY: with a null pointer, `fflush` flushes every open output stream. It locks each, so other threads may
    // print.
    let _ = unsafe { libc::fflush(std::ptr::null_mut()) };
}

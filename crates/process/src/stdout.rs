//! Redirects the process's standard output into memory, below the buffers of Rust and of C.
//!
//! Drivers and libraries print to the descriptor itself, so a replacement at a higher level would miss their output.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};

use rustix::fs::{MemfdFlags, OFlags};

/// Makes descriptor 1 refer to a file in memory. Returns the original descriptor, now under another number, and the
/// file.
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

/// Makes descriptor 1 refer to `original` again.
pub fn restore(original: &OwnedFd) -> io::Result<()> {
    flush_c_streams();
    Ok(rustix::stdio::dup2_stdout(original)?)
}

/// Flushes C's streams, through which drivers and libraries print. C's `stdout` is fully buffered unless it is a
/// terminal.
pub fn flush_c_streams() {
    // SAFETY: a null stream asks for every open output stream; `fflush` locks each, so other threads may print.
    let _ = unsafe { libc::fflush(std::ptr::null_mut()) };
}

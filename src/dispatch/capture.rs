//! Takes a worker's standard output away from its kernels.
//!
//! Device printf, and anything else that a driver or a library writes to descriptor 1, would corrupt the protocol.
//! Descriptor 1 is led into memory instead, and the descriptor that it was becomes private to the protocol. This
//! module keeps a bounded part of the text; it does not know which case wrote it.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;

use rustix::fs::{MemfdFlags, OFlags};

use crate::backend::cuda::flush_c_streams;

/// Most of one case's text that is kept, bytes.
const KEPT: usize = 64 << 10;

/// The memory that standard output leads to.
#[derive(Debug)]
pub(super) struct StdoutCapture {
    memory: File,
}

impl StdoutCapture {
    /// Redirects descriptor 1 for the rest of the process's life; gives the descriptor that it was.
    pub(super) fn install() -> io::Result<(OwnedFd, Self)> {
        let stdout = rustix::io::fcntl_dupfd_cloexec(io::stdout().as_fd(), 3)?;
        let memory = rustix::fs::memfd_create("runner-stdout", MemfdFlags::CLOEXEC)?;
        // Appending, so that cutting the file short after a read leaves no hole before the next write.
        let flags = rustix::fs::fcntl_getfl(&memory)?;
        rustix::fs::fcntl_setfl(&memory, flags | OFlags::APPEND)?;
        rustix::stdio::dup2_stdout(&memory)?;
        Ok((stdout, Self { memory: File::from(memory) }))
    }

    /// What was written since the last call, without its last line end; `None` where nothing was. Longer text is cut,
    /// with a last line that says by how much.
    pub(super) fn take(&mut self) -> io::Result<Option<String>> {
        flush_c_streams();
        let length = self.memory.metadata()?.len() as usize;
        if length == 0 {
            return Ok(None);
        }
        let mut text = vec![0; length.min(KEPT)];
        self.memory.read_exact_at(&mut text, 0)?;
        self.memory.set_len(0)?;
        Ok(Some(bounded(&text, length)))
    }
}

/// `text` is the start of `length` bytes.
fn bounded(text: &[u8], length: usize) -> String {
    let kept = String::from_utf8_lossy(text);
    match length - text.len() {
        0 => kept.trim_end_matches('\n').to_owned(),
        cut => format!("{}\n… ({cut} more bytes were printed)", kept.trim_end_matches('\n')),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_past_the_bound_is_cut_and_says_by_how_much() {
        assert_eq!(bounded(b"a\nb\n", 4), "a\nb");
        assert_eq!(bounded(b"abc", 10), "abc\n… (7 more bytes were printed)");
    }
}

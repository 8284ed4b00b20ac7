//! Captures the standard output of a worker process.
//!
//! Device printf, and anything else that a driver or library writes to descriptor 1, would corrupt the protocol. So
//! descriptor 1 is redirected into memory, and only the protocol uses the original descriptor. Captured output is kept
//! up to a limit.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;

use runner_process::stdout;

/// Maximum number of bytes kept per case.
const KEPT: usize = 64 << 10;

/// The in-memory file to which standard output is redirected.
#[derive(Debug)]
pub(super) struct StdoutCapture {
    memory: File,
}

impl StdoutCapture {
    /// Redirects descriptor 1 until the process exits; returns the original descriptor.
    pub(super) fn install() -> io::Result<(OwnedFd, Self)> {
        let (original, memory) = stdout::redirect()?;
        Ok((original, Self { memory }))
    }

    /// Output since the last call, without its final newline; `None` if there is none. If it was truncated, a last line
    /// says by how much.
    pub(super) fn take(&mut self) -> io::Result<Option<String>> {
        stdout::flush_c_streams();
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

/// Formats `text`, the first part of `length` bytes of output.
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

//! Captures the standard output of a worker process.
//!
//! Device printf, and anything else that a driver or a library writes to descriptor 1, would corrupt the protocol. So
//! descriptor 1 is redirected into memory, and the original descriptor is used for the protocol alone. A bounded part
//! of the text is kept; this module does not know which case wrote it.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;

use crate::stdout;

/// Bytes of one case's text that are kept.
const KEPT: usize = 64 << 10;

/// The memory that standard output is written to.
#[derive(Debug)]
pub(super) struct StdoutCapture {
    memory: File,
}

impl StdoutCapture {
    /// Redirects descriptor 1 for the rest of the process's life; returns the original descriptor.
    pub(super) fn install() -> io::Result<(OwnedFd, Self)> {
        let (original, memory) = stdout::redirect()?;
        Ok((original, Self { memory }))
    }

    /// Returns the text since the last call, without its last newline; `None` if there is none. Longer text is cut,
    /// with a last line that states by how much.
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

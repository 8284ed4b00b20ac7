//! Where lines go.

use std::io::Write;

use crate::format::visible;

/// A stream that lines are written to.
pub struct Sink(pub Box<dyn Write + Send>);

impl std::fmt::Debug for Sink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Sink")
    }
}

impl Sink {
    /// Writes a line; failing to is no error of the run.
    pub fn line(&mut self, line: &str) {
        let _ = self.0.write_all(format!("{}\n", visible(line)).as_bytes());
    }
}

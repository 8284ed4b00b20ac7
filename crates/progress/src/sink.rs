use std::io::Write;

use runner_lang::format::visible;

pub struct Sink(pub Box<dyn Write + Send>);

impl std::fmt::Debug for Sink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Sink")
    }
}

impl Sink {
    /// Writes a line. Ignores errors, since a closed stream must not end the run.
    pub fn line(&mut self, line: &str) {
        let _ = self.0.write_all(format!("{}\n", visible(line)).as_bytes());
    }
}

//! The terminal, or whatever stands in its place.

use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;

use rustix::termios::tcgetwinsize;

use super::cli::ColorChoice;
use super::{Exit, Failure};
use crate::render::{Screen, prose};

/// Where a command's words go: results to standard output, everything about the run to standard error.
#[derive(Debug)]
pub struct Console {
    /// Whether standard output takes colour.
    pub color: bool,
    /// Whether standard error takes colour.
    pub error_color: bool,
}

impl Console {
    /// Decides on colour once: the option, then `NO_COLOR`, then what the streams are.
    pub fn new(choice: ColorChoice) -> Self {
        let refused = std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty());
        let decide = |is_terminal: bool| match choice {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            ColorChoice::Auto => is_terminal && !refused,
        };
        Self { color: decide(io::stdout().is_terminal()), error_color: decide(io::stderr().is_terminal()) }
    }

    /// What tables on standard output are drawn for.
    pub fn screen(&self) -> Screen {
        Screen { styled: self.color, width: width(io::stdout()) }
    }

    /// Columns of standard error, where that is a terminal.
    pub fn error_width(&self) -> Option<usize> {
        width(io::stderr())
    }

    /// Prints to standard output. A reader that went away (`runner plan | head`) ends the command quietly.
    pub fn print(&mut self, text: &str) -> Result<(), Failure> {
        let mut stdout = io::stdout().lock();
        match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
            Ok(()) => Ok(()),
            Err(e) if e.kind() == io::ErrorKind::BrokenPipe => {
                Err(Failure { exit: Exit::Success, message: String::new(), is_drawn: false })
            }
            Err(e) => Err(Failure::environment(format!("cannot write to standard output: {e}"))),
        }
    }

    /// Says something about the run on standard error; a lost reader there is nobody's loss. Long lines are broken
    /// where a terminal would.
    pub fn say(&mut self, line: &str) {
        self.show(&prose(line, self.error_width(), "  "));
    }

    /// Says why the command ended; nothing where there is nothing to say.
    pub fn fail(&mut self, failure: &Failure) {
        match failure.message.as_str() {
            "" => {}
            drawn if failure.is_drawn => self.show(drawn),
            message if self.error_color => self.say(&format!("\u{1b}[1;31merror\u{1b}[0m: {message}")),
            message => self.say(&format!("error: {message}")),
        }
    }

    /// Shows on standard error what is drawn line by line, faults of a manifest say.
    pub fn show(&mut self, drawn: &str) {
        let _ = writeln!(io::stderr().lock(), "{drawn}");
    }
}

/// Columns of a terminal. One may not know its width and then says 0; what is no terminal has none.
fn width(stream: impl AsFd) -> Option<usize> {
    let width = tcgetwinsize(stream).map_or(0, |size| usize::from(size.ws_col));
    Some(width).filter(|width| *width > 0)
}

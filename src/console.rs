//! The terminal as commands see it: results go to standard output, everything else to standard error.
//!
//! Colour, width and quietness are decided once here, so that no command queries the streams itself.

use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;

use rustix::termios::tcgetwinsize;

use crate::cli::ColorChoice;
use crate::failure::Exit;
use crate::failure::Failure;
use runner_lang::diagnostics::Diagnostics;
use runner_lang::format::{visible_lines, visible_styled};
use runner_report::{Screen, prose, prose_after};

#[derive(Debug)]
pub struct Console {
    pub color: bool,
    pub error_color: bool,
    pub quiet: bool,
}

impl Console {
    /// Decides on colour: by the option, then `NO_COLOR`, then whether the stream is a terminal.
    pub fn new(choice: ColorChoice) -> Self {
        let refused = std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty());
        let decide = |is_terminal: bool| match choice {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            ColorChoice::Auto => is_terminal && !refused,
        };
        let (color, error_color) = (decide(io::stdout().is_terminal()), decide(io::stderr().is_terminal()));
        Self { color, error_color, quiet: false }
    }

    /// Formats faults in a manifest or in the options, with their source lines.
    pub fn faults(&self, faults: &Diagnostics) -> Failure {
        let message = faults.render_within(self.error_color, self.error_width()).trim_end().to_owned();
        Failure { exit: Exit::Usage, message, is_rendered: true, is_held: false }
    }

    /// Width and style for tables on standard output.
    pub fn screen(&self) -> Screen {
        Screen { styled: self.color, width: width(io::stdout()) }
    }

    /// Width of standard error in columns, if it is a terminal.
    pub fn error_width(&self) -> Option<usize> {
        width(io::stderr())
    }

    /// Prints to standard output, with control characters as symbols: text may come from kernels, manifests and file
    /// names. A closed pipe (`runner plan | head`) ends the command without an error.
    pub fn print(&mut self, text: &str) -> Result<(), Failure> {
        let text = shown(text, self.color);
        let mut stdout = io::stdout().lock();
        written(stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()))
    }

    /// Clears a terminal and moves the cursor to its first line.
    pub fn clear(&mut self) -> Result<(), Failure> {
        if !io::stdout().is_terminal() {
            return Ok(());
        }
        written(io::stdout().lock().write_all(b"\x1b[2J\x1b[H"))
    }

    /// Prints the argument parser's output: help, version, or why it rejects the arguments.
    pub fn answer(&mut self, answer: &clap::Error) -> Result<Exit, Failure> {
        if answer.use_stderr() {
            // If standard error is closed, only the exit code is left.
            let _ = answer.print();
            return Ok(Exit::Usage);
        }
        written(answer.print().and_then(|()| io::stdout().flush())).map(|()| Exit::Success)
    }

    /// Prints a message to standard error unless quiet, wrapping long lines for the terminal.
    pub fn say(&mut self, message: &str) {
        if !self.quiet {
            self.show(&prose(message, self.error_width(), "  "));
        }
    }

    pub fn fail(&mut self, failure: &Failure) {
        let message = failure.message.as_str();
        if message.is_empty() {
            return;
        }
        if failure.is_rendered {
            return self.show(message);
        }
        let error = if self.error_color { "\u{1b}[1;31merror\u{1b}[0m" } else { "error" };
        self.show(&prose_after(&format!("{error}: "), message, self.error_width(), "  "));
    }

    /// Prints text to standard error, with control characters as symbols. A failed write does not fail the command.
    pub fn show(&mut self, text: &str) {
        let _ = writeln!(io::stderr().lock(), "{}", shown(text, self.error_color));
    }
}

/// Text as written to a stream. Only styles that this program may have added remain.
fn shown(text: &str, is_styled: bool) -> Cow<'_, str> {
    if is_styled { visible_styled(text) } else { visible_lines(text) }
}

/// Converts the result of a write to standard output. A closed pipe ends the command without an error.
fn written(result: io::Result<()>) -> Result<(), Failure> {
    match result {
        Ok(()) => Ok(()),
        Err(e) if e.kind() == io::ErrorKind::BrokenPipe => {
            Err(Failure { exit: Exit::Success, message: String::new(), is_rendered: false, is_held: false })
        }
        Err(e) => Err(Failure::environment(format!("cannot write to standard output: {e}"))),
    }
}

/// Width of a terminal in columns; `None` for other streams and if the width is unknown.
fn width(stream: impl AsFd) -> Option<usize> {
    let width = tcgetwinsize(stream).map_or(0, |size| usize::from(size.ws_col));
    Some(width).filter(|width| *width > 0)
}

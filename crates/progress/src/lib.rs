//! The progress display: bars on a terminal, lines in a pipe, JSON events on request, only failures when quiet.
//!
//! Turns events into text on standard error; standard output is for results. A failing display never ends a run. Only
//! this crate depends on the progress bar library.

mod bars;
mod lines;
pub mod log;
mod sink;
mod tally;
mod words;

use std::io::{self, IsTerminal, Write};

use bars::Bars;
pub use bars::above_bars;
use lines::Lines;
use sink::Sink;
use tally::Tally;
use words::failure;

use runner_lang::format::visible_json;
use runner_types::Event;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// Progress bars, for a terminal.
    Bars,
    /// Plain lines, for a log.
    Lines,
    /// One line of JSON per event.
    Json,
    /// Only failures.
    Quiet,
    /// Nothing.
    Silent,
}

#[derive(Debug)]
pub struct Progress {
    tally: Tally,
    display: Display,
}

#[derive(Debug)]
enum Display {
    Bars(Bars),
    Lines(Lines),
    Json(Sink),
    Quiet(Sink),
    Silent,
}

impl Progress {
    /// A display on standard error. If that is not a terminal, bars are replaced with lines.
    pub fn new(style: Style, color: bool) -> Self {
        match style {
            Style::Bars if io::stderr().is_terminal() => {
                Self { tally: Tally::default(), display: Display::Bars(Bars::new(color)) }
            }
            other => Self::write_to(other, Box::new(io::stderr())),
        }
    }

    /// A display without bars that writes to `out`.
    fn write_to(style: Style, out: Box<dyn Write + Send>) -> Self {
        let sink = Sink(out);
        let display = match style {
            Style::Bars | Style::Lines => Display::Lines(Lines::new(sink)),
            Style::Json => Display::Json(sink),
            Style::Quiet => Display::Quiet(sink),
            Style::Silent => Display::Silent,
        };
        Self { tally: Tally::default(), display }
    }

    pub fn observe(&mut self, event: &Event) {
        self.tally.observe(event);
        match &mut self.display {
            Display::Bars(bars) => bars.show(event, &self.tally),
            Display::Lines(lines) => lines.show(event, &self.tally),
            Display::Json(sink) => {
                if let Ok(line) = serde_json::to_string(event) {
                    sink.line(&visible_json(&line));
                }
            }
            Display::Silent => {}
            Display::Quiet(sink) => {
                if let Some(line) = failure(event) {
                    sink.line(&line);
                }
            }
        }
    }

    pub fn finish(&mut self) {
        if let Display::Bars(bars) = &self.display {
            bars.clear();
        }
    }
}

#[cfg(test)]
mod tests;

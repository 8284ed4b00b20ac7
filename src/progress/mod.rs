//! The progress display: bars on a terminal, lines in a pipe, JSON events on request, only failures when quiet.
//!
//! It receives events and writes to standard error; standard output is for results. A display that cannot be written
//! never ends a run. Only this module uses the crate of the progress bars. The time left is an estimate.

mod bars;
mod lines;
mod tally;

use std::io::{self, IsTerminal, Write};

use bars::Bars;
use lines::Lines;
use tally::Tally;

use crate::format::{bytes, visible};
use crate::model::{Case, Event, Outcome};

/// How progress is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// Bars, for a terminal.
    Bars,
    /// Lines, for a log.
    Lines,
    /// Every event as a line of JSON.
    Json,
    /// Failures and nothing else.
    Quiet,
}

/// Shows the progress of a run.
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
}

impl Progress {
    /// A display on standard error, with color or without. Bars become lines if it is not a terminal.
    pub fn new(style: Style, color: bool) -> Self {
        match style {
            Style::Bars if io::stderr().is_terminal() => {
                Self { tally: Tally::new(), display: Display::Bars(Bars::new(color)) }
            }
            other => Self::to(other, Box::new(io::stderr())),
        }
    }

    /// A display without bars that writes to `out`.
    fn to(style: Style, out: Box<dyn Write + Send>) -> Self {
        let sink = Sink(out);
        let display = match style {
            Style::Bars | Style::Lines => Display::Lines(Lines::new(sink)),
            Style::Json => Display::Json(sink),
            Style::Quiet => Display::Quiet(sink),
        };
        Self { tally: Tally::new(), display }
    }

    /// Shows one event.
    pub fn observe(&mut self, event: &Event) {
        self.tally.observe(event);
        match &mut self.display {
            Display::Bars(bars) => bars.show(event, &self.tally),
            Display::Lines(lines) => lines.show(event, &self.tally),
            Display::Json(sink) => {
                if let Ok(line) = serde_json::to_string(event) {
                    sink.line(&line);
                }
            }
            Display::Quiet(sink) => {
                if let Some(line) = failure(event) {
                    sink.line(&line);
                }
            }
        }
    }

    /// Removes the bars from the terminal.
    pub fn finish(&mut self) {
        if let Display::Bars(bars) = &self.display {
            bars.clear();
        }
    }
}

/// Where lines go.
struct Sink(Box<dyn Write + Send>);

impl std::fmt::Debug for Sink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Sink")
    }
}

impl Sink {
    /// Writes a line; failing to is no error of the run.
    fn line(&mut self, line: &str) {
        let _ = self.0.write_all(format!("{}\n", visible(line)).as_bytes());
    }
}

/// `wrong         interleaved[n=1024]: sum(partial): element 0 is 4, expected 3` if the event says that a case failed.
/// Cases that are not run, after an interrupt, are reported once for all of them when the run ends.
fn failure(event: &Event) -> Option<String> {
    match event {
        Event::CaseSettled { outcome: Outcome::NotRun { .. }, .. } => None,
        Event::CaseSettled { case, outcome, .. } if outcome.is_failure() => Some(settled(case, outcome)),
        _ => None,
    }
}

/// The outcome of a case, and why it is not measured.
fn settled(case: &Case, outcome: &Outcome) -> String {
    let why = why(outcome).map(|why| format!(": {why}")).unwrap_or_default();
    format!("{:<13} {}{why}", name(outcome), case.key)
}

/// The outcome's name as words.
fn name(outcome: &Outcome) -> String {
    outcome.name().replace('_', " ")
}

/// The first line of a failure's reason.
fn why(outcome: &Outcome) -> Option<String> {
    let text = match outcome {
        Outcome::Wrong { mismatch: m } => {
            format!("{}: element {} is {}, expected {}", m.what, m.index, m.got, m.expected)
        }
        Outcome::TimedOut { limit_seconds, message: None } => format!("no answer within {limit_seconds} s"),
        Outcome::OutOfMemory { needed, available } => {
            format!("needs {} of device memory, {} available", bytes(*needed), bytes(*available))
        }
        Outcome::DidNotFail { .. } => "expected to fail, but the result is right".to_owned(),
        // The manifest has the rule.
        Outcome::Excluded { .. } => return None,
        other => other.words()?.to_owned(),
    };
    text.lines().next().map(str::to_owned)
}

#[cfg(test)]
mod tests;

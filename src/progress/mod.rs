//! The progress display: bars on a terminal, plain lines in a pipe, JSON events on request, failures alone when quiet.
//!
//! It listens to events and writes to standard error; standard output belongs to the command's results. A display that
//! cannot be written to is nobody's loss and never ends a run. This is the only module that knows the progress bars'
//! crate; it keeps no results, and what it says of time left is a guess.

mod bars;
mod lines;
mod tally;

use std::io::{self, IsTerminal, Write};

use bars::Bars;
use lines::Lines;
use tally::Tally;

use crate::model::{Case, Event, Outcome};

/// How progress is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// Bars that are drawn over, for a terminal.
    Bars,
    /// Lines that stay, for a log.
    Lines,
    /// Every event as a line of JSON.
    Json,
    /// Failures and nothing else.
    Quiet,
}

/// Shows how a run gets on.
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
    /// A display on standard error; `color` says whether it takes colour. Bars become lines where there is no terminal.
    pub fn new(style: Style, color: bool) -> Self {
        match style {
            Style::Bars if io::stderr().is_terminal() => {
                Self { tally: Tally::new(), display: Display::Bars(Bars::new(color)) }
            }
            other => Self::to(other, Box::new(io::stderr())),
        }
    }

    /// A display without bars, somewhere else.
    fn to(style: Style, out: Box<dyn Write + Send>) -> Self {
        let sink = Sink(out);
        let display = match style {
            Style::Bars | Style::Lines => Display::Lines(Lines::new(sink)),
            Style::Json => Display::Json(sink),
            Style::Quiet => Display::Quiet(sink),
        };
        Self { tally: Tally::new(), display }
    }

    /// Takes in one event.
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

    /// Takes the bars off the terminal. The display is silent afterwards.
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
    /// Writes a line; a lost reader is nobody's loss.
    fn line(&mut self, line: &str) {
        let _ = self.0.write_all(format!("{line}\n").as_bytes());
    }
}

/// `wrong         interleaved[n=1024]: sum(partial): element 0 is 4, expected 3` where the event says that a case
/// failed.
fn failure(event: &Event) -> Option<String> {
    match event {
        Event::CaseSettled { case, outcome, .. } if outcome.is_failure() => Some(settled(case, outcome)),
        _ => None,
    }
}

/// The end of a case, and why it is not measured.
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
            format!("{needed} bytes of device memory are needed, {available} are available")
        }
        Outcome::DidNotFail { .. } => "the manifest says that it fails, and it is right".to_owned(),
        // The rule of each is in the manifest, and what is suspect comes to light when the report is made.
        Outcome::Excluded { .. } => return None,
        other => other.words()?.to_owned(),
    };
    text.lines().next().map(str::to_owned)
}

#[cfg(test)]
mod tests;

//! Plain lines: one per case, or a summary every few seconds if there are many.

use std::time::{Duration, Instant};

use super::sink::Sink;
use super::tally::Tally;
use super::words::{failure, settled, sound};
use runner_lang::format::{plural, seconds as seconds_text};
use runner_types::{BackendKind, Event, Outcome};

/// Maximum number of cases for printing each; larger runs print only failures and summaries.
const EACH_CASE_UP_TO: u64 = 500;
/// Time between two summaries.
const SUMMARY_EVERY: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(super) struct Lines {
    sink: Sink,
    last_summary: Instant,
    /// Whether the device counts instead of measuring times.
    is_simulated: bool,
}

impl Lines {
    pub(super) fn new(sink: Sink) -> Self {
        Self { sink, last_summary: Instant::now(), is_simulated: false }
    }

    pub(super) fn show(&mut self, event: &Event, tally: &Tally) {
        match event {
            Event::RunStarted { header, cases, groups, .. } => {
                self.is_simulated = header.backend == BackendKind::Sim;
                let (cases, groups) = (plural(*cases, "case"), plural(*groups, "group"));
                self.sink.line(&format!("{}: {cases} in {groups}", header.experiment));
            }
            Event::UnitCompiled { label, seconds, cached: false, failed, .. } => {
                let how = if *failed { "does not compile" } else { "compiled" };
                self.sink.line(&format!(
                    "[{}/{}] {how}: {label} ({})",
                    tally.compiled,
                    tally.units,
                    seconds_text(*seconds)
                ));
            }
            Event::CaseSettled { outcome: Outcome::NotRun { .. }, .. } => {}
            Event::CaseSettled { case, outcome, .. } => {
                let place = format!("[{}/{}]", tally.settled, tally.cases);
                if let Some(failure) = failure(event) {
                    self.sink.line(&format!("{place} {failure}"));
                } else if tally.cases <= EACH_CASE_UP_TO {
                    let counted = *outcome == Outcome::Measured && self.is_simulated;
                    let line = if counted { sound("counted", case) } else { settled(case, outcome) };
                    self.sink.line(&format!("{place} {line}"));
                } else {
                    self.sum_up(tally);
                }
            }
            _ => {}
        }
    }

    fn sum_up(&mut self, tally: &Tally) {
        if self.last_summary.elapsed() < SUMMARY_EVERY && tally.settled < tally.cases {
            return;
        }
        self.last_summary = Instant::now();
        let remark = tally.remark();
        let separator = if remark.is_empty() { "" } else { " " };
        self.sink.line(&format!("[{}/{}]{separator}{remark}", tally.settled, tally.cases));
    }
}

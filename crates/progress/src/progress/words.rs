//! What the display says of outcomes.

use crate::format::bytes;
use crate::model::{Case, Event, Outcome, case_name};

/// `wrong         interleaved[n = 1024]: sum(partial): element 0 is 4, expected 3` if the event says that a case failed.
/// Cases that are not run, after an interrupt, are reported once for all of them when the run ends.
pub fn failure(event: &Event) -> Option<String> {
    match event {
        Event::CaseSettled { outcome: Outcome::NotRun { .. }, .. } => None,
        Event::CaseSettled { case, outcome, .. } if outcome.is_failure() => Some(settled(case, outcome)),
        _ => None,
    }
}

/// Returns the outcome of a case, and why it is not measured.
pub fn settled(case: &Case, outcome: &Outcome) -> String {
    let why = why(outcome).map(|why| format!(": {why}")).unwrap_or_default();
    format!("{}{why}", sound(&name(outcome), case))
}

/// Returns the outcome of a case, padded to a column, and the name of the case.
pub fn sound(what: &str, case: &Case) -> String {
    format!("{what:<13} {}", case_name(&case.key))
}

/// Returns the outcome's name as words.
fn name(outcome: &Outcome) -> String {
    outcome.name().replace('_', " ")
}

/// Returns the first line of a failure's reason.
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

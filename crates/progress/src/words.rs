//! Text for cases and their outcomes, shared by the displays.

use runner_lang::format::bytes;
use runner_types::{Case, Event, Outcome, case_name};

/// A failed case in one line, e.g. `wrong         interleaved[n = 1024]: sum(partial): element 0 is 4, expected 3`.
/// `None` for cases skipped by an interrupt, which the end of the run reports together.
pub fn failure(event: &Event) -> Option<String> {
    match event {
        Event::CaseSettled { outcome: Outcome::NotRun { .. }, .. } => None,
        Event::CaseSettled { case, outcome, .. } if outcome.is_failure() => Some(settled(case, outcome)),
        _ => None,
    }
}

/// Outcome, name and reason of a case.
pub fn settled(case: &Case, outcome: &Outcome) -> String {
    let why = why(outcome).map(|why| format!(": {why}")).unwrap_or_default();
    format!("{}{why}", sound(&name(outcome), case))
}

/// Outcome, padded to a column, and name of a case.
pub fn sound(what: &str, case: &Case) -> String {
    format!("{what:<13} {}", case_name(&case.key))
}

fn name(outcome: &Outcome) -> String {
    outcome.name().replace('_', " ")
}

/// First line of the reason for a failure.
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
        // The manifest already states the rule.
        Outcome::Excluded { .. } => return None,
        other => other.words()?.to_owned(),
    };
    text.lines().next().map(str::to_owned)
}

//! Why cases have no time, and notes about cases: each statement once, with its cases.

use std::collections::HashMap;

use serde::Serialize;

use super::limits::Limits;
use super::wording;
use runner_results::analyse::{BaselineState, GroupSummary, Summary};
use runner_types::{CaseRecord, Environment, Outcome, Records, Verdict};

/// Maximum number of cases to list per reason; further ones are only counted. `results.csv` has all of them.
const MOST_NAMES: usize = 6;

/// A statement, and the cases it applies to.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Reason {
    /// Names of the first cases.
    pub cases: Vec<String>,
    /// Number of cases that are not listed.
    pub more: usize,
    pub what: String,
    pub text: String,
    pub log: Option<String>,
}

impl Reason {
    fn new(what: &str, text: String) -> Self {
        Self { cases: Vec::new(), more: 0, what: what.to_owned(), text, log: None }
    }
}

/// A case, the statement about it as a word and as a sentence, and the compiler's output.
pub type Statement = (String, String, String, Option<String>);

/// Groups cases by statement, in order of first appearance. Statements beyond the limit are only counted.
pub fn gather(each: impl Iterator<Item = Statement>, limits: &Limits) -> Vec<Reason> {
    let mut reasons: Vec<Reason> = Vec::new();
    let mut places: HashMap<(String, String, Option<String>), usize> = HashMap::new();
    let mut beyond = 0;
    for (case, what, text, log) in each {
        let key = (what, text, log);
        let place = match places.get(&key) {
            Some(place) => *place,
            None if reasons.len() >= limits.reasons => {
                beyond += 1;
                continue;
            }
            None => {
                let (what, text, log) = key.clone();
                let log = log.map(|log| shortened(log, limits.log_bytes));
                reasons.push(Reason { cases: Vec::new(), more: 0, what, text, log });
                places.insert(key, reasons.len() - 1);
                reasons.len() - 1
            }
        };
        let reason = &mut reasons[place];
        // A case with several regimes has one record per regime.
        if reason.cases.last() == Some(&case) {
            continue;
        }
        if reason.cases.len() < MOST_NAMES {
            reason.cases.push(case);
        } else {
            reason.more += 1;
        }
    }
    if beyond > 0 {
        let have = if beyond == 1 { "row has another reason" } else { "rows have other reasons" };
        reasons.push(Reason::new("more", format!("{beyond} more {have}: see results.csv")));
    }
    reasons
}

/// Truncates a text, adding a line that says so.
fn shortened(text: String, most: usize) -> String {
    if text.len() <= most {
        return text;
    }
    let end = (0..=most).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    format!("{}\n… {} more bytes in records.jsonl", &text[..end], text.len() - end)
}

/// Launches that exceed a device limit, by limit.
pub fn invalid(records: &Records, limits: &Limits) -> Vec<Reason> {
    let statement = |record: &CaseRecord| match &record.outcome {
        Outcome::Invalid { limit } => {
            Some((wording::case_name(&record.case), wording::name(&record.outcome), limit.clone(), None))
        }
        _ => None,
    };
    gather(records.cases.iter().filter_map(statement), limits)
}

pub fn failures(records: &Records, summary: &Summary, limits: &Limits) -> Vec<Reason> {
    let statement = |i: &usize| {
        let record = &records.cases[*i];
        let log = match &record.outcome {
            Outcome::CompileError { log, .. } => Some(log.trim_end().to_owned()).filter(|log| !log.is_empty()),
            _ => None,
        };
        let text = wording::reason(&record.outcome).unwrap_or_default();
        (wording::case_name(&record.case), wording::name(&record.outcome), text, log)
    };
    gather(summary.failures.iter().map(statement), limits)
}

pub fn notes(records: &Records, limits: &Limits) -> Vec<Reason> {
    let each = records.cases.iter().flat_map(|record| {
        let name = wording::case_name(&record.case);
        notes_on(record, &records.environment).map(move |note| (name.clone(), "note".to_owned(), note, None))
    });
    gather(each, limits)
}

pub fn notes_on<'r>(record: &'r CaseRecord, environment: &Environment) -> impl Iterator<Item = String> + use<'r> {
    let cached = wording::cached_traffic(record, &environment.device);
    let above = if cached.is_none() { above_ceiling(record, environment) } else { None };
    record.notes.iter().map(wording::note).chain(cached).chain(above)
}

/// Why a case is faster than the measured ceiling.
fn above_ceiling(record: &CaseRecord, environment: &Environment) -> Option<String> {
    let (result, ceilings) = (record.result.as_ref()?, environment.machine.ceilings.as_ref()?);
    let share = runner_results::analyse::over_roof(&record.work, &result.time, result.unit, ceilings)?;
    (share > 1.0 + LEAST_ABOVE).then(|| wording::above_ceiling(share, record, ceilings, &environment.device))
}

/// A case above the ceiling by less than this fraction counts as at the ceiling.
const LEAST_ABOVE: f64 = 0.0005;

/// Why a group has no speedups, if its baseline was not timed.
pub fn no_speedups(records: &Records, group: &GroupSummary) -> Option<Reason> {
    if group.best.is_empty() {
        return None;
    }
    let text = match &group.baseline {
        BaselineState::Unnamed | BaselineState::Measured => return None,
        BaselineState::Absent => "the baseline is not among the cases of this group".to_owned(),
        BaselineState::Failed(i) => match &records.cases[*i].verdict {
            Verdict::Mismatch(_) => "the baseline is wrong".to_owned(),
            _ => format!("the baseline is {}", wording::name(&records.cases[*i].outcome)),
        },
    };
    Some(Reason::new("no speedups", text))
}

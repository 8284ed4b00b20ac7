//! A run as lines of JSON, for `run --json`. `docs/reference/events.md` describes every line.
//!
//! A case is reported when its group has ended, because its speedup is not known earlier.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;

use super::comparison::{self, Compared};
use super::files::REPORT_FILE;
use super::{RenderError, claims, wording};
use runner_lang::format::visible_json;
use runner_results::analyse::{self, ClaimState};
use runner_results::journal::{JOURNAL_FILE, RECORDS_FILE};
use runner_types::{
    Case, CaseRecord, Counters, Environment, Estimate, Event, GroupKey, Outcome, Records, Regime, RunHeader, Unit,
    Value,
};

/// Format version, raised when a field is removed or changes its meaning.
const FORMAT: u32 = 1;

type Axes<'a> = BTreeMap<&'a str, &'a Value>;

#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum Line<'a> {
    RunStarted {
        format: u32,
        experiment: &'a str,
        title: &'a str,
        manifest: &'a str,
        backend: String,
        device: &'a str,
        driver: Option<&'a str>,
        axes: Vec<&'a str>,
        variants: &'a [String],
        baseline: Option<&'a str>,
        cases: u64,
        groups: u32,
    },
    Planned {
        to_run: usize,
        kept: usize,
    },
    GroupStarted {
        axes: Axes<'a>,
        cases: u32,
    },
    CaseFinished {
        variant: &'a str,
        axes: Axes<'a>,
        outcome: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        verdict: &'static str,
        times: Vec<Time>,
        #[serde(skip_serializing_if = "Option::is_none")]
        counters: Option<&'a Counters>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        notes: Vec<String>,
    },
    CaseCounted {
        variant: &'a str,
        axes: Axes<'a>,
        counters: &'a Counters,
    },
    Claim {
        claim: &'a str,
        #[serde(rename = "where", skip_serializing_if = "Option::is_none")]
        condition: Option<&'a str>,
        state: &'static str,
        detail: String,
    },
    Compared {
        comparison: serde_json::Value,
    },
    RunFinished {
        complete: bool,
        outcomes: BTreeMap<&'static str, usize>,
        #[serde(skip_serializing_if = "Option::is_none")]
        report: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        records: Option<String>,
        journal: String,
        exit_code: u8,
    },
}

#[derive(Debug, Serialize)]
struct Time {
    regime: Regime,
    clock: &'static str,
    median_ns: f64,
    interval_ns: [f64; 2],
    confidence: f64,
    samples: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    speedup: Option<Speedup>,
}

#[derive(Debug, Serialize)]
struct Speedup {
    value: f64,
    interval: [f64; 2],
    #[serde(skip_serializing_if = "Option::is_none")]
    reproducible_interval: Option<[f64; 2]>,
}

/// Turns the events of a run into lines.
#[derive(Debug, Default)]
pub struct EventLines {
    begun: Option<Event>,
    /// Groups in progress, with their events so far.
    open: Vec<(GroupKey, Vec<Event>)>,
}

impl EventLines {
    /// Lines for one event, each with its line ending; most events have none.
    pub fn observe(&mut self, event: &Event) -> String {
        match event {
            Event::RunStarted { header, environment, cases, groups, .. } => {
                self.begun = Some(event.clone());
                text(&run_started(header, environment, (*cases, *groups)))
            }
            Event::CasesPlanned { todo, held } => text(&Line::Planned { to_run: todo.len(), kept: held.len() }),
            Event::GroupStarted { key, cases, .. } => {
                // A group restarts if its worker has died.
                if let Some((_, events)) = self.open.iter_mut().find(|(open, _)| open == key) {
                    events.push(event.clone());
                    return String::new();
                }
                self.open.push((key.clone(), vec![event.clone()]));
                text(&Line::GroupStarted { axes: axes(&key.0), cases: *cases })
            }
            Event::GroupFinished { key, .. } => match self.open.iter().position(|(open, _)| open == key) {
                Some(at) => {
                    let (_, events) = self.open.remove(at);
                    self.finished(&events)
                }
                None => String::new(),
            },
            Event::RunFinished { .. } => {
                let open = std::mem::take(&mut self.open);
                open.iter().map(|(_, events)| self.finished(events)).collect()
            }
            other => self.of_case(other),
        }
    }

    fn of_case(&mut self, event: &Event) -> String {
        let Some(case) = event.case() else { return String::new() };
        if let Some((_, events)) = self.open.iter_mut().find(|(key, _)| *key == case.group) {
            events.push(event.clone());
            return String::new();
        }
        match event {
            // Settled without running: excluded, not compiled, or not run after an interrupt.
            Event::CaseSettled { .. } => self.finished(std::slice::from_ref(event)),
            // Counted by a profiler, in a pass after all groups.
            Event::CaseCounted { counters, .. } => {
                text(&Line::CaseCounted { variant: &case.key.variant, axes: axes(&case.key.axes), counters })
            }
            _ => String::new(),
        }
    }

    /// Lines of the cases that these events settle.
    fn finished(&self, events: &[Event]) -> String {
        let settled = events.iter().filter(|event| matches!(event, Event::CaseSettled { .. }));
        let mut todo: Vec<Case> = settled.filter_map(Event::case).cloned().collect();
        todo.dedup_by(|a, b| a.key == b.key);
        let Some(begun) = self.begun.clone() else { return String::new() };
        let plan = Event::CasesPlanned { todo, held: Vec::new() };
        let events: Vec<Event> = [begun, plan].into_iter().chain(events.iter().cloned()).collect();
        let Ok(records) = analyse::records(&events) else { return String::new() };
        let cases = records.cases.chunk_by(|a, b| a.case.key == b.case.key);
        cases.filter_map(case_finished).map(|line| text(&line)).collect()
    }
}

/// The comparison with a base, as `compare --format json` writes it.
pub fn compared(compared: Compared<'_>) -> Result<String, RenderError> {
    let comparison = serde_json::from_str(&comparison::json(compared)?)?;
    Ok(text(&Line::Compared { comparison }))
}

/// Last lines of a run: its claims, and how it ended. A shard has only a journal in `dir` and no report.
pub fn end(records: &Records, dir: &Path, has_report: bool, exit_code: u8) -> String {
    let judged = analyse::claims(records);
    let claims = judged.iter().map(|judged| Line::Claim {
        claim: &judged.claim.text,
        condition: judged.claim.condition.as_deref(),
        // This name has been part of the format since its first version.
        state: match judged.state {
            ClaimState::NotApplicable => "not applicable",
            state => claims::name(state),
        },
        detail: claims::detail(judged),
    });
    let file = |name: &str| dir.join(name).display().to_string();
    let finished = Line::RunFinished {
        complete: records.header.complete,
        outcomes: analyse::summary(records).outcomes,
        report: has_report.then(|| file(REPORT_FILE)),
        records: has_report.then(|| file(RECORDS_FILE)),
        journal: file(JOURNAL_FILE),
        exit_code,
    };
    claims.chain([finished]).map(|line| text(&line)).collect()
}

fn run_started<'a>(header: &'a RunHeader, environment: &'a Environment, (cases, groups): (u64, u32)) -> Line<'a> {
    Line::RunStarted {
        format: FORMAT,
        experiment: &header.experiment,
        title: &header.title,
        manifest: &header.manifest_path,
        backend: header.backend.to_string(),
        device: &environment.device.name,
        driver: environment.driver.as_deref(),
        axes: header.axes.iter().map(|axis| axis.name.as_str()).collect(),
        variants: &header.variants,
        baseline: header.baseline.as_ref().map(|(variant, _)| variant.as_str()),
        cases,
        groups,
    }
}

/// Line of a case, from its records (one per regime).
fn case_finished(records: &[CaseRecord]) -> Option<Line<'_>> {
    let first = records.first()?;
    Some(Line::CaseFinished {
        variant: &first.case.key.variant,
        axes: axes(&first.case.key.axes),
        outcome: first.outcome.name(),
        reason: reason(&first.outcome),
        verdict: first.verdict.name(),
        times: records.iter().filter_map(time).collect(),
        counters: first.counters.as_ref(),
        notes: first.notes.iter().map(wording::note).collect(),
    })
}

fn reason(outcome: &Outcome) -> Option<String> {
    wording::reason(outcome).filter(|reason| !reason.is_empty())
}

fn time(record: &CaseRecord) -> Option<Time> {
    let result = record.result.as_ref()?;
    let interval = |estimate: &Estimate| [estimate.low, estimate.high];
    let speedup = result.against_baseline.as_ref().map(|ratio| Speedup {
        value: ratio.speedup.point,
        interval: interval(&ratio.speedup),
        reproducible_interval: ratio.reproducible.as_ref().map(interval),
    });
    Some(Time {
        regime: result.regime,
        clock: match result.unit {
            Unit::DeviceNanoseconds => "device",
            Unit::HostNanoseconds => "host",
        },
        median_ns: result.time.point,
        interval_ns: interval(&result.time),
        confidence: result.time.confidence,
        samples: result.samples,
        speedup,
    })
}

fn axes(axes: &[(String, Value)]) -> Axes<'_> {
    axes.iter().map(|(name, value)| (name.as_str(), value)).collect()
}

fn text(line: &Line<'_>) -> String {
    // All keys are strings, so serialisation cannot fail.
    serde_json::to_string(line).map_or_else(|_| String::new(), |text| visible_json(&text).into_owned() + "\n")
}

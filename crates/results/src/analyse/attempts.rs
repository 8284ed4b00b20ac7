//! Collects what the journal lines of a case's last attempt report.

use crate::journal::{CaseHistory, History, LastRun};
use runner_types::{
    BackendKind, BodyCounters, Case, CaseHashes, Energy, Environment, Event, Fingerprint, FormedRatios, LaunchRecord,
    Measurement, Note, Outcome, ResultError, RunHeader, Verdict, WorkAmount,
};

#[derive(Debug, Clone, Default)]
pub(super) struct Attempt {
    /// Index of the session that made the attempt; see [`CaseHistory::session`].
    pub session: usize,
    pub fingerprint: Option<Fingerprint>,
    pub hashes: Option<CaseHashes>,
    pub verdict: Option<Verdict>,
    pub launches: Vec<LaunchRecord>,
    pub measurements: Vec<Measurement>,
    pub counters: Option<BodyCounters>,
    pub error: Option<ResultError>,
    pub energy: Option<Energy>,
    pub printed_lines: usize,
    pub notes: Vec<Note>,
}

#[derive(Debug, Clone)]
pub(super) struct Settled {
    pub case: Case,
    pub outcome: Option<Outcome>,
    pub work: WorkAmount,
    pub attempt: Attempt,
}

/// The last run with the final state of its cases.
#[derive(Debug, Clone)]
pub(super) struct Folded {
    pub header: RunHeader,
    pub environment: Environment,
    /// Every planned case once, in the manifest's order.
    pub cases: Vec<Settled>,
    /// Whether the run finished and ran every planned case.
    pub finished: bool,
    /// Ratios that the journal already contains.
    pub ratios: FormedRatios,
}

/// The last run of a history; `None` if no run ever started.
pub(super) fn fold(history: History) -> Option<Folded> {
    let mut last = history.into_last_run()?;
    let ratios = last.take_ratios();
    let LastRun { run, cases, .. } = last;
    let mut header = run.header;
    for remark in run.remarks {
        match remark {
            Event::CountersMissing { why } => {
                let before = header.counters_missing.take().map(|before| format!("{before}; ")).unwrap_or_default();
                header.counters_missing = Some(before + why.as_str());
            }
            Event::EnergyMissing { why } => header.energy_missing = Some(why),
            _ => {}
        }
    }
    let mut cases: Vec<Settled> = cases.into_iter().map(Settled::from_history).collect();
    if header.backend == BackendKind::Sim {
        let counters = cases.iter_mut().filter_map(|settled| settled.attempt.counters.as_mut());
        for counters in counters.flat_map(|counters| std::iter::once(&mut counters.whole).chain(&mut counters.each)) {
            *counters = std::mem::take(counters).of_simulator();
        }
    }
    Some(Folded { header, environment: run.environment, cases, finished: run.is_complete, ratios })
}

impl Settled {
    fn from_history(CaseHistory { case, session, lines, .. }: CaseHistory) -> Self {
        let attempt = Attempt { session, ..Attempt::default() };
        let mut settled = Self { case, outcome: None, work: WorkAmount::default(), attempt };
        for (_, event) in lines {
            settled.take(event);
        }
        settled
    }

    fn take(&mut self, event: Event) {
        let attempt = &mut self.attempt;
        match event {
            Event::CaseChecked { fingerprint, hashes, verdict, launches, .. } => {
                attempt.fingerprint = fingerprint;
                attempt.hashes = hashes;
                attempt.verdict = Some(verdict);
                attempt.launches = launches;
            }
            Event::CaseMeasured { measurement, .. } => {
                attempt.measurements.retain(|m| m.regime != measurement.regime);
                attempt.measurements.push(measurement);
            }
            Event::CaseCounted { counters, each, lines, .. } => {
                attempt.counters = Some(BodyCounters { whole: counters, each, lines });
            }
            Event::CaseMetered { energy, .. } => attempt.energy = Some(energy),
            Event::CaseErred { error, .. } => attempt.error = Some(error),
            Event::CasePrinted { text, .. } => attempt.printed_lines += text.lines().count(),
            Event::CaseNote { note, .. } if !attempt.notes.contains(&note) => attempt.notes.push(note),
            Event::CaseSettled { fingerprint, outcome, work, .. } => {
                attempt.fingerprint = fingerprint.or(attempt.fingerprint.take());
                self.outcome = Some(outcome);
                self.work = work;
            }
            _ => {}
        }
    }
}

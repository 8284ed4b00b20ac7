//! Folds events into the final state of every planned case.
//!
//! A journal may hold several runs (each resumption is one), and a group may start several times in a run (a worker
//! that died is replaced). The last attempt at a case counts. Each attempt records its session, since only samples of
//! one session were interleaved.

use std::collections::HashMap;

use crate::model::{
    BodyCounters, Case, CaseHashes, CaseKey, Energy, Environment, Event, Fingerprint, FormedRatios, GroupKey,
    LaunchRecord, Measurement, Note, Outcome, ResultError, RunHeader, Verdict, WorkAmount,
};

/// What is known of a case.
#[derive(Debug, Clone, Default)]
pub(super) struct Attempt {
    /// Number of the start, of the run or of the group in it, over the whole journal.
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

/// A case and how it ended, if it did.
#[derive(Debug, Clone)]
pub(super) struct Settled {
    pub case: Case,
    pub outcome: Option<Outcome>,
    pub work: WorkAmount,
    pub attempt: Attempt,
}

/// The result of the fold.
#[derive(Debug, Clone)]
pub(super) struct Folded {
    pub header: RunHeader,
    pub environment: Environment,
    /// Every planned case once, in the manifest's order.
    pub cases: Vec<Settled>,
    /// Whether the last run finished.
    pub finished: bool,
    /// Ratios that were formed before.
    pub ratios: FormedRatios,
}

/// Folds; `None` if no run ever started. Events of groups may have been folded before.
pub(super) fn fold(events: impl IntoIterator<Item = Event>, groups: Vec<Fold>) -> Option<Folded> {
    let mut fold = Fold::of(events);
    for group in groups {
        fold.open.extend(group.open);
        fold.settled.extend(group.settled);
        fold.ratios.extend(group.ratios);
    }
    fold.finish()
}

/// How a case ended.
#[derive(Debug)]
struct End {
    /// Only without a plan.
    case: Option<Case>,
    outcome: Outcome,
    work: WorkAmount,
    attempt: Attempt,
}

/// What is known after some events.
#[derive(Debug, Default)]
pub(super) struct Fold {
    started: Option<(RunHeader, Environment)>,
    finished: bool,
    /// How often a run or a group has started.
    starts: usize,
    /// The start of the run, for groups without a start of their own.
    run_session: usize,
    /// By group: groups on several devices may run at the same time.
    sessions: HashMap<GroupKey, usize>,
    /// Of the last run; `None` if it wrote no plan.
    planned: Option<Vec<Case>>,
    open: HashMap<CaseKey, (Case, Attempt)>,
    settled: HashMap<CaseKey, Box<End>>,
    counters_missing: Option<String>,
    energy_missing: Option<String>,
    ratios: FormedRatios,
}

impl Fold {
    pub fn of(events: impl IntoIterator<Item = Event>) -> Self {
        let mut fold = Self::default();
        events.into_iter().for_each(|event| fold.take(event));
        fold
    }

    fn take(&mut self, event: Event) {
        match event {
            Event::RunStarted { header, environment, .. } => {
                self.started = Some((*header, *environment));
                self.finished = false;
                self.starts += 1;
                self.run_session = self.starts;
                self.sessions.clear();
                self.planned = None;
                self.open.clear();
                self.counters_missing = None;
                self.energy_missing = None;
            }
            Event::CasesPlanned { todo, held } => self.plan(todo, held),
            Event::GroupStarted { key, .. } => self.start_group(key),
            Event::CaseChecked { case, fingerprint, hashes, verdict, launches } => {
                let attempt = self.attempt(case);
                attempt.fingerprint = fingerprint;
                attempt.hashes = hashes;
                attempt.verdict = Some(verdict);
                attempt.launches = launches;
            }
            Event::CaseMeasured { case, measurement } => {
                let measurements = &mut self.attempt(case).measurements;
                measurements.retain(|m| m.regime != measurement.regime);
                measurements.push(measurement);
            }
            Event::CaseCounted { case, counters, each } => {
                self.amend(case, |attempt| attempt.counters = Some(BodyCounters { whole: counters, each }));
            }
            Event::CountersMissing { why } => {
                let before = self.counters_missing.take().map(|before| format!("{before}; ")).unwrap_or_default();
                self.counters_missing = Some(before + why.as_str());
            }
            Event::CaseMetered { case, energy } => self.attempt(case).energy = Some(energy),
            Event::EnergyMissing { why } => self.energy_missing = Some(why),
            Event::CaseErred { case, error } => self.attempt(case).error = Some(error),
            Event::CasePrinted { case, text } => self.attempt(case).printed_lines += text.lines().count(),
            Event::CaseNote { case, note } => self.amend(case, |attempt| {
                if !attempt.notes.contains(&note) {
                    attempt.notes.push(note);
                }
            }),
            Event::CaseSettled { case, fingerprint, outcome, work } => {
                let (key, mut attempt) = match self.open.remove_entry(&case.key) {
                    Some((key, (_, attempt))) => (key, attempt),
                    // A memory check after the timings settles a case again.
                    None => match self.settled.remove(&case.key) {
                        Some(end) => (case.key.clone(), end.attempt),
                        None => (case.key.clone(), Attempt::default()),
                    },
                };
                attempt.fingerprint = fingerprint.or(attempt.fingerprint);
                // A plan has the case, too.
                let case = self.planned.is_none().then_some(case);
                self.settled.insert(key, Box::new(End { case, outcome, work, attempt }));
            }
            Event::RatiosFormed { ratios, .. } => self.ratios.extend(ratios),
            Event::RunFinished { complete, .. } => self.finished = complete,
            Event::LaunchesMarked { .. }
            | Event::CompileStarted { .. }
            | Event::UnitCompiled { .. }
            | Event::CompileFinished { .. }
            | Event::CaseActive { .. }
            | Event::GroupFinished { .. }
            | Event::PhaseSpent { .. } => {}
        }
    }

    /// Changes the open attempt, or else the settled one: a profiler counts in a pass of its own after the timings.
    fn amend(&mut self, case: Case, change: impl FnOnce(&mut Attempt)) {
        match self.settled.get_mut(&case.key) {
            Some(settled) if !self.open.contains_key(&case.key) => change(&mut settled.attempt),
            _ => change(self.attempt(case)),
        }
    }

    fn plan(&mut self, todo: Vec<Case>, held: Vec<Case>) {
        for case in &todo {
            self.settled.remove(&case.key);
        }
        self.planned.get_or_insert_default().extend(todo.into_iter().chain(held));
    }

    /// A group that starts again drops what its unsettled cases did in the worker that died.
    fn start_group(&mut self, key: GroupKey) {
        self.starts += 1;
        for (case, attempt) in self.open.values_mut() {
            if case.group == key {
                *attempt = Attempt { notes: std::mem::take(&mut attempt.notes), ..Attempt::default() };
            }
        }
        self.sessions.insert(key, self.starts);
    }

    fn attempt(&mut self, case: Case) -> &mut Attempt {
        let session = self.sessions.get(&case.group).copied().unwrap_or(self.run_session);
        let (_, attempt) = self.open.entry(case.key.clone()).or_insert_with(|| (case, Attempt::default()));
        attempt.session = session;
        attempt
    }

    fn finish(mut self) -> Option<Folded> {
        let (mut header, environment) = self.started?;
        header.counters_missing = self.counters_missing;
        header.energy_missing = self.energy_missing;
        let planned = self.planned.unwrap_or_else(|| {
            // Events without a plan: every case that they name.
            let settled = self.settled.values().filter_map(|end| end.case.as_ref());
            let named = settled.chain(self.open.values().map(|(case, _)| case));
            let mut cases: Vec<Case> = named.cloned().collect();
            cases.sort_by_key(|c| c.ordinal);
            cases.dedup_by(|a, b| a.key == b.key);
            cases
        });
        let mut cases: Vec<Settled> = planned
            .into_iter()
            .map(|case| {
                let name = &case.key;
                let (outcome, work, attempt) = if let Some(end) = self.settled.remove(name) {
                    let End { outcome, work, attempt, .. } = *end;
                    (Some(outcome), work, attempt)
                } else {
                    let attempt = self.open.remove(name).map(|(_, attempt)| attempt);
                    (None, WorkAmount::default(), attempt.unwrap_or_default())
                };
                // The plan's case, not the settled one: its position may have changed on resumption.
                Settled { case, outcome, work, attempt }
            })
            .collect();
        cases.sort_by_key(|c| c.case.ordinal);
        Some(Folded { header, environment, cases, finished: self.finished, ratios: self.ratios })
    }
}

//! The accounts of one group: every case ends in exactly one outcome, whatever becomes of its workers.
//!
//! A group may take several attempts. What an attempt finds wrong is final and is passed on at once; what it finds
//! good is held back until the group ends, because the cases of a group are compared with each other and an attempt
//! that broke off took its samples under other conditions than the one that replaces it. The ledger starts nothing and
//! waits for nothing.

use std::collections::HashMap;

use crate::model::{Activity, Case, Event, GroupJob, Outcome};

/// Where events go.
pub(super) type Emit<'a> = &'a mut dyn FnMut(Event);

/// The step that a worker is in.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct ActiveStep {
    index: usize,
    pub activity: Activity,
    /// Seconds.
    pub limit: f64,
}

/// The state of one case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Account {
    Open,
    /// This attempt found it good; its events are held.
    Good,
    /// Its outcome has been passed on.
    Settled,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Ledger {
    job: GroupJob,
    accounts: Vec<Account>,
    /// Case ordinal → index into the job.
    index: HashMap<u64, usize>,
    /// Measurements, counters, notes and good outcomes of this attempt, in order.
    held: Vec<(usize, Event)>,
    /// Verdicts and printed text that were passed on, so that a repeated attempt does not repeat them.
    told: Vec<(usize, Event)>,
    active: Option<ActiveStep>,
    /// Whether this attempt settled a case.
    settled_one: bool,
}

impl Ledger {
    pub(super) fn new(job: GroupJob) -> Self {
        let index = job.cases.iter().enumerate().map(|(i, c)| (c.case.ordinal, i)).collect();
        let accounts = vec![Account::Open; job.cases.len()];
        Self { job, accounts, index, held: Vec::new(), told: Vec::new(), active: None, settled_one: false }
    }

    pub(super) const fn active(&self) -> Option<ActiveStep> {
        self.active
    }

    /// Whether the attempt at hand settled a case: if not, repeating it would end the same way.
    pub(super) const fn settled_one(&self) -> bool {
        self.settled_one
    }

    /// Forgets what the last attempt found good and gives the cases that are still to be run; `None` where none is.
    pub(super) fn next_attempt(&mut self) -> Option<GroupJob> {
        self.held.clear();
        self.active = None;
        self.settled_one = false;
        for account in &mut self.accounts {
            if *account == Account::Good {
                *account = Account::Open;
            }
        }
        let open: Vec<usize> = (0..self.accounts.len()).filter(|i| self.accounts[*i] == Account::Open).collect();
        (!open.is_empty()).then(|| GroupJob {
            ordinal: self.job.ordinal,
            key: self.job.key.clone(),
            cases: open.iter().map(|i| self.job.cases[*i].clone()).collect(),
            baseline: self.job.baseline.and_then(|b| open.iter().position(|i| *i == b)),
            seed: self.job.seed,
        })
    }

    /// Takes in what a worker said: passes it on, holds it, or drops it where it would be said twice.
    pub(super) fn observe(&mut self, event: Event, emit: Emit) {
        // The dispatcher says these itself, once a group and not once an attempt.
        if matches!(event, Event::GroupStarted { .. } | Event::GroupFinished { .. }) {
            return;
        }
        let Some(case) = case_of(&event) else { return emit(event) };
        let Some(&index) = self.index.get(&case.ordinal) else { return };
        if self.accounts[index] == Account::Settled {
            return;
        }
        match event {
            Event::CaseActive { activity, limit, .. } => {
                self.active = Some(ActiveStep { index, activity, limit });
                emit(event);
            }
            Event::CaseChecked { .. } | Event::CasePrinted { .. } => self.tell_once(index, event, emit),
            Event::CaseSettled { ref outcome, .. } => {
                if self.active.is_some_and(|a| a.index == index) {
                    self.active = None;
                }
                if !matches!(outcome, Outcome::Measured | Outcome::Unstable { .. }) {
                    self.close(index, event, emit);
                } else if self.accounts[index] == Account::Open {
                    self.accounts[index] = Account::Good;
                    self.held.push((index, event));
                }
            }
            _ => self.held.push((index, event)),
        }
    }

    /// Settles the case whose step is under way; false where none is.
    pub(super) fn blame(&mut self, outcome: Outcome, emit: Emit) -> bool {
        let Some(active) = self.active.take() else { return false };
        let event = self.settlement(active.index, outcome);
        self.close(active.index, event, emit);
        true
    }

    /// Passes on what is held, and gives every case that has no outcome the one named.
    pub(super) fn finish(&mut self, outcome_of_the_rest: &Outcome, emit: Emit) {
        for (index, event) in std::mem::take(&mut self.held) {
            if self.accounts[index] == Account::Good || matches!(event, Event::CaseNote { .. }) {
                emit(event);
            }
        }
        for index in 0..self.accounts.len() {
            if self.accounts[index] == Account::Open {
                emit(self.settlement(index, outcome_of_the_rest.clone()));
            }
            self.accounts[index] = Account::Settled;
        }
    }

    fn tell_once(&mut self, index: usize, event: Event, emit: Emit) {
        let told = (index, event);
        if !self.told.contains(&told) {
            emit(told.1.clone());
            self.told.push(told);
        }
    }

    /// Passes on a case's last event with the notes before it; what was measured of it is void.
    fn close(&mut self, index: usize, settlement: Event, emit: Emit) {
        for (_, event) in self.held.extract_if(.., |(i, _)| *i == index) {
            if matches!(event, Event::CaseNote { .. }) {
                emit(event);
            }
        }
        emit(settlement);
        self.accounts[index] = Account::Settled;
        self.settled_one = true;
    }

    fn settlement(&self, index: usize, outcome: Outcome) -> Event {
        let job = &self.job.cases[index];
        Event::CaseSettled { case: job.case.clone(), fingerprint: job.fingerprint.clone(), outcome, work: job.work }
    }
}

/// Gives every case of a group that was never begun its outcome.
pub(super) fn settle_unbegun(job: GroupJob, outcome: &Outcome, emit: Emit) {
    Ledger::new(job).finish(outcome, emit);
}

/// The case that an event is about.
fn case_of(event: &Event) -> Option<&Case> {
    match event {
        Event::CaseActive { case, .. }
        | Event::CaseChecked { case, .. }
        | Event::CaseMeasured { case, .. }
        | Event::CaseCounted { case, .. }
        | Event::CasePrinted { case, .. }
        | Event::CaseNote { case, .. }
        | Event::CaseSettled { case, .. } => Some(case),
        _ => None,
    }
}

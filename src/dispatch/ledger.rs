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

/// What stands in one case's account.
#[derive(Debug, Default)]
struct Account {
    state: State,
    /// Measurements, counters, notes and the good outcome of this attempt, in order.
    held: Vec<Event>,
    /// Verdicts and printed text that were passed on, so that a repeated attempt does not repeat them.
    told: Vec<Event>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum State {
    #[default]
    Open,
    /// This attempt found it good; its outcome is held.
    Good,
    /// Its outcome has been passed on.
    Settled,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Ledger {
    job: GroupJob,
    /// One a case of the job.
    accounts: Vec<Account>,
    /// Case ordinal → index into the job.
    index: HashMap<u64, usize>,
    active: Option<ActiveStep>,
    /// Whether this attempt settled a case.
    settled_one: bool,
}

impl Ledger {
    pub(super) fn new(job: GroupJob) -> Self {
        let index = job.cases.iter().enumerate().map(|(i, c)| (c.case.ordinal, i)).collect();
        let accounts = job.cases.iter().map(|_| Account::default()).collect();
        Self { job, accounts, index, active: None, settled_one: false }
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
        self.active = None;
        self.settled_one = false;
        let mut open = Vec::new();
        for (index, account) in self.accounts.iter_mut().enumerate() {
            account.held.clear();
            if account.state != State::Settled {
                account.state = State::Open;
                open.push(index);
            }
        }
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
        let account = &mut self.accounts[index];
        if account.state == State::Settled {
            return;
        }
        match event {
            Event::CaseActive { activity, limit, .. } => {
                self.active = Some(ActiveStep { index, activity, limit });
                emit(event);
            }
            Event::CaseChecked { .. } | Event::CasePrinted { .. } => {
                if !account.told.contains(&event) {
                    account.told.push(event.clone());
                    emit(event);
                }
            }
            Event::CaseSettled { ref outcome, .. } => {
                if self.active.is_some_and(|step| step.index == index) {
                    self.active = None;
                }
                if !matches!(outcome, Outcome::Measured | Outcome::Unstable { .. }) {
                    self.close(index, event, emit);
                } else if account.state == State::Open {
                    account.state = State::Good;
                    account.held.push(event);
                }
            }
            _ => account.held.push(event),
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
        for index in 0..self.accounts.len() {
            match self.accounts[index].state {
                State::Settled => {}
                State::Good => {
                    self.accounts[index].state = State::Settled;
                    self.accounts[index].held.drain(..).for_each(&mut *emit);
                }
                State::Open => self.close(index, self.settlement(index, outcome_of_the_rest.clone()), emit),
            }
        }
    }

    /// Passes on a case's last event with the notes before it; what was measured of it is void.
    fn close(&mut self, index: usize, settlement: Event, emit: Emit) {
        let account = &mut self.accounts[index];
        account.state = State::Settled;
        account.held.drain(..).filter(|event| matches!(event, Event::CaseNote { .. })).for_each(&mut *emit);
        emit(settlement);
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

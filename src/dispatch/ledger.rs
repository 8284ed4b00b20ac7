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
    pub index: usize,
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
        | Event::CaseMetered { case, .. }
        | Event::CaseErred { case, .. }
        | Event::CasePrinted { case, .. }
        | Event::CaseNote { case, .. }
        | Event::CaseSettled { case, .. } => Some(case),
        _ => None,
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test panics to fail")]
mod tests {
    use super::*;
    use crate::backend::fake::idle_case;
    use crate::model::{CaseJob, CaseKey, GroupKey, Measurement, Note, Phase, Regime, Round, Unit};

    fn case_job(ordinal: u64) -> CaseJob {
        let key = CaseKey { experiment: "e".into(), variant: format!("v{ordinal}"), axes: Vec::new() };
        idle_case(Case { ordinal, key, group: GroupKey(Vec::new()) }, 1.0)
    }

    fn ledger(cases: u64) -> Ledger {
        let cases = (0..cases).map(case_job).collect();
        Ledger::new(GroupJob { ordinal: 0, key: GroupKey(Vec::new()), cases, baseline: Some(1), seed: 7 })
    }

    fn settled(ordinal: u64, outcome: Outcome) -> Event {
        let CaseJob { case, work, .. } = case_job(ordinal);
        Event::CaseSettled { case, fingerprint: None, outcome, work }
    }

    fn measured(ordinal: u64, whole: f64) -> Event {
        let rounds = vec![Round { whole, ..Round::default() }];
        let measurement = Measurement::of(Regime::Cold, Unit::DeviceNanoseconds, rounds);
        Event::CaseMeasured { case: case_job(ordinal).case, measurement }
    }

    fn note(ordinal: u64, text: &str) -> Event {
        Event::CaseNote { case: case_job(ordinal).case, note: Note::Text(text.into()) }
    }

    fn crashed() -> Outcome {
        Outcome::Crashed { message: "boom".into() }
    }

    /// Everything that a ledger passes on while `play` plays the worker.
    fn passed_on(ledger: &mut Ledger, play: impl Fn(&mut Ledger, Emit)) -> Vec<Event> {
        let mut events = Vec::new();
        play(ledger, &mut |event| events.push(event));
        events
    }

    #[test]
    fn good_news_waits_for_the_end_and_a_repeated_attempt_voids_it() {
        let mut ledger = ledger(2);
        ledger.next_attempt().unwrap();
        let early = passed_on(&mut ledger, |ledger, emit| {
            for event in [measured(0, 10.0), note(0, "throttled"), settled(0, Outcome::Measured)] {
                ledger.observe(event, emit);
            }
        });
        assert_eq!(early, []);
        ledger.next_attempt().unwrap();
        let events = passed_on(&mut ledger, |ledger, emit| {
            ledger.observe(measured(0, 11.0), emit);
            ledger.observe(settled(0, Outcome::Measured), emit);
            ledger.finish(&crashed(), emit);
        });
        assert_eq!(events, [measured(0, 11.0), settled(0, Outcome::Measured), settled(1, crashed())]);
    }

    #[test]
    fn a_case_that_turns_out_wrong_keeps_its_notes_and_loses_its_samples() {
        let mut ledger = ledger(2);
        ledger.next_attempt().unwrap();
        let events = passed_on(&mut ledger, |ledger, emit| {
            ledger.observe(measured(0, 10.0), emit);
            ledger.observe(note(0, "shared memory carve-out raised"), emit);
            ledger.observe(settled(0, crashed()), emit);
        });
        assert_eq!(events, [note(0, "shared memory carve-out raised"), settled(0, crashed())]);
    }

    #[test]
    fn the_next_attempt_is_without_what_was_settled_and_knows_its_baseline() {
        let mut ledger = ledger(3);
        assert_eq!(ledger.next_attempt().unwrap().baseline, Some(1));
        ledger.observe(settled(0, crashed()), &mut |_| {});
        let job = ledger.next_attempt().unwrap();
        assert_eq!(job.cases.iter().map(|c| c.case.ordinal).collect::<Vec<_>>(), [1, 2]);
        assert_eq!((job.baseline, job.seed), (Some(0), 7));
        ledger.observe(settled(1, crashed()), &mut |_| {});
        assert_eq!(ledger.next_attempt().unwrap().baseline, None);
        ledger.observe(settled(2, crashed()), &mut |_| {});
        assert_eq!(ledger.next_attempt(), None);
    }

    #[test]
    fn nothing_is_said_of_a_settled_case_or_of_one_that_is_not_in_the_group() {
        let mut ledger = ledger(1);
        ledger.next_attempt().unwrap();
        let spent = Event::PhaseSpent { phase: Phase::Check, seconds: 1.0 };
        let events = passed_on(&mut ledger, |ledger, emit| {
            ledger.observe(settled(0, crashed()), emit);
            ledger.observe(settled(0, Outcome::Measured), emit);
            ledger.observe(measured(0, 1.0), emit);
            ledger.observe(settled(9, Outcome::Measured), emit);
            ledger.observe(Event::GroupStarted { ordinal: 0, key: GroupKey(Vec::new()), cases: 1 }, emit);
            ledger.observe(spent.clone(), emit);
            ledger.finish(&Outcome::Measured, emit);
        });
        assert_eq!(events, [settled(0, crashed()), spent]);
    }

    #[test]
    fn the_case_whose_step_is_under_way_is_the_one_to_blame() {
        let mut ledger = ledger(2);
        ledger.next_attempt().unwrap();
        let active = Event::CaseActive { case: case_job(1).case, activity: Activity::Measuring, limit: 2.0 };
        ledger.observe(active, &mut |_| {});
        ledger.observe(settled(0, Outcome::Measured), &mut |_| {});
        let events = passed_on(&mut ledger, |ledger, emit| assert!(ledger.blame(crashed(), emit)));
        assert_eq!(events, [settled(1, crashed())]);
        assert!(!ledger.blame(crashed(), &mut |_| {}), "the step ended with its case");
    }
}

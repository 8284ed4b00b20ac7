//! The cases of one group and their state: every case ends in exactly one outcome, even if its workers crash.
//!
//! A group may take several attempts. A failure is final and reported at once. Results of passing cases are held back
//! until the group ends: cases of a group are compared with each other, and samples of an attempt that was cut short
//! were taken under different conditions. If several processes measure the group, their results are joined. This module
//! starts nothing and never blocks.

use std::collections::HashMap;

use super::processes::join;
use runner_execute::{share, wanted_processes};
use runner_types::{Activity, CaseJob, Event, GroupJob, Measurement, Outcome, Sharing, Spread};

pub(super) type Emit<'a> = &'a mut dyn FnMut(Event);

/// The worker's current step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct ActiveStep {
    pub index: usize,
    pub activity: Activity,
    /// Time limit of the step in seconds.
    pub limit: f64,
}

#[derive(Debug, Default)]
struct Entry {
    state: State,
    /// Results and outcome from this attempt, in order, held until the group ends.
    pending: Vec<Event>,
    /// Joined results of earlier processes.
    earlier: Vec<Event>,
    /// Verdicts and printed text that were already reported; another attempt must not report them again.
    reported: Vec<Event>,
    /// Whether the case was already repeated because its worker was killed from outside.
    repeated: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum State {
    #[default]
    Open,
    /// The case passed in this attempt; its outcome is pending.
    Passed,
    /// The case's outcome was reported.
    Settled,
}

#[derive(Debug)]
pub(super) struct CaseTable {
    job: GroupJob,
    /// State of each case, in the job's order.
    entries: Vec<Entry>,
    /// Index of each case in the job, by ordinal.
    index: HashMap<u64, usize>,
    active: Option<ActiveStep>,
    settled_one: bool,
    repeats_one: bool,
    /// Number of processes that share the samples.
    processes: u32,
    /// Whether the first process has measured the group.
    is_followed: bool,
}

impl CaseTable {
    pub(super) fn new(job: GroupJob) -> Self {
        let index = job.cases.iter().enumerate().map(|(i, c)| (c.case.ordinal, i)).collect();
        let entries = job.cases.iter().map(|_| Entry::default()).collect();
        Self {
            job,
            entries,
            index,
            active: None,
            settled_one: false,
            repeats_one: false,
            processes: 1,
            is_followed: false,
        }
    }

    pub(super) const fn active(&self) -> Option<ActiveStep> {
        self.active
    }

    /// Whether this attempt settled a case. If it did not, another attempt would end the same way.
    pub(super) const fn settled_one(&self) -> bool {
        self.settled_one
    }

    /// Whether this attempt ended with a case that will be repeated.
    pub(super) const fn repeats_one(&self) -> bool {
        self.repeats_one
    }

    /// Whether the active case may be repeated after its worker was killed. Each case is repeated at most once.
    pub(super) fn may_repeat_active(&mut self) -> bool {
        let Some(entry) = self.active.and_then(|step| self.entries.get_mut(step.index)) else { return false };
        self.repeats_one = !std::mem::replace(&mut entry.repeated, true);
        self.repeats_one
    }

    /// Drops the pending results of the last attempt. Returns the remaining cases; `None` if there are none.
    pub(super) fn next_attempt(&mut self) -> Option<GroupJob> {
        self.active = None;
        self.settled_one = false;
        self.repeats_one = false;
        let mut open = Vec::new();
        for (index, entry) in self.entries.iter_mut().enumerate() {
            entry.pending.clear();
            if entry.state != State::Settled {
                entry.state = State::Open;
                open.push(index);
            }
        }
        (!open.is_empty()).then(|| GroupJob {
            ordinal: self.job.ordinal,
            key: self.job.key.clone(),
            cases: open.iter().map(|i| self.shared_case(&self.job.cases[*i])).collect(),
            baseline: self.job.baseline.and_then(|b| open.iter().position(|i| *i == b)),
            seed: self.job.seed,
            sharing: if self.is_followed { Sharing::Alone } else { self.job.sharing },
        })
    }

    /// The case with the share of samples for the next process. The first process determines its share itself.
    fn shared_case(&self, job: &CaseJob) -> CaseJob {
        let processes = if self.is_followed { self.processes } else { 1 };
        CaseJob { measure: share(&job.measure, processes), ..job.clone() }
    }

    /// Number of processes that should measure the group: what its cases ask for, or as many as bring the spread
    /// between processes down to the precision.
    pub(super) fn wanted_processes(&self, spread: Option<&Spread>) -> u32 {
        let passed = self.entries.iter().zip(&self.job.cases).filter(|(entry, _)| entry.state == State::Passed);
        let wanted = passed.flat_map(|(entry, job)| {
            measurements(&entry.pending).map(|measured| wanted_processes(measured, job, spread))
        });
        wanted.max().unwrap_or(1).max(self.processes)
    }

    /// Keeps the results of this process, and reopens passed cases for the next of `processes`.
    pub(super) fn begin_process(&mut self, processes: u32) {
        self.keep_results();
        (self.processes, self.is_followed) = (processes, true);
        for entry in self.entries.iter_mut().filter(|entry| entry.state == State::Passed) {
            entry.state = State::Open;
        }
    }

    /// Joins the results of this process with those of earlier ones.
    fn keep_results(&mut self) {
        let earlier = self.entries.iter().flat_map(|entry| measurements(&entry.earlier));
        let first_round = Measurement::first_free_round(earlier);
        for (entry, job) in self.entries.iter_mut().zip(&self.job.cases) {
            if entry.state == State::Passed {
                let precision = [job.measure.precision, share(&job.measure, self.processes).precision];
                join(&mut entry.earlier, std::mem::take(&mut entry.pending), first_round, precision);
            }
        }
    }

    /// Handles a worker's event: reports it, holds it until the group ends, or drops it as already reported.
    pub(super) fn observe(&mut self, event: Event, emit: Emit) {
        if let Event::SamplesShared { processes } = event {
            self.processes = processes;
            return;
        }
        // The dispatcher emits these itself, once per group rather than once per attempt.
        if matches!(event, Event::GroupStarted { .. } | Event::GroupFinished { .. }) {
            return;
        }
        let Some(case) = event.case().filter(|_| !matches!(event, Event::LaunchesMarked { .. })) else {
            return emit(event);
        };
        let Some(&index) = self.index.get(&case.ordinal) else { return };
        let entry = &mut self.entries[index];
        if entry.state == State::Settled {
            return;
        }
        match event {
            Event::CaseActive { activity, limit, .. } => {
                self.active = Some(ActiveStep { index, activity, limit });
                emit(event);
            }
            Event::CaseChecked { .. } | Event::CasePrinted { .. } => {
                if !entry.reported.contains(&event) {
                    entry.reported.push(event.clone());
                    emit(event);
                }
            }
            Event::CaseSettled { ref outcome, .. } => {
                if self.active.is_some_and(|step| step.index == index) {
                    self.active = None;
                }
                if !matches!(outcome, Outcome::Measured | Outcome::Unstable { .. }) {
                    self.close(index, event, emit);
                } else if entry.state == State::Open {
                    entry.state = State::Passed;
                    entry.pending.push(event);
                }
            }
            _ => entry.pending.push(event),
        }
    }

    /// Settles the active case; returns false if there is none.
    pub(super) fn settle_active(&mut self, outcome: Outcome, emit: Emit) -> bool {
        let Some(active) = self.active.take() else { return false };
        let event = self.settlement(active.index, outcome);
        self.close(active.index, event, emit);
        true
    }

    /// Reports held results, and settles every case that no process has measured with `outcome_of_the_rest`.
    pub(super) fn finish(&mut self, outcome_of_the_rest: &Outcome, emit: Emit) {
        self.keep_results();
        for index in 0..self.entries.len() {
            let entry = &mut self.entries[index];
            if entry.state == State::Settled {
                continue;
            }
            if entry.earlier.is_empty() {
                self.close(index, self.settlement(index, outcome_of_the_rest.clone()), emit);
            } else {
                entry.state = State::Settled;
                entry.earlier.drain(..).for_each(&mut *emit);
            }
        }
    }

    /// Reports a case's notes and outcome, and drops its measurements.
    fn close(&mut self, index: usize, settlement: Event, emit: Emit) {
        let entry = &mut self.entries[index];
        entry.state = State::Settled;
        let results = entry.earlier.drain(..).chain(entry.pending.drain(..));
        results.filter(|event| matches!(event, Event::CaseNote { .. })).for_each(&mut *emit);
        emit(settlement);
        self.settled_one = true;
    }

    fn settlement(&self, index: usize, outcome: Outcome) -> Event {
        let job = &self.job.cases[index];
        Event::CaseSettled { case: job.case.clone(), fingerprint: job.fingerprint.clone(), outcome, work: job.work }
    }
}

fn measurements(results: &[Event]) -> impl Iterator<Item = &Measurement> {
    results.iter().filter_map(|event| match event {
        Event::CaseMeasured { measurement, .. } => Some(measurement),
        _ => None,
    })
}

/// Settles every case of a group that never started.
pub(super) fn settle_all(job: GroupJob, outcome: &Outcome, emit: Emit) {
    CaseTable::new(job).finish(outcome, emit);
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test panics to fail")]
mod tests {
    use super::*;
    use fake_backend::idle_case;
    use runner_types::{Case, CaseKey, GroupKey, Note, Phase, Regime, Round, Unit};

    fn case_job(ordinal: u64) -> CaseJob {
        let key = CaseKey { experiment: "e".into(), variant: format!("v{ordinal}"), axes: Vec::new() };
        idle_case(Case { ordinal, key, group: GroupKey(Vec::new()) }, 1.0)
    }

    fn table(cases: u64) -> CaseTable {
        let cases = (0..cases).map(case_job).collect();
        CaseTable::new(GroupJob {
            ordinal: 0,
            key: GroupKey(Vec::new()),
            cases,
            baseline: Some(1),
            seed: 7,
            sharing: Sharing::Alone,
        })
    }

    fn settled(ordinal: u64, outcome: Outcome) -> Event {
        let CaseJob { case, work, .. } = case_job(ordinal);
        Event::CaseSettled { case, fingerprint: None, outcome, work }
    }

    fn measured(ordinal: u64, whole: f64) -> Event {
        let rounds = vec![Round { whole, ..Round::default() }];
        let measurement = Measurement::from_rounds(Regime::Cold, Unit::DeviceNanoseconds, rounds);
        Event::CaseMeasured { case: case_job(ordinal).case, measurement }
    }

    fn note(ordinal: u64, text: &str) -> Event {
        Event::CaseNote { case: case_job(ordinal).case, note: Note::Text(text.into()) }
    }

    fn crashed() -> Outcome {
        Outcome::Crashed { message: "boom".into() }
    }

    /// Events that a table reports while it handles the events of `worker`.
    fn reported(table: &mut CaseTable, worker: impl Fn(&mut CaseTable, Emit)) -> Vec<Event> {
        let mut events = Vec::new();
        worker(table, &mut |event| events.push(event));
        events
    }

    #[test]
    fn results_are_reported_at_the_end_and_a_repeated_attempt_drops_them() {
        let mut table = table(2);
        table.next_attempt().unwrap();
        let early = reported(&mut table, |table, emit| {
            for event in [measured(0, 10.0), note(0, "throttled"), settled(0, Outcome::Measured)] {
                table.observe(event, emit);
            }
        });
        assert_eq!(early, []);
        table.next_attempt().unwrap();
        let events = reported(&mut table, |table, emit| {
            table.observe(measured(0, 11.0), emit);
            table.observe(settled(0, Outcome::Measured), emit);
            table.finish(&crashed(), emit);
        });
        assert_eq!(events, [measured(0, 11.0), settled(0, Outcome::Measured), settled(1, crashed())]);
    }

    /// Five processes share 40 samples: eight each.
    #[test]
    fn as_many_processes_follow_as_the_first_one_left_samples_for() {
        let mut table = table(1);
        table.job.cases[0].measure.min_samples = 40;
        table.job.sharing = Sharing::First { spread: None };
        let first = table.next_attempt().unwrap();
        assert_eq!((first.sharing, first.cases[0].measure.min_samples), (table.job.sharing, 40));
        let events = reported(&mut table, |table, emit| {
            for event in [Event::SamplesShared { processes: 5 }, measured(0, 10.0), settled(0, Outcome::Measured)] {
                table.observe(event, emit);
            }
        });
        assert_eq!((events, table.wanted_processes(None)), (Vec::new(), 5));
        table.begin_process(5);
        let second = table.next_attempt().unwrap();
        assert_eq!((second.sharing, second.cases[0].measure.min_samples), (Sharing::Alone, 8));
    }

    #[test]
    fn a_case_that_turns_out_wrong_keeps_its_notes_and_loses_its_samples() {
        let mut table = table(2);
        table.next_attempt().unwrap();
        let events = reported(&mut table, |table, emit| {
            table.observe(measured(0, 10.0), emit);
            table.observe(note(0, "shared memory carve-out raised"), emit);
            table.observe(settled(0, crashed()), emit);
        });
        assert_eq!(events, [note(0, "shared memory carve-out raised"), settled(0, crashed())]);
    }

    #[test]
    fn the_next_attempt_is_without_what_was_settled_and_knows_its_baseline() {
        let mut table = table(3);
        assert_eq!(table.next_attempt().unwrap().baseline, Some(1));
        table.observe(settled(0, crashed()), &mut |_| {});
        let job = table.next_attempt().unwrap();
        assert_eq!(job.cases.iter().map(|c| c.case.ordinal).collect::<Vec<_>>(), [1, 2]);
        assert_eq!((job.baseline, job.seed), (Some(0), 7));
        table.observe(settled(1, crashed()), &mut |_| {});
        assert_eq!(table.next_attempt().unwrap().baseline, None);
        table.observe(settled(2, crashed()), &mut |_| {});
        assert_eq!(table.next_attempt(), None);
    }

    #[test]
    fn nothing_is_reported_of_a_settled_case_or_of_one_outside_of_the_group() {
        let mut table = table(1);
        table.next_attempt().unwrap();
        let spent = Event::PhaseSpent { phase: Phase::Check, seconds: 1.0 };
        let events = reported(&mut table, |table, emit| {
            table.observe(settled(0, crashed()), emit);
            table.observe(settled(0, Outcome::Measured), emit);
            table.observe(measured(0, 1.0), emit);
            table.observe(settled(9, Outcome::Measured), emit);
            table.observe(Event::GroupStarted { ordinal: 0, key: GroupKey(Vec::new()), cases: 1 }, emit);
            table.observe(spent.clone(), emit);
            table.finish(&Outcome::Measured, emit);
        });
        assert_eq!(events, [settled(0, crashed()), spent]);
    }

    #[test]
    fn a_failure_of_the_worker_settles_the_case_whose_step_is_under_way() {
        let mut table = table(2);
        table.next_attempt().unwrap();
        let active = Event::CaseActive { case: case_job(1).case, activity: Activity::Measuring, limit: 2.0 };
        table.observe(active, &mut |_| {});
        table.observe(settled(0, Outcome::Measured), &mut |_| {});
        let events = reported(&mut table, |table, emit| assert!(table.settle_active(crashed(), emit)));
        assert_eq!(events, [settled(1, crashed())]);
        assert!(!table.settle_active(crashed(), &mut |_| {}), "the step ended with its case");
    }
}

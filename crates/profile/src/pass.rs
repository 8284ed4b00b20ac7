//! The counting pass: after timing, the cases that passed run once more inside the profiler.

use std::collections::BTreeSet;

use super::{Counted, ProfilerError, ProfilerSession, Tally};
use runner_types::{BodyCounters, CaseKey, Event, GroupJob, Note, Outcome};
use runner_workers::{Interrupt, Pool, RunEnd};

pub type Emit<'a> = &'a mut dyn FnMut(Event);

/// Ordinals of cases that passed and may be counted.
#[derive(Debug, Clone, Default)]
pub struct Passed(BTreeSet<u64>);

impl Passed {
    /// Adds a case that passed, and removes one that failed afterwards.
    pub fn observe(&mut self, event: &Event) {
        let Event::CaseSettled { case, outcome, .. } = event else { return };
        if matches!(outcome, Outcome::Measured | Outcome::Unstable { .. }) {
            self.0.insert(case.ordinal);
        } else {
            self.0.remove(&case.ordinal);
        }
    }

    /// Adds the cases of an earlier run whose counters are missing.
    pub fn add(&mut self, groups: &[GroupJob], lacks_counters: impl Fn(&CaseKey) -> bool) {
        let cases = groups.iter().flat_map(|group| &group.cases).map(|case| &case.case);
        self.0.extend(cases.filter(|case| lacks_counters(&case.key)).map(|case| case.ordinal));
    }

    /// Restricts the groups to the cases of this pass.
    pub fn among(&self, groups: Vec<GroupJob>) -> Vec<GroupJob> {
        let keep = |mut group: GroupJob| {
            let baseline = group.baseline.take().map(|index| group.cases[index].case.ordinal);
            group.cases.retain(|case| self.0.contains(&case.case.ordinal));
            group.baseline = group.cases.iter().position(|case| Some(case.case.ordinal) == baseline);
            (!group.cases.is_empty()).then_some(group)
        };
        groups.into_iter().filter_map(keep).collect()
    }
}

/// Counts the cases of `groups` that passed, with a worker that `open` starts inside the profiler. If the profiler
/// fails, only the counters are lost; an interrupt ends the run.
pub fn count(
    mut session: ProfilerSession,
    open: impl FnOnce(&mut ProfilerSession) -> Result<Pool, ProfilerError>,
    groups: Vec<GroupJob>,
    passed: &Passed,
    emit: Emit<'_>,
    interrupt: &Interrupt,
) -> RunEnd {
    let mut pool = match open(&mut session) {
        Ok(pool) => pool,
        Err(why) => {
            emit(missing(&why));
            return RunEnd::Complete;
        }
    };
    let mut tally = Tally::default();
    let mut observe = |event: Event| match tally.observe(event) {
        // For the progress display. Other results of this pass are already known.
        Some(event @ Event::CaseActive { .. }) => emit(event),
        Some(Event::CaseSettled { case, outcome, .. }) if outcome.is_failure() => {
            let note = Note::FailedUnderProfiler { outcome: outcome.name().to_owned() };
            emit(Event::CaseNote { case, note });
        }
        _ => {}
    };
    let end = pool.run(passed.among(groups), &mut observe, interrupt);
    conclude(tally, &session, emit);
    match end {
        RunEnd::Environment(why) => {
            emit(missing(&why));
            RunEnd::Complete
        }
        RunEnd::Interrupted | RunEnd::Complete => end,
    }
}

/// Event that explains why there are no counters.
pub fn missing(why: &impl ToString) -> Event {
    Event::CountersMissing { why: why.to_string() }
}

/// Emits the counts case by case, and reports what was not counted.
pub fn conclude(tally: Tally, session: &ProfilerSession, emit: Emit<'_>) {
    if !session.unknown().is_empty() {
        emit(missing(&format!("`ncu` has no {} on this GPU", session.unknown().join(", "))));
    }
    let (counted, results) = match session.results().and_then(|results| Ok((tally.close(&results)?, results))) {
        Ok(counted) => counted,
        Err(why) => return emit(missing(&why)),
    };
    if results.without_page > 0 {
        let (without, all) = (results.without_page, results.rows.len());
        emit(missing(&format!("the source page of `ncu` has no counts for {without} of {all} launches")));
    }
    for (case, counted) in counted {
        emit(match counted {
            Counted::Counters(BodyCounters { whole, each, lines }) => {
                Event::CaseCounted { case, counters: whole, each, lines }
            }
            Counted::Missing(why) => Event::CaseNote { case, note: Note::NoCounters { why } },
        });
    }
}

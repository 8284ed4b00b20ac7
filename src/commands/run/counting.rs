//! Hardware counters of a run: the profiler's session, and the pass in which workers run inside it.

use std::collections::BTreeSet;

use super::recorder::Recorder;
use super::worker;
use crate::commands::Failure;
use crate::commands::cli::RunArgs;
use crate::dispatch::{Interrupt, RunEnd};
use crate::journal::Held;
use crate::model::{BackendKind, Event, GroupJob, Manifest, Outcome};
use crate::profiler::{Counted, ProfilerError, Session, Tally};
use crate::programs::Programs;

/// The profiler for this manifest's metrics.
pub fn session(manifest: &Manifest) -> Result<Session, ProfilerError> {
    Session::start(&Programs::of_this_machine(), &manifest.measure.metrics)
}

/// Counters of a run that takes times: where they are wanted and the backend cannot give them itself.
#[derive(Debug)]
pub enum Wanted {
    No,
    /// After the timings, in workers of their own.
    After(Session),
    /// They cannot be had, and why.
    Refused(ProfilerError),
}

impl Wanted {
    pub fn of(args: &RunArgs, backend: BackendKind, manifest: &Manifest) -> Self {
        if !args.passes.counters || backend != BackendKind::Cuda {
            return Self::No;
        }
        session(manifest).map_or_else(Self::Refused, Self::After)
    }

    pub fn method(&self) -> Option<String> {
        match self {
            Self::After(session) => Some(session.method()),
            Self::No | Self::Refused(_) => None,
        }
    }
}

/// Cases that ended well, and so may be counted.
#[derive(Debug, Default)]
pub struct Good(BTreeSet<u64>);

impl Good {
    pub fn observe(&mut self, event: &Event) {
        if let Event::CaseSettled { case, outcome: Outcome::Measured | Outcome::Unstable { .. }, .. } = event {
            self.0.insert(case.ordinal);
        }
    }

    /// Cases of an earlier run, held over, whose counters are missing.
    pub fn add_held(&mut self, groups: &[GroupJob], held: &Held) {
        let cases = groups.iter().flat_map(|group| &group.cases).map(|case| &case.case);
        self.0.extend(cases.filter(|case| held.lacks_counters(&case.key)).map(|case| case.ordinal));
    }

    /// The groups without the cases that did not end well.
    fn among(&self, groups: Vec<GroupJob>) -> Vec<GroupJob> {
        let keep = |mut group: GroupJob| {
            let baseline = group.baseline.take().map(|index| group.cases[index].case.ordinal);
            group.cases.retain(|case| self.0.contains(&case.case.ordinal));
            group.baseline = group.cases.iter().position(|case| Some(case.case.ordinal) == baseline);
            (!group.cases.is_empty()).then_some(group)
        };
        groups.into_iter().filter_map(keep).collect()
    }
}

/// Runs the good cases of `groups` once more, inside the profiler. Whatever becomes of it, the timings stand.
pub fn second_pass(
    wanted: Wanted,
    args: &RunArgs,
    groups: Vec<GroupJob>,
    good: &Good,
    recorder: &mut Recorder,
    interrupt: &Interrupt,
) -> RunEnd {
    let mut session = match wanted {
        Wanted::No => return RunEnd::Complete,
        Wanted::After(session) => session,
        Wanted::Refused(why) => {
            recorder.emit(&missing(&why));
            return RunEnd::Complete;
        }
    };
    let mut tally = Tally::default();
    let end = match worker::start_watched(args, &mut session, interrupt) {
        Ok(mut worker) => {
            let mut heed = |event: Event| match tally.observe(event) {
                // The display goes on; what this pass finds of a case was found before.
                Some(event @ Event::CaseActive { .. }) => recorder.emit(&event),
                Some(Event::CaseSettled { case, outcome, .. }) if outcome.is_failure() => {
                    let text = format!("no hardware counters: under the profiler it ended as {}", outcome.name());
                    recorder.emit(&Event::CaseNote { case, text });
                }
                _ => {}
            };
            worker.pool.run(good.among(groups), &mut heed, interrupt)
        }
        Err(why) => {
            recorder.emit(&missing(&why));
            return RunEnd::Complete;
        }
    };
    conclude(tally, &session, recorder);
    if let RunEnd::Environment(why) = &end {
        recorder.emit(&missing(why));
    }
    // A profiler that fails takes nothing from the timings; a user who stops it stops the run.
    if end == RunEnd::Interrupted { end } else { RunEnd::Complete }
}

fn missing(why: &impl ToString) -> Event {
    Event::CountersMissing { why: why.to_string() }
}

/// Passes on what the profiler counted, case by case, and says what it did not.
pub fn conclude(tally: Tally, session: &Session, recorder: &mut Recorder) {
    if !session.unknown().is_empty() {
        recorder.emit(&missing(&format!("`ncu` knows no {} of this GPU", session.unknown().join(", "))));
    }
    let counted = match session.results().and_then(|results| tally.close(&results)) {
        Ok(counted) => counted,
        Err(why) => return recorder.emit(&missing(&why)),
    };
    for (case, counted) in counted {
        recorder.emit(&match counted {
            Counted::Counters(counters) => Event::CaseCounted { case, counters: counters.whole, each: counters.each },
            Counted::Missing(why) => Event::CaseNote { case, text: format!("no hardware counters: {why}") },
        });
    }
}

/// For `profile`, whose whole purpose they are.
#[expect(clippy::needless_pass_by_value, reason = "the shape that `map_err` wants")]
pub fn failure(why: ProfilerError) -> Failure {
    Failure::environment(why.to_string())
}

//! Hardware counters of a run: the profiler's session, and the pass in which workers run inside it.

use std::collections::BTreeSet;

use super::recorder::Recorder;
use super::worker;
use crate::commands::Failure;
use crate::commands::cli::RunArgs;
use crate::dispatch::{Interrupt, Pool, RunEnd};
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
        if !args.counters || backend != BackendKind::Cuda {
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
) {
    let session = match wanted {
        Wanted::No => return,
        Wanted::Refused(why) => return recorder.emit(&Event::CountersMissing { why: why.to_string() }),
        Wanted::After(session) => session,
    };
    let missing = |why: String| Event::CountersMissing { why };
    let spec = match worker::watched(args, &session) {
        Ok(spec) => spec,
        Err(failure) => return recorder.emit(&missing(failure.message)),
    };
    let mut tally = Tally::default();
    let end = match Pool::start(spec, interrupt) {
        Ok((mut pool, _)) => {
            let mut heed = |event: Event| match tally.observe(event) {
                // The display goes on; what this pass finds of a case was found before.
                Some(event @ Event::CaseActive { .. }) => recorder.emit(&event),
                Some(Event::CaseSettled { case, outcome, .. }) if outcome.is_failure() => {
                    let text = format!("no hardware counters: under the profiler it ended as {}", outcome.name());
                    recorder.emit(&Event::CaseNote { case, text });
                }
                _ => {}
            };
            pool.run(good.among(groups), &mut heed, interrupt)
        }
        Err(error) => {
            let why = session.refusal().map_or_else(|| error.to_string(), |why| why.to_string());
            return recorder.emit(&missing(why));
        }
    };
    let said = conclude(tally, &session, recorder);
    if let (Err(why), RunEnd::Environment(end)) = (&said, &end) {
        recorder.emit(&missing(format!("{why}; {end}")));
    } else if let Err(why) = said {
        recorder.emit(&missing(why.to_string()));
    } else if let RunEnd::Environment(why) = end {
        recorder.emit(&missing(why));
    }
}

/// As [`conclude`]; a profile that counted nothing says so in its report.
pub fn conclude_profile(tally: Tally, session: &Session, recorder: &mut Recorder) {
    if let Err(why) = conclude(tally, session, recorder) {
        recorder.emit(&Event::CountersMissing { why: why.to_string() });
    }
}

/// Passes on what the profiler counted, case by case.
pub fn conclude(tally: Tally, session: &Session, recorder: &mut Recorder) -> Result<(), ProfilerError> {
    let results = session.results()?;
    for (case, counted) in tally.close(&results)? {
        recorder.emit(&match counted {
            Counted::Counters(counters) => Event::CaseCounted { case, counters: counters.whole, each: counters.each },
            Counted::Missing(why) => Event::CaseNote { case, text: format!("no hardware counters: {why}") },
        });
    }
    Ok(())
}

/// For `profile`, whose whole purpose they are.
pub fn needed(session: Result<Session, ProfilerError>) -> Result<Session, Failure> {
    session.map_err(|why| Failure::environment(why.to_string()))
}

//! What a line of a journal is for the history of its runs.

use runner_types::{Case, CaseKey, Event, GroupKey, Outcome};

/// What a line is, as far as the history depends on it.
#[derive(Debug)]
pub enum Role<'a> {
    /// The line is about a run.
    Run,
    /// The line has the cases of a run.
    Plan,
    GroupStarted(&'a GroupKey),
    GroupFinished(&'a GroupKey),
    /// The line has ratios of the group's samples.
    Ratios(&'a GroupKey),
    Case(&'a GroupKey, &'a CaseKey, Part),
    /// Nothing depends on it.
    Other,
}

/// What a line says of its case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The result of a case that was run, so that its group has started.
    Result,
    /// The line holds another part of an attempt.
    Detail,
    /// Counters: a profiler takes them in a pass of its own after the timings.
    Counted,
    Note,
    Settled {
        /// Whether the case was run, rather than left out by a run that ended before it.
        is_run: bool,
    },
}

/// What a line of a journal holds.
pub trait Content {
    fn role(&self) -> Role<'_>;

    /// Returns the case that it is about.
    fn case(&self) -> Option<Case>;

    /// Returns the event of a line that is about a run or has its plan.
    fn into_event(self) -> Option<Event>;
}

impl Content for Event {
    fn role(&self) -> Role<'_> {
        let part = match self {
            Self::CaseActive { .. } | Self::LaunchesMarked { .. } => return Role::Other,
            Self::CasesPlanned { .. } => return Role::Plan,
            Self::GroupStarted { key, .. } => return Role::GroupStarted(key),
            Self::GroupFinished { key, .. } => return Role::GroupFinished(key),
            Self::RatiosFormed { key, .. } => return Role::Ratios(key),
            Self::CaseChecked { .. } | Self::CaseMeasured { .. } => Part::Result,
            Self::CaseCounted { .. } => Part::Counted,
            Self::CaseNote { .. } => Part::Note,
            Self::CaseSettled { outcome, .. } => Part::Settled { is_run: !matches!(outcome, Outcome::NotRun { .. }) },
            _ => Part::Detail,
        };
        self.case().map_or(Role::Run, |case| Role::Case(&case.group, &case.key, part))
    }

    fn case(&self) -> Option<Case> {
        Self::case(self).cloned()
    }

    fn into_event(self) -> Option<Event> {
        Some(self)
    }
}

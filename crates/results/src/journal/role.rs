//! A journal line's role in the history. Separate from the events, so that merging can fold lines whose text stays in
//! the file.

use runner_types::{Case, CaseKey, Event, GroupKey, Outcome};

#[derive(Debug)]
pub enum Role<'a> {
    /// A line about a run.
    Run,
    /// The plan of a run: its cases.
    Plan,
    GroupStarted(&'a GroupKey),
    GroupFinished(&'a GroupKey),
    /// Ratios of the group's samples.
    Ratios(&'a GroupKey),
    Case(&'a GroupKey, &'a CaseKey, Part),
    /// A line without effect on the history.
    Other,
}

/// What a line reports about its case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Result of a case that was run, so its group has started.
    Result,
    /// Another part of an attempt.
    Detail,
    /// Counters, which a profiler collects in a separate pass after timing.
    Counted,
    Note,
    Settled {
        /// Whether the case was run rather than skipped because the run ended.
        is_run: bool,
    },
}

/// Content of a journal line, parsed or only scanned.
pub trait Content {
    fn role(&self) -> Role<'_>;

    fn case(&self) -> Option<Case>;

    /// The event of a line about a run or its plan.
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

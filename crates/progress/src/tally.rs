//! Counts finished and remaining work, for all displays.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use runner_lang::format::about;
use runner_types::{Activity, Event, Outcome, case_name};

/// Progress of a run so far.
#[derive(Debug, Default)]
pub(super) struct Tally {
    /// Planned cases; 0 before the run has started.
    pub cases: u64,
    pub settled: u64,
    pub failed: u64,
    /// Units to compile. The following fields count finished ones.
    pub units: u32,
    pub compiled: u32,
    pub compile_failed: u32,
    pub cached: u32,
    pub current: Option<String>,
    /// Cases that are checked but not finished, which count as half done.
    checked: HashSet<u64>,
    /// Start of the first group, and the number of cases finished by then.
    begun: Option<(Instant, u64)>,
}

impl Tally {
    pub(super) fn observe(&mut self, event: &Event) {
        match event {
            Event::RunStarted { cases, .. } => self.cases = *cases,
            // A resumed run contains only the remaining cases.
            Event::CasesPlanned { todo, .. } => self.cases = todo.len() as u64,
            Event::CompileStarted { units } => self.units += units,
            Event::UnitCompiled { cached, failed, .. } => {
                self.compiled += 1;
                self.cached += u32::from(*cached);
                self.compile_failed += u32::from(*failed);
            }
            Event::GroupStarted { .. } => {
                self.begun.get_or_insert((Instant::now(), self.settled));
            }
            Event::CaseActive { case, activity, .. } => {
                self.current = Some(format!("{} {}", in_words(*activity), case_name(&case.key)));
            }
            Event::CaseChecked { case, .. } => {
                self.checked.insert(case.ordinal);
            }
            Event::CaseSettled { case, outcome, .. } => {
                // A memory check after timing reports the outcome of a case a second time.
                self.settled += u64::from(self.cases == 0 || self.settled < self.cases);
                self.failed += u64::from(outcome.is_failure() && !matches!(outcome, Outcome::NotRun { .. }));
                self.checked.remove(&case.ordinal);
            }
            Event::GroupFinished { .. } | Event::RunFinished { .. } => self.current = None,
            _ => {}
        }
    }

    /// Estimated remaining time at the average speed so far; `None` before any progress.
    pub(super) fn left(&self) -> Option<Duration> {
        let (begun, before) = self.begun?;
        let done = (self.settled - before) as f64 + self.checked.len() as f64 / 2.0;
        left(begun.elapsed(), done, (self.cases.saturating_sub(before)) as f64)
    }

    /// Remark after the bar, e.g. `3 failed, about 2 min left`; may be empty.
    pub(super) fn remark(&self) -> String {
        let failed = (self.failed > 0).then(|| format!("{} failed", self.failed));
        let left = self
            .left()
            .filter(|_| self.settled < self.cases)
            .map(|left| format!("about {} left", about(left.as_secs_f64().ceil())));
        failed.into_iter().chain(left).collect::<Vec<_>>().join(", ")
    }
}

fn left(elapsed: Duration, done: f64, of: f64) -> Option<Duration> {
    if done <= 0.0 {
        return None;
    }
    Duration::try_from_secs_f64(elapsed.as_secs_f64() * (of - done).max(0.0) / done).ok()
}

const fn in_words(activity: Activity) -> &'static str {
    match activity {
        Activity::Preparing => "preparing",
        Activity::Checking => "checking",
        Activity::Measuring => "measuring",
        Activity::Rechecking => "checking again",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_left_follows_from_the_speed_so_far() {
        let minute = Duration::from_mins(1);
        assert_eq!(left(minute, 0.0, 10.0), None);
        assert_eq!(left(minute, 2.5, 10.0), Some(Duration::from_mins(3)));
        assert_eq!(left(minute, 10.0, 10.0), Some(Duration::ZERO));
    }
}

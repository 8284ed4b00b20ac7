//! Where the wall time of a run went.

use crate::model::{Event, Phase};

/// Of the last run in the events.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Spent {
    /// Seconds of each phase, in the order of [`Phase`]. Those of parallel workers add up.
    pub phases: Vec<(Phase, f64)>,
    /// Seconds of compiling while groups ran, which are in no phase.
    pub beside: f64,
    /// Seconds from start to end; `None` if the run did not finish.
    pub wall: Option<f64>,
}

impl Spent {
    pub fn of(events: &[Event]) -> Self {
        let mut spent = Self::default();
        for event in events {
            match event {
                Event::RunStarted { .. } => spent = Self::default(),
                Event::PhaseSpent { phase, seconds } => spent.add(*phase, *seconds),
                Event::CompileFinished { seconds } => spent.beside += seconds,
                Event::RunFinished { wall_seconds, .. } => spent.wall = Some(*wall_seconds),
                _ => {}
            }
        }
        // The phase counts only the time spent waiting.
        spent.beside = (spent.beside - spent.of_phase(Phase::Compile)).max(0.0);
        spent.phases.sort_by_key(|(phase, _)| *phase);
        spent
    }

    /// Seconds of one phase.
    fn of_phase(&self, phase: Phase) -> f64 {
        self.phases.iter().find(|(known, _)| *known == phase).map_or(0.0, |(_, seconds)| *seconds)
    }

    fn add(&mut self, phase: Phase, seconds: f64) {
        match self.phases.iter_mut().find(|(known, _)| *known == phase) {
            Some((_, sum)) => *sum += seconds,
            None => self.phases.push((phase, seconds)),
        }
    }

    /// Time in no phase: starting the worker, waiting, writing.
    pub fn idle(&self) -> Option<f64> {
        let busy: f64 = self.phases.iter().map(|(_, seconds)| seconds).sum();
        Some((self.wall? - busy).max(0.0))
    }
}

#[cfg(test)]
mod tests {
    use super::Spent;
    use crate::model::{Event, Phase};

    #[test]
    fn phases_add_up_and_the_rest_is_idle() {
        let spent = |phase, seconds| Event::PhaseSpent { phase, seconds };
        let mut events = vec![spent(Phase::Measure, 2.0), spent(Phase::Compile, 1.0), spent(Phase::Measure, 0.5)];
        assert_eq!(Spent::of(&events).idle(), None);
        events.push(Event::RunFinished { complete: true, wall_seconds: 4.0 });
        let found = Spent::of(&events);
        assert_eq!(found.phases, [(Phase::Compile, 1.0), (Phase::Measure, 2.5)]);
        assert_eq!(found.idle(), Some(0.5));
    }

    #[test]
    fn compiling_counts_as_far_as_a_run_waited_for_it() {
        let spent = |phase, seconds| Event::PhaseSpent { phase, seconds };
        let end = Event::RunFinished { complete: true, wall_seconds: 8.0 };
        let events =
            [Event::CompileFinished { seconds: 5.0 }, spent(Phase::Measure, 6.0), spent(Phase::Compile, 1.5), end];
        let found = Spent::of(&events);
        assert_eq!((found.beside, found.idle()), (3.5, Some(0.5)));
        let waited = Spent::of(&[Event::CompileFinished { seconds: 1.0 }, spent(Phase::Compile, 1.1)]);
        assert!(waited.beside.abs() < 1e-12, "{}", waited.beside);
    }
}

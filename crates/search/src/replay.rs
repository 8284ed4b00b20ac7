//! Runs searches in a space that is already fully measured, so that strategies can be compared without a device.

use std::collections::HashMap;

use crate::history::{History, Outcome};
use crate::random::Random;
use crate::space::{Parameter, Point, Space, SpaceError, Value};
use crate::strategy::Strategy;

/// A space with the outcome of each point.
#[derive(Debug, Clone)]
pub struct Measured {
    /// The underlying space.
    pub space: Space,
    outcomes: Vec<Outcome>,
    seconds: Option<Vec<f64>>,
}

/// Measurement of a point.
#[derive(Debug, Clone)]
pub struct Row {
    /// Value of each parameter.
    pub values: Vec<Value>,
    /// Result of the evaluation.
    pub outcome: Outcome,
    /// Duration of the evaluation, if known.
    pub seconds: Option<f64>,
}

impl Measured {
    /// Creates a measured space. Points without an outcome count as failed.
    #[must_use]
    pub fn new(space: Space, outcomes: &HashMap<u64, Outcome>) -> Self {
        let outcomes =
            (0..space.len()).map(|number| outcomes.get(&number).copied().unwrap_or(Outcome::Failed)).collect();
        Self { space, outcomes, seconds: None }
    }

    /// Creates the space whose points are the given rows.
    pub fn of_rows(names: Vec<String>, rows: &[Row]) -> Result<Self, SpaceError> {
        let parameters: Vec<Parameter> = names
            .into_iter()
            .enumerate()
            .map(|(place, name)| Parameter::new(name, rows.iter().map(|row| row.values[place].clone()).collect()))
            .collect();
        let places: Vec<HashMap<&Value, u16>> =
            parameters.iter().map(|parameter| parameter.values.iter().zip(0..).collect()).collect();
        let points: Vec<Point> = rows
            .iter()
            .map(|row| row.values.iter().zip(&places).map(|(value, places)| places[value]).collect())
            .collect();
        drop(places);
        let space = Space::from_points(parameters, points.clone())?;
        let mut outcomes = vec![Outcome::Failed; space.len() as usize];
        let mut seconds = vec![0.0; outcomes.len()];
        let timed = rows.iter().any(|row| row.seconds.is_some());
        for (row, point) in rows.iter().zip(points) {
            if let Some(number) = space.number(&point) {
                outcomes[number as usize] = row.outcome;
                seconds[number as usize] = row.seconds.unwrap_or(0.0);
            }
        }
        Ok(Self { space, outcomes, seconds: timed.then_some(seconds) })
    }

    /// Outcome of a point.
    #[must_use]
    pub fn outcome(&self, point: u64) -> Outcome {
        self.outcomes[point as usize]
    }

    /// Duration of a point's evaluation in seconds, if known.
    #[must_use]
    pub fn seconds(&self, point: u64) -> Option<f64> {
        self.seconds.as_ref().map(|seconds| seconds[point as usize])
    }

    /// Objectives of the points that did not fail, ascending.
    #[must_use]
    pub fn sorted(&self) -> Vec<f64> {
        let mut sorted: Vec<f64> = self.outcomes.iter().filter_map(|outcome| outcome.value()).collect();
        sorted.sort_by(f64::total_cmp);
        sorted
    }

    /// Runs a strategy for `budget` evaluations, `parallel` at a time.
    #[must_use]
    pub fn search(&self, strategy: &mut dyn Strategy, budget: usize, parallel: usize, seed: u64) -> History {
        let mut history = History::default();
        let mut random = Random::new(seed);
        while history.len() < budget {
            let mut started = Vec::new();
            while started.len() < parallel.min(budget - history.len()) {
                let Some(point) = strategy.propose(&self.space, &history, &mut random) else { break };
                history.start(point);
                started.push(point);
            }
            if started.is_empty() {
                break;
            }
            for point in started {
                history.finish(point, self.outcome(point));
            }
        }
        history
    }
}

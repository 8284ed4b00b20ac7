//! Analyses the evaluations of a space: convergence, the importance of parameters, and good pairs of values.

use crate::history::History;
use crate::random::Random;
use crate::space::{Point, Space};
use crate::surrogate::forest::Forest;

/// Shuffles per parameter.
const SHUFFLES: usize = 20;
/// Minimum number of evaluations for computing importance.
const FEWEST: usize = 20;

/// Importance of a parameter.
#[derive(Debug, Clone, PartialEq)]
pub struct Importance {
    /// Index of the parameter.
    pub parameter: usize,
    /// Permutation importance, normalised: half the squared error added by shuffling the parameter, divided by the
    /// variance. It is 1 if nothing else matters, since the squared difference of two independent draws is twice the
    /// variance on average.
    pub share: f64,
    /// Standard deviation of `share` over the shuffles.
    pub error: f64,
}

/// Best objective after 1, 2, 5, 10, 20, … evaluations and at the end. Omits leading rows without a successful
/// evaluation.
#[must_use]
pub fn convergence(history: &History) -> Vec<(usize, f64)> {
    let mut rows = Vec::new();
    let mut best = f64::INFINITY;
    for (count, evaluation) in (1..).zip(history.evaluations()) {
        best = best.min(evaluation.outcome.value().unwrap_or(f64::INFINITY));
        let round = [1, 2, 5].into_iter().any(|first| {
            let power = (count as f64 / f64::from(first)).log10();
            (power - power.round()).abs() < 1e-9
        });
        if best.is_finite() && (round || count == history.len()) {
            rows.push((count, best));
        }
    }
    rows
}

/// Permutation importance of each parameter with several values, most important first. A forest predicts the logarithms
/// of the objectives, with and without shuffling the parameter's values.
#[must_use]
pub fn importance(space: &Space, history: &History, seed: u64) -> Vec<Importance> {
    let known: Vec<(Point, f64)> = history
        .evaluations()
        .iter()
        .filter_map(|evaluation| Some((space.point(evaluation.point), evaluation.outcome.value()?.ln())))
        .collect();
    if known.len() < FEWEST {
        return Vec::new();
    }
    let (points, targets): (Vec<Point>, Vec<f64>) = known.into_iter().unzip();
    let n = targets.len() as f64;
    let mean = targets.iter().sum::<f64>() / n;
    let variance = targets.iter().map(|target| (target - mean).powi(2)).sum::<f64>() / n;
    if variance <= 0.0 {
        return Vec::new();
    }
    let mut random = Random::new(seed);
    let forest = Forest::grow(space, &points, &targets, &mut random);
    let error = |points: &[Point]| {
        let squares = points.iter().zip(&targets).map(|(point, target)| (forest.predict(point).0 - target).powi(2));
        squares.sum::<f64>() / n
    };
    let plain = error(&points);
    let mut found: Vec<Importance> = (0..space.parameters().len())
        .filter(|&parameter| points.iter().any(|point| point[parameter] != points[0][parameter]))
        .map(|parameter| {
            let shares: Vec<f64> = (0..SHUFFLES)
                .map(|_| {
                    let mut values: Vec<u16> = points.iter().map(|point| point[parameter]).collect();
                    random.shuffle(&mut values);
                    let mut shuffled = points.clone();
                    for (point, value) in shuffled.iter_mut().zip(values) {
                        point[parameter] = value;
                    }
                    (error(&shuffled) - plain) / (2.0 * variance)
                })
                .collect();
            let share = shares.iter().sum::<f64>() / SHUFFLES as f64;
            let squares = shares.iter().map(|other| (other - share).powi(2)).sum::<f64>();
            Importance { parameter, share, error: (squares / (SHUFFLES - 1) as f64).sqrt() }
        })
        .collect();
    found.sort_by(|a, b| b.share.total_cmp(&a.share));
    found
}

/// Best objective for each pair of values of two parameters.
#[must_use]
pub fn pairs(space: &Space, history: &History, (one, other): (usize, usize)) -> Vec<Vec<Option<f64>>> {
    let (rows, columns) = (space.parameters()[one].values.len(), space.parameters()[other].values.len());
    let mut best: Vec<Vec<Option<f64>>> = vec![vec![None; columns]; rows];
    for evaluation in history.evaluations() {
        let Some(value) = evaluation.outcome.value() else { continue };
        let point = space.point(evaluation.point);
        let cell = &mut best[usize::from(point[one])][usize::from(point[other])];
        *cell = Some(cell.map_or(value, |known| known.min(value)));
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::Outcome;
    use crate::space::{Parameter, SpaceError, Value};

    #[test]
    fn a_parameter_that_alone_matters_has_all_of_the_importance() -> Result<(), SpaceError> {
        let parameter = |name: &str| Parameter::new(name, (0..12).map(Value::Int).collect());
        let space = Space::new(vec![parameter("x"), parameter("y")], &[])?;
        let mut history = History::default();
        for number in 0..space.len() {
            history.finish(number, Outcome::Value(f64::from(space.point(number)[0]).exp()));
        }
        let found = importance(&space, &history, 1);
        assert_eq!(found[0].parameter, 0);
        assert!((found[0].share - 1.0).abs() < 0.15 && found[1].share.abs() < 0.02, "{found:?}");
        Ok(())
    }
}

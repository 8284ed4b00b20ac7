//! Compares strategies on a measured space: how often and how fast they get close to the optimum.

use crate::history::History;
use crate::replay::Measured;
use crate::score::{Baseline, mean};
use crate::strategy::named;

/// Factor over the optimum up to which points count as close to it.
const NEAR: f64 = 1.01;

/// Searches of one space, repeated with several seeds.
#[derive(Debug)]
pub struct Comparison<'a> {
    measured: &'a Measured,
    baseline: Baseline,
    /// Maximum number of evaluations for getting close to the optimum.
    budget: usize,
    /// Number of evaluations per search: `budget`, or more if needed for the score.
    evaluations: usize,
    /// Number of points evaluated at once.
    parallel: usize,
}

/// Results of a strategy over all its searches.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Number of searches, one per seed.
    pub searches: usize,
    /// Number of evaluations until each successful search got close to the optimum within the budget, ascending.
    pub near: Vec<usize>,
    /// Best objectives of the other searches within the budget, as multiples of the optimum.
    pub missed: Vec<f64>,
    /// Worst of all searches' best objectives within the budget, as a multiple of the optimum.
    pub worst: f64,
    /// Score of the strategy; meaningless if the searches ended with the budget.
    pub score: f64,
}

impl<'a> Comparison<'a> {
    /// Prepares searches with a budget. With `scored`, they continue for as long as the score needs. `None` if all
    /// points of the space failed.
    #[must_use]
    pub fn new(measured: &'a Measured, budget: u64, parallel: usize, scored: bool) -> Option<Self> {
        let (baseline, budget) = (Baseline::new(measured)?, budget as usize);
        let evaluations = if scored { budget.max(baseline.evaluations()) } else { budget };
        Some(Self { measured, baseline, budget, evaluations, parallel: parallel.max(1) })
    }

    /// Number of points close to the optimum.
    #[must_use]
    pub fn near(&self) -> usize {
        self.measured.sorted().iter().filter(|value| self.is_near(**value)).count()
    }

    /// Describes the space and the number of searches in two lines.
    #[must_use]
    pub fn describe(&self, searches: u64) -> String {
        let (sorted, near) = (self.measured.sorted(), self.near());
        format!(
            "{} configurations, {} of them failed; best {}, median {}; {near} within 1 % of the best.\n\
             {searches} searches of {} evaluations, {} at once. Random search needs {} evaluations to come near (score).\n",
            self.measured.space.len(),
            self.measured.space.len() - sorted.len() as u64,
            sorted[0],
            sorted[sorted.len() / 2],
            self.budget,
            self.parallel,
            self.baseline.evaluations(),
        )
    }

    fn is_near(&self, value: f64) -> bool {
        value <= self.baseline.optimum() * NEAR
    }

    /// Runs one search per seed with the strategy `name`; `None` if there is no such strategy.
    #[must_use]
    pub fn run(&self, name: &str, seeds: std::ops::Range<u64>) -> Option<Row> {
        let search = |seed| {
            let mut strategy = named(name)?;
            Some(self.measured.search(&mut *strategy, self.evaluations, self.parallel, seed))
        };
        let searches: Vec<History> = seeds.map(search).collect::<Option<_>>()?;
        let (mut near, mut results) = (Vec::new(), Vec::new());
        for search in &searches {
            let counted = &search.evaluations()[..self.budget.min(search.len())];
            let mut values = counted.iter().map(|evaluation| evaluation.outcome.value());
            results.push(values.clone().flatten().fold(f64::INFINITY, f64::min));
            let place = values.position(|value| value.is_some_and(|value| self.is_near(value)));
            near.extend(place.map(|place| place + 1));
        }
        near.sort_unstable();
        let optimum = self.baseline.optimum();
        Some(Row {
            searches: searches.len(),
            near,
            missed: results.iter().filter(|value| !self.is_near(**value)).map(|value| value / optimum).collect(),
            worst: results.iter().copied().fold(0.0, f64::max) / optimum,
            score: mean(&[self.baseline.scores(self.measured, &searches)]),
        })
    }
}

impl Row {
    /// Number of evaluations after which half of the searches were close to the optimum, if they ever were.
    #[must_use]
    pub fn half(&self) -> Option<usize> {
        self.near.get(self.searches / 2).copied()
    }
}

//! Configurations to evaluate last because they were slow in another search, e.g. one at a small size on the simulator.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use search::format::read_measured;
use search::history::{History, Outcome};
use search::random::Random;

use crate::error::TuneError;
use crate::values::Values;
use runner_lang::format::plural;

/// A configuration is evaluated last if its value is at least this multiple of the lower median. This holds for at most
/// half of them.
const BOUND: f64 = 2.0;

/// Fraction of the slow configurations that is exempt, to check how well the other search predicts.
const CONTROLS: f64 = 0.1;

/// Reads the slow configurations from a T4 file or a table. `:NAME` after the path selects a measurement or column.
pub fn read_late(named: &str) -> Result<Vec<Values>, TuneError> {
    let (path, objective) = match named.rsplit_once(':') {
        Some((path, objective)) if !Path::new(named).exists() => (path, Some(objective)),
        _ => (named, None),
    };
    let measured = read_measured(Path::new(path), objective)
        .map_err(|error| TuneError::Usage(format!("--prune {named}: {error}")))?;
    let sorted = measured.sorted();
    let median = sorted.get(sorted.len().saturating_sub(1) / 2).copied().unwrap_or(f64::INFINITY);
    let names = || measured.space.parameters().iter().map(|parameter| parameter.name.clone());
    // Failures do not count: the simulator may lack a feature that the configuration needs.
    let is_late = |&point: &u64| measured.outcome(point).value().is_some_and(|value| value >= BOUND * median);
    let points = (0..measured.space.len()).filter(is_late);
    Ok(points.map(|point| names().zip(measured.space.values(point)).collect()).collect())
}

/// Points of a search that were slow in another one.
#[derive(Debug, Default)]
pub struct Late {
    /// Points to propose only when no others are left.
    pub last: Vec<u64>,
    /// Exempt points, which are treated like any other.
    controls: Vec<u64>,
}

impl Late {
    /// Draws the exempt points. The draw depends only on the point, so that `--resume` repeats it.
    pub fn draw(points: BTreeSet<u64>) -> Self {
        let (controls, last) = points.into_iter().partition(|point| Random::new(*point).chance(CONTROLS));
        Self { last, controls }
    }

    /// Describes how many points were evaluated last and how often that was right; empty if there are none.
    pub fn describe(&self, history: &History) -> String {
        let (mut text, all) = (String::new(), self.last.len() + self.controls.len());
        if all == 0 {
            return text;
        }
        let late: Vec<Outcome> =
            self.last.iter().chain(&self.controls).filter_map(|&point| history.outcome(point)).collect();
        let is_late = |point: &u64| [&self.last, &self.controls].iter().any(|all| all.binary_search(point).is_ok());
        let best = history.ranked().find(|(point, _)| !is_late(point)).map_or(f64::INFINITY, |(_, value)| value);
        let median = history.ranked().nth(history.right() / 2).map_or(f64::INFINITY, |(_, value)| value);
        let count = |is: &dyn Fn(&Outcome) -> bool| late.iter().filter(|outcome| is(outcome)).count();
        let _ = writeln!(
            text,
            "\n## Put last\n\n{} had at least twice the median of the measurement that `--prune` names. {} {} put \
             last; a tenth, {}, was treated like the others as a control. Evaluated: {}. Failed, or no better than \
             the median of all evaluations: {}. Better than the best of the others: {}.",
            plural(all as u64, "configuration"),
            self.last.len(),
            if self.last.len() == 1 { "was" } else { "were" },
            self.controls.len(),
            late.len(),
            count(&|outcome| outcome.value().is_none_or(|value| value >= median)),
            count(&|outcome| outcome.value().is_some_and(|value| value < best)),
        );
        text
    }
}

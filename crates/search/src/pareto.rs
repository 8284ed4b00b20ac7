//! Several objectives at once: the Pareto front, and a single objective that strategies see instead.
//!
//! The objectives are combined as in `ParEGO` (Knowles, 2006). Weights are drawn from a lattice, and the augmented
//! Chebyshev function of the weighted objectives is minimised until the next draw. Each point of the front is the
//! minimum for some weights, even where the front is not convex. Objectives are taken as logarithms, scaled so that the
//! best known value is 0 and the median 1, since the slowest points say nothing about the good ones.

use crate::history::Outcome;
use crate::random::Random;

/// Objectives of an evaluated point, all positive; `None` if it failed.
pub type Objectives = Option<Box<[f64]>>;

/// Weights are multiples of 1 / `PARTS`.
const PARTS: u64 = 10;
/// Weight of the sum of the weighted objectives relative to their maximum. Without the sum, a point could win against
/// one that is better in all objectives except the largest.
const SUM: f64 = 0.05;
/// Upper limit of the logarithm of a combined objective, so that its exponential is finite.
const GREATEST: f64 = 600.0;

/// Whether `one` is at least as good as `other` in every objective and better in some.
#[must_use]
pub fn dominates(one: &[f64], other: &[f64]) -> bool {
    one.iter().zip(other).all(|(a, b)| a <= b) && one.iter().zip(other).any(|(a, b)| a < b)
}

/// The non-dominated evaluations, updated as evaluations are added.
#[derive(Debug, Clone, Default)]
pub struct Front {
    places: Vec<usize>,
}

impl Front {
    /// Adds the last evaluation in `all`.
    pub fn add_last(&mut self, all: &[Objectives]) {
        let Some((place, Some(new))) = (0..).zip(all).last() else { return };
        let values = |&place: &usize| all[place].as_deref().unwrap_or_default();
        if self.places.iter().any(|known| dominates(values(known), new)) {
            return;
        }
        self.places.retain(|known| !dominates(new, values(known)));
        self.places.push(place);
    }

    /// Indices of the evaluations on the front, ascending.
    #[must_use]
    pub fn places(&self) -> &[usize] {
        &self.places
    }

    /// Selects well-spread members: the best in each objective, then repeatedly the one farthest from all selected ones
    /// (Gonzalez, 1985). Distances use the objectives' logarithms, scaled to their range. `order` decides ties.
    #[must_use]
    pub fn spread(&self, all: &[Objectives], count: usize, order: impl Fn(usize) -> u64) -> Vec<usize> {
        let mut places = self.places.clone();
        places.sort_by_key(|place| order(*place));
        let rows: Vec<(usize, Vec<f64>)> = places
            .iter()
            .filter_map(|&place| Some((place, all[place].as_ref()?.iter().map(|value| value.ln()).collect())))
            .collect();
        let Some(dimensions) = rows.first().map(|(_, row)| row.len()) else { return Vec::new() };
        let ends: Vec<[f64; 2]> = (0..dimensions)
            .map(|place| {
                let column = rows.iter().map(|(_, row)| row[place]);
                [column.clone().fold(f64::INFINITY, f64::min), column.fold(f64::NEG_INFINITY, f64::max)]
            })
            .collect();
        let distance = |one: &[f64], other: &[f64]| -> f64 {
            let parts = one.iter().zip(other).zip(&ends);
            parts.map(|((a, b), [low, high])| ((a - b) / (high - low).max(f64::MIN_POSITIVE)).powi(2)).sum()
        };
        let mut chosen: Vec<usize> = Vec::new();
        for objective in 0..dimensions {
            let best = (0..rows.len()).min_by(|&a, &b| rows[a].1[objective].total_cmp(&rows[b].1[objective]));
            chosen.extend(best.filter(|best| !chosen.contains(best)));
        }
        chosen.truncate(count);
        while chosen.len() < count.min(rows.len()) {
            let apart = |place: usize| {
                chosen.iter().map(|&known| distance(&rows[place].1, &rows[known].1)).fold(f64::INFINITY, f64::min)
            };
            let free = (0..rows.len()).filter(|place| !chosen.contains(place));
            chosen.extend(free.max_by(|&a, &b| apart(a).total_cmp(&apart(b))));
        }
        chosen.into_iter().map(|chosen| rows[chosen].0).collect()
    }
}

/// Draws weights that sum to 1, uniformly from the lattice.
#[must_use]
pub fn draw_weights(count: usize, random: &mut Random) -> Vec<f64> {
    // Stars and bars: the number of parts between two bars is a weight.
    let mut bars: Vec<u64> = Vec::new();
    while bars.len() + 1 < count {
        let bar = random.below(PARTS + count as u64 - 1);
        if !bars.contains(&bar) {
            bars.push(bar);
        }
    }
    bars.sort_unstable();
    bars.push(PARTS + count as u64 - 1);
    let mut from = 0;
    bars.iter()
        .map(|&bar| {
            let parts = bar - from;
            from = bar + 1;
            parts as f64 / PARTS as f64
        })
        .collect()
}

/// Combines several objectives into one with given weights.
#[derive(Debug, Clone)]
pub struct Joined {
    weights: Vec<f64>,
    /// Minimum logarithm of each objective, and its distance from the median.
    scales: Vec<(f64, f64)>,
}

impl Joined {
    /// Creates a combination, scaled by the given evaluations.
    #[must_use]
    pub fn new(all: &[Objectives], weights: Vec<f64>) -> Self {
        let scale = |place: usize| {
            let mut column: Vec<f64> = all.iter().flatten().map(|row| row[place].ln()).collect();
            column.sort_by(f64::total_cmp);
            let (Some(&least), Some(&most)) = (column.first(), column.last()) else { return (0.0, 1.0) };
            let middle = column[column.len() / 2];
            let range = if middle > least { middle - least } else { most - least };
            (least, if range > 0.0 { range } else { 1.0 })
        };
        let scales = (0..weights.len()).map(scale).collect();
        Self { weights, scales }
    }

    /// Combined objective of an evaluation.
    #[must_use]
    pub fn outcome(&self, row: &Objectives) -> Outcome {
        let Some(row) = row else { return Outcome::Failed };
        let each = row.iter().zip(&self.weights).zip(&self.scales);
        let weighted: Vec<f64> =
            each.map(|((value, weight), (low, range))| weight * (value.ln() - low) / range).collect();
        let greatest = weighted.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        Outcome::Value((greatest + SUM * weighted.iter().sum::<f64>()).clamp(-GREATEST, GREATEST).exp())
    }
}

/// For each evaluation, the worst ratio of its objectives to the best known values. If it is small, the evaluation is
/// good in all objectives.
#[must_use]
pub fn largest_multiples(all: &[Objectives]) -> Vec<Outcome> {
    let count = all.iter().flatten().next().map_or(0, |row| row.len());
    let least: Vec<f64> =
        (0..count).map(|place| all.iter().flatten().map(|row| row[place]).fold(f64::INFINITY, f64::min)).collect();
    let largest = |row: &[f64]| row.iter().zip(&least).map(|(value, least)| value / least).fold(1.0, f64::max);
    all.iter().map(|row| row.as_deref().map_or(Outcome::Failed, |row| Outcome::Value(largest(row)))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(values: &[[f64; 2]]) -> Vec<Objectives> {
        values.iter().map(|row| Some(Box::from(row.as_slice()))).collect()
    }

    fn front_of(all: &[Objectives]) -> Front {
        let mut front = Front::default();
        (1..=all.len()).for_each(|count| front.add_last(&all[..count]));
        front
    }

    #[test]
    fn the_front_has_what_no_other_point_beats() {
        // (2, 4) dominates (2, 5), which is added earlier, and (3, 4). Equal points do not dominate each other.
        let mut all = rows(&[[2.0, 5.0], [1.0, 9.0], [3.0, 4.0], [2.0, 4.0], [8.0, 1.0], [2.0, 4.0], [8.0, 2.0]]);
        assert_eq!(front_of(&all).places(), [1, 3, 4, 5]);
        // A failed point is not on the front and dominates nothing.
        all.push(None);
        assert_eq!(front_of(&all).places(), [1, 3, 4, 5]);
        assert!(dominates(&[1.0, 2.0], &[1.0, 3.0]) && !dominates(&[1.0, 2.0], &[1.0, 2.0]));
        assert!(!dominates(&[1.0, 2.0], &[0.5, 3.0]));
    }

    #[test]
    fn chosen_members_are_the_ends_and_what_is_far_from_them() {
        // Base-2 logarithms: (0, 4), (0.1, 3.9), (2, 2), (3.9, 0.1), (4, 0).
        let place = |a: f64, b: f64| [a.exp2(), b.exp2()];
        let all = rows(&[place(0.1, 3.9), place(0.0, 4.0), place(3.9, 0.1), place(4.0, 0.0), place(2.0, 2.0)]);
        let front = front_of(&all);
        assert_eq!(front.places().len(), 5);
        assert_eq!(front.spread(&all, 3, |place| place as u64), [1, 3, 4]);
        assert_eq!(front.spread(&all, 1, |place| place as u64), [1]);
        assert_eq!(front.spread(&all, 9, |place| place as u64).len(), 5);
        // If they are evaluated in another order, the same points are chosen.
        let reversed: Vec<Objectives> = all.iter().rev().cloned().collect();
        let last = all.len() - 1;
        let chosen = front_of(&reversed).spread(&reversed, 3, |place| (last - place) as u64);
        assert_eq!(chosen.into_iter().map(|place| last - place).collect::<Vec<_>>(), [1, 3, 4]);
    }

    #[test]
    fn objectives_are_joined_by_the_greatest_weighted_one_and_a_twentieth_of_the_sum() {
        // Logarithms: (0, 2), (1, 1), (2, 0); both medians are 1.
        let e = 1.0_f64.exp();
        let mut all = rows(&[[1.0, e * e], [e, e], [e * e, 1.0]]);
        all.push(None);
        let joined = Joined::new(&all, vec![0.25, 0.75]);
        let joined: Vec<Option<f64>> = all.iter().map(|row| joined.outcome(row).value().map(f64::ln)).collect();
        // 0.75 * 2 + 0.05 * 1.5; 0.75 + 0.05; 0.25 * 2 + 0.05 * 0.5.
        for (found, expected) in joined.iter().zip([Some(1.575), Some(0.8), Some(0.525), None]) {
            assert!(
                found.zip(expected).map_or(found.is_none() && expected.is_none(), |(a, b)| (a - b).abs() < 1e-12),
                "{joined:?}"
            );
        }
    }

    #[test]
    fn a_point_is_as_good_as_its_worst_objective() {
        let mut all = rows(&[[1.0, 8.0], [3.0, 2.0], [2.0, 3.0]]);
        all.push(None);
        let found: Vec<Option<f64>> = largest_multiples(&all).into_iter().map(Outcome::value).collect();
        assert_eq!(found, [Some(4.0), Some(3.0), Some(2.0), None]);
    }

    #[test]
    fn every_lattice_point_is_drawn_and_weights_add_up() {
        let mut random = Random::new(7);
        let mut seen = std::collections::BTreeMap::<Vec<u32>, u32>::new();
        for _ in 0..11_000 {
            let weights = draw_weights(2, &mut random);
            assert!((weights.iter().sum::<f64>() - 1.0).abs() < 1e-12);
            *seen.entry(weights.iter().map(|weight| (weight * 10.0).round() as u32).collect()).or_default() += 1;
        }
        // Eleven lattice points, each drawn about 1000 times.
        assert!(seen.len() == 11 && seen.values().all(|count| (800..1200).contains(count)), "{seen:?}");
        assert_eq!(draw_weights(3, &mut random).len(), 3);
        assert_eq!(draw_weights(1, &mut random), [1.0]);
    }
}

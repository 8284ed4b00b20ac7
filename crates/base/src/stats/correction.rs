//! Corrections for multiple tests: of a hundred comparisons without any difference, five are significant at 5 %.
//!
//! Both take p values in any order and return the adjusted ones in the same order: a hypothesis is rejected at a level
//! that is at least its adjusted value. The result is `None` if a value is outside of 0 to 1.

/// Adjusts p-values by Holm's step-down (1979): the chance of any false rejection stays at the level, for any
/// dependence of the tests.
pub fn holm(p: &[f64]) -> Option<Vec<f64>> {
    let order = ascending(p)?;
    let mut adjusted = vec![0.0; p.len()];
    let mut worst = 0.0_f64;
    for (rank, place) in order.into_iter().enumerate() {
        worst = worst.max(((p.len() - rank) as f64 * p[place]).min(1.0));
        adjusted[place] = worst;
    }
    Some(adjusted)
}

/// Returns the level that Holm's procedure tests each hypothesis at: one is refused exactly if its p value is at most
/// its level.
///
/// An interval of confidence 1 − its level then leaves out what is refused. Of `m` tests the least p value has `level /
/// m`, the next `level / (m − 1)`; from the first that is not refused on, all have the same. A value that is no
/// probability has none, and changes nothing for the others.
pub fn holm_levels(p: &[f64], level: f64) -> Vec<Option<f64>> {
    let mut order: Vec<usize> = (0..p.len()).filter(|place| is_probability(p[*place])).collect();
    order.sort_by(|a, b| p[*a].total_cmp(&p[*b]));
    let mut levels = vec![None; p.len()];
    let mut left = order.len();
    let mut is_refusing = true;
    for place in order {
        let own = level / left as f64;
        levels[place] = Some(own);
        is_refusing = is_refusing && p[place] <= own;
        left -= usize::from(is_refusing);
    }
    levels
}

/// Adjusts p-values by Benjamini and Hochberg's step-up (1995): the expected share of false rejections stays at the
/// level.
pub fn benjamini_hochberg(p: &[f64]) -> Option<Vec<f64>> {
    let order = ascending(p)?;
    let mut adjusted = vec![0.0; p.len()];
    let mut least = 1.0_f64;
    for (rank, place) in order.into_iter().enumerate().rev() {
        least = least.min(p.len() as f64 / (rank + 1) as f64 * p[place]);
        adjusted[place] = least;
    }
    Some(adjusted)
}

fn is_probability(p: f64) -> bool {
    (0.0..=1.0).contains(&p)
}

fn ascending(p: &[f64]) -> Option<Vec<usize>> {
    if !p.iter().all(|p| is_probability(*p)) {
        return None;
    }
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|a, b| p[*a].total_cmp(&p[*b]));
    Some(order)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test panics to fail")]

    use super::{benjamini_hochberg, holm, holm_levels};

    /// The fifteen p values of the example in Benjamini and Hochberg (1995), §3.2.
    const PUBLISHED: [f64; 15] = [
        0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262, 0.5719, 0.6528, 0.7590,
        1.0,
    ];

    fn called(adjusted: &[f64]) -> usize {
        adjusted.iter().filter(|p| **p <= 0.05).count()
    }

    #[test]
    fn the_published_example_calls_four_by_rate_and_three_by_family() {
        assert_eq!(called(&benjamini_hochberg(&PUBLISHED).unwrap()), 4);
        assert_eq!(called(&holm(&PUBLISHED).unwrap()), 3);
    }

    #[test]
    fn adjusted_values_stand_where_their_tests_stood() {
        // The values are worked out by hand: 3 × 0.01, then 2 × 0.02, then the larger of 0.04 and 0.03.
        let adjusted = holm(&[0.03, 0.01, 0.02]).unwrap();
        for (got, expected) in adjusted.iter().zip([0.04, 0.03, 0.04]) {
            assert!((got - expected).abs() < 1e-12, "{adjusted:?}");
        }
        let adjusted = benjamini_hochberg(&[0.03, 0.01, 0.02]).unwrap();
        assert!(adjusted.iter().all(|p| (p - 0.03).abs() < 1e-12), "{adjusted:?}");
    }

    /// The rule, by hand: 0.01 ≤ 0.05 / 4 is refused, 0.015 ≤ 0.05 / 3 is, 0.03 > 0.05 / 2 is not, and all later ones
    /// stay there.
    #[test]
    fn each_test_has_the_level_that_holm_compares_it_with() {
        let p = [0.03, 0.01, 0.9, 0.015];
        let levels: Vec<f64> = holm_levels(&p, 0.05).into_iter().flatten().collect();
        for (got, expected) in levels.iter().zip([0.05 / 2.0, 0.05 / 4.0, 0.05 / 2.0, 0.05 / 3.0]) {
            assert!((got - expected).abs() < 1e-12, "{levels:?}");
        }
        for values in [&p[..], &PUBLISHED] {
            let adjusted = holm(values).unwrap();
            let levels: Vec<f64> = holm_levels(values, 0.05).into_iter().flatten().collect();
            for ((p, adjusted), level) in values.iter().zip(adjusted).zip(levels) {
                assert_eq!(*p <= level, adjusted <= 0.05, "{p}");
            }
        }
    }

    #[test]
    fn what_is_no_probability_is_refused_and_nothing_is_nothing() {
        assert_eq!(holm(&[0.5, 1.5]), None);
        assert_eq!(benjamini_hochberg(&[f64::NAN]), None);
        assert_eq!(holm(&[]), Some(vec![]));
        assert_eq!(holm_levels(&[-0.5, 0.01, f64::NAN, 1.5], 0.05), [None, Some(0.05), None, None]);
    }
}

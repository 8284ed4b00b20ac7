//! Correction for multiple tests: of a hundred comparisons without any difference, about five are significant at 5
//! %.

/// Benjamini–Hochberg threshold (1995): a hypothesis is rejected exactly if its p value is at most this.
///
/// A fraction `level` of the rejections is expected to be false. An interval with confidence 1 − threshold excludes
/// zero exactly for the rejected hypotheses. Of these intervals, a fraction `level` is expected to miss the true value
/// (Benjamini and Yekutieli, JASA 100, 2005). With `m` tests of which `r` are rejected, the threshold is `level · r /
/// m`; with no rejection it is `level / m`. Values outside 0..1 do not count as tests.
pub fn benjamini_hochberg_level(p: &[f64], level: f64) -> f64 {
    let mut sorted: Vec<f64> = p.iter().copied().filter(|p| (0.0..=1.0).contains(p)).collect();
    sorted.sort_by(f64::total_cmp);
    let tests = sorted.len().max(1) as f64;
    let refused = (1..).zip(&sorted).filter(|(rank, p)| **p <= level * f64::from(*rank) / tests).map(|(rank, _)| rank);
    level * f64::from(refused.max().unwrap_or(1)) / tests
}

#[cfg(test)]
mod tests {
    use super::benjamini_hochberg_level;

    fn assert_near(got: f64, expected: f64) {
        assert!((got - expected).abs() < 1e-12, "{got} for {expected}");
    }

    /// The fifteen p values of the example in Benjamini and Hochberg (1995), §3.2, where four hypotheses are rejected.
    #[test]
    fn the_published_example_refuses_four() {
        let published = [
            0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262, 0.5719, 0.6528,
            0.7590, 1.0,
        ];
        assert_near(benjamini_hochberg_level(&published, 0.05), 4.0 * 0.05 / 15.0);
    }

    /// By hand: of four tests, 0.01 ≤ 0.05 / 4, 0.015 ≤ 2 · 0.05 / 4 and 0.03 ≤ 3 · 0.05 / 4 are rejected, 0.9 is not.
    /// A larger p value can cause a smaller one to be rejected: 0.03 > 0.05 / 2, but 0.04 ≤ 0.05.
    #[test]
    fn the_level_is_the_largest_that_as_many_values_are_below_as_it_expects() {
        assert_near(benjamini_hochberg_level(&[0.03, 0.01, 0.9, 0.015], 0.05), 3.0 * 0.05 / 4.0);
        assert_near(benjamini_hochberg_level(&[0.04, 0.03], 0.05), 0.05);
    }

    #[test]
    fn what_is_no_probability_is_no_test_and_without_tests_the_level_is_the_whole() {
        assert_near(benjamini_hochberg_level(&[0.9, f64::NAN, 0.3, -0.5, 1.5], 0.05), 0.05 / 2.0);
        assert_near(benjamini_hochberg_level(&[], 0.05), 0.05);
    }
}

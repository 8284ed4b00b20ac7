//! Geometric and trimmed means: for ratios, and robust against outliers.

use super::student::student_of_95_percent;

/// Geometric mean, the right mean for speedups.
///
/// The mean of the reciprocals is the reciprocal of the mean, so the choice of baseline does not matter. `None` for no
/// values, or if one is not positive and finite.
pub fn geometric_mean(values: &[f64]) -> Option<f64> {
    if values.is_empty() || values.iter().any(|v| !v.is_finite() || *v <= 0.0) {
        return None;
    }
    let logarithms: f64 = values.iter().map(|v| v.ln()).sum();
    Some((logarithms / values.len() as f64).exp())
}

/// Mean without the lowest and the highest fifth of the values, rounded down (Tukey and `McLaughlin` 1963). Takes
/// linear time. `None` for no values, or if one is not finite.
pub fn trimmed_mean(values: &[f64]) -> Option<f64> {
    let n = values.len();
    if n == 0 || values.iter().any(|v| !v.is_finite()) {
        return None;
    }
    let cut = n / 5;
    let mut values = values.to_vec();
    if cut > 0 {
        values.select_nth_unstable_by(cut, f64::total_cmp);
        values[cut..].select_nth_unstable_by(n - 2 * cut - 1, f64::total_cmp);
    }
    Some(values[cut..n - cut].iter().sum::<f64>() / (n - 2 * cut) as f64)
}

/// Half-width of the trimmed mean's 95 % confidence interval: Student's t times its standard error. Takes O(n log n)
/// time, a thousandth of a bootstrap's. `None` for fewer than two values, or if one is not finite.
pub fn trimmed_half_width(values: &[f64]) -> Option<f64> {
    Some(student_of_95_percent(left(values.len()) - 1.0) * trimmed_error(values)?)
}

/// Standard error of the trimmed mean, from the winsorised variance (Tukey and `McLaughlin` 1963; Wilcox, *Introduction
/// to Robust Estimation*, §3.6). `None` for fewer than two values, or if one is not finite.
pub fn trimmed_error(values: &[f64]) -> Option<f64> {
    let n = values.len();
    if n < 2 || values.iter().any(|v| !v.is_finite()) {
        return None;
    }
    let cut = n / 5;
    let mut values = values.to_vec();
    values.sort_unstable_by(f64::total_cmp);
    let (lowest, highest) = (values[cut], values[n - cut - 1]);
    for value in &mut values {
        *value = value.clamp(lowest, highest);
    }
    let mean = values.iter().sum::<f64>() / n as f64;
    let squares: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
    Some((squares / (left(n) * (left(n) - 1.0))).sqrt())
}

/// Number of values, out of `n`, that a trimmed mean keeps.
const fn left(n: usize) -> f64 {
    (n - 2 * (n / 5)) as f64
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test panics to fail")]

    use super::{geometric_mean, trimmed_half_width, trimmed_mean};

    /// Of ten values, two are trimmed at either end. Winsorised, the values are 3, 3, 3, 4, 5, 6, 7, 8, 8, 8, with mean
    /// 5.5 and sum of squared deviations 42.5. Six remain: Student's t for five degrees of freedom, 2.571, times √(42.5
    /// / (6 · 5)).
    #[test]
    fn the_half_width_is_of_the_winsorised_variance() {
        let half = trimmed_half_width(&[1.0, 900.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, -70.0, 10.0]).unwrap();
        assert!((half / (2.570_58 * (42.5_f64 / 30.0).sqrt()) - 1.0).abs() < 2e-3, "{half}");
        assert_eq!(trimmed_half_width(&[2.0; 15]), Some(0.0));
        assert_eq!(trimmed_half_width(&[2.0]), None);
        assert_eq!(trimmed_half_width(&[2.0, f64::NAN, 1.0]), None);
    }

    #[test]
    fn the_geometric_mean_of_two_and_eight_is_four() {
        assert!((geometric_mean(&[2.0, 8.0]).unwrap() - 4.0).abs() < 1e-12);
    }

    #[test]
    fn a_fifth_is_cut_off_at_either_end() {
        assert_eq!(trimmed_mean(&[900.0, 1.0, 2.0, 3.0, -700.0]), Some(2.0));
        assert_eq!(trimmed_mean(&[4.0, 1.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(trimmed_mean(&[9.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 1e9]), Some(5.5));
        assert_eq!(trimmed_mean(&[]), None);
        assert_eq!(trimmed_mean(&[1.0, f64::NAN]), None);
    }

    #[test]
    fn halving_and_doubling_cancel() {
        assert!((geometric_mean(&[0.5, 2.0]).unwrap() - 1.0).abs() < 1e-12);
    }

    #[test]
    fn many_large_ratios_do_not_overflow() {
        let mean = geometric_mean(&[1e300; 8]).unwrap();
        assert!((mean / 1e300 - 1.0).abs() < 1e-9);
    }

    #[test]
    fn what_has_no_logarithm_has_no_mean() {
        for values in [&[][..], &[0.0], &[-1.0], &[1.0, f64::NAN], &[f64::INFINITY]] {
            assert_eq!(geometric_mean(values), None, "{values:?}");
        }
    }
}

//! Means of ratios, and a mean that outliers do not move.

/// The geometric mean: the factor which, applied as many times as there are values, gives their product.
///
/// The mean for speedups: that of the reciprocals is the reciprocal of that of the values, so it does not depend on
/// which of two things is called the baseline. `None` for no values, or where one is not a positive, finite number.
pub fn geometric_mean(values: &[f64]) -> Option<f64> {
    if values.is_empty() || values.iter().any(|v| !v.is_finite() || *v <= 0.0) {
        return None;
    }
    let logarithms: f64 = values.iter().map(|v| v.ln()).sum();
    Some((logarithms / values.len() as f64).exp())
}

/// The mean of what is left when a fifth of the values, rounded down, is cut off at either end (Tukey and
/// `McLaughlin` 1963). Takes time n. `None` for no values, or where one is not finite.
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

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test panics to fail")]

    use super::{geometric_mean, trimmed_mean};

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

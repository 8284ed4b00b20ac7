//! Scatter of values within groups: a pooled standard deviation and its upper confidence limit.

/// 95 % quantile of the normal distribution.
const Z: f64 = 1.644_853_626_951_472;

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Deviation {
    pub estimate: f64,
    /// Degrees of freedom: the number of values minus the number of groups.
    pub freedom: usize,
}

impl Deviation {
    /// Upper 95 % confidence limit of the true deviation; far above the estimate for few values. Assumes normally
    /// distributed values. Uses the χ² quantiles of Wilson and Hilferty (1931), accurate to 2 % for at least four
    /// degrees of freedom.
    pub fn at_most(self) -> f64 {
        let n = self.freedom as f64;
        let part = 2.0 / (9.0 * n);
        let quantile = n * (1.0 - part - Z * part.sqrt()).max(0.0).powi(3);
        self.estimate * (n / quantile).sqrt()
    }
}

/// Standard deviation of values around their group means.
///
/// `None` if no group has two values, or if one is not finite.
pub fn pooled_deviation(groups: &[Vec<f64>]) -> Option<Deviation> {
    if groups.iter().flatten().any(|v| !v.is_finite()) {
        return None;
    }
    let several = groups.iter().filter(|group| group.len() > 1);
    let (squares, freedom) = several.fold((0.0, 0), |(squares, freedom), group| {
        let mean = group.iter().sum::<f64>() / group.len() as f64;
        let own: f64 = group.iter().map(|v| (v - mean).powi(2)).sum();
        (squares + own, freedom + group.len() - 1)
    });
    (freedom > 0).then(|| Deviation { estimate: (squares / freedom as f64).sqrt(), freedom })
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test panics to fail")]

    use super::{Deviation, pooled_deviation};

    #[test]
    fn deviations_are_from_the_mean_of_each_group() {
        // The squares add up to 2 and 8 over one degree of freedom each, and to 0 over two.
        let found = pooled_deviation(&[vec![1.0, 3.0], vec![100.0, 104.0], vec![7.0, 7.0, 7.0], vec![9.0]]).unwrap();
        assert_eq!(found, Deviation { estimate: 2.5_f64.sqrt(), freedom: 4 });
        assert_eq!(pooled_deviation(&[vec![1.0], vec![2.0]]), None);
        assert_eq!(pooled_deviation(&[vec![1.0, f64::NAN]]), None);
        assert_eq!(pooled_deviation(&[]), None);
    }

    /// 5 % quantiles of χ² from printed tables: 0.711 for 4 degrees of freedom, 3.940 for 10, 5.226 for 12, 18.493 for
    /// 30.
    #[test]
    fn the_upper_limit_follows_the_published_quantiles_of_chi_square() {
        for (freedom, quantile) in [(4, 0.7107), (10, 3.9403), (12, 5.2260), (30, 18.4927)] {
            let limit = Deviation { estimate: 3.0, freedom }.at_most();
            let published = 3.0 * (f64::from(freedom as u32) / quantile).sqrt();
            assert!((limit / published - 1.0).abs() < 0.02, "{freedom}: {limit} for {published}");
        }
    }
}

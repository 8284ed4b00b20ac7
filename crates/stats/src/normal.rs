//! Tail probabilities and quantiles of the normal distribution.

use std::f64::consts::SQRT_2;

/// 95 % of a normal distribution lies within this many standard deviations of the mean.
pub const NORMAL_TWO_SIDED: f64 = 1.959_963_984_540_054;

/// Probability that a standard normal variable exceeds `z`.
pub fn normal_tail(z: f64) -> f64 {
    0.5 * libm::erfc(z / SQRT_2)
}

/// Number of standard deviations that leaves a probability of `tails` outside, on both sides together: 1.96 for 0.05.
///
/// Found by bisection of [`normal_tail`], to the last digit. Infinite for 0; zero for 1 and more.
pub fn normal_two_sided(tails: f64) -> f64 {
    /// Number of standard deviations beyond which the tail is zero in f64.
    const MOST: f64 = 39.0;
    if tails <= 0.0 {
        return f64::INFINITY;
    }
    let (mut low, mut high) = (0.0, MOST);
    loop {
        let middle = f64::midpoint(low, high);
        if middle <= low || middle >= high {
            return low;
        }
        if 2.0 * normal_tail(middle) > tails { low = middle } else { high = middle }
    }
}

#[cfg(test)]
mod tests {
    use super::{normal_tail, normal_two_sided};

    #[test]
    fn the_normal_tail_is_that_of_the_tables() {
        for (z, tail) in [(0.0, 0.5), (1.0, 0.158_655), (1.96, 0.024_998), (2.576, 0.004_998), (3.29, 0.000_501)] {
            assert!((normal_tail(z) - tail).abs() < 1e-6, "{z}");
        }
    }

    #[test]
    fn normal_quantiles_are_those_of_the_tables() {
        for (tails, z) in [(0.317_310_508, 1.0), (0.05, 1.959_964), (0.01, 2.575_829), (0.001, 3.290_527)] {
            assert!((normal_two_sided(tails) - z).abs() < 1e-6, "{tails}: {}", normal_two_sided(tails));
        }
        assert!(normal_two_sided(1.0) < 1e-9 && normal_two_sided(0.0).is_infinite());
    }
}

//! Student's t distribution: its tails and its quantiles.

use super::normal::{NORMAL_TWO_SIDED, normal_tail, normal_two_sided};

/// Degrees of freedom from which the normal distribution is used. Quantiles differ by less than 1 % down to a
/// probability of 10⁻⁶.
const LIKE_NORMAL: f64 = 1e3;

/// Maximum number of Newton steps. Each doubles the number of correct digits; with few degrees of freedom it takes more
/// steps to get close.
const MOST_STEPS: u32 = 60;

/// Two-sided quantile of Student's t: |t| exceeds it with probability `p`. Inverts [`student_two_sided`] by Newton's
/// method on the logarithm of the probability.
pub fn student_quantile(p: f64, freedom: f64) -> f64 {
    let mut t = normal_two_sided(p);
    if freedom > LIKE_NORMAL || !t.is_finite() || t <= 0.0 {
        return t;
    }
    let scale = libm::lgamma(f64::midpoint(freedom, 1.0)) - libm::lgamma(freedom / 2.0);
    let scale = scale - (freedom * std::f64::consts::PI).ln() / 2.0;
    for _ in 0..MOST_STEPS {
        let tails = student_two_sided(t, freedom);
        let density = (scale - f64::midpoint(freedom, 1.0) * (t * t / freedom).ln_1p()).exp();
        let step = tails / (2.0 * density) * (tails / p).ln();
        t = (t + step).max(t / 2.0);
        if step.abs() <= 1e-10 * t {
            break;
        }
    }
    t
}

/// Probability that |T| exceeds |t| for Student's t with `freedom` degrees of freedom.
///
/// This is the regularised incomplete beta function I of freedom / (freedom + t²) with parameters freedom / 2 and 1 / 2
/// (Abramowitz and Stegun 26.5.27 and 26.7.1). Its relative error is below 10⁻¹⁰, even in the far tails. From
/// [`LIKE_NORMAL`] degrees of freedom, the normal distribution is used.
pub fn student_two_sided(t: f64, freedom: f64) -> f64 {
    if freedom > LIKE_NORMAL {
        return 2.0 * normal_tail(t.abs());
    }
    let squared = t * t;
    if squared.is_infinite() {
        return 0.0;
    }
    incomplete_beta(freedom / 2.0, 0.5, freedom / (freedom + squared), squared / (freedom + squared))
}

/// Regularised incomplete beta function I at `x` = 1 − `rest`. Both are passed so that neither loses digits.
fn incomplete_beta(a: f64, b: f64, x: f64, rest: f64) -> f64 {
    if x <= 0.0 || rest <= 0.0 {
        return if x <= 0.0 { 0.0 } else { 1.0 };
    }
    let scale = libm::lgamma(a + b) - libm::lgamma(a) - libm::lgamma(b) + a * x.ln() + b * rest.ln();
    // The fraction converges quickly on one side of the mean.
    if x < (a + 1.0) / (a + b + 2.0) {
        scale.exp() / (a * fraction(a, b, x))
    } else {
        1.0 - scale.exp() / (b * fraction(b, a, rest))
    }
}

/// The continued fraction 1 + d₁ / (1 + d₂ / (1 + …)) of Abramowitz and Stegun 26.5.8, evaluated backwards. The number
/// of terms grows with the larger parameter.
fn fraction(a: f64, b: f64, x: f64) -> f64 {
    let terms = 60 + a.max(b).sqrt() as u32 * 4;
    (1..=terms).rev().fold(1.0, |below, term| {
        let m = f64::from(term / 2);
        let numerator = if term % 2 == 0 {
            m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m))
        } else {
            -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0))
        };
        1.0 + numerator / below
    })
}

/// 97.5 % quantile of Student's t, by expansion around the normal quantile in 1 / `freedom` (Abramowitz and Stegun
/// 26.7.5). The expansion is inaccurate for three degrees of freedom or fewer, so these use a table.
pub(super) fn student_of_95_percent(freedom: f64) -> f64 {
    const Z: f64 = NORMAL_TWO_SIDED;
    match freedom {
        f if f < 1.5 => 12.706_204_736,
        f if f < 2.5 => 4.302_652_730,
        f if f < 3.5 => 3.182_446_305,
        f => {
            let first = (Z.powi(3) + Z) / 4.0;
            let second = (5.0 * Z.powi(5) + 16.0 * Z.powi(3) + 3.0 * Z) / 96.0;
            let third = (3.0 * Z.powi(7) + 19.0 * Z.powi(5) + 17.0 * Z.powi(3) - 15.0 * Z) / 384.0;
            Z + first / f + second / f.powi(2) + third / f.powi(3)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{student_of_95_percent, student_quantile, student_two_sided};

    fn assert_near(found: f64, expected: f64) {
        assert!((found / expected - 1.0).abs() < 1e-9, "{found} for {expected}");
    }

    /// With one degree of freedom this is the Cauchy distribution; with two, the tail is 1 − t / √(2 + t²).
    #[test]
    fn few_degrees_of_freedom_have_the_closed_forms() {
        for t in [0.1, 1.0, 3.0, 12.706, 400.0] {
            assert_near(student_two_sided(t, 1.0), 2.0 / std::f64::consts::PI * (1.0 / t).atan());
            let root = (2.0 + t * t).sqrt();
            assert_near(student_two_sided(t, 2.0), 2.0 / (root * (root + t)));
        }
    }

    /// Expected quantiles from standard tables, for 5 % in both tails together.
    #[test]
    fn the_tails_are_those_of_the_tables() {
        for (freedom, quantile) in [(4.0, 2.776_445), (10.0, 2.228_139), (38.0, 2.024_394), (998.0, 1.962_344)] {
            let found = student_two_sided(quantile, freedom);
            assert!((found - 0.05).abs() < 1e-6, "{freedom}: {found}");
        }
    }

    /// Expected quantiles from standard tables, for 5 % and 0.1 % in both tails together.
    #[test]
    fn quantiles_are_those_of_the_tables() {
        let table =
            [(1.0, 0.001, 636.619_25), (4.0, 0.05, 2.776_445), (8.0, 0.001, 5.041_305), (30.0, 0.001, 3.645_959)];
        for (freedom, p, quantile) in table {
            let found = student_quantile(p, freedom);
            assert!((found / quantile - 1.0).abs() < 1e-6, "{freedom}: {found}");
        }
        assert!((student_quantile(0.05, f64::INFINITY) - 1.959_963_985).abs() < 1e-8);
        assert!((student_quantile(0.05, 990.0) - 1.962_36).abs() < 1e-4);
    }

    /// Expected quantiles from standard tables of Student's t.
    #[test]
    fn students_quantiles_are_those_of_the_tables() {
        let table =
            [(1.0, 12.706), (2.0, 4.303), (3.0, 3.182), (4.0, 2.776), (8.0, 2.306), (20.0, 2.086), (60.0, 2.000)];
        for (freedom, quantile) in table {
            let found = student_of_95_percent(freedom);
            assert!((found / quantile - 1.0).abs() < 6e-3, "{freedom}: {found}");
        }
    }

    #[test]
    fn no_difference_is_certain_to_be_exceeded_and_an_infinite_one_never() {
        assert_near(student_two_sided(0.0, 7.0), 1.0);
        assert_eq!(student_two_sided(f64::INFINITY, 7.0).to_bits(), 0.0_f64.to_bits());
    }
}

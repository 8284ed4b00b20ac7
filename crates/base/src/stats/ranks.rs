//! The Mann–Whitney U test: whether one of two samples tends to larger values.
//!
//! Exact if both are small and no value occurs twice, by counting the arrangements (Mann and Whitney 1947); otherwise
//! by the normal approximation with corrections for ties and continuity. It makes no assumption about the distributions
//! and does not estimate the size of the difference.

use std::f64::consts::SQRT_2;

/// The largest sample that is counted exactly.
const COUNTED_UP_TO: usize = 20;

/// The result of the test.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MannWhitney {
    /// Pairs in which the first sample's value is the larger one; a tie is half a pair.
    pub u: f64,
    /// The two-sided p value that the test gives.
    pub p: f64,
}

/// Tests whether the values of `first` differ from those of `second`. `None` if either is empty or has a value that is
/// not finite.
pub fn mann_whitney(first: &[f64], second: &[f64]) -> Option<MannWhitney> {
    let (n, m) = (first.len(), second.len());
    if n == 0 || m == 0 || first.iter().chain(second).any(|x| !x.is_finite()) {
        return None;
    }
    let mut all: Vec<(f64, bool)> =
        first.iter().map(|x| (*x, true)).chain(second.iter().map(|x| (*x, false))).collect();
    all.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    let (mut ranks, mut ties, mut place) = (0.0, 0.0, 0);
    #[expect(clippy::float_cmp, reason = "equal values are tied")]
    for tied in all.chunk_by(|a, b| a.0 == b.0) {
        let t = tied.len() as f64;
        ranks +=
            tied.iter().filter(|(_, is_first)| *is_first).count() as f64 * f64::midpoint(2.0 * place as f64, t + 1.0);
        ties += t.powi(3) - t;
        place += tied.len();
    }
    let u = ranks - (n * (n + 1)) as f64 / 2.0;
    let p = if ties == 0.0 && n.max(m) <= COUNTED_UP_TO { exact(n, m, u) } else { approximate(n, m, u, ties) };
    Some(MannWhitney { u, p })
}

/// Returns twice the share of arrangements whose U is at most the smaller of the two.
fn exact(n: usize, m: usize, u: f64) -> f64 {
    // `counts[i][v]` is the number of arrangements of i firsts and the seconds so far with U = v.
    let mut counts = vec![vec![0.0; n * m + 1]; n + 1];
    for row in &mut counts {
        row[0] = 1.0;
    }
    for seconds in 1..=m {
        for firsts in 1..=n {
            // The largest value is a first, above `seconds` others, or it is a second.
            let (smaller, row) = counts.split_at_mut(firsts);
            for (grown, fewer) in row[0][seconds..].iter_mut().zip(&smaller[firsts - 1]) {
                *grown += fewer;
            }
        }
    }
    let all: f64 = counts[n].iter().sum();
    let least = u.min((n * m) as f64 - u) as usize;
    (2.0 * counts[n][..=least].iter().sum::<f64>() / all).min(1.0)
}

fn approximate(n: usize, m: usize, u: f64, ties: f64) -> f64 {
    let (n, m) = (n as f64, m as f64);
    let all = n + m;
    let variance = n * m / 12.0 * ((all + 1.0) - ties / (all * (all - 1.0)));
    if variance <= 0.0 {
        return 1.0;
    }
    let away = ((u - n * m / 2.0).abs() - 0.5).max(0.0);
    (2.0 * normal_tail(away / variance.sqrt())).min(1.0)
}

/// Returns the probability that a standard normal variable exceeds `z`.
pub fn normal_tail(z: f64) -> f64 {
    0.5 * libm::erfc(z / SQRT_2)
}

/// Returns how many standard deviations to either side hold all but `tails` of a normal distribution: 1.96 for 0.05.
///
/// The value is found by bisection of [`normal_tail`], to the last digit. It is infinite for 0, and zero for 1 and
/// more.
pub fn normal_two_sided(tails: f64) -> f64 {
    /// The number of standard deviations beyond which the tail is zero in f64.
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
    #![expect(clippy::unwrap_used, reason = "a test panics to fail")]

    use super::{exact, mann_whitney, normal_tail, normal_two_sided};

    /// The largest U that is significant at 5 %, two-sided: the table of Mann and Whitney, as in Siegel's book.
    #[test]
    fn critical_values_are_those_of_the_published_table() {
        let table = [
            (4, 4, 0),
            (5, 5, 2),
            (6, 6, 5),
            (8, 8, 13),
            (10, 10, 23),
            (5, 8, 6),
            (7, 12, 18),
            (15, 15, 64),
            (20, 20, 127),
        ];
        for (n, m, critical) in table {
            let p = |u: u32| exact(n, m, f64::from(u));
            assert!(p(critical) <= 0.05, "{n}, {m}: {}", p(critical));
            assert!(p(critical + 1) > 0.05, "{n}, {m}: {}", p(critical + 1));
        }
    }

    /// The values are the ages at diagnosis of the example in `SciPy`'s manual: U = 17, exact p = 1/9, approximate p =
    /// 0.1113.
    #[test]
    fn a_published_example_has_its_published_values() {
        let (men, women) = ([19.0, 22.0, 16.0, 29.0, 24.0], [20.0, 11.0, 17.0, 12.0]);
        let found = mann_whitney(&men, &women).unwrap();
        assert!((found.u - 17.0).abs() < 1e-12 && (found.p - 1.0 / 9.0).abs() < 1e-12, "{found:?}");
        let approximate = super::approximate(5, 4, 17.0, 0.0);
        assert!((approximate - 0.111_346_886_533_140_41).abs() < 1e-9, "{approximate}");
    }

    /// Compared with all 35 ways to choose three of seven, since tables have no ties.
    #[test]
    fn ties_count_half_and_narrow_the_distribution() {
        let (first, second) = ([1.0, 2.0, 2.0], [2.0, 3.0, 3.0, 4.0]);
        let found = mann_whitney(&first, &second).unwrap();
        // Pairs: 1 is below all; each 2 ties with the one 2.
        assert!((found.u - 1.0).abs() < 1e-12, "{found:?}");
        // The variance is n m / 12 (N + 1 − Σ(t³ − t) / N(N − 1)) = 1 · (8 − 30/42), worked out by hand.
        let z = (5.0 - 0.5) / (8.0_f64 - 30.0 / 42.0).sqrt();
        assert!((found.p - 2.0 * normal_tail(z)).abs() < 1e-12, "{found:?}");
        let same = mann_whitney(&[1.0; 5], &[1.0; 4]).unwrap();
        assert!((same.p - 1.0).abs() < 1e-12, "{same:?}");
    }

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

    #[test]
    fn nothing_and_what_is_no_number_are_not_tested() {
        assert_eq!(mann_whitney(&[], &[1.0]), None);
        assert_eq!(mann_whitney(&[1.0], &[f64::NAN]), None);
    }
}

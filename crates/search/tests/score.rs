//! The score of the published methodology, computed by hand.

#![expect(clippy::expect_used, clippy::float_cmp, reason = "a test panics to fail; the values are exact")]

use search::history::{History, Outcome};
use search::replay::{Measured, Row};
use search::score::{Baseline, mean};
use search::space::Value;

/// Points 0 to 99, with times 1 to 100.
fn measured() -> Measured {
    let rows = (0..100)
        .map(|n| Row { values: vec![Value::Int(n)], outcome: Outcome::Value((n + 1) as f64), seconds: None })
        .collect::<Vec<_>>();
    Measured::of_rows(vec!["n".to_owned()], &rows).expect("the space is not empty")
}

fn history(points: &[u64]) -> History {
    let mut history = History::default();
    for &point in points {
        history.finish(point, Outcome::Value((point + 1) as f64));
    }
    history
}

#[test]
fn random_search_is_expected_to_find_what_order_statistics_say() {
    let baseline = Baseline::new(&measured()).expect("there are times");
    // The median is 51, so the cutoff is 1 + 50 · 0.05 = 3.5. Sorted worst first, 3 is number 98 of 100.
    assert_eq!(baseline.evaluations(), (98.0_f64 / 3.0).ceil() as usize);
    // After one evaluation the median is expected: position 50.5, rounded to 51, has the value 50.
    assert_eq!(baseline.expected(1.0), 50.0);
    // After 9 evaluations the position is 90.9, rounded to 91, with the value 10.
    assert_eq!(baseline.expected(9.0), 10.0);
    assert_eq!(baseline.optimum(), 1.0);
}

#[test]
fn the_optimum_at_once_scores_one_and_what_random_search_finds_scores_zero() {
    let measured = measured();
    let baseline = Baseline::new(&measured).expect("there are times");
    let best = baseline.scores(&measured, &[history(&[0])]);
    // The first time is before the end of the first evaluation, when nothing has been found; all others are after it.
    assert!(best[2..].iter().all(|&score| score == 1.0), "{best:?}");
    // The budget is 33. The last of the 50 times is after 33 evaluations, when random search is expected at position
    // 98.03, with the value 3.
    let late = baseline.scores(&measured, &[history(&[2]), history(&[2])]);
    assert_eq!(late[49], 0.0);
    let half = baseline.scores(&measured, &[history(&[0]), history(&[2])]);
    assert_eq!(half[49], 0.5);
    assert_eq!(mean(&[vec![1.0, 0.0], vec![0.0, 0.0]]), 0.25);
}

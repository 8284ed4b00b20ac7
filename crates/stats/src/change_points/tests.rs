//! Compares change points with those of published series, and tests their properties.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use super::{ChangePoint, Reading, Series, change_points};

const LEVEL: f64 = 0.01;

/// Annual flow of the Nile at Aswan from 1871 to 1970, in 10⁸ m³ (Cobb 1978). Its mean is 919.35.
const NILE: [f64; 100] = [
    1120., 1160., 963., 1210., 1160., 1160., 813., 1230., 1370., 1140., 995., 935., 1110., 994., 1020., 960., 1180.,
    799., 958., 1140., 1100., 1210., 1150., 1250., 1260., 1220., 1030., 1100., 774., 840., 874., 694., 940., 833.,
    701., 916., 692., 1020., 1050., 969., 831., 726., 456., 824., 702., 1120., 1100., 832., 764., 821., 768., 845.,
    864., 862., 698., 845., 744., 796., 1040., 759., 781., 865., 845., 944., 984., 897., 822., 1010., 771., 676., 649.,
    846., 812., 742., 801., 1040., 860., 874., 848., 890., 744., 749., 838., 1050., 918., 986., 797., 923., 975., 815.,
    1020., 906., 901., 1170., 912., 746., 919., 718., 714., 740.,
];

/// Logarithms of the values as readings without known errors.
fn logarithms(values: &[f64]) -> Vec<Reading> {
    values.iter().map(|value| Reading { value: value.ln(), error: 0.0 }).collect()
}

fn places(readings: &[Reading]) -> Vec<usize> {
    change_points(readings, LEVEL, 0.0).iter().map(|change| change.index).collect()
}

/// Standard normal value (Box–Muller).
fn normal(rng: &mut ChaCha8Rng) -> f64 {
    let mut uniform = || (f64::from(rng.next_u32()) + 0.5) / f64::from(u32::MAX);
    let (radius, angle) = ((-2.0 * uniform().ln()).sqrt(), std::f64::consts::TAU * uniform());
    radius * angle.cos()
}

/// Forty revisions with 0.3 % noise, a varying share of it known, and a 1 % change at `at`.
fn history(seed: u64, at: usize) -> Vec<Reading> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let reading = |i: usize| {
        let error = 0.0005 + 0.002 * (f64::from(rng.next_u32()) / f64::from(u32::MAX));
        let value = if i >= at { 1.01_f64.ln() } else { 0.0 } + 0.003 * normal(&mut rng);
        Reading { value, error }
    };
    (0..40).map(reading).collect()
}

#[test]
fn the_nile_changed_after_1898() {
    assert!((NILE.iter().sum::<f64>() / 100.0 - 919.35).abs() < 1e-9);
    let plain: Vec<Reading> = NILE.iter().map(|value| Reading { value: *value, error: 0.0 }).collect();
    let found = change_points(&plain, LEVEL, 0.0);
    let [ChangePoint { index: 28, shift, p, .. }] = found[..] else { panic!("{found:?}") };
    // The means are 1097.75 for 1871 to 1898 and 849.97 for the years after.
    assert!((shift - (849.972_222 - 1097.75)).abs() < 1e-5, "{shift}");
    assert!(p < 1e-6, "{p}");
    assert_eq!(places(&logarithms(&NILE)), [28]);
}

/// A series from Apache Otava's own tests, with the change points that they expect.
#[test]
fn the_series_of_otava_change_where_otava_finds_it() {
    let first = [1.02, 0.95, 0.99, 1.00, 1.12, 0.90, 0.50, 0.51, 0.48, 0.48, 0.55];
    let second = [2.02, 2.03, 2.01, 2.04, 1.82, 1.85, 1.79, 1.81, 1.80, 1.76, 1.78];
    assert_eq!(places(&logarithms(&first)), [6]);
    assert_eq!(places(&logarithms(&second)), [4]);
}

/// With the published formula without weights, distances of 1 between the parts and 0 within give E = 2, and Q is 2 · 2
/// / (2 + 2) times that. The Nile's largest Q was computed by plain sums over all pairs.
#[test]
fn the_divergence_is_the_published_one() {
    let candidate = |values: &[f64]| {
        let [weights, known, far] = [1.0, 0.0, f64::INFINITY].map(|each| vec![each; values.len()]);
        let series = Series { values: values.to_vec(), weights, known, far };
        series.candidate(0, values.len()).unwrap_or_default()
    };
    assert_eq!(candidate(&[0.0, 0.0, 1.0, 1.0]), (2.0, 2, 4));
    let (q, change, end) = candidate(&NILE);
    assert_eq!((change, end), (28, 83));
    assert!((q - 4_916.590_807_675_145).abs() < 1e-8, "{q}");
}

#[test]
fn a_change_of_one_percent_in_noise_of_a_third_is_found_within_three_revisions() {
    for seed in 0..20 {
        let found = places(&history(seed, 20));
        assert!(matches!(found[..], [at] if at.abs_diff(20) <= 3), "{seed}: {found:?}");
    }
    for (at, fewest) in [(8, 18), (32, 18)] {
        let is_found = |seed: &u64| places(&history(*seed, at)).iter().any(|found| found.abs_diff(at) <= 3);
        let found = (0..20).filter(is_found).count();
        assert!(found >= fewest, "{at}: {found} of 20");
    }
}

#[test]
fn a_hundred_histories_without_a_change_have_none() {
    for seed in 0..100 {
        assert_eq!(places(&history(1000 + seed, 40)), [0; 0], "{seed}");
    }
}

/// The values before the change have weight 1/0.01², except two with weight 1, so their mean is (2 · 0.5) / (8 · 10⁴ +
/// 2).
#[test]
fn values_with_wide_intervals_weigh_little() {
    let exact = |value: f64| Reading { value, error: 0.01 };
    let vague = Reading { value: 0.5, error: 1.0 };
    let mut readings = [[exact(0.0); 10], [exact(1.0); 10]].concat();
    (readings[3], readings[6]) = (vague, vague);
    let found = change_points(&readings, LEVEL, 0.0);
    let [ChangePoint { index: 10, shift, .. }] = found[..] else { panic!("{found:?}") };
    assert!((shift - (1.0 - 1.0 / 80_002.0)).abs() < 1e-12, "{shift}");
}

/// Two means of ten values with 2 % errors differ by √(2 · 0.02² / 10) = 0.9 % by chance; here they differ by 1 %.
#[test]
fn equal_values_are_no_more_precise_than_their_known_errors() {
    let found = |error: f64| {
        let readings: Vec<Reading> =
            (0..20).map(|i| Reading { value: if i < 10 { 0.0 } else { 0.01 }, error }).collect();
        places(&readings)
    };
    assert_eq!(found(0.02), [0; 0]);
    assert_eq!(found(0.0005), [10]);
}

#[test]
fn a_constant_series_has_no_change() {
    for error in [0.0, 0.01] {
        assert_eq!(places(&[Reading { value: 12.3, error }; 40]), [0; 0]);
    }
}

/// Holds wherever the outlier is and however large it is.
#[test]
fn a_single_outlier_is_no_change() {
    for at in 0..40 {
        for size in [0.05, 1.0] {
            let mut readings = history(7, 40);
            readings[at].value += size;
            assert_eq!(places(&readings), [0; 0], "{at}");
        }
    }
}

#[test]
fn another_unit_of_time_does_not_matter() {
    for seed in 0..20 {
        let readings = history(seed, 17);
        let scaled: Vec<Reading> =
            readings.iter().map(|reading| Reading { value: reading.value + 1e6_f64.ln(), ..*reading }).collect();
        assert_eq!(places(&readings), places(&scaled), "{seed}");
    }
}

#[test]
fn a_reversed_series_changes_at_the_same_place() {
    for seed in 0..20 {
        let mut readings = history(seed, 17);
        let forward = places(&readings);
        readings.reverse();
        let backward: Vec<usize> = places(&readings).iter().rev().map(|at| 40 - at).collect();
        assert_eq!(forward.len(), backward.len(), "{seed}");
        assert!(forward.iter().zip(&backward).all(|(a, b)| a.abs_diff(*b) <= 1), "{seed}: {forward:?} {backward:?}");
    }
}

#[test]
fn a_change_that_is_taken_back_is_two_changes() {
    let step = |i: usize| if (12..24).contains(&i) { 0.03 } else { 0.0 };
    let readings: Vec<Reading> = history(3, 40)
        .iter()
        .enumerate()
        .map(|(i, reading)| Reading { value: reading.value + step(i), ..*reading })
        .collect();
    assert_eq!(places(&readings), [12, 24]);
}

/// Five imprecise values after twenty precise ones: a 1 % difference with ±4 % intervals.
#[test]
fn values_whose_intervals_explain_the_difference_are_no_change() {
    let series = |error: f64| -> Vec<Reading> {
        let noise = |i: u32| if i.is_multiple_of(2) { 1e-4 } else { -1e-4 };
        let reading = |i: u32| if i < 20 { (0.0, 1e-4) } else { (0.01, error) };
        (0..25).map(|i| Reading { value: reading(i).0 + noise(i), error: reading(i).1 }).collect()
    };
    assert_eq!(places(&series(1e-4)), [20]);
    assert_eq!(places(&series(0.02)), [0; 0]);
}

#[test]
fn a_change_below_the_least_that_matters_is_left_out() {
    let readings = history(5, 20);
    assert_eq!(change_points(&readings, LEVEL, 0.005).len(), 1);
    assert_eq!(change_points(&readings, LEVEL, 0.02), []);
}

#[test]
fn five_readings_are_the_fewest_in_which_a_change_is_found() {
    assert_eq!(places(&logarithms(&[1.0, 1.001, 2.0, 2.001])), [0; 0]);
    assert_eq!(places(&logarithms(&[1.0, 1.001, 2.0, 2.001, 2.002])), [2]);
    assert_eq!(places(&logarithms(&[1.0, 1.001, f64::NAN, 2.0, 2.001])), [0; 0]);
}

/// Fifteen commits with 0.3 % noise, a third of it known, and up to two outliers of 2 to 15 % in either direction.
/// Unless `step` is 0, a step of that size comes before the returned commit. No outlier is next to the step, where it
/// could belong to either side.
fn commits(seed: u64, step: f64) -> (Vec<Reading>, usize) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let at = 4 + (rng.next_u32() % 8) as usize;
    let mut readings: Vec<Reading> = (0..15)
        .map(|i| Reading { value: if i >= at { step.ln_1p() } else { 0.0 } + 0.003 * normal(&mut rng), error: 0.001 })
        .collect();
    for _ in 0..rng.next_u32() % 3 {
        let size = 0.02 + 0.13 * f64::from(rng.next_u32()) / f64::from(u32::MAX);
        let sign = if rng.next_u32().is_multiple_of(2) { 1.0 } else { -1.0 };
        let place = (at + 1 + (rng.next_u32() % 13) as usize) % 15;
        readings[place].value += (sign * size).ln_1p();
    }
    (readings, at)
}

#[test]
fn outliers_hide_no_step_and_make_none() {
    let found = |seed: u64, step: f64| {
        let (readings, at) = commits(seed, step);
        (places(&readings), at)
    };
    for step in [0.05, -0.05, 0.04] {
        let right = (0..100).filter(|seed| {
            let (places, at) = found(*seed, step);
            places == [at]
        });
        assert!(right.clone().count() >= 95, "{step}: {} of 100", right.count());
    }
    for seed in 0..100 {
        assert_eq!(found(1000 + seed, 0.0).0, [0; 0], "{seed}");
    }
}

/// A step of −5 % with one outlier of 10 %, and a step of 2.1 % with one of 2 %, before or after the step. An outlier
/// as large as the step is never next to it: that would look like a step two commits earlier.
#[test]
fn one_outlier_hides_no_step() {
    for (step, outlier) in [(-0.05, 0.10), (-0.05, -0.10), (0.021, 0.02), (0.021, -0.02)] {
        for place in [1, 3, 5, 10, 12, 13] {
            let noise = [0.1, -0.2, 0.15, -0.05, 0.2, -0.15, 0.05, 0.1, -0.1, -0.2, 0.2, 0.0, -0.1, 0.15, -0.05];
            let value = |i: usize| {
                let level = if i >= 8 { f64::ln_1p(step) } else { 0.0 };
                level + noise[i] / 100.0 + if i == place { f64::ln_1p(outlier) } else { 0.0 }
            };
            let readings: Vec<Reading> = (0..15).map(|i| Reading { value: value(i), error: 0.001 }).collect();
            assert_eq!(places(&readings), [8], "{step} with {outlier} at {place}");
        }
    }
}

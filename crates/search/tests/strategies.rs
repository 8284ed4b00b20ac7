//! Every strategy proposes only free points, is reproducible, and ends when the space is exhausted.

#![expect(clippy::expect_used, reason = "a test panics to fail")]

use search::history::{History, Outcome};
use search::made::Kind;
use search::random::Random;
use search::replay::{Measured, Row};
use search::space::Value;
use search::strategy::{NAMES, Strategy, is_blind, named};

/// 60 points with one optimum; every seventh fails.
fn small() -> Measured {
    let rows: Vec<Row> = (0..60_i64)
        .map(|n| {
            let (x, y, word) = (n % 5, n / 5 % 4, n / 20);
            let time = 1.0 + ((x - 3).pow(2) + (y - 1).pow(2) + (word - 1).pow(2)) as f64;
            Row {
                values: vec![Value::Int(x), Value::Int(y), Value::Text(format!("w{word}"))],
                outcome: if n % 7 == 0 { Outcome::Failed } else { Outcome::Value(time) },
                seconds: None,
            }
        })
        .collect();
    Measured::of_rows(["x", "y", "word"].map(str::to_owned).to_vec(), &rows).expect("the space is not empty")
}

#[test]
fn every_strategy_proposes_each_point_once_and_then_ends() {
    let measured = small();
    for (name, _) in NAMES {
        let mut strategy = named(name).expect("the name is in the list");
        let history = measured.search(&mut *strategy, 1000, 3, 5);
        let mut points: Vec<u64> = history.evaluations().iter().map(|evaluation| evaluation.point).collect();
        points.sort_unstable();
        assert_eq!(points, (0..60).collect::<Vec<_>>(), "{name}");
        assert_eq!(strategy.propose(&measured.space, &history, &mut Random::new(1)), None, "{name}");
    }
    assert!(named("guess").is_none());
}

#[test]
fn a_seed_decides_all_that_a_strategy_proposes() {
    let measured = small();
    for (name, _) in NAMES {
        let search = |seed| {
            let mut strategy = named(name).expect("the name is in the list");
            measured.search(&mut *strategy, 30, 4, seed).evaluations().to_vec()
        };
        assert_eq!(search(1), search(1), "{name}");
        assert_eq!(search(1) == search(2), name == "exhaustive", "{name}");
    }
}

#[test]
fn a_space_in_which_everything_fails_is_searched_to_its_end() {
    let rows: Vec<Row> = (0..40)
        .map(|n| Row { values: vec![Value::Int(n % 8), Value::Int(n / 8)], outcome: Outcome::Failed, seconds: None })
        .collect();
    let measured = Measured::of_rows(vec!["x".to_owned(), "y".to_owned()], &rows).expect("the space is not empty");
    for (name, _) in NAMES {
        let mut strategy = named(name).expect("the name is in the list");
        assert_eq!(measured.search(&mut *strategy, 1000, 2, 1).len(), 40, "{name}");
    }
}

#[test]
fn a_walk_leaves_a_region_in_which_all_is_known() {
    // Two halves of 512 points. Going from one to the other would change two parameters, so no single step does.
    let rows: Vec<Row> = (0..1024_i64)
        .map(|n| {
            let digits = [0, 2, 4, 6, 8].map(|shift| n >> shift & 3);
            let time = 1.0 + digits.iter().map(|digit| (digit - 1).pow(2)).sum::<i64>() as f64;
            let half = i64::from(digits[0] >= 2);
            let values = digits.into_iter().chain([half]).map(Value::Int).collect();
            Row { values, outcome: Outcome::Value(time), seconds: None }
        })
        .collect();
    let names = ["a", "b", "c", "d", "e", "half"].map(str::to_owned).to_vec();
    let measured = Measured::of_rows(names, &rows).expect("there are points");
    for name in ["tabu", "local", "annealing"] {
        let mut strategy = named(name).expect("the name is in the list");
        assert_eq!(measured.search(&mut *strategy, 700, 8, 1).len(), 700, "{name}");
    }
}

#[test]
fn strategies_that_learn_find_what_random_search_does_not() {
    // 60 of 10,400 points are evaluated; the first 21 are the initial sample.
    for kind in [Kind::Separable, Kind::Interacting] {
        let measured = kind.make(3);
        let found = |name: &str| {
            let searches = (0..3).map(|seed| {
                let mut strategy = named(name).expect("the name is in the list");
                let (_, best) = measured.search(&mut *strategy, 60, 4, seed).best().expect("none fails");
                best.ln()
            });
            searches.sum::<f64>() / 3.0
        };
        let random = found("random");
        for (name, _) in NAMES.iter().filter(|(name, _)| !is_blind(name)) {
            let value = found(name);
            assert!(value < random, "{kind:?}: {name} {value}, random {random}");
        }
    }
}

#[test]
fn annealing_goes_to_the_better_one_of_points_that_were_evaluated_at_once() {
    let measured = Kind::Separable.make(3);
    let (mut history, mut random) = (History::default(), Random::new(1));
    let mut strategy = named("annealing").expect("the name is in the list");
    let propose = |strategy: &mut dyn Strategy, history: &mut History, random: &mut Random| {
        let point = strategy.propose(&measured.space, history, random).expect("there are free points");
        history.start(point);
        point
    };
    // Evaluate the initial sample, then three neighbours, the first of which is the best point of all.
    for value in 1..=21 {
        let point = propose(&mut *strategy, &mut history, &mut random);
        history.finish(point, Outcome::Value(f64::from(100 + value)));
    }
    let (start, _) = history.best().expect("none has failed");
    let points = [(); 3].map(|()| propose(&mut *strategy, &mut history, &mut random));
    for (point, value) in points.into_iter().zip([1.0, 1e9, 1e9]) {
        history.finish(point, Outcome::Value(value));
    }
    // The walk never steps to a point ten million times as slow. So it is now at the first of the three, and has left
    // the neighbourhood of the sample's best.
    let next = propose(&mut *strategy, &mut history, &mut random);
    let distances = [points[0], start].map(|point| measured.space.distance(point, next));
    assert_eq!(distances, [1, 2]);
}

#[test]
fn a_million_evaluations_are_remembered() {
    let mut history = History::default();
    for point in 0..1_000_000 {
        history.start(point);
        history.finish(point, Outcome::Value((point + 1) as f64));
    }
    assert_eq!((history.len(), history.best()), (1_000_000, Some((0, 1.0))));
}

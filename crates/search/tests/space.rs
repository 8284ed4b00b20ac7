//! Spaces with constraints have exactly the points that nested loops find, and can be sampled without rejection.

#![expect(clippy::expect_used, reason = "a test panics to fail")]

use search::random::Random;
use search::space::{Constraint, Expression, Parameter, Space, SpaceError, Value};

fn integers(name: &str, values: impl IntoIterator<Item = i64>) -> Parameter {
    Parameter::new(name, values.into_iter().map(Value::Int).collect())
}

fn space(parameters: Vec<Parameter>, constraints: &[&str]) -> Result<Space, SpaceError> {
    let names: Vec<String> = parameters.iter().map(|parameter| parameter.name.clone()).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let constraints: Vec<Constraint> = constraints
        .iter()
        .map(|text| Constraint::Expression(Expression::parse(text, &names).unwrap_or_else(|error| panic!("{error}"))))
        .collect();
    Space::new(parameters, &constraints)
}

fn convolution() -> Space {
    space(
        vec![
            integers("block_size_x", (1..=16).map(|n| 16 * n)),
            integers("block_size_y", [1, 2, 4, 8, 16]),
            integers("tile_size_x", 1..=4),
            integers("tile_size_y", 1..=4),
            integers("read_only", [0, 1]),
            integers("use_padding", [0, 1]),
            integers("use_shmem", [0, 1]),
            integers("filter_width", [15]),
        ],
        &[
            "use_padding==0 or block_size_x % 32 != 0",
            "block_size_x*block_size_y<=1024",
            "use_padding==0 or use_shmem != 0",
            "use_shmem == 0 or (((block_size_x*tile_size_x+(filter_width-1)))*((block_size_y*tile_size_y+(filter_width-1)))) < 12*1024",
        ],
    )
    .expect("the space is not empty")
}

#[test]
fn the_constraints_of_a_published_convolution_give_its_published_number_of_points() {
    let mut expected = 0;
    for x in (1..=16).map(|n| 16 * n) {
        for y in [1, 2, 4, 8, 16] {
            for tx in 1..=4 {
                for ty in 1..=4 {
                    for padding in [0, 1] {
                        for shared in [0, 1] {
                            let fits = shared == 0 || (x * tx + 14) * (y * ty + 14) < 12 * 1024;
                            let padded = padding == 0 || (x % 32 != 0 && shared != 0);
                            expected += if x * y <= 1024 && fits && padded { 2 } else { 0 };
                        }
                    }
                }
            }
        }
    }
    assert_eq!(convolution().len(), expected);
    assert_eq!(expected, 4362);
}

#[test]
fn each_number_is_one_point_and_each_point_has_its_number() {
    let space = convolution();
    let mut points = std::collections::HashSet::new();
    for number in 0..space.len() {
        let point = space.point(number);
        assert_eq!(space.number(&point), Some(number));
        assert!(points.insert(point));
    }
    // 256 · 16 threads exceed the limit of a block.
    assert_eq!(space.number(&[15, 4, 0, 0, 0, 0, 0, 0]), None);
}

/// Ten parameters with eight values each; about one in 10⁵ of the 8¹⁰ combinations is valid.
fn needle() -> Space {
    let names = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"];
    let values = [1, 2, 4, 8, 16, 32, 64, 128];
    let constraints = [
        "a * b * c * d == 128",
        "e * f == a * 2",
        "g + h == b + c",
        "i * j <= d",
        "max(e, g) >= f",
        "i in (1, 2, 64) and not (j == 4 or j > 64)",
    ];
    space(names.map(|name| integers(name, values)).to_vec(), &constraints).expect("the space is not empty")
}

#[test]
fn a_sparse_space_is_compiled_without_visiting_its_billion_combinations() {
    let space = needle();
    // The same count with loops that skip violated constraints.
    let values = [1, 2, 4, 8, 16, 32, 64, 128];
    let mut expected = 0_u64;
    for a in values {
        for b in values {
            for c in values {
                for d in values.into_iter().filter(|d| a * b * c * d == 128) {
                    let mut squares = 0;
                    for g in values {
                        for h in values.into_iter().filter(|h| g + h == b + c) {
                            let _ = h;
                            for e in values {
                                for f in values.into_iter().filter(|f| e * f == 2 * a) {
                                    squares += u64::from(e.max(g) >= f);
                                }
                            }
                        }
                    }
                    let mut pairs = 0;
                    for i in [1, 2, 64] {
                        for j in values {
                            pairs += u64::from(i * j <= d && j != 4 && j <= 64);
                        }
                    }
                    expected += squares * pairs;
                }
            }
        }
    }
    assert_eq!(space.len(), expected);
    assert!(expected > 1000 && expected < 100_000, "{expected}");
}

#[test]
fn every_valid_point_is_drawn_equally_often() {
    let space = needle();
    let mut random = Random::new(7);
    let draws = 40 * space.len();
    let mut counts = vec![0_u64; space.len() as usize];
    for _ in 0..draws {
        counts[random.below(space.len()) as usize] += 1;
    }
    let square: f64 = counts.iter().map(|&count| (count as f64 - 40.0).powi(2) / 40.0).sum();
    let freedom = space.len() as f64 - 1.0;
    // For uniform draws, the chi-squared statistic is within five standard deviations of the degrees of freedom.
    assert!((square - freedom).abs() < 5.0 * (2.0 * freedom).sqrt(), "{square} of {freedom}");
}

#[test]
fn neighbours_are_the_valid_points_that_differ_in_one_parameter() {
    let space = convolution();
    let number = space.number(&[1, 2, 0, 2, 1, 0, 1, 0]).expect("this point is valid");
    let expected: Vec<u64> = (0..space.len()).filter(|&other| space.distance(number, other) == 1).collect();
    let mut found = space.neighbours(number);
    found.sort_unstable();
    assert_eq!(found, expected);
    let expected: Vec<u64> = (0..space.len()).filter(|&other| space.distance(number, other) == 2).collect();
    let mut found = space.second_neighbours(number);
    found.sort_unstable();
    assert_eq!(found, expected);
}

#[test]
fn a_rule_in_code_selects_the_same_points_as_an_expression() {
    let parameters = || vec![integers("a", 1..=9), integers("b", 1..=9), integers("c", 1..=9), integers("d", 1..=3)];
    let rule = Constraint::Rule {
        parameters: vec![2, 0],
        test: std::sync::Arc::new(|values| matches!(values, [Value::Int(c), Value::Int(a)] if c % a == 0)),
    };
    let by_rule = Space::new(parameters(), &[rule]).expect("the space is not empty");
    let by_expression = space(parameters(), &["c % a == 0"]).expect("the space is not empty");
    // In 23 of the 81 pairs, a divides c.
    assert_eq!(by_rule.len(), 23 * 27);
    assert_eq!(by_expression.len(), 23 * 27);
}

#[test]
fn expressions_mean_what_they_mean_in_python() {
    let count = |constraint: &str| {
        space(vec![integers("a", -3..=3), integers("b", 0..=2)], &[constraint]).map_or(0, |space| space.len())
    };
    // Floor division; the remainder has the divisor's sign.
    assert_eq!(count("a // 2 == -2"), 3);
    assert_eq!(count("a % 3 == 2"), 6);
    // A chained comparison compares adjacent operands.
    assert_eq!(count("0 < a <= b"), 3);
    assert_eq!(count("a ** 2 == 9 and b"), 4);
    assert_eq!(count("-a ** 2 == -9"), 6);
    assert_eq!(count("(1 if a > 0 else 2) == b"), 7);
    assert_eq!(count("a not in [0, 1] or b in (2,)"), 17);
    assert_eq!(count("abs(a) == max(b, 1, 2)"), 6);
    assert_eq!(count("not a"), 3);
    // A constraint that divides by zero is false.
    assert_eq!(count("a / b >= 0"), 8);
    assert_eq!(count("a / 2 == 1.5"), 3);
}

#[test]
fn a_mistake_in_a_constraint_is_named_with_its_place() {
    let error = |text: &str| Expression::parse(text, &["a", "b"]).expect_err("this is a mistake").to_string();
    assert_eq!(error("a < c"), "`c` is not a parameter; the parameters are a, b at byte 4 of `a < c`");
    assert_eq!(error("a <"), "expected a value or a parameter at byte 3 of `a <`");
    assert_eq!(error("(a"), "expected `)` at byte 2 of `(a`");
    assert_eq!(error("a b"), "expected an operator or the end at byte 2 of `a b`");
    assert_eq!(error("a ? b"), "unexpected character at byte 2 of `a ? b`");
    assert_eq!(error("1x"), "this is not a number at byte 0 of `1x`");
    assert!(error(&"(".repeat(1000)).starts_with("the expression is nested too deeply"));
    assert!(error(&"2**".repeat(1000)).starts_with("the expression is nested too deeply"));
}

#[test]
fn constraints_that_exclude_everything_are_an_error() {
    assert!(matches!(space(vec![integers("a", [1, 2])], &["a > 2"]), Err(SpaceError::Empty)));
}

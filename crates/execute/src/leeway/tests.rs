//! Allowed errors for sums and expressions: results in every order pass, and one that lacks a term does not.

#![expect(clippy::unwrap_used, reason = "a test panics to fail")]

use std::sync::Arc;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng as _, SeedableRng as _};

use super::super::compare::{Leeway, compare};
use super::super::operand::{Lanes, Number};
use super::super::typed::{Float, Typed, by_type};
use super::{Operand, median, reference, unit_roundoff};
use runner_types::{ElementType, Elementwise, RefExpr, RefFunction, Tolerance, Value};

const SUMMED: [(ElementType, usize); 3] = [(ElementType::F32, 3000), (ElementType::F16, 60), (ElementType::Bf16, 30)];

fn rounded(element: ElementType, value: f64) -> f64 {
    by_type!(element, integer _T => value, float T => T::nearest(value).wide())
}

fn floats(element: ElementType, values: &[f64]) -> Operand {
    let mut raw = vec![0; values.len() * element.size()];
    by_type!(element, integer _T => panic!("{element} is no float"), float T => {
        raw.chunks_exact_mut(T::SIZE).zip(values).for_each(|(place, value)| T::nearest(*value).store(place));
    });
    Operand::Bytes { element, bytes: Arc::new(raw) }
}

/// Random numbers of both signs, approximately normally distributed, rounded to the type.
fn random(rng: &mut ChaCha8Rng, element: ElementType, len: usize) -> Vec<f64> {
    let mut uniform = || f64::from(rng.next_u32()) / f64::from(u32::MAX) - 0.5;
    (0..len).map(|_| rounded(element, (0..6).map(|_| uniform()).sum::<f64>())).collect()
}

fn in_sequence(element: ElementType, values: &[f64]) -> f64 {
    values.iter().fold(0.0, |sum, value| rounded(element, sum + value))
}

fn as_tree(element: ElementType, values: &[f64]) -> f64 {
    match values {
        [] => 0.0,
        [one] => *one,
        more => {
            let (left, right) = more.split_at(more.len() / 2);
            rounded(element, as_tree(element, left) + as_tree(element, right))
        }
    }
}

fn buffer(name: &str) -> RefExpr {
    RefExpr::Buffer(name.to_owned())
}

fn call(function: RefFunction, buffers: &[&str], integers: &[i64]) -> RefExpr {
    let buffers = buffers.iter().map(|name| buffer(name)).collect();
    RefExpr::Call { function, buffers, integers: integers.to_vec() }
}

fn binary(operation: Elementwise, left: RefExpr, right: RefExpr) -> RefExpr {
    RefExpr::Elementwise { operation, operands: vec![left, right] }
}

type Arrays<'a> = &'a [(&'a str, Operand)];

fn named(arrays: Arrays<'_>, name: &str) -> Result<Operand, String> {
    let found = arrays.iter().find(|(known, _)| *known == name);
    found.map(|(_, array)| array.clone()).ok_or_else(|| name.to_owned())
}

fn bounds(expression: &RefExpr, arrays: Arrays<'_>, elements: &[usize]) -> Vec<f64> {
    reference::bounds(expression, elements, &mut |name| named(arrays, name)).unwrap()
}

/// Whether results pass with the default tolerance of a reference.
fn passes(element: ElementType, got: &[f64], expression: &RefExpr, arrays: Arrays<'_>) -> bool {
    let expected = reference::evaluate(expression, &mut |name| named(arrays, name)).unwrap();
    let unit = unit_roundoff(Some(element));
    let errors = |elements: &[usize]| -> Vec<f64> {
        bounds(expression, arrays, elements).into_iter().map(|bound| bound * unit).collect()
    };
    let leeway = Leeway { flushes: false, errors: Some(&errors) };
    let tolerance = Tolerance::default_for(element);
    compare(&floats(element, got), &expected, &tolerance, &[], &leeway).unwrap().is_none()
}

#[test]
fn random_sums_pass_in_sequence_and_as_a_tree_and_not_without_one_of_their_terms() {
    let sum = call(RefFunction::Sum, &["x"], &[]);
    for (element, most) in SUMMED {
        for seed in 0..300 {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            let len = 2 + (rng.next_u32() as usize) % most;
            let x = random(&mut rng, element, len);
            let arrays = [("x", floats(element, &x))];
            let of = |values: &[f64]| [in_sequence(element, values), as_tree(element, values)];
            for got in of(&x) {
                assert!(passes(element, &[got], &sum, &arrays), "{element}, seed {seed}, {len} terms: {got}");
            }
            // A term of at least typical size: the root mean square is 0.7.
            let place = x.iter().position(|value| value.abs() > 0.7);
            let Some(place) = place else { continue };
            let fewer: Vec<f64> = [&x[..place], &x[place + 1..]].concat();
            for got in of(&fewer) {
                assert!(!passes(element, &[got], &sum, &arrays), "{element}, seed {seed}, {len} terms: {got}");
            }
        }
    }
}

#[test]
fn products_of_matrices_pass_in_any_order_and_not_without_one_of_their_terms() {
    let (rows, columns) = (3, 4);
    for (element, most) in SUMMED {
        for seed in 0..60 {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            let inner = 2 + (rng.next_u32() as usize) % (most / 2);
            let (a, b) = (random(&mut rng, element, rows * inner), random(&mut rng, element, inner * columns));
            let arrays = [("a", floats(element, &a)), ("b", floats(element, &b))];
            let product = call(RefFunction::Matmul, &["a", "b"], &[rows as i64, columns as i64, inner as i64]);
            let terms = |index: usize| -> Vec<f64> {
                let (row, column) = (index / columns, index % columns);
                (0..inner).map(|k| rounded(element, a[row * inner + k] * b[k * columns + column])).collect()
            };
            for sum in [in_sequence, as_tree] {
                let mut got: Vec<f64> = (0..rows * columns).map(|index| sum(element, &terms(index))).collect();
                assert!(passes(element, &got, &product, &arrays), "{element}, seed {seed}, {inner} terms");
                let mut fewer = terms(5);
                let Some(place) = fewer.iter().position(|term| term.abs() > 0.5) else { continue };
                fewer.remove(place);
                got[5] = sum(element, &fewer);
                assert!(!passes(element, &got, &product, &arrays), "{element}, seed {seed}, {inner} terms");
            }
        }
    }
}

#[test]
fn differences_of_neighbours_pass_in_both_orders_and_with_a_wrong_sign_they_do_not() {
    let element = ElementType::F32;
    let f32 = |value: f64| rounded(element, value);
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    let [a, b, c, d] = [(); 4].map(|()| random(&mut rng, element, 20_000));
    let arrays = [("a", &a), ("b", &b), ("c", &c), ("d", &d)].map(|(name, values)| (name, floats(element, values)));
    let minus = |left, right| binary(Elementwise::Subtract, left, right);
    let plus = |left, right| binary(Elementwise::Add, left, right);
    let expression = minus(plus(minus(buffer("a"), buffer("b")), buffer("c")), buffer("d"));
    let each = |of: &dyn Fn(usize) -> f64| (0..a.len()).map(of).collect::<Vec<_>>();
    let forward = each(&|i| f32(f32(f32(a[i] - b[i]) + c[i]) - d[i]));
    let backward = each(&|i| f32(a[i] - f32(b[i] - f32(c[i] - d[i]))));
    let relative = |got: &[f64]| {
        let expected = reference::evaluate(&expression, &mut |name| named(&arrays, name)).unwrap();
        let tolerance = Tolerance { derived: false, ..Tolerance::default_for(element) };
        compare(&floats(element, got), &expected, &tolerance, &[], &Leeway::default()).unwrap().is_none()
    };
    for got in [&forward, &backward] {
        assert!(passes(element, got, &expression, &arrays));
        assert!(!relative(got), "some of so many are near 0: the tolerance must not be relative to these alone");
    }
    let mut wrong = forward.clone();
    wrong[17] = f32(f32(f32(a[17] - b[17]) + c[17]) + d[17]);
    assert!(!passes(element, &wrong, &expression, &arrays));
    assert!(!passes(element, &vec![0.0; a.len()], &expression, &arrays));
}

#[test]
fn bounds_are_those_worked_out_by_hand() {
    let x = floats(ElementType::F64, &[3.0, -4.0]);
    let arrays = [("x", x), ("y", floats(ElementType::F64, &[2.0, 0.5]))];
    let of = |expression: &RefExpr| bounds(expression, &arrays, &[0, 1]);
    let close = |found: Vec<f64>, expected: [f64; 2]| {
        for (found, expected) in found.iter().zip(expected) {
            assert!((found - expected).abs() <= 1e-12 * expected, "{found} {expected}");
        }
    };
    let (x, y) = (buffer("x"), buffer("y"));
    close(of(&x), [0.0, 0.0]);
    close(of(&binary(Elementwise::Subtract, x.clone(), y.clone())), [5.0, 4.5]);
    // Two operations on terms of 6 + 3 and of 2 + 4.
    let product = binary(Elementwise::Multiply, x.clone(), y.clone());
    close(of(&binary(Elementwise::Add, product, x.clone())), [2.0 * 9.0, 2.0 * 6.0]);
    // (x + y) / y: terms of 5 / 2 and 4.5 / 0.5, and two operations.
    let sum = binary(Elementwise::Add, x.clone(), y.clone());
    close(of(&binary(Elementwise::Divide, sum, y)), [2.0 * 2.5, 2.0 * 9.0]);
    // 1/10 is not an f32, 1/2 is.
    let times = |value: f64| binary(Elementwise::Multiply, RefExpr::Constant(Value::Float(value)), x.clone());
    close(of(&times(0.1)), [2.0 * 0.3, 2.0 * 0.4]);
    close(of(&times(0.5)), [1.5, 2.0]);
    // For a sum, 2√2 times the root of 9 + 16. For products, the factor is one larger and the root is over 36 + 4.
    let root2 = 2.0 * 2f64.sqrt();
    close(of(&call(RefFunction::Sum, &["x"], &[])), [root2 * 5.0, root2 * 5.0]);
    close(of(&call(RefFunction::Dot, &["x", "y"], &[])), [(root2 + 1.0) * 40f64.sqrt(); 2]);
    close(of(&call(RefFunction::Scan, &["x"], &[])), [2.0 * 3.0, root2 * 5.0]);
    close(of(&call(RefFunction::Sort, &["x"], &[])), [0.0, 0.0]);
    close(of(&call(RefFunction::Max, &["x"], &[])), [0.0, 0.0]);
    close(of(&call(RefFunction::Gelu, &["x"], &[])), [2.0 * 3.0, 2.0 * 4.0]);
}

#[test]
fn the_bounds_of_some_elements_are_those_among_all() {
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    let element = ElementType::F32;
    let arrays: Vec<(&str, Operand)> =
        ["x", "y"].into_iter().map(|name| (name, floats(element, &random(&mut rng, element, 36)))).collect();
    let (x, y) = (["x"], ["x", "y"]);
    let functions = [
        call(RefFunction::Matmul, &y, &[6, 6, 6]),
        call(RefFunction::Transpose, &x, &[4, 9]),
        call(RefFunction::Scan, &x, &[]),
        call(RefFunction::Softmax, &x, &[9]),
        call(RefFunction::Exp, &x, &[]),
        call(RefFunction::GeluTanh, &x, &[]),
        call(RefFunction::Add, &y, &[]),
        call(RefFunction::Convolution, &["x", "y"], &[6, 6, 6, 6]),
    ];
    let every: Vec<usize> = (0..36).collect();
    for function in functions {
        // Arithmetic around a function, so that its bounds are not all 0.
        let expression = binary(Elementwise::Multiply, function, buffer("x"));
        let all = bounds(&expression, &arrays, &every);
        assert!(all.iter().any(|bound| *bound > 0.0), "{expression:?}");
        let some = bounds(&expression, &arrays, &[35, 0, 17]);
        assert_eq!(some, [all[35], all[0], all[17]], "{expression:?}");
    }
    let slice = call(RefFunction::Slice, &["x"], &[10, 20]);
    let doubled = binary(Elementwise::Add, slice.clone(), slice);
    let whole = binary(Elementwise::Add, buffer("x"), buffer("x"));
    assert_eq!(bounds(&doubled, &arrays, &[0, 9]), bounds(&whole, &arrays, &[10, 19]));
}

#[test]
fn a_row_of_layernorm_near_its_bias_passes_as_f32_computes_it() {
    let element = ElementType::F32;
    let f32 = |value: f64| rounded(element, value);
    let mut rng = ChaCha8Rng::seed_from_u64(11);
    let columns = 256;
    let x: Vec<f64> = random(&mut rng, element, columns * 40).iter().map(|value| f32(value + 3.0)).collect();
    let (weight, bias) = (random(&mut rng, element, columns), random(&mut rng, element, columns));
    let mut got = Vec::new();
    for row in x.chunks(columns) {
        let mean = f32(in_sequence(element, row) / columns as f64);
        let squares: Vec<f64> = row.iter().map(|x| f32(f32(x - mean) * f32(x - mean))).collect();
        let variance = f32(in_sequence(element, &squares) / columns as f64);
        let scale = f32(1.0 / f32(variance + f32(1e-5)).sqrt());
        let normal = |(place, x): (usize, &f64)| f32(f32(f32(x - mean) * scale) * weight[place]);
        got.extend(row.iter().enumerate().map(|(place, x)| f32(normal((place, x)) + bias[place])));
    }
    let arrays =
        [("x", &x), ("weight", &weight), ("bias", &bias)].map(|(name, values)| (name, floats(element, values)));
    let expression = call(RefFunction::LayerNorm, &["x", "weight", "bias"], &[columns as i64]);
    assert!(passes(element, &got, &expression, &arrays));
    let place = (0..columns).find(|place| weight[*place].abs() > 0.5).unwrap();
    got[place] = -got[place];
    assert!(!passes(element, &got, &expression, &arrays));
}

#[test]
fn the_median_is_that_of_finite_magnitudes_above_zero() {
    let of = |values: &[f64]| {
        let lanes = Arc::new(Lanes::Float(values.to_vec()));
        median(&Operand::Wide { element: ElementType::F32, lanes })
    };
    let is = |found: f64, expected: f64| assert!((found - expected).abs() <= 0.0, "{found} {expected}");
    is(of(&[0.0, f64::NAN, 4.0, -1.0, f64::INFINITY, 0.0, -2.0]), 2.0);
    is(of(&[0.0, f64::NAN]), 0.0);
    is(median(&Operand::Scalar { element: None, value: Number::Int(3) }), 0.0);
}

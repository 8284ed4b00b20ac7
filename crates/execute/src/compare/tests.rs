//! Verdicts on single elements, worked out by hand, and whole arrays against a loop that judges one element at a time.

#![expect(clippy::unwrap_used, reason = "a test panics to fail")]

use std::sync::Arc;

use half::{bf16, f16};
use proptest::prelude::*;

use super::super::typed::{Float, Typed, by_type};
use super::{BLOCK, Difference, ElementType, Leeway, Number, Operand, PIECE, Tolerance, bitwise, compare, last_place};
use crate::operand::Lanes;
use runner_types::Elementwise;

const EXACT: Tolerance = Tolerance::EXACT;

fn bytes(element: ElementType, bytes: Vec<u8>) -> Operand {
    Operand::Bytes { element, bytes: Arc::new(bytes) }
}

fn ints(element: ElementType, values: &[i128]) -> Operand {
    bytes(element, values.iter().flat_map(|v| v.to_le_bytes()[..element.size()].to_vec()).collect())
}

fn floats(element: ElementType, values: &[f64]) -> Operand {
    let mut raw = vec![0; values.len() * element.size()];
    by_type!(element, integer _T => panic!("{element} is no float"), float T => {
        raw.chunks_exact_mut(T::SIZE).zip(values).for_each(|(place, value)| T::nearest(*value).store(place));
    });
    bytes(element, raw)
}

fn wide(element: ElementType, values: &[f64]) -> Operand {
    Operand::Wide { element, lanes: Arc::new(Lanes::Float(values.to_vec())) }
}

fn sum(element: ElementType, left: Operand, right: Operand) -> Operand {
    Operand::Elementwise { element, operation: Elementwise::Add, left: Box::new(left), right: Box::new(right) }
}

fn constant(value: Number) -> Operand {
    Operand::Scalar { element: None, value }
}

fn judged(actual: &Operand, expected: &Operand, tolerance: Tolerance) -> Option<Difference> {
    compare(actual, expected, &tolerance, &[], &Leeway::default()).unwrap()
}

fn passes(element: ElementType, got: f64, expected: f64, tolerance: Tolerance) -> bool {
    judged(&floats(element, &[got]), &wide(element, &[expected]), tolerance).is_none()
}

#[test]
fn each_bound_lets_pass_what_lies_on_it_and_nothing_beyond() {
    let f64_passes = |got, expected, tolerance| passes(ElementType::F64, got, expected, tolerance);
    let abs = Tolerance { abs: 0.25, ..EXACT };
    assert!(f64_passes(1.25, 1.0, abs) && f64_passes(0.75, 1.0, abs));
    assert!(!f64_passes(1.25 + f64::EPSILON, 1.0, abs) && !f64_passes(0.74, 1.0, abs));
    let rel = Tolerance { rel: 0.125, ..EXACT };
    assert!(f64_passes(-9.0, -8.0, rel) && f64_passes(-7.0, -8.0, rel));
    assert!(!f64_passes(-9.01, -8.0, rel) && !f64_passes(8.0, -8.0, rel) && !f64_passes(1e-300, 0.0, rel));
    let ulp = Tolerance { ulp: 2, ..EXACT };
    assert!(f64_passes(1.0 + 2.0 * f64::EPSILON, 1.0, ulp) && !f64_passes(1.0 + 3.0 * f64::EPSILON, 1.0, ulp));
    assert!(f64_passes(1.0, 1.0, EXACT) && f64_passes(-0.0, 0.0, EXACT) && !f64_passes(1.0 + f64::EPSILON, 1.0, EXACT));
}

#[test]
fn any_one_of_the_three_bounds_is_enough() {
    let wide_ulp = Tolerance { abs: 0.0, rel: 1e-9, ulp: 1, derived: false };
    // One ULP at 1 as f16 is 2^-10.
    assert!(passes(ElementType::F16, 1.0 + 2f64.powi(-10), 1.0, wide_ulp));
    let wide_abs = Tolerance { abs: 1.0, rel: 1e-9, ulp: 1, derived: false };
    assert!(passes(ElementType::F16, 1.5, 1.0, wide_abs));
    assert!(!passes(ElementType::F16, 2.5, 1.0, wide_abs));
}

#[test]
fn units_in_the_last_place_are_those_of_the_element_type() {
    for (element, place) in [
        (ElementType::F16, 2f64.powi(-10)),
        (ElementType::Bf16, 2f64.powi(-7)),
        (ElementType::F32, 2f64.powi(-23)),
        (ElementType::F64, 2f64.powi(-52)),
    ] {
        let one = Tolerance { ulp: 1, ..EXACT };
        assert!(passes(element, 1.0 + place, 1.0, one), "{element}");
        assert!(!passes(element, 1.0 + 2.0 * place, 1.0, one), "{element}");
        assert!(!passes(element, 1.0 + place, 1.0, EXACT), "{element}");
    }
}

#[test]
fn an_expected_nan_wants_nan_and_nothing_else_does() {
    let generous = Tolerance { abs: f64::MAX, rel: f64::MAX, ulp: u64::MAX, derived: false };
    for tolerance in [EXACT, generous] {
        for element in [ElementType::F16, ElementType::Bf16, ElementType::F32, ElementType::F64] {
            assert!(passes(element, f64::NAN, f64::NAN, tolerance), "{element}");
            for other in [0.0, 1.0, f64::INFINITY, f64::NEG_INFINITY] {
                assert!(!passes(element, f64::NAN, other, tolerance), "{element}: NaN for {other}");
                assert!(!passes(element, other, f64::NAN, tolerance), "{element}: {other} for NaN");
            }
        }
    }
}

#[test]
fn an_expected_infinity_wants_its_own_sign() {
    let generous = Tolerance { abs: f64::MAX, rel: f64::MAX, ulp: u64::MAX, derived: false };
    for tolerance in [EXACT, generous] {
        for infinity in [f64::INFINITY, f64::NEG_INFINITY] {
            assert!(passes(ElementType::F32, infinity, infinity, tolerance));
            assert!(!passes(ElementType::F32, -infinity, infinity, tolerance));
            assert!(!passes(ElementType::F32, f64::from(f32::MAX).copysign(infinity), infinity, tolerance));
            assert!(!passes(ElementType::F32, infinity, 3.0, tolerance));
        }
    }
}

#[test]
fn a_reference_past_the_largest_value_of_the_type_is_infinite() {
    assert!(passes(ElementType::F16, f64::INFINITY, 131_008.0, Tolerance::default_for(ElementType::F16)));
    assert!(!passes(ElementType::F16, f64::NEG_INFINITY, 131_008.0, Tolerance::default_for(ElementType::F16)));
    assert!(!passes(ElementType::F16, 65_504.0, 131_008.0, Tolerance::default_for(ElementType::F16)));
    // 65519 rounds down to the largest f16, 65520 up to infinity.
    assert!(!passes(ElementType::F16, f64::INFINITY, 65_519.0, Tolerance::default_for(ElementType::F16)));
    assert!(passes(ElementType::F16, f64::INFINITY, 65_520.0, Tolerance::default_for(ElementType::F16)));
}

/// Exponents of the smallest positive and the smallest normal value of each type.
const LEAST: [(ElementType, i32, i32); 3] =
    [(ElementType::F16, -24, -14), (ElementType::Bf16, -133, -126), (ElementType::F32, -149, -126)];

#[test]
fn what_the_reference_rounds_to_passes_below_the_normal_values_too() {
    for (element, least, normal) in LEAST {
        let (least, normal) = (2f64.powi(least), 2f64.powi(normal));
        let just_above = 1.0 + 2f64.powi(-50);
        // A tie goes to the even neighbour: 0, or twice the smallest value.
        for (expected, right, wrong) in [
            (least / 1e10, 0.0, least),
            (least / 2.0, 0.0, least),
            (least / 2.0 * just_above, least, 0.0),
            (least, least, 0.0),
            (least * 1.5, 2.0 * least, least),
            (normal - least / 2.0, normal, normal - least),
            (normal * just_above, normal, normal + least),
        ] {
            for sign in [1.0, -1.0] {
                assert!(passes(element, sign * right, sign * expected, EXACT), "{element}: {right} for {expected}");
                assert!(!passes(element, sign * wrong, sign * expected, EXACT), "{element}: {wrong} for {expected}");
                let default = Tolerance::default_for(element);
                assert!(passes(element, sign * wrong, sign * expected, default), "{element}: one ulp");
                let two = right + 2.0 * least;
                assert!(normal < 4.0 * least || !passes(element, two, right, Tolerance { rel: 0.0, ..default }));
            }
        }
    }
    assert!(passes(ElementType::F32, 0.0, 1e-60, EXACT) && !passes(ElementType::F32, 1e-38, 1e-60, EXACT));
    // Every f64 rounds to itself.
    let least = f64::from_bits(1);
    assert!(passes(ElementType::F64, least, least, EXACT) && !passes(ElementType::F64, 0.0, least, EXACT));
}

#[test]
fn subnormal_results_of_f32_may_be_zero_where_the_code_flushes_them_and_no_others() {
    let is_flushed = |element, got, expected| {
        let leeway = Leeway { flushes: true, errors: None };
        let (got, expected) = (floats(element, &[got]), wide(element, &[expected]));
        compare(&got, &expected, &EXACT, &[], &leeway).unwrap().is_none()
    };
    for element in [ElementType::F32, ElementType::Bf16] {
        let normal = 2f64.powi(-126);
        assert!(is_flushed(element, 0.0, normal / 2.0) && is_flushed(element, -0.0, -normal / 2.0), "{element}");
        assert!(!is_flushed(element, 0.0, normal) && !is_flushed(element, normal, normal / 2.0), "{element}");
        assert!(!passes(element, 0.0, normal / 2.0, EXACT), "{element}");
    }
    assert!(!is_flushed(ElementType::F16, 0.0, 2f64.powi(-20)), "the subnormals of f16 are normal values of f32");
    assert!(!is_flushed(ElementType::F64, 0.0, 1e-310));
}

#[test]
fn an_error_that_is_allowed_at_an_element_counts_there_only_and_not_for_what_was_never_written() {
    let len = 3 * PIECE;
    let mut got = vec![1.0; len];
    (got[5], got[PIECE + 1], got[PIECE + 2], got[len - 1]) = (1.25, 1.25, f64::NAN, 1.75);
    let (got, expected) = (floats(ElementType::F32, &got), wide(ElementType::F32, &vec![1.0; len]));
    let asked = std::cell::RefCell::new(Vec::new());
    let errors = |elements: &[usize]| {
        asked.borrow_mut().push(elements.to_vec());
        elements.iter().map(|element| if *element == PIECE + 1 { 0.2 } else { 0.5 }).collect()
    };
    let leeway = Leeway { flushes: false, errors: Some(&errors) };
    let difference = compare(&got, &expected, &EXACT, &[], &leeway).unwrap().unwrap();
    assert_eq!((difference.index, difference.wrong), (PIECE as u64 + 1, 3));
    assert_eq!(asked.borrow()[0], [5, PIECE + 1, PIECE + 2, len - 1], "no other element is asked for");
    assert!((difference.allowed.unwrap().abs - 0.2).abs() < 1e-15);
    // Two unwritten elements, one of which holds the expected value.
    let unwritten = std::slice::from_ref(&(4..6));
    let difference = compare(&got, &expected, &EXACT, unwritten, &leeway).unwrap().unwrap();
    assert_eq!((difference.index, difference.wrong), (4, 5));
}

#[test]
fn the_last_place_is_the_distance_to_the_next_value() {
    for value in [0.0, 1.0, 1.5, 3.0, 1e-3, -77.0, 6e4, 2f64.powi(-14), 2f64.powi(-20)] {
        let half = f16::from_f64(value).to_f64();
        let next = f16::from_bits(f16::from_f64(value.abs()).to_bits() + 1).to_f64();
        assert!((last_place(ElementType::F16, half) - (next - half.abs())).abs() < 1e-300, "f16 {value}");
        let brain = bf16::from_f64(value).to_f64();
        let next = bf16::from_bits(bf16::from_f64(value.abs()).to_bits() + 1).to_f64();
        assert!((last_place(ElementType::Bf16, brain) - (next - brain.abs())).abs() < 1e-300, "bf16 {value}");
    }
    for value in [0.0f32, 1.0, 0.1, -1e30, f32::MIN_POSITIVE, 1e-42] {
        let next = f64::from(value.abs().next_up());
        let found = last_place(ElementType::F32, f64::from(value));
        assert!((found - (next - f64::from(value.abs()))).abs() < 1e-300, "f32 {value}");
    }
    for value in [1.0, 1e300, f64::MIN_POSITIVE] {
        assert!((last_place(ElementType::F64, value) - (value.next_up() - value)).abs() <= 0.0, "f64 {value}");
    }
    assert!((last_place(ElementType::F64, 0.0) - 0f64.next_up()).abs() <= 0.0);
}

#[test]
fn integers_are_exact_whatever_the_tolerance() {
    let generous = Tolerance { abs: 100.0, rel: 1.0, ulp: 9, derived: false };
    for element in ElementType::ALL.iter().copied().filter(|e| !e.is_float()) {
        let difference = judged(&ints(element, &[5, 6, 8]), &ints(element, &[5, 6, 7]), generous).unwrap();
        assert_eq!((difference.index, difference.got, difference.expected), (2, Number::Int(8), Number::Int(7)));
        assert_eq!((difference.wrong, difference.of), (1, 3));
    }
    // 2^53 + 1 is not an f64; a comparison in f64 would take it for 2^53.
    let large = ints(ElementType::I64, &[(1 << 53) + 1]);
    assert!(judged(&large, &wide(ElementType::F64, &[2f64.powi(53) + 2.0]), generous).is_some());
    assert!(judged(&large, &ints(ElementType::I64, &[(1 << 53) + 1]), EXACT).is_none());
}

#[test]
fn the_same_bits_of_another_type_are_another_number() {
    let (max, minus) = (ints(ElementType::U64, &[u64::MAX.into()]), ints(ElementType::I64, &[-1]));
    let difference = judged(&max, &minus, EXACT).unwrap();
    assert_eq!((difference.got, difference.expected), (Number::Int(u64::MAX.into()), Number::Int(-1)));
    assert!(judged(&minus, &max, EXACT).is_some());
    assert!(judged(&ints(ElementType::U64, &[7]), &ints(ElementType::I8, &[7]), EXACT).is_none());
    assert!(judged(&ints(ElementType::U8, &[255]), &ints(ElementType::I8, &[-1]), EXACT).is_some());
}

#[test]
fn floats_and_integers_meet_as_numbers() {
    let halves = floats(ElementType::F32, &[2.0, 2.5]);
    assert_eq!(judged(&halves, &constant(Number::Int(2)), EXACT).unwrap().index, 1);
    assert!(judged(&halves, &constant(Number::Int(2)), Tolerance { abs: 0.5, ..EXACT }).is_none());
    let large = floats(ElementType::F32, &[2f64.powi(64)]);
    let close = Tolerance { rel: 1e-6, ..EXACT };
    assert!(judged(&large, &ints(ElementType::U64, &[u64::MAX.into()]), close).is_none());
    assert!(judged(&large, &ints(ElementType::I64, &[-1]), close).is_some());
    assert!(judged(&ints(ElementType::I32, &[3, 3]), &constant(Number::Float(3.0)), EXACT).is_none());
    assert!(
        judged(&ints(ElementType::I32, &[3]), &constant(Number::Float(3.25)), Tolerance { abs: 1.0, ..EXACT })
            .is_some()
    );
}

#[test]
fn a_number_stands_for_every_element_and_an_array_for_none_but_its_own() {
    let array = floats(ElementType::F64, &[4.0, 4.0, 5.0]);
    let difference = judged(&array, &constant(Number::Float(4.0)), EXACT).unwrap();
    assert_eq!((difference.index, difference.wrong, difference.of), (2, 1, 3));
    let one = constant(Number::Float(4.0));
    assert!(judged(&one, &constant(Number::Float(4.0)), EXACT).is_none());
    assert!(judged(&one, &floats(ElementType::F64, &[4.0]), EXACT).is_none());
    for (actual, expected, problem) in [
        (array.clone(), floats(ElementType::F64, &[4.0]), "the check compares 3 elements with 1 elements"),
        (one.clone(), array, "the check compares one number with 3 elements"),
        (floats(ElementType::F64, &[]), one, "the check compares an empty array with a number"),
    ] {
        assert_eq!(compare(&actual, &expected, &EXACT, &[], &Leeway::default()).unwrap_err(), problem);
    }
    let none = floats(ElementType::F64, &[]);
    assert!(judged(&none, &none.clone(), EXACT).is_none());
}

#[test]
fn a_difference_in_words_has_both_values_and_their_distance() {
    let difference =
        judged(&floats(ElementType::F32, &[1.0, 0.1]), &wide(ElementType::F32, &[1.0, 0.5]), EXACT).unwrap();
    let mismatch = difference.mismatch("out".to_owned(), Some(ElementType::F32));
    assert_eq!((mismatch.what.as_str(), mismatch.index), ("out", 1));
    assert_eq!((mismatch.expected.as_str(), mismatch.got.as_str()), ("0.5", "0.1"));
    assert_eq!(mismatch.error, Some(0.5 - f64::from(0.1f32)));
    assert_eq!((mismatch.wrong, mismatch.of), (1, 2));
    // In f64 both would round to 2^64.
    let large = judged(
        &ints(ElementType::U64, &[u64::MAX.into()]),
        &ints(ElementType::U64, &[i128::from(u64::MAX) - 1]),
        EXACT,
    );
    assert_eq!(large.unwrap().mismatch(String::new(), None).error, Some(1.0));
    let infinite = judged(&floats(ElementType::F32, &[f64::INFINITY]), &wide(ElementType::F32, &[1.0]), EXACT);
    assert_eq!(infinite.unwrap().mismatch(String::new(), Some(ElementType::F32)).error, None);
}

#[test]
fn the_first_of_many_wrong_elements_is_found_and_all_are_counted_with_any_number_of_threads() {
    let len = 2 * BLOCK + PIECE + 3;
    for wrong in [vec![0], vec![len - 1], vec![PIECE - 1, PIECE], vec![BLOCK, BLOCK - 1, 5 * PIECE + 7, len - 1]] {
        let mut values = vec![1.5; len];
        for &i in &wrong {
            values[i] = 9.0;
        }
        let (actual, expected) = (floats(ElementType::F32, &values), wide(ElementType::F32, &vec![1.5; len]));
        for threads in [1, 4] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let difference = pool.install(|| judged(&actual, &expected, EXACT)).unwrap();
            assert_eq!(difference.index, *wrong.iter().min().unwrap() as u64, "{wrong:?}");
            assert_eq!((difference.wrong, difference.of), (wrong.len() as u64, len as u64), "{wrong:?}");
        }
    }
}

#[test]
fn bytes_are_told_apart_by_their_bits() {
    let (now, before) = (floats(ElementType::F32, &[0.0, f64::NAN]), floats(ElementType::F32, &[-0.0, f64::NAN]));
    let (Operand::Bytes { bytes: now, .. }, Operand::Bytes { bytes: before, .. }) = (now, before) else { panic!() };
    let difference = bitwise(&now, &before, ElementType::F32).unwrap();
    assert_eq!((difference.index, difference.wrong, difference.of), (0, 1, 2));
    assert!(bitwise(&now, &now, ElementType::F32).is_none());
    let mut later = vec![7; 2 * BLOCK * 2];
    let first = later.clone();
    later[BLOCK * 2 + 9] = 8;
    later[BLOCK * 2 + 8] = 8;
    later[2 * BLOCK * 2 - 1] = 8;
    let difference = bitwise(&later, &first, ElementType::I16).unwrap();
    assert_eq!((difference.index, difference.wrong, difference.of), (BLOCK as u64 + 4, 2, 2 * BLOCK as u64));
    assert_eq!((difference.expected, difference.got), (Number::Int(0x0707), Number::Int(0x0808)));
}

/// A number rounded to a float type, with the distance to the next value away from zero (or, for the largest value,
/// towards it).
fn held(element: ElementType, value: f64) -> (f64, f64) {
    macro_rules! by {
        ($type:ty) => {{
            let value = <$type as Float>::nearest(value.abs());
            let (here, next) = (value.to_bits(), <$type>::from_bits(value.to_bits() + 1).wide());
            let before = || value.wide() - <$type>::from_bits(here - 1).wide();
            (value.wide(), if next.is_finite() { next - value.wide() } else { before() })
        }};
    }
    let (size, place) = match element {
        ElementType::F16 => by!(f16),
        ElementType::Bf16 => by!(bf16),
        ElementType::F32 => by!(f32),
        _ => by!(f64),
    };
    (size.copysign(value), place)
}

/// Applies the rule as the manual states it, to one element.
fn rule(element: ElementType, got: f64, expected: f64, tolerance: Tolerance) -> bool {
    if expected.is_nan() || got.is_nan() {
        return expected.is_nan() && got.is_nan();
    }
    let distance = (got - expected).abs();
    if distance.is_finite() && (distance <= tolerance.abs || distance <= tolerance.rel * expected.abs()) {
        return true;
    }
    let (held, place) = held(element, expected);
    if held.is_infinite() || got.is_infinite() {
        return held.to_bits() == got.to_bits();
    }
    (got - held).abs() <= tolerance.ulp as f64 * place
}

fn any_float() -> impl Strategy<Value = f64> {
    prop_oneof![
        6 => -4.0..4.0,
        2 => (-40i32..40, -1.0..1.0).prop_map(|(exponent, x): (i32, f64)| x * 2f64.powi(exponent)),
        1 => prop::sample::select(vec![0.0, -0.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 65_504.0, 65_519.0, 65_520.0, 1e39, -1e39, f64::MAX]),
    ]
}

fn any_tolerance() -> impl Strategy<Value = Tolerance> {
    let bound = || prop_oneof![Just(0.0), 0.0..1e-3, Just(0.5), Just(f64::MAX)];
    (bound(), bound(), prop_oneof![Just(0), 0..8u64, Just(u64::MAX)]).prop_map(|(abs, rel, ulp)| Tolerance {
        abs,
        rel,
        ulp,
        derived: false,
    })
}

fn float_type() -> impl Strategy<Value = ElementType> {
    prop::sample::select(vec![ElementType::F16, ElementType::Bf16, ElementType::F32, ElementType::F64])
}

/// Result of a plain loop: index of the first wrong element, and number of wrong ones.
fn one_by_one(len: usize, right: impl Fn(usize) -> bool) -> Option<(u64, u64)> {
    let wrong: Vec<usize> = (0..len).filter(|i| !right(*i)).collect();
    wrong.first().map(|first| (*first as u64, wrong.len() as u64))
}

fn placed(difference: Option<Difference>) -> Option<(u64, u64)> {
    difference.map(|difference| (difference.index, difference.wrong))
}

fn value(array: &Operand, index: usize) -> f64 {
    array.number(index).as_f64()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn one_float_is_judged_by_the_rule(element in float_type(), got in any_float(), expected in any_float(), tolerance in any_tolerance()) {
        let got = floats(element, &[got]);
        let right = rule(element, value(&got, 0), expected, tolerance);
        prop_assert_eq!(judged(&got, &wide(element, &[expected]), tolerance).is_none(), right);
        prop_assert_eq!(judged(&got, &constant(Number::Float(expected)), tolerance).is_none(), right);
    }

    #[test]
    fn close_floats_are_judged_by_the_rule(element in float_type(), expected in any_float(), off in -12i64..12, tolerance in any_tolerance()) {
        let (around, place) = held(element, expected);
        let got = floats(element, &[around + off as f64 * place]);
        let right = rule(element, value(&got, 0), expected, tolerance);
        prop_assert_eq!(judged(&got, &wide(element, &[expected]), tolerance).is_none(), right);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn sums_of_floats_are_judged_as_one_by_one(
        element in float_type(),
        terms in prop::collection::vec((any_float(), any_float(), any_float()), 1..40),
        off in prop::collection::vec((0usize..5000, -3i64..4), 0..6),
        len in prop_oneof![1usize..40, PIECE - 2..PIECE + 3, 4000usize..5000],
        tolerance in any_tolerance(),
    ) {
        let column = |pick: fn(&(f64, f64, f64)) -> f64| {
            floats(element, &terms.iter().cycle().take(len).map(pick).collect::<Vec<_>>())
        };
        let (x, y, z) = (column(|t| t.0), column(|t| t.1), column(|t| t.2));
        let values = |array: &Operand| (0..len).map(|i| value(array, i)).collect::<Vec<_>>();
        let (a, b, c) = (values(&x), values(&y), values(&z));
        let of = |join: &dyn Fn(usize) -> f64| (0..len).map(join).collect::<Vec<_>>();
        for (expected, exact) in [
            (sum(element, x.clone(), y.clone()), of(&|i| a[i] + b[i])),
            (sum(element, sum(element, x.clone(), y.clone()), z.clone()), of(&|i| (a[i] + b[i]) + c[i])),
            (sum(element, z.clone(), sum(element, x.clone(), y.clone())), of(&|i| c[i] + (a[i] + b[i]))),
            (sum(element, wide(element, &a), y.clone()), of(&|i| a[i] + b[i])),
        ] {
            let mut near: Vec<f64> = exact.iter().map(|v| held(element, *v).0).collect();
            for (place, off) in off.iter().filter(|(place, _)| *place < len) {
                near[*place] += *off as f64 * held(element, near[*place]).1;
            }
            let actual = floats(element, &near);
            let right = |i| rule(element, value(&actual, i), exact[i], tolerance);
            prop_assert_eq!(placed(judged(&actual, &expected, tolerance)), one_by_one(len, right));
        }
    }

    #[test]
    fn sums_of_integers_are_judged_as_one_by_one(
        element in prop::sample::select(ElementType::ALL.iter().copied().filter(|e| !e.is_float()).collect::<Vec<_>>()),
        terms in prop::collection::vec(any::<(i64, i64, i64)>(), 1..40),
        off in prop::collection::vec(0usize..5000, 0..6),
        len in prop_oneof![1usize..40, PIECE - 2..PIECE + 3, 4000usize..5000],
    ) {
        let column = |pick: fn(&(i64, i64, i64)) -> i64| -> Vec<i128> {
            terms.iter().cycle().take(len).map(|t| pick(t).into()).collect()
        };
        let (x, y, z) = (column(|t| t.0), column(|t| t.1), column(|t| t.2));
        let exact: Vec<i128> = (0..len).map(|i| x[i] + y[i] + z[i]).collect();
        let mut total = exact.clone();
        off.iter().filter(|place| **place < len).for_each(|place| total[*place] ^= 1);
        let [x, y, z, actual] = [&x, &y, &z, &total].map(|values| ints(element, values));
        for expected in [
            sum(element, sum(element, x.clone(), y.clone()), z.clone()),
            sum(element, x.clone(), sum(element, y.clone(), z.clone())),
        ] {
            prop_assert_eq!(placed(judged(&actual, &expected, EXACT)), one_by_one(len, |i| total[i] == exact[i]));
        }
    }
}

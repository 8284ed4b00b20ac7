//! Each function against values computed another way: by hand, in i128, or in exact fixed point.

#![expect(clippy::unwrap_used, clippy::float_cmp, reason = "a test panics to fail; exact values are meant")]

use std::sync::Arc;

use proptest::prelude::*;

use super::super::operand::{Lanes, Number, Operand};
use super::super::typed::{Float, Typed, by_type};
use super::{ElementType, Elementwise, RefExpr, RefFunction, evaluate, names};
use runner_types::Value;

/// Enough elements for several tasks and an uneven remainder.
const MANY: usize = 3 * (1 << 16) + 4321;

fn ints(element: ElementType, values: &[i128]) -> Operand {
    let mut bytes = vec![0; values.len() * element.size()];
    for (place, value) in bytes.chunks_exact_mut(element.size()).zip(values) {
        place.copy_from_slice(&value.to_le_bytes()[..element.size()]);
    }
    Operand::Bytes { element, bytes: Arc::new(bytes) }
}

fn floats(element: ElementType, values: &[f64]) -> Operand {
    let mut bytes = vec![0; values.len() * element.size()];
    by_type!(element, integer _T => panic!("{element} is no float"), float T => {
        bytes.chunks_exact_mut(T::SIZE).zip(values).for_each(|(place, value)| T::nearest(*value).store(place));
    });
    Operand::Bytes { element, bytes: Arc::new(bytes) }
}

fn apply(function: RefFunction, arguments: &[Operand], integers: &[i64]) -> Result<Operand, String> {
    let buffers = (0..arguments.len()).map(|i| RefExpr::Buffer(i.to_string())).collect();
    let expression = RefExpr::Call { function, buffers, integers: integers.to_vec() };
    evaluate(&expression, &mut |name| Ok(arguments[name.parse::<usize>().unwrap()].clone()))
}

fn number(function: RefFunction, arguments: &[Operand]) -> Number {
    match apply(function, arguments, &[]).unwrap() {
        Operand::Scalar { value, .. } => value,
        other => panic!("{} gave {other:?}", function.name()),
    }
}

fn whole(function: RefFunction, element: ElementType, values: &[i128]) -> i128 {
    match number(function, &[ints(element, values)]) {
        Number::Int(value) => value,
        Number::Float(value) => panic!("{value} is no integer"),
    }
}

fn real(function: RefFunction, values: &[f64]) -> f64 {
    match number(function, &[floats(ElementType::F64, values)]) {
        Number::Float(value) => value,
        Number::Int(value) => panic!("{value} is no float"),
    }
}

fn elements(array: &Operand) -> Vec<Number> {
    (0..array.len().unwrap()).map(|i| array.number(i)).collect()
}

fn whole_elements(array: &Operand) -> Vec<i128> {
    let as_whole = |number| if let Number::Int(value) = number { value } else { panic!("{number} is no integer") };
    elements(array).into_iter().map(as_whole).collect()
}

fn real_elements(array: &Operand) -> Vec<f64> {
    elements(array).into_iter().map(Number::as_f64).collect()
}

fn integer_types() -> impl Iterator<Item = ElementType> {
    ElementType::ALL.iter().copied().filter(|element| !element.is_float())
}

fn float_types() -> impl Iterator<Item = ElementType> {
    ElementType::ALL.iter().copied().filter(|element| element.is_float())
}

/// Smallest and largest value of an integer type, from its size and sign.
fn range(element: ElementType) -> (i128, i128) {
    let bits = 8 * element.size() as u32;
    if element.is_signed_integer() { (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) } else { (0, (1 << bits) - 1) }
}

/// Wraps an integer to the type: its remainder modulo 2^bits.
fn wrapped(element: ElementType, value: i128) -> i128 {
    let (low, high) = range(element);
    (value - low).rem_euclid(high - low + 1) + low
}

#[test]
fn each_function_has_its_value_on_a_few_small_integers() {
    let values = [6, 3, 5, 12];
    for (function, expected) in [
        (RefFunction::Sum, 26),
        (RefFunction::Min, 3),
        (RefFunction::Max, 12),
        (RefFunction::Product, 1080),
        (RefFunction::SumSquares, 36 + 9 + 25 + 144),
        (RefFunction::And, 0),
        (RefFunction::Or, 0b1111),
    ] {
        assert_eq!(whole(function, ElementType::I32, &values), expected, "{}", function.name());
    }
    assert_eq!(whole(RefFunction::And, ElementType::I32, &[6, 3, 2]), 2);
    let dot = number(RefFunction::Dot, &[ints(ElementType::I32, &[1, -2, 3]), ints(ElementType::I32, &[4, 5, -6])]);
    assert_eq!(dot, Number::Int(4 - 10 - 18));
}

#[test]
fn each_function_has_its_value_on_a_few_small_floats() {
    let values = [0.5, -2.0, 4.0];
    for (function, expected) in [
        (RefFunction::Sum, 2.5),
        (RefFunction::Min, -2.0),
        (RefFunction::Max, 4.0),
        (RefFunction::Product, -4.0),
        (RefFunction::SumSquares, 20.25),
    ] {
        for element in float_types() {
            assert_eq!(number(function, &[floats(element, &values)]), Number::Float(expected), "{element}");
        }
    }
    let dot = [floats(ElementType::F32, &values), floats(ElementType::F32, &[2.0, 3.0, 0.25])];
    assert_eq!(number(RefFunction::Dot, &dot), Number::Float(1.0 - 6.0 + 1.0));
}

fn arithmetic(operation: Elementwise, operands: &[RefExpr], buffers: &[Operand]) -> Result<Operand, String> {
    let expression = RefExpr::Elementwise { operation, operands: operands.to_vec() };
    evaluate(&expression, &mut |name| Ok(buffers[name.parse::<usize>().unwrap()].clone()))
}

#[test]
fn arithmetic_on_elements_wraps_integers_and_keeps_floats_unrounded() {
    use Elementwise::{Abs, Add, Divide, Max, Min, Multiply, Negate, Sqrt, Subtract};
    let (x, y) = (RefExpr::Buffer("0".into()), RefExpr::Buffer("1".into()));
    let number = |value| RefExpr::Constant(Value::Int(value));
    let (both, only) = ([x.clone(), y.clone()], std::slice::from_ref(&x));
    let bytes = [ints(ElementType::U8, &[200, 7, 0]), ints(ElementType::U8, &[100, 2, 3])];
    for (operation, results) in [
        (Add, [44, 9, 3]),
        (Subtract, [100, 5, 253]),
        (Multiply, [32, 14, 0]),
        (Divide, [2, 3, 0]),
        (Min, [100, 2, 0]),
        (Max, [200, 7, 3]),
    ] {
        let found = arithmetic(operation, &both, &bytes).unwrap();
        assert_eq!(elements(&found), results.map(Number::Int), "{operation:?}");
    }
    let negative = arithmetic(Negate, only, &[ints(ElementType::I8, &[-128, 5])]).unwrap();
    assert_eq!(elements(&negative), [-128, -5].map(Number::Int));
    let largest = [ints(ElementType::U64, &[i128::from(u64::MAX)])];
    let halved = arithmetic(Divide, &[x.clone(), number(2)], &largest).unwrap();
    assert_eq!(elements(&halved), [Number::Int(i128::from(u64::MAX / 2))]);
    let greater = arithmetic(Max, &[number(3), x.clone()], &largest).unwrap();
    assert_eq!(elements(&greater), [Number::Int(i128::from(u64::MAX))]);
    // The f16 nearest to a third is 1365 / 4096; three times that is not an f16.
    let third = [floats(ElementType::F16, &[1.0 / 3.0])];
    let one = arithmetic(Multiply, &[number(3), x.clone()], &third).unwrap();
    assert_eq!(elements(&one), [Number::Float(4095.0 / 4096.0)]);
    let signed = [floats(ElementType::F32, &[-2.25, 0.0])];
    assert_eq!(elements(&arithmetic(Abs, only, &signed).unwrap()), [2.25, 0.0].map(Number::Float));
    let Number::Float(root) = elements(&arithmetic(Sqrt, only, &signed).unwrap())[0] else { panic!() };
    assert!(root.is_nan());
    let Number::Float(infinite) = elements(&arithmetic(Divide, &[number(1), x.clone()], &signed).unwrap())[1] else {
        panic!()
    };
    assert!(infinite.is_infinite());
    // One number for all elements: 1, 2, 3 over their sum.
    let sum = RefExpr::Call { function: RefFunction::Sum, buffers: vec![x.clone()], integers: vec![] };
    let shares = arithmetic(Divide, &[x.clone(), sum], &[floats(ElementType::F64, &[1.0, 2.0, 3.0])]).unwrap();
    assert_eq!(elements(&shares), [1.0 / 6.0, 2.0 / 6.0, 3.0 / 6.0].map(Number::Float));
    for (operation, operands, buffers, why) in [
        (Divide, both.to_vec(), [&bytes[0], &bytes[0]], "an integer is divided by zero"),
        (Add, both.to_vec(), [&bytes[0], &signed[0]], "arrays of one type, but got u8 and f32"),
        (Add, both.to_vec(), [&bytes[0], &largest[0]], "got u8 and u64"),
        (Sqrt, vec![x.clone()], [&bytes[0], &bytes[0]], "sqrt() works on floats, but got u8"),
        (
            Multiply,
            vec![x.clone(), RefExpr::Constant(Value::Float(0.5))],
            [&bytes[0], &bytes[0]],
            "takes integers, but got 0.5",
        ),
    ] {
        let error = arithmetic(operation, &operands, &buffers.map(Clone::clone)).unwrap_err();
        assert!(error.contains(why), "{error}");
    }
    let longer = [floats(ElementType::F32, &[1.0]), floats(ElementType::F32, &[1.0, 2.0])];
    assert!(arithmetic(Add, &both, &longer).unwrap_err().contains("arrays of one length, but got 1 and 2"));
}

#[test]
fn sums_element_by_element_and_copies_are_arrays() {
    let (x, y) = (ints(ElementType::I16, &[1, 2, 3]), ints(ElementType::I16, &[10, -20, 30]));
    assert_eq!(whole_elements(&apply(RefFunction::Add, &[x.clone(), y], &[]).unwrap()), [11, -18, 33]);
    assert_eq!(whole_elements(&apply(RefFunction::Copy, &[x], &[]).unwrap()), [1, 2, 3]);
    let (x, y) = (floats(ElementType::F16, &[0.25, 65504.0]), floats(ElementType::F16, &[-1.0, 65504.0]));
    // Not rounded to the type, in which the second would be infinite.
    assert_eq!(real_elements(&apply(RefFunction::Add, &[x, y], &[]).unwrap()), [-0.75, 131_008.0]);
}

#[test]
fn a_product_of_matrices_is_rows_by_columns() {
    let (a, b) = (ints(ElementType::I32, &[1, 2, 3, 4, 5, 6]), ints(ElementType::I32, &[7, 8, 9, 10, 11, 12]));
    let product = apply(RefFunction::Matmul, &[a, b], &[2, 2, 3]).unwrap();
    assert_eq!(whole_elements(&product), [58, 64, 139, 154]);
    let (a, b) = (floats(ElementType::F32, &[0.5, 2.0]), floats(ElementType::F32, &[4.0, 0.25]));
    let product = apply(RefFunction::Matmul, &[a, b], &[1, 1, 2]).unwrap();
    assert_eq!(real_elements(&product), [2.5]);
}

#[test]
fn a_transpose_turns_rows_into_columns_for_elements_of_every_size() {
    for element in integer_types() {
        let matrix = ints(element, &[1, 2, 3, 4, 5, 6]);
        let turned = apply(RefFunction::Transpose, &[matrix], &[2, 3]).unwrap();
        assert_eq!(whole_elements(&turned), [1, 4, 2, 5, 3, 6], "{element}");
    }
}

#[test]
fn functions_of_functions_work_on_what_the_inner_ones_made() {
    let matrix = RefExpr::Buffer("a".to_owned());
    let call = |function, buffers, integers: &[i64]| RefExpr::Call { function, buffers, integers: integers.to_vec() };
    let turned = call(RefFunction::Transpose, vec![matrix.clone()], &[2, 3]);
    let product = call(RefFunction::Matmul, vec![matrix.clone(), turned.clone()], &[2, 2, 3]);
    let again = call(RefFunction::Transpose, vec![product.clone()], &[2, 2]);
    let twice = call(RefFunction::Add, vec![product.clone(), again], &[]);
    let sum = call(RefFunction::Sum, vec![twice.clone()], &[]);
    let mut buffer = |_: &str| Ok::<_, String>(ints(ElementType::I64, &[1, 2, 3, 4, 5, 6]));
    // [1 2 3; 4 5 6] times its transpose is [14 32; 32 77].
    assert_eq!(whole_elements(&evaluate(&product, &mut buffer).unwrap()), [14, 32, 32, 77]);
    assert_eq!(whole_elements(&evaluate(&twice, &mut buffer).unwrap()), [28, 64, 64, 154]);
    assert_eq!(evaluate(&sum, &mut buffer).unwrap().number(0), Number::Int(310));
    let both = call(RefFunction::Add, vec![matrix, turned], &[]);
    assert_eq!(names(&both), ["a"]);
    assert_eq!(whole_elements(&evaluate(&both, &mut buffer).unwrap()), [2, 6, 5, 9, 8, 12]);
}

#[test]
fn integers_of_every_type_wrap_past_their_ends() {
    for element in integer_types() {
        let (low, high) = range(element);
        assert_eq!(whole(RefFunction::Sum, element, &[high, 1]), low, "{element}");
        assert_eq!(whole(RefFunction::Sum, element, &[high, high]), wrapped(element, 2 * high), "{element}");
        assert_eq!(whole(RefFunction::Product, element, &[high, 3]), wrapped(element, 3 * high), "{element}");
        assert_eq!(whole(RefFunction::Product, element, &[low, 2]), wrapped(element, 2 * low), "{element}");
        // Modulo 2ᵏ the squares of 0 and −2ᵏ⁻¹ are 0, those of 2ᵏ − 1 and 2ᵏ⁻¹ − 1 are 1.
        assert_eq!(whole(RefFunction::SumSquares, element, &[low, high]), 1, "{element}");
        let added = apply(RefFunction::Add, &[ints(element, &[high]), ints(element, &[1])], &[]).unwrap();
        assert_eq!(whole_elements(&added), [low], "{element}");
        let dot = number(RefFunction::Dot, &[ints(element, &[high, low]), ints(element, &[2, 2])]);
        assert_eq!(dot, Number::Int(wrapped(element, 2 * high + 2 * low)), "{element}");
        let square = [ints(element, &[high]), ints(element, &[high])];
        let product = apply(RefFunction::Matmul, &square, &[1, 1, 1]).unwrap();
        assert_eq!(whole_elements(&product), [1], "{element}");
    }
}

#[test]
fn the_ends_of_every_type_are_its_least_and_greatest() {
    for element in integer_types() {
        let (low, high) = range(element);
        assert_eq!(whole(RefFunction::Min, element, &[1, high, low, 2]), low, "{element}");
        assert_eq!(whole(RefFunction::Max, element, &[1, high, low, 2]), high, "{element}");
        assert_eq!(whole(RefFunction::Min, element, &[high]), high, "{element}");
        assert_eq!(whole(RefFunction::Max, element, &[low]), low, "{element}");
        assert_eq!(whole(RefFunction::Or, element, &[low, high]), wrapped(element, -1), "{element}");
        assert_eq!(whole(RefFunction::And, element, &[low, high]), 0, "{element}");
    }
}

#[test]
fn functions_of_nothing_are_neutral_or_refused() {
    for element in integer_types() {
        for (function, expected) in [
            (RefFunction::Sum, 0),
            (RefFunction::Product, 1),
            (RefFunction::SumSquares, 0),
            (RefFunction::And, wrapped(element, -1)),
            (RefFunction::Or, 0),
        ] {
            assert_eq!(whole(function, element, &[]), expected, "{} of {element}", function.name());
        }
        assert_eq!(number(RefFunction::Dot, &[ints(element, &[]), ints(element, &[])]), Number::Int(0));
    }
    for (function, expected) in [(RefFunction::Sum, 0.0), (RefFunction::Product, 1.0), (RefFunction::SumSquares, 0.0)] {
        assert_eq!(real(function, &[]), expected, "{}", function.name());
    }
    let empty = ints(ElementType::I32, &[]);
    for function in [RefFunction::Min, RefFunction::Max] {
        let error = apply(function, std::slice::from_ref(&empty), &[]).unwrap_err();
        assert_eq!(error, format!("{}() of an empty array has no value", function.name()));
    }
    let none = apply(RefFunction::Add, &[empty.clone(), empty.clone()], &[]).unwrap();
    assert_eq!(none.len(), Some(0));
    assert_eq!(apply(RefFunction::Copy, std::slice::from_ref(&empty), &[]).unwrap().len(), Some(0));
    assert_eq!(apply(RefFunction::Transpose, std::slice::from_ref(&empty), &[0, 5]).unwrap().len(), Some(0));
    // Sums over an empty inner dimension.
    let zeros = apply(RefFunction::Matmul, &[empty.clone(), empty], &[2, 3, 0]).unwrap();
    assert_eq!(whole_elements(&zeros), [0; 6]);
}

#[test]
fn one_nan_makes_every_reduction_of_floats_nan() {
    for function in
        [RefFunction::Sum, RefFunction::Min, RefFunction::Max, RefFunction::Product, RefFunction::SumSquares]
    {
        for place in 0..3 {
            let mut values = [1.0, 2.0, 3.0];
            values[place] = f64::NAN;
            assert!(real(function, &values).is_nan(), "{} with NaN at {place}", function.name());
        }
    }
}

#[test]
fn infinities_stay_in_sums_unless_they_are_opposed() {
    assert_eq!(real(RefFunction::Sum, &[1.0, f64::INFINITY, 2.0]), f64::INFINITY);
    assert!(real(RefFunction::Sum, &[f64::INFINITY, f64::NEG_INFINITY]).is_nan());
    assert_eq!(real(RefFunction::Sum, &[f64::MAX, f64::MAX]), f64::INFINITY);
    assert_eq!(real(RefFunction::Min, &[1.0, f64::INFINITY]), 1.0);
    assert_eq!(real(RefFunction::Max, &[f64::NEG_INFINITY]), f64::NEG_INFINITY);
}

#[test]
fn a_sum_keeps_what_a_plain_loop_loses() {
    // Ten thousand ones are each absorbed by 2^60, and the two large values cancel.
    let mut values = vec![1.0; 10_000];
    values[0] = 2f64.powi(60);
    values[9_999] = -2f64.powi(60);
    assert_eq!(real(RefFunction::Sum, &values), 9_998.0);
    // (1 + 2^-52)(1 - 2^-52) - 1 is -2^-104, which rounding the product loses.
    let x = floats(ElementType::F64, &[1.0 + f64::EPSILON, -1.0]);
    let y = floats(ElementType::F64, &[1.0 - f64::EPSILON, 1.0]);
    assert_eq!(number(RefFunction::Dot, &[x, y]), Number::Float(-(2f64.powi(-104))));
}

#[test]
fn long_arrays_are_reduced_whole() {
    let n = MANY as i128;
    let iota: Vec<i128> = (1..=n).collect();
    assert_eq!(whole(RefFunction::Sum, ElementType::I64, &iota), n * (n + 1) / 2);
    assert_eq!(whole(RefFunction::Sum, ElementType::U16, &iota), wrapped(ElementType::U16, n * (n + 1) / 2));
    assert_eq!(whole(RefFunction::SumSquares, ElementType::I64, &iota), n * (n + 1) * (2 * n + 1) / 6);
    assert_eq!(whole(RefFunction::Min, ElementType::I32, &iota), 1);
    assert_eq!(whole(RefFunction::Max, ElementType::I32, &iota), n);
    let x: Vec<f64> = (1..=MANY).map(|i| i as f64).collect();
    assert_eq!(real(RefFunction::Sum, &x), (n * (n + 1) / 2) as f64);
    assert_eq!(real(RefFunction::Max, &x), n as f64);
    let mut last = vec![1.0; MANY];
    last[MANY - 1] = -3.0;
    assert_eq!(real(RefFunction::Product, &last), -3.0);
    assert_eq!(real(RefFunction::Min, &last), -3.0);
}

#[test]
fn the_number_of_threads_does_not_show() {
    let values: Vec<f64> = (0..MANY).map(|i| ((i * 7919) % 104_729) as f64 / 3.0 - 17_000.0).collect();
    let (x, m) = (floats(ElementType::F32, &values), floats(ElementType::F32, &values[..90 * 90]));
    let all = |threads| {
        rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(|| {
            let sums = [RefFunction::Sum, RefFunction::SumSquares, RefFunction::Product].map(|f| {
                let Number::Float(value) = number(f, std::slice::from_ref(&x)) else { panic!() };
                value.to_bits()
            });
            (sums, real_elements(&apply(RefFunction::Matmul, &[m.clone(), m.clone()], &[90, 90, 90]).unwrap()))
        })
    };
    assert_eq!(all(1), all(5));
}

#[test]
fn arguments_that_do_not_meet_are_refused_with_their_sizes_and_types() {
    let (i, f) = (ints(ElementType::I32, &[1, 2]), floats(ElementType::F32, &[1.0, 2.0]));
    let one = Operand::Scalar { element: None, value: Number::Int(1) };
    let longer = ints(ElementType::I32, &[1, 2, 3]);
    let huge = i64::MAX;
    for (function, arguments, integers, expected) in [
        (RefFunction::Add, vec![i.clone(), f.clone()], vec![], "add() takes arrays of one type, but got i32 and f32"),
        (RefFunction::Dot, vec![i.clone(), longer], vec![], "dot() takes arrays of one length, but got 2 and 3"),
        (RefFunction::Sum, vec![one], vec![], "sum() takes arrays, but one of its arguments is a number"),
        (RefFunction::And, vec![f.clone()], vec![], "and() works on integers, but the array is f32"),
        (RefFunction::Or, vec![f], vec![], "or() works on integers, but the array is f32"),
        (
            RefFunction::Transpose,
            vec![i.clone()],
            vec![2, 2],
            "transpose() expects 2 × 2 elements, but the array has 2",
        ),
        (RefFunction::Transpose, vec![i.clone()], vec![-1, 2], "transpose() got a negative size, -1"),
        (
            RefFunction::Matmul,
            vec![i.clone(), i.clone()],
            vec![1, huge, 2],
            "matmul() expects 2 × 9223372036854775807 elements, but the array has 2",
        ),
        (RefFunction::Sum, vec![i.clone(), i.clone()], vec![], "sum() got 2 buffers and 0 integers"),
        (RefFunction::Add, vec![i.clone()], vec![], "add() got 1 buffers and 0 integers"),
        (RefFunction::Dot, vec![i], vec![], "dot() got 1 buffers and 0 integers"),
        (RefFunction::Sum, vec![], vec![], "sum() got no array"),
    ] {
        assert_eq!(apply(function, &arguments, &integers).unwrap_err(), expected);
    }
}

#[test]
fn a_constant_is_a_number_or_refused() {
    let constant = |value| evaluate::<String>(&RefExpr::Constant(value), &mut |name| Err(name.to_owned()));
    assert_eq!(constant(Value::Int(-5)).unwrap().number(0), Number::Int(-5));
    assert_eq!(constant(Value::Float(0.5)).unwrap().number(0), Number::Float(0.5));
    let error = constant(Value::Bool(true)).unwrap_err();
    assert_eq!(error, "the check's bool `true` is not a number");
}

/// An element type and some of its values, often near its limits, where arithmetic wraps.
fn typed_integers(len: impl Into<prop::collection::SizeRange>) -> impl Strategy<Value = (ElementType, Vec<i128>)> {
    let len = len.into();
    prop::sample::select(integer_types().collect::<Vec<_>>()).prop_flat_map(move |element| {
        let (low, high) = range(element);
        let value = prop_oneof![4 => low..=high, 1 => Just(low), 1 => Just(high), 1 => low.max(-3)..=3];
        (Just(element), prop::collection::vec(value, len.clone()))
    })
}

/// Multiples of 2^-64 below 2^40 that are exact in f32, so that sums of them are exact in i128.
fn fixed_point() -> impl Strategy<Value = f64> {
    (any::<i32>(), -64i32..16).prop_map(|(mantissa, exponent)| f64::from(mantissa >> 8) * 2f64.powi(exponent))
}

const SCALE: i32 = 64;

fn exact(value: f64) -> i128 {
    (value * 2f64.powi(SCALE)) as i128
}

/// Allowed error of a compensated sum of `n` values (Ogita, Rump and Oishi 2005, theorems on Sum2 and Dot2).
fn allowed(sum: f64, magnitudes: f64, n: usize) -> f64 {
    f64::EPSILON * sum.abs() + (n as f64 * f64::EPSILON).powi(2) * magnitudes
}

proptest! {
    #[test]
    fn reductions_of_integers_are_those_of_whole_numbers_modulo_the_type((element, values) in typed_integers(0..200usize)) {
        let sum: i128 = values.iter().sum();
        prop_assert_eq!(whole(RefFunction::Sum, element, &values), wrapped(element, sum));
        let product = values.iter().fold(1, |product, v| times(element, product, *v));
        prop_assert_eq!(whole(RefFunction::Product, element, &values), product);
        let squares = values.iter().fold(0, |sum, v| wrapped(element, sum + times(element, *v, *v)));
        prop_assert_eq!(whole(RefFunction::SumSquares, element, &values), squares);
        let (and, or) = values.iter().fold((-1, 0), |(and, or), v| (and & v, or | v));
        prop_assert_eq!(whole(RefFunction::And, element, &values), wrapped(element, and));
        prop_assert_eq!(whole(RefFunction::Or, element, &values), wrapped(element, or));
        if let (Some(least), Some(greatest)) = (values.iter().min(), values.iter().max()) {
            prop_assert_eq!(whole(RefFunction::Min, element, &values), *least);
            prop_assert_eq!(whole(RefFunction::Max, element, &values), *greatest);
        }
    }

    #[test]
    fn products_of_integer_matrices_are_sums_over_the_inner_dimension(
        (rows, columns, inner) in (1usize..20, 1usize..20, 0usize..20),
        (element, values) in typed_integers(800),
    ) {
        let (a, b) = (&values[..rows * inner], &values[400..400 + inner * columns]);
        let sizes = [rows as i64, columns as i64, inner as i64];
        let product = apply(RefFunction::Matmul, &[ints(element, a), ints(element, b)], &sizes).unwrap();
        let expected: Vec<i128> = (0..rows * columns).map(|place| {
            let (row, column) = (place / columns, place % columns);
            (0..inner).fold(0, |sum, i| wrapped(element, sum + times(element, a[row * inner + i], b[i * columns + column])))
        }).collect();
        prop_assert_eq!(whole_elements(&product), expected);
    }

    #[test]
    fn a_transpose_has_each_element_at_its_mirrored_place((rows, columns) in (1usize..80, 1usize..80)) {
        let values: Vec<i128> = (0..(rows * columns) as i128).collect();
        let matrix = ints(ElementType::I32, &values);
        let wide = Operand::Wide {
            element: ElementType::I32,
            lanes: Arc::new(Lanes::Int(values.iter().map(|v| *v as i64).collect())),
        };
        for from in [matrix, wide] {
            let turned = apply(RefFunction::Transpose, &[from], &[rows as i64, columns as i64]).unwrap();
            let turned = whole_elements(&turned);
            for (place, value) in turned.into_iter().enumerate() {
                prop_assert_eq!(value, ((place % rows) * columns + place / rows) as i128);
            }
        }
    }

    #[test]
    fn sums_of_floats_are_exact_but_for_one_rounding(values in prop::collection::vec(fixed_point(), 0..300)) {
        let sum = number(RefFunction::Sum, &[floats(ElementType::F32, &values)]).as_f64();
        let expected = values.iter().map(|v| exact(*v)).sum::<i128>() as f64 * 2f64.powi(-SCALE);
        let magnitudes = values.iter().map(|v| v.abs()).sum();
        prop_assert!((sum - expected).abs() <= allowed(expected, magnitudes, values.len()), "{sum} {expected}");
    }

    #[test]
    fn dots_of_doubles_are_exact_but_for_one_rounding(
        pairs in prop::collection::vec((-(1i64 << 53)..1 << 53, -(1i64 << 53)..1 << 53), 0..200),
    ) {
        let (x, y): (Vec<f64>, Vec<f64>) = pairs.iter().map(|(x, y)| (*x as f64, *y as f64)).unzip();
        let exact: i128 = pairs.iter().map(|(x, y)| i128::from(*x) * i128::from(*y)).sum();
        let magnitudes: f64 = pairs.iter().map(|(x, y)| (*x as f64 * *y as f64).abs()).sum();
        let arrays = [floats(ElementType::F64, &x), floats(ElementType::F64, &y)];
        let dot = number(RefFunction::Dot, &arrays).as_f64();
        prop_assert!((dot - exact as f64).abs() <= allowed(exact as f64, magnitudes, pairs.len()), "{dot} {exact}");
        let squares: i128 = pairs.iter().map(|(x, _)| i128::from(*x) * i128::from(*x)).sum();
        let sum = number(RefFunction::SumSquares, &arrays[..1]).as_f64();
        prop_assert!((sum - squares as f64).abs() <= allowed(squares as f64, squares as f64, pairs.len()));
    }
}

/// Product of two values modulo the type, computed by halves that fit i128.
fn times(element: ElementType, a: i128, b: i128) -> i128 {
    let (high, low) = (b.div_euclid(1 << 32), b.rem_euclid(1 << 32));
    wrapped(element, wrapped(element, a * high) * (1 << 32) + a * low)
}

#[test]
fn a_result_that_the_host_has_no_memory_for_is_refused() {
    let int = ints(ElementType::I32, &[0, 1, 1]);
    let refused = apply(RefFunction::Histogram, std::slice::from_ref(&int), &[10_i64.pow(15)]).unwrap_err();
    assert!(
        refused.starts_with("histogram() returns 1000000000000000 elements, which need 7.1 PiB, but the host has "),
        "{refused}"
    );
    assert!(apply(RefFunction::Histogram, &[int], &[i64::MAX]).is_err());
    // The product of a column and a row has as many elements as the square of their length.
    let column = Operand::Bytes { element: ElementType::I8, bytes: Arc::new(vec![1; 10_000_000]) };
    let refused = apply(RefFunction::Matmul, &[column.clone(), column], &[10_000_000, 10_000_000, 1]).unwrap_err();
    assert!(
        refused.starts_with("matmul() returns 100000000000000 elements, which need 728 TiB, but the host has "),
        "{refused}"
    );
}

fn apply_elementwise(operation: Elementwise, operands: &[Operand]) -> Result<Operand, String> {
    let places = (0..operands.len()).map(|i| RefExpr::Buffer(i.to_string())).collect();
    let expression = RefExpr::Elementwise { operation, operands: places };
    evaluate(&expression, &mut |name| Ok(operands[name.parse::<usize>().unwrap()].clone()))
}

#[test]
fn comparisons_give_one_where_they_hold_whatever_the_types_of_integers_are() {
    let large = ints(ElementType::U64, &[i128::from(u64::MAX), 5, 0]);
    let small = ints(ElementType::I8, &[-1, 5, 1]);
    let compare = |operation| whole_elements(&apply_elementwise(operation, &[large.clone(), small.clone()]).unwrap());
    assert_eq!(compare(Elementwise::Less), [0, 0, 1]);
    assert_eq!(compare(Elementwise::LessOrEqual), [0, 1, 1]);
    assert_eq!(compare(Elementwise::Greater), [1, 0, 0]);
    assert_eq!(compare(Elementwise::GreaterOrEqual), [1, 1, 0]);
    assert_eq!(compare(Elementwise::Equal), [0, 1, 0]);
    assert_eq!(compare(Elementwise::NotEqual), [1, 0, 1]);
    assert_eq!(compare(Elementwise::And), [1, 1, 0]);
    assert_eq!(compare(Elementwise::Or), [1, 1, 1]);
    assert_eq!(whole_elements(&apply_elementwise(Elementwise::Not, &[large]).unwrap()), [0, 0, 1]);
}

#[test]
fn nan_is_only_different_from_everything() {
    let (nan, one) = (floats(ElementType::F32, &[f64::NAN, 2.0]), floats(ElementType::F32, &[f64::NAN, 1.0]));
    let compare = |operation| whole_elements(&apply_elementwise(operation, &[nan.clone(), one.clone()]).unwrap());
    assert_eq!(compare(Elementwise::NotEqual), [1, 1]);
    assert_eq!(compare(Elementwise::Equal), [0, 0]);
    assert_eq!(compare(Elementwise::GreaterOrEqual), [0, 1]);
}

#[test]
fn a_remainder_has_the_sign_of_the_dividend_and_none_is_of_zero() {
    let (left, right) = (ints(ElementType::I32, &[-7, 7, 6]), ints(ElementType::I32, &[2, -2, 3]));
    assert_eq!(whole_elements(&apply_elementwise(Elementwise::Remainder, &[left.clone(), right]).unwrap()), [-1, 1, 0]);
    let zero = ints(ElementType::I32, &[1, 0, 1]);
    assert!(apply_elementwise(Elementwise::Remainder, &[left, zero]).is_err());
}
